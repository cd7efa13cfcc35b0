//! NodePools and node classes as the planner sees them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::kubelet::Kubelet;
use crate::name::Vendor;
use crate::offering::{InstanceType, Price};
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
    /// What vendors charge beside the machine; an absent vendor charges nothing that is known.
    pub extras: BTreeMap<Vendor, Extras>,
}

/// What a vendor charges beside the machine itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// A public IPv4 address, an hour.
    pub public_ipv4: Price,
    /// A GiB of boot disk, a month; for types that bring no disk of their own.
    pub boot_disk_gib_month: Price,
}

/// Hours of a month, as vendors count when they turn a month's price into an hour's.
const HOURS_OF_MONTH: u64 = 730;

impl Class {
    /// What is charged beside a machine of this type, in micro-USD an hour, rounded half up.
    #[must_use]
    pub fn extra_micro_usd_per_hour(&self, instance_type: &InstanceType) -> u64 {
        let Some(extras) = self.extras.get(&instance_type.vendor) else { return 0 };
        let disk_gib = if instance_type.storage_gb > 0 { 0 } else { self.boot_disk_gib };
        let month = extras.boot_disk_gib_month.micro_usd().saturating_mul(disk_gib);
        let disk = month.saturating_add(HOURS_OF_MONTH / 2) / HOURS_OF_MONTH;
        extras.public_ipv4.micro_usd().saturating_add(disk)
    }
}
