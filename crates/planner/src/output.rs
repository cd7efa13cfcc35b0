use std::collections::BTreeMap;

use scarpenter_core::offering::{Arch, Launch, OfferingKey, Price};
use scarpenter_core::pod::{PodKey, Taint, Toleration};
use scarpenter_core::requirements::Requirement;
use scarpenter_core::resources::Resources;
use serde::Serialize;

/// What is to be done, and why not more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Machines to buy, those for the largest pods first.
    pub claims: Vec<PlannedClaim>,
    /// Pods that wait for a place that exists or is being made.
    pub nominated: Vec<Nomination>,
    /// Pods that get nothing, by namespace and name.
    pub unplaced: Vec<Unplaced>,
    /// Which cap of the controller left pods over, in words.
    pub capped: Option<String>,
    /// How many pods were not looked at, since a pass is bounded; the next pass begins with them.
    pub deferred: usize,
}

/// One machine to buy.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedClaim {
    /// Its pool.
    pub pool: String,
    /// Its `ScarpenterNodeClass`.
    pub class: String,
    /// The pods it is for, each with its UID.
    pub pods: Vec<(PodKey, String)>,
    /// What is bought.
    pub launch: Launch,
    /// What of the price is charged beside the machine, by the class's extras.
    pub extras: Price,
    /// Up to three offerings that would do as well, next cheapest first.
    pub alternatives: Vec<Alternative>,
    /// All that the machine must be, for `spec.requirements`.
    pub requirements: Vec<Requirement>,
    /// Whether its `minValues` were lowered to what there is; absent when its pool asks for none.
    pub min_values_relaxed: Option<bool>,
    /// Labels of the claim: the template's, pool, class, and one value for each custom key.
    pub labels: BTreeMap<String, String>,
    /// Taints of the claim, that of a single-pod machine included.
    pub taints: Vec<Taint>,
    /// Startup taints of the claim.
    pub startup_taints: Vec<Taint>,
    /// Sum of its pods' requests and of the daemon pods that will run beside them.
    pub requests: Resources,
    /// By pod UID, tolerations to add to the pod before it can be bound there.
    pub tolerations: BTreeMap<String, Vec<Toleration>>,
}

/// An offering that was not chosen but would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Which.
    pub offering: OfferingKey,
    /// Architecture.
    pub arch: Arch,
    /// Price per hour, extras included.
    pub price: Price,
}

/// A pod and the place it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nomination {
    /// The pod.
    pub pod: PodKey,
    /// Its UID.
    pub uid: String,
    /// Node name, or the claim's while there is no node.
    pub node: String,
    /// Tolerations to add to the pod before it can be bound there.
    pub tolerations: Vec<Toleration>,
}

/// A pod that gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The pod.
    pub pod: PodKey,
    /// Its UID.
    pub uid: String,
    /// Why.
    pub refusal: Refusal,
}

/// Why nothing is bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first rule that left nothing; a stable identifier.
    ///
    /// A label rule is called `vendor`, `instance-type`, `arch`, `os`, `region`, `zone`, `capacity-type`, `price`
    /// or by its key. The others, in order: `invalid`, `undecided`, `no-nodepool`, labels, `node-class`, `class-vendor`,
    /// `pool-requirements`, `default-capacity-type`, `taints`, `volume`, `spread`, `pod-affinity` and `pod-anti-affinity`,
    /// `vendor-unavailable`, `capacity`, `unfit`, `stock-out`, `min-values`, `limits`, `caps`.
    pub reason: String,
    /// One or two sentences for a person: what is wrong and what to change.
    pub message: String,
    /// How many offerings each rule removed, in the order of evaluation; empty where so many kinds of pods were refused
    /// that nobody would read it.
    pub removed: Vec<Removed>,
    /// When trying again makes sense, if waiting helps. Seconds since 1970.
    pub until: Option<i64>,
}

/// One line of the table of a [`Refusal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The rule.
    pub rule: String,
    /// How many offerings it removed of those that were left.
    pub offerings: usize,
}
