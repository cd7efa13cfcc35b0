//! Pods, pools and a catalog snapshot in; a plan with its reasons out.
//!
//! [`plan`] is one pass: pods by priority and from large to small, each to a place that exists or is being made,
//! else to a claim of this pass, else to a new claim for the cheapest offering that fits.
//! Pods that the passes before refused come after all others, and a pass looks at so many pods and no more.
//! Within the heaviest pools that fit, pools of equal weight compete by price; of equal prices on-demand
//! goes before spot, then vendor, region, zone and type decide.
//! At the end, claims that hold only pods no rule counts are weighed by their total price against machines of one offering.
//!
//! **What is given up, one thing at a time, while a pod finds no place:** preferred pod affinity, the lightest first;
//! preferred pod anti-affinity, the lightest first; preferences for nodes, the lightest first (one that nothing meets is
//! given up at once); spreads with `ScheduleAnyway`, the last first; that a pool's `PreferNoSchedule` taints keep it away;
//! and last that domains which could be bought, and are not there, count for a spread: the kube-scheduler does not know of
//! them. Alternatives of required node affinity are looked at together, not one after the other.
//!
//! What a pool's limits and the two caps allow is reserved as claims are made, so a plan never goes over.
//!
//! **Architecture invariant:** no clock, no randomness, no vendor's name; equal input gives an equal plan.

pub mod disruption;

mod allocatable;
mod claim;
mod explain;
mod ground;
mod input;
mod market;
mod output;
mod packing;
mod pass;
mod places;
mod refusal;
mod shape;
mod table;
mod tolerate;
mod topology;
mod words;

pub use allocatable::allocatable;
pub use claim::{ClaimInput, plan_claim};
pub use explain::{Advice, Explanation, NodeRefusal, Outcome, Priced, RuleLine, explain, explain_all};
pub use input::{Caps, Input, Kind, Lessons, Rules, Unavailable};
pub use output::{Alternative, Nomination, Plan, PlannedClaim, Refusal, Removed, Unplaced};
pub use packing::lower_bound;

/// Decides where every pod goes, what is bought, and why the others get nothing.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    pass::Pass::new(input).run()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
