//! Claims: the facts that are written on them, parsed once.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use scarpenter_api::{NodeClaim, condition, node};
use scarpenter_core::label;
use scarpenter_core::lifecycle::{Claim, Time};
use scarpenter_core::name::{ClaimUid, ProviderId};
use scarpenter_core::node::Node;
use scarpenter_core::offering::Launch;
use scarpenter_core::pod::Taint;
use scarpenter_core::resources::{MICRO_USD_PER_HOUR, NODES, Resources};

/// One claim, parsed.
#[derive(Clone, Debug)]
pub struct ClaimRecord {
    /// The object as it was read.
    pub object: Arc<NodeClaim>,
    /// Its facts.
    pub claim: Claim,
    /// Its pool, when one made it.
    pub pool: Option<String>,
    /// UIDs of the pods that it was made for.
    pub pods: Vec<String>,
    /// Annotations of ours that could not be read, in words: such a claim is never acted on but to delete it.
    pub unreadable: Vec<String>,
}

impl ClaimRecord {
    /// Parses a claim.
    #[must_use]
    pub fn parse(object: Arc<NodeClaim>) -> Self {
        let mut unreadable = Vec::new();
        let launch = object.annotation(label::LAUNCH).and_then(|text| {
            serde_json::from_str::<Launch>(text)
                .map_err(|error| unreadable.push(format!("annotation {}: {error}", label::LAUNCH)))
                .ok()
        });
        let mut time = |key: &str| {
            let text = object.annotation(key)?;
            let parsed = text.parse::<Timestamp>().map(|at| Time::from_millis(at.as_millisecond()));
            parsed.map_err(|error| unreadable.push(format!("annotation {key}: {error}"))).ok()
        };
        let created = object.metadata.creation_timestamp.as_ref().map(|at| millis(at.0)).unwrap_or_default();
        // One that cannot be read was still written: a machine may exist, and only its deletion is safe.
        let attempt = time(label::ATTEMPT).or_else(|| object.annotation(label::ATTEMPT).map(|_| created));
        let drain_deadline = time(label::TERMINATION_TIMESTAMP);
        let conditions = object.conditions();
        let claim = Claim {
            uid: ClaimUid::new(object.uid().unwrap_or_default()),
            name: object.name_any(),
            created,
            deleted: object.metadata.deletion_timestamp.as_ref().map(|at| millis(at.0)),
            held: object.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER),
            launch,
            attempt,
            refused: object.annotation(label::REFUSED).map(str::to_owned),
            machine_id: object.annotation(label::MACHINE_ID).map(Into::into),
            registered: condition::is_true(conditions, condition::REGISTERED),
            initialized: condition::is_true(conditions, condition::INITIALIZED),
            terminating: condition::is_true(conditions, condition::INSTANCE_TERMINATING)
                .then(|| condition::since(conditions, condition::INSTANCE_TERMINATING))
                .flatten()
                // Conditions keep whole seconds, cut; a list begun in the same second may be older than the delete.
                .map(|at| millis(at).after(std::time::Duration::from_secs(1))),
            expire_after: object.spec.expire_after.get(),
            drain_deadline,
        };
        let pool = object.label(label::NODEPOOL).map(str::to_owned);
        let pods = object.annotation(label::PODS).map(|text| text.split(',').map(str::to_owned).collect());
        Self { claim, pool, pods: pods.unwrap_or_default(), unreadable, object }
    }

    /// Its provider id, once it is bound to a vendor.
    #[must_use]
    pub fn provider_id(&self) -> Option<ProviderId> {
        let launch = self.claim.launch.as_ref()?;
        Some(ProviderId { vendor: launch.offering.vendor.clone(), claim: self.claim.uid.clone() })
    }

    /// What it costs and has, as limits count it: one machine, its capacity and its price.
    #[must_use]
    pub fn counted(&self) -> Resources {
        let Some(launch) = &self.claim.launch else { return Resources::new().with(NODES, 1) };
        let price = i64::try_from(launch.price_per_hour_micro_usd.micro_usd()).unwrap_or(i64::MAX);
        launch.capacity.clone().with(NODES, 1).with(MICRO_USD_PER_HOUR, price)
    }

    /// The node that it will be, while there is none to look at.
    pub(crate) fn in_flight(&self, promised: Vec<String>, requested: Resources) -> Option<Node> {
        let launch = self.claim.launch.as_ref()?;
        let mut labels = launch.labels.clone();
        labels.extend(self.object.labels().clone());
        labels.insert(label::HOSTNAME.to_owned(), self.claim.name.clone());
        Some(Node {
            name: self.claim.name.clone(),
            pool: self.pool.clone(),
            labels,
            taints: self.taints(),
            allocatable: launch.allocatable.clone(),
            counted: self.counted(),
            requested,
            daemon_requested: Resources::new(),
            open: self.claim.deleted.is_none() && self.claim.refused.is_none(),
            initialized: false,
            promised,
            ..Node::default()
        })
    }

    /// Taints of the spec, without the startup taints.
    pub(crate) fn taints(&self) -> Vec<Taint> {
        node::parse_taints(&self.object.spec.taints)
    }
}

fn millis(at: Timestamp) -> Time {
    Time::from_millis(at.as_millisecond())
}
