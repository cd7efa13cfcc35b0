//! Machines that do not go when they should, or are said to be gone when they are not.

use std::time::Duration;

use anyhow::ensure;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use scarpenter_core::label;
use serde_json::json;

use super::creating::long;
use crate::case::{Case, and, exactly, never, phase};

pub(super) const RULES: &str = "
  - {instanceType: cpx22, call: DeleteMachine, times: 1, fault: deleteSaysGone}
  - {instanceType: cpx21, call: DeleteMachine, times: 2, fault: deleteIgnored}
  - {instanceType: cpx41, call: DeleteMachine, fault: {deleteTakes: 5s}}
  - {instanceType: cx33, call: DeleteMachine, times: 2, fault: {error: {reason: RATE_LIMIT, retryAfter: 1s}}}
  - {instanceType: cx43, fault: omit}
  - {instanceType: cx43, call: GetMachine, fault: hide}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("a delete that says gone too early is repeated", Box::pin(goes(case, "says-gone", "cpx22"))),
        ("a delete that is not carried out is repeated", Box::pin(goes(case, "ignored", "cpx21"))),
        ("a machine that takes long to go is waited for", Box::pin(goes(case, "slow-to-go", "cpx41"))),
        ("a delete that came too often is said and repeated", Box::pin(rate_limited(case))),
        (
            "a pod that a late scheduler binds to a node that is about to go runs to its end",
            Box::pin(late(case)),
        ),
        ("a Ready node outlives a vendor that does not show its machine", Box::pin(hidden(case))),
    ]
}

async fn goes(case: Case<'_>, pod: &str, instance_type: &str) -> anyhow::Result<()> {
    case.pod(pod, exactly("hcloud", instance_type)).await?;
    let claim = case.claim(pod, "it is there", |_| true).await?.name_any();
    case.ran(pod).await?;
    case.until_gone(&case.claims(), &claim).await?;
    let sold = case.sold(instance_type)?;
    ensure!((sold.made, sold.gone) == (1, 1), "the claim is gone and its machine is not: {sold:?}");
    Ok(())
}

async fn rate_limited(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("rate-limited", exactly("hcloud", "cx33")).await?;
    let claim = case.claim("rate-limited", "it is there", |_| true).await?.name_any();
    case.event(&claim, "FailedTermination", &["not deleted yet"]).await?;
    case.until_gone(&case.claims(), &claim).await?;
    ensure!(case.sold("cx33")?.gone == 1);
    Ok(())
}

async fn hidden(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("hidden", and(exactly("hcloud", "cx43"), long(60))).await?;
    case.running("hidden").await?;
    // Other cases of this vendor list its machines all the time; the settle time is over within that of the pod.
    never(Duration::from_secs(26), "the node is taken for dead", async || {
        let claims = case.claims_of("hidden").await?;
        let going = claims.iter().any(|claim| claim.metadata.deletion_timestamp.is_some());
        Ok(claims.is_empty() || going || phase(&case.pods().get("hidden").await?) != "Running")
    })
    .await?;
    case.delete(&case.pods(), "hidden").await?;
    let sold = case.until_sold_is_gone("cx43").await?;
    ensure!(sold.made == 1, "{sold:?}");
    Ok(())
}

/// The node goes only after the pod, though the scheduler had not heard of its taint.
async fn late(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("early", and(exactly("vultr", "vc2-2c-4gb"), long(1))).await?;
    case.ran("early").await?;
    let claim = case.claim("early", "it is there", |_| true).await?.name_any();
    let tainted = |node: &Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
        taints.iter().any(|taint| taint.key == label::DISRUPTED_TAINT)
    };
    case.until_object(&case.nodes(), &claim, "its node is tainted", tainted).await?;
    case.pod("late", and(json!({"spec": {"nodeName": claim}}), long(4))).await?;
    case.ran("late").await?;
    case.until_gone(&case.claims(), &claim).await?;
    let sold = case.sold("vc2-2c-4gb")?;
    ensure!((sold.made, sold.gone) == (1, 1), "{sold:?}");
    Ok(())
}
