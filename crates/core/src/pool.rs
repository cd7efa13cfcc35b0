//! NodePools and node classes as the planner sees them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::kubelet::Kubelet;
use crate::name::Vendor;
use crate::pod::Taint;
use crate::requirements::Requirement;
use crate::resources::Resources;

/// The user's standing intent: what machines may be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// 1 to 100, 0 when absent; heavier first.
    pub weight: i32,
    /// Labels of the template.
    pub labels: BTreeMap<String, String>,
    /// Requirements of the template.
    pub requirements: Vec<Requirement>,
    /// Taints of the template.
    pub taints: Vec<Taint>,
    /// Startup taints of the template; pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// Most that all its machines together may have; an absent name is not limited.
    ///
    /// Besides cpu, memory, … it takes `nodes` and micro-USD an hour.
    pub limits: Resources,
    /// Name of its `ScarpenterNodeClass`.
    pub class: String,
}

/// Whether a machine takes one workload pod or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tenancy {
    /// As many as fit.
    #[default]
    Shared,
    /// One, ever.
    SinglePod,
}

impl Tenancy {
    /// Value of label `scarpenter.sparecores.com/tenancy`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::SinglePod => "single-pod",
        }
    }
}

/// The vendor particulars of a pool, as far as choosing needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Name.
    pub name: String,
    /// Usable vendors, and their allowed regions (empty: all of them).
    pub vendors: BTreeMap<Vendor, BTreeSet<String>>,
    /// Shared or one pod a machine.
    pub tenancy: Tenancy,
    /// Disk of types that have none of their own, in GiB.
    pub boot_disk_gib: u64,
    /// What its kubelets keep back, and how many pods they take: `kubelet.allocatable(&capacity)` is the one computation
    /// that the planner, the document and the hollow node share.
    pub kubelet: Kubelet,
}
