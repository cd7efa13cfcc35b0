//! What is seen of a claim: from the view, the latest lists, and the API where a cache is not enough.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use scarpenter_api::condition::{self, Status};
use scarpenter_api::{node, pod, reason};
use scarpenter_core::lifecycle::{MachineSeen, NodeFacts, NodeSeen, Seen, Time};
use scarpenter_core::name::Vendor;
use scarpenter_index::{ClaimRecord, NodeRecord, PodRecord};

use super::Error;
use crate::context::Context;
use crate::{clock, join};

/// Looks at all that the next step may depend on; reads only.
pub(crate) async fn observe(context: &Context, record: &ClaimRecord, now: Time) -> Result<Seen, Error> {
    let claim = &record.claim;
    let mut node = node_seen(context, record);
    if let NodeSeen::One(facts) = &mut node
        && claim.deleted.is_some()
        && claim.terminating.is_none()
        // Before that it waits in any case; the step is decided at the same `now`.
        && facts.disrupted.is_some_and(|since| now >= since.after(context.settings.drain_delay))
        && facts.pods == 0
    {
        facts.pods = count_holding(context, &node_name(context, record)).await?;
    }
    Ok(Seen {
        node,
        machine: machine_seen(context, record),
        join_material_lost: join_material_lost(context, record).await?,
        class_ready: class_ready(context, record),
        provider_ready: provider_ready(context, record),
    })
}

fn node_name(context: &Context, record: &ClaimRecord) -> String {
    context
        .view()
        .nodes_of(&record.claim.uid)
        .next()
        .map_or_else(|| record.claim.name.clone(), |node| node.name.clone())
}

fn node_seen(context: &Context, record: &ClaimRecord) -> NodeSeen {
    let view = context.view();
    let mut nodes = view.nodes_of(&record.claim.uid);
    match (nodes.next(), nodes.next()) {
        (None, _) => NodeSeen::Absent,
        (Some(_), Some(_)) => NodeSeen::Many,
        (Some(node), None) => NodeSeen::One(NodeFacts {
            ready: node.ready,
            deleting: node.deleting,
            uninitialized: uninitialized(record, node),
            disrupted: node.disrupted_since,
            pods: view.pods_on(&node.name).filter(|record| holds(record)).count(),
        }),
    }
}

/// Nobody waits longer than this for a pod that is past the end of its own grace (TRM-6).
const STUCK: Duration = Duration::from_secs(60);

fn holds(record: &PodRecord) -> bool {
    record.holds && record.going_since.is_none_or(|due| clock::now() < due.after(STUCK))
}

/// In the order of LIF-10, the first thing that a node lacks.
fn uninitialized(record: &ClaimRecord, seen: &NodeRecord) -> Option<(&'static str, String)> {
    if !seen.ready {
        return Some((reason::NODE_NOT_READY, "the node is not Ready".to_owned()));
    }
    let startup = node::parse_taints(&record.object.spec.startup_taints);
    if let Some(taint) = seen
        .taints
        .iter()
        .find(|taint| startup.iter().any(|own| own.key == taint.key && own.effect == taint.effect))
    {
        return Some((reason::STARTUP_TAINTS_EXIST, format!("startup taint {taint} has not been removed")));
    }
    if let Some(taint) = seen.taints.iter().find(|taint| node::is_ephemeral(taint)) {
        return Some((reason::KNOWN_EPHEMERAL_TAINTS_EXIST, format!("taint {taint} is still there")));
    }
    let requests = record
        .object
        .spec
        .resources
        .as_ref()
        .map(|resources| scarpenter_api::quantity::read(Some(&resources.requests)));
    let missing = requests
        .iter()
        .flat_map(|requests| requests.iter())
        .find(|(name, amount)| *amount > 0 && seen.allocatable.get(name) == 0);
    missing.map(|(name, _)| {
        (reason::RESOURCE_NOT_REGISTERED, format!("resource {name} was asked for and is not registered"))
    })
}

