use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::name::Vendor;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::offering::OfferingKey;
use scarpenter_core::pod::Pod;
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::resources::Resources;
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;

/// Every fact that a pass looks at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The catalog.
    pub snapshot: &'a Snapshot,
    /// Pods that want a place, in any order.
    pub pods: &'a [Pod],
    /// Usable pools, in any order.
    pub pools: &'a [Pool],
    /// Usable classes by name.
    pub classes: &'a BTreeMap<String, Class>,
    /// Places that exist and claims that will be places, in any order.
    ///
    /// A pod that an open one is promised to is not planned again.
    pub nodes: &'a [Node],
    /// What runs on every node.
    pub daemons: &'a [Daemon],
    /// What cannot be bought now.
    pub unavailable: &'a Unavailable,
    /// What all pools together may have.
    pub caps: &'a Caps,
    /// Labels of the namespaces, for terms that select namespaces.
    pub namespaces: &'a Namespaces,
    /// What machines and passes before this one have shown.
    pub lessons: &'a Lessons,
    /// How to decide where Karpenter lets the operator choose.
    pub rules: Rules,
    /// Seconds since 1970.
    pub now: i64,
}

/// What was learned from machines that were bought and from passes that were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lessons {
    /// What pods can have of a machine, as the first node of each kind showed.
    pub allocatable: BTreeMap<Kind, Resources>,
    /// By UID of a pod, kinds of machines that were bought for it and did not take it, each with the gap in words.
    pub unfit: BTreeMap<String, BTreeMap<Kind, String>>,
    /// UIDs of pods for which the passes before found nothing: they come after all others.
    pub hopeless: BTreeSet<String>,
}

/// A kind of machine: what is booted on what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Name of the `ScarpenterNodeClass`, which decides image and kubelet settings.
    pub class: String,
    /// Vendor.
    pub vendor: Vendor,
    /// Instance type.
    pub instance_type: String,
}

/// Where the operator chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether preferences are tried before they are dropped (`PREFERENCE_POLICY` Respect) or never looked at (Ignore).
    pub respect_preferences: bool,
    /// Whether `minValues` must hold (`MIN_VALUES_POLICY` Strict) or is lowered to what there is (BestEffort).
    pub strict_min_values: bool,
    /// So many pods are looked at in one pass; the others are left for the next.
    pub most_pods: usize,
    /// So many kinds of pods are refused in one pass, since words cost more than machines; further ones that get nothing
    /// are left for the next. All that can be placed are.
    pub most_refusals: usize,
}

impl Default for Rules {
    /// As Karpenter: respect, strict; 10,000 pods and 128 kinds of refused ones a pass.
    fn default() -> Self {
        Self { respect_preferences: true, strict_min_values: true, most_pods: 10_000, most_refusals: 128 }
    }
}

/// What was refused lately, and until when nobody asks again. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unavailable {
    /// Sold out.
    pub offerings: BTreeMap<OfferingKey, i64>,
    /// Quota reached in a vendor's region.
    pub regions: BTreeMap<(Vendor, String), i64>,
    /// Vendors that cannot be asked at all, each with the reason.
    pub vendors: BTreeMap<Vendor, String>,
}

/// What all machines of this cluster together may be; absent is not capped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Most machines.
    pub max_machines: Option<u64>,
    /// Most money, in micro-USD an hour.
    pub max_micro_usd_per_hour: Option<u64>,
    /// Machines of all claims there are.
    pub used_machines: u64,
    /// What all claims there are cost, in micro-USD an hour.
    pub used_micro_usd_per_hour: u64,
}
