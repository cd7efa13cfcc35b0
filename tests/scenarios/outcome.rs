//! Writes a plan so that a change of it is easy to read.

use std::collections::BTreeMap;

use scarpenter_planner::{Nomination, Plan, PlannedClaim, Unplaced};
use serde_json::{Value, json};

/// The plan as text that ends with a new line.
pub(crate) fn write(plan: &Plan) -> String {
    let value = json!({
        "claims": plan.claims.iter().map(claim).collect::<Vec<_>>(),
        "nominated": plan.nominated.iter().map(nomination).collect::<Vec<_>>(),
        "unplaced": plan.unplaced.iter().map(unplaced).collect::<Vec<_>>(),
        "capped": plan.capped,
    });
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

fn claim(claim: &PlannedClaim) -> Value {
    let tolerations: BTreeMap<&str, Vec<String>> = claim
        .tolerations
        .iter()
        .map(|(uid, tolerations)| (uid.as_str(), tolerations.iter().map(toleration).collect()))
        .collect();
    json!({
        "pods": claim.pods.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>(),
        "nodePool": claim.pool,
        "offering": claim.launch.offering.to_string(),
        "price": claim.launch.price_per_hour_micro_usd.to_string(),
        "alternatives": claim.alternatives.iter().map(|other| other.offering.to_string()).collect::<Vec<_>>(),
        "requirements": claim.requirements.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "labels": claim.labels,
        "requests": claim.requests.to_quantities(),
        "taints": claim.taints.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "tolerations": tolerations,
    })
}

fn toleration(toleration: &scarpenter_core::pod::Toleration) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let effect = toleration.effect.map_or("", |effect| effect.as_str());
    format!("{}={}:{effect}", part(&toleration.key), part(&toleration.value))
}

fn nomination(nomination: &Nomination) -> Value {
    json!({"pod": nomination.pod.to_string(), "node": nomination.node})
}

fn unplaced(unplaced: &Unplaced) -> Value {
    json!({
        "pod": unplaced.pod.to_string(),
        "reason": unplaced.refusal.reason,
        "message": unplaced.refusal.message,
        "removed": unplaced.refusal.removed,
        "until": unplaced.refusal.until,
    })
}
