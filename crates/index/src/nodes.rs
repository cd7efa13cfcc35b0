//! Nodes: what is kept of each.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node as KubeNode, Taint as WireTaint};
use kube::ResourceExt;
use scarpenter_api::node;
use scarpenter_core::label;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::ProviderId;
use scarpenter_core::pod::Taint;
use scarpenter_core::resources::Resources;

/// One node, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// When it got the taint of a node that is about to go; absent when the taint does not say.
    pub disrupted_since: Option<Time>,
    /// Status capacity.
    pub capacity: Resources,
    /// Status allocatable.
    pub allocatable: Resources,
    /// Its provider id, when it is one of ours; what else is written there is not ours.
    pub provider_id: Option<ProviderId>,
    /// Condition Ready is True.
    pub ready: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// It holds our finalizer.
    pub held: bool,
}

impl NodeRecord {
    pub(crate) fn parse(object: &KubeNode) -> Self {
        let spec = object.spec.clone().unwrap_or_default();
        Self {
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            labels: object.labels().clone(),
            annotations: object.annotations().clone(),
            taints: node::taints(object),
            disrupted_since: disrupted_since(spec.taints.as_deref().unwrap_or_default()),
            capacity: node::capacity(object),
            allocatable: node::allocatable(object),
            provider_id: spec.provider_id.as_deref().and_then(ProviderId::parse),
            ready: node::is_ready(object),
            deleting: object.metadata.deletion_timestamp.is_some(),
            cordoned: spec.unschedulable == Some(true),
            held: object.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER),
        }
    }

    /// Whether labels and taints were synced.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.labels.get(label::REGISTERED).is_some_and(|value| value == "true")
    }

    /// Whether it is fit for use for good.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.labels.get(label::INITIALIZED).is_some_and(|value| value == "true")
    }

    /// Whether it carries the taint of a node that is about to go.
    #[must_use]
    pub fn is_disrupted(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == label::DISRUPTED_TAINT)
    }
}

fn disrupted_since(taints: &[WireTaint]) -> Option<Time> {
    let taint = taints.iter().find(|taint| taint.key == label::DISRUPTED_TAINT)?;
    taint.time_added.as_ref().map(|at| Time::from_millis(at.0.as_millisecond()))
}
