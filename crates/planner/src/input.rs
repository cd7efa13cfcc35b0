use std::collections::BTreeMap;

use scarpenter_core::name::Vendor;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::offering::OfferingKey;
use scarpenter_core::pod::Pod;
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::snapshot::Snapshot;

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
    /// Seconds since 1970.
    pub now: i64,
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
