//! Claims that users make themselves: bound to the cheapest offering that satisfies them, then like any other.

use kube::ResourceExt;
use scarpenter_api::quantity;
use scarpenter_core::label;
use scarpenter_index::ClaimRecord;
use scarpenter_planner::{ClaimInput, plan_claim};
use serde_json::json;

use crate::context::Context;
use crate::lifecycle::{Error, Next, merge};
use crate::provisioner;

/// Writes `launch` and the labels of what it buys, or the refusal.
pub(crate) async fn plan(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let name = &record.object.spec.node_class_ref.name;
    let facts = provisioner::gather(context);
    let Some(class) = facts.classes.get(name) else { return Err(Error::Missing("the node class")) };
    let requirements: Vec<_> = record
        .object
        .spec
        .requirements
        .iter()
        .map(scarpenter_api::requirement::RequirementSpec::to_core)
        .collect();
    let requests = record
        .object
        .spec
        .resources
        .as_ref()
        .map(|resources| quantity::read(Some(&resources.requests)))
        .unwrap_or_default();
    let snapshot = context.catalog.snapshot();
    let input = ClaimInput {
        snapshot: &snapshot,
        requirements: &requirements,
        requests: &requests,
        class,
        unavailable: &facts.unavailable,
        caps: &facts.caps,
        now: facts.now,
    };
    let annotations = match plan_claim(&input) {
        Ok(launch) => {
            let mut labels = launch.labels.clone();
            labels.insert(label::NODE_CLASS.to_owned(), name.clone());
            labels.extend(record.object.labels().clone());
            let launch = serde_json::to_string(&launch).expect("a launch is plain data");
            json!({"metadata": {"annotations": {label::LAUNCH: launch}, "labels": labels}})
        }
        Err(refusal) => json!({"metadata": {"annotations": {label::REFUSED: refusal.message}}}),
    };
    crate::class::hold(context, name).await.map_err(Error::kubernetes("hold the node class"))?;
    merge(context, record, "bind the claim to an offering", annotations).await?;
    Ok(Next::Again)
}