/// Pods that hold a node that is tainted, from the API: a cache may miss the one that was just bound.
pub(crate) async fn count_holding(context: &Context, node: &str) -> Result<usize, Error> {
    let pods = pods_on(context, node).await?;
    Ok(pods
        .iter()
        .filter(|object| pod::holds_drain(object, Timestamp::now()) || pod::holds_destroy(object))
        .count())
}

/// Pods of a node, from the API.
pub(crate) async fn pods_on(context: &Context, node: &str) -> Result<Vec<Pod>, Error> {
    let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let list = Api::<Pod>::all(context.client.clone())
        .list(&params)
        .await
        .map_err(Error::kubernetes("list the pods of a node"))?;
    Ok(list.items.into_iter().filter(|object| !pod::is_mirror(object)).collect())
}

fn machine_seen(context: &Context, record: &ClaimRecord) -> MachineSeen {
    let claim = &record.claim;
    if claim.attempt.is_none() && claim.machine_id.is_none() {
        return MachineSeen::NotAsked;
    }
    let seen = match &claim.launch {
        Some(launch) => vec![of_vendor(context, record, &launch.offering.vendor, &launch.offering.region)],
        // Whose machine it was cannot be read any more: every vendor must deny it.
        None => context.vendors.names().iter().map(|vendor| of_vendor(context, record, vendor, "")).collect(),
    };
    seen.into_iter().reduce(worse).unwrap_or_default()
}

fn of_vendor(context: &Context, record: &ClaimRecord, vendor: &Vendor, region: &str) -> MachineSeen {
    let Some(slot) = context.vendors.get(vendor) else {
        return MachineSeen::Unknown(format!("no plugin serves vendor {vendor}"));
    };
    if record.claim.terminating.is_some() {
        slot.want_list(&record.claim.name);
    }
    slot.seen(&record.claim.uid, region)
}

/// Of two answers the one that lets less happen.
fn worse(one: MachineSeen, other: MachineSeen) -> MachineSeen {
    match (one, other) {
        (MachineSeen::Present { stopped: a }, MachineSeen::Present { stopped: b }) => {
            MachineSeen::Present { stopped: a && b }
        }
        (MachineSeen::Absent(a), MachineSeen::Absent(b)) => MachineSeen::Absent(a.min(b)),
        (present @ MachineSeen::Present { .. }, _) | (_, present @ MachineSeen::Present { .. }) => present,
        (unknown @ MachineSeen::Unknown(_), _) | (_, unknown @ MachineSeen::Unknown(_)) => unknown,
        (MachineSeen::NotAsked, _) | (_, MachineSeen::NotAsked) => MachineSeen::NotAsked,
    }
}

/// Asked only where it matters: a create has been sent, and its answer is not recorded.
async fn join_material_lost(context: &Context, record: &ClaimRecord) -> Result<bool, Error> {
    let claim = &record.claim;
    let matters = claim.attempt.is_some()
        && claim.machine_id.is_none()
        && claim.refused.is_none()
        && claim.deleted.is_none();
    if !matters {
        return Ok(false);
    }
    let api = Api::<Secret>::namespaced(context.client.clone(), &context.settings.namespace);
    let found = api
        .get_metadata_opt(&join::secret_name(&claim.uid))
        .await
        .map_err(Error::kubernetes("read the join Secret"))?;
    Ok(found.is_none_or(|secret| secret.metadata.deletion_timestamp.is_some()))
}

/// A class that nobody has checked since the start counts as its own condition says.
fn class_ready(context: &Context, record: &ClaimRecord) -> bool {
    let name = &record.object.spec.node_class_ref.name;
    let Some(class) = context.view().class(name).cloned() else { return false };
    condition::status(class.conditions(), condition::READY) != Status::False
}

fn provider_ready(context: &Context, record: &ClaimRecord) -> bool {
    match &record.claim.launch {
        Some(launch) => {
            context.vendors.get(&launch.offering.vendor).is_some_and(|slot| slot.capabilities().is_some())
        }
        // Not planned yet: the launch step decides.
        None => true,
    }
}
