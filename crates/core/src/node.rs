//! Nodes, and claims that will be nodes, as the planner sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pod::{Attachment, HostPort, Pod, Taint};
use crate::resources::Resources;

/// A place that exists or is being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Node name, or the claim's name while there is no node.
    pub name: String,
    /// Pool, when it is one of ours.
    pub pool: Option<String>,
    /// Labels it has or will have; nothing else may be assumed of it.
    pub labels: BTreeMap<String, String>,
    /// Taints that count (STA-3): ephemeral ones are left out until it is initialized.
    pub taints: Vec<Taint>,
    /// What pods can have of it.
    pub allocatable: Resources,
    /// Capacity as limits count it, with `nodes: 1` and the price.
    pub counted: Resources,
    /// Sum of requests of the pods bound to it or promised to it, daemon pods included.
    pub requested: Resources,
    /// Of `requested`, the part of daemon pods.
    pub daemon_requested: Resources,
    /// Whether it may take further pods (not deleting, not disrupted, not cordoned).
    pub open: bool,
    /// Whether it is initialized; those are tried first.
    pub initialized: bool,
    /// UIDs of pending pods that this claim was made for.
    pub promised: Vec<String>,
    /// Pods that other pods' topology rules count here: bound or promised, neither terminal nor terminating.
    pub pods: Vec<Arc<Pod>>,
    /// Ports that its pods take, also those of pods that are terminating.
    pub host_ports: Vec<HostPort>,
    /// Volumes that are attached for its pods.
    pub attached: Vec<Attachment>,
    /// By CSI driver, how many volumes it can attach; a driver that is not named is not limited.
    pub attach_limits: BTreeMap<String, u32>,
}

/// A DaemonSet: the pod that it puts on every node it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Daemon {
    /// The pod, with selectors from the DaemonSet's template.
    pub pod: Pod,
}
