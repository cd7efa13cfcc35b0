//! The plan as other programs read it: version 1.
//!
//! Fields are only ever added to a version; a change of meaning makes a new one.
//! Prices are integers in micro-USD an hour, amounts are Kubernetes quantities.

use std::collections::BTreeMap;

use scarpenter_core::offering::{Arch, CapacityType, OfferingKey, Price};
use scarpenter_planner::{Explanation, Plan, PlannedClaim, Removed, Unplaced};
use serde::Serialize;

use crate::explain::document::ExplanationDocument;

/// Version of this contract.
const VERSION: u32 = 1;

/// A whole plan.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanDocument {
    /// Always 1.
    version: u32,
    /// Machines to buy, those for the largest pods first.
    claims: Vec<ClaimDocument>,
    /// Pods that get nothing, by namespace and name.
    unplaced: Vec<UnplacedDocument>,
    /// What all `claims` cost together.
    total_price_per_hour_micro_usd: u64,
    /// What machines for the same pods cost at least, whatever the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_bound_price_per_hour_micro_usd: Option<u64>,
    /// Why, for every pod by namespace and name; only with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanations: Option<Vec<ExplanationDocument>>,
}

/// One machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimDocument {
    /// Its pods as `namespace/name`.
    pods: Vec<String>,
    /// The NodePool that it is bought for.
    node_pool: String,
    /// What is bought.
    offering: OfferingDocument,
    /// What of its price is charged beside the machine, by the class's extras.
    extras_per_hour_micro_usd: Price,
    /// Up to three offerings that would do as well, next cheapest first.
    alternatives: Vec<OfferingDocument>,
    /// Sum of what its pods, and the daemon pods beside them, ask for.
    requests: BTreeMap<String, String>,
}

/// A thing that can be bought.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferingDocument {
    vendor: String,
    /// The vendor's name of the type.
    instance_type: String,
    /// The vendor's name of the region.
    region: String,
    /// The vendor's name of the zone; null where it sells by region.
    zone: Option<String>,
    /// `on-demand` or `spot`.
    capacity_type: CapacityType,
    /// `amd64` or `arm64`.
    arch: Arch,
    /// With all that the class says is charged beside the machine.
    price_per_hour_micro_usd: Price,
}

/// A pod that gets nothing.
#[derive(Debug, Serialize)]
struct UnplacedDocument {
    /// `namespace/name`.
    pod: String,
    /// The first rule that left nothing: a stable identifier.
    reason: String,
    /// For a person: what is wrong and what to change.
    message: String,
    /// How many offerings each rule removed, in the order of evaluation; rules that removed none are left out.
    /// Empty after the first kinds of pods that get nothing; `explanations` have it for all.
    removed: Vec<Removed>,
}

impl PlanDocument {
    pub(super) fn new(plan: &Plan) -> Self {
        let prices = plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd());
        Self {
            version: VERSION,
            claims: plan.claims.iter().map(ClaimDocument::new).collect(),
            unplaced: plan.unplaced.iter().map(UnplacedDocument::new).collect(),
            total_price_per_hour_micro_usd: prices.sum(),
            lower_bound_price_per_hour_micro_usd: None,
            explanations: None,
        }
    }

    /// The same beside what it costs at least.
    pub(super) fn at_least(mut self, micro_usd: u64) -> Self {
        self.lower_bound_price_per_hour_micro_usd = Some(micro_usd);
        self
    }

    /// The same with the reasons.
    pub(super) fn explained(mut self, explanations: Option<&[Explanation]>) -> Self {
        self.explanations = explanations.map(|all| all.iter().map(ExplanationDocument::new).collect());
        self
    }
}

impl ClaimDocument {
    fn new(claim: &PlannedClaim) -> Self {
        let launch = &claim.launch;
        let others = claim.alternatives.iter();
        Self {
            pods: claim.pods.iter().map(|(key, _)| key.to_string()).collect(),
            node_pool: claim.pool.clone(),
            offering: OfferingDocument::new(&launch.offering, launch.arch, launch.price_per_hour_micro_usd),
            extras_per_hour_micro_usd: claim.extras,
            alternatives: others
                .map(|other| OfferingDocument::new(&other.offering, other.arch, other.price))
                .collect(),
            requests: claim.requests.to_quantities(),
        }
    }
}

impl OfferingDocument {
    pub(crate) fn new(key: &OfferingKey, arch: Arch, price: Price) -> Self {
        Self {
            vendor: key.vendor.to_string(),
            instance_type: key.instance_type.clone(),
            region: key.region.clone(),
            zone: key.zone.clone(),
            capacity_type: key.capacity_type,
            arch,
            price_per_hour_micro_usd: price,
        }
    }
}

impl UnplacedDocument {
    fn new(unplaced: &Unplaced) -> Self {
        let refusal = &unplaced.refusal;
        Self {
            pod: unplaced.pod.to_string(),
            reason: refusal.reason.clone(),
            message: refusal.message.clone(),
            removed: refusal.removed.clone(),
        }
    }
}
