//! Nodes that somebody else makes or deletes.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;

use crate::case::{Case, RUN_SECONDS, and, exactly, never};

pub(super) const RULES: &str = "
  - {instanceType: cpx41, fault: {machine: {bootDelay: 4s}}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("a node that looks like ours and is nobody's is removed", Box::pin(foreign(case))),
        ("a node with a provider id that is garbage or another's is left alone", Box::pin(garbage(case))),
        (
            "a second node with a claim's provider id is removed and costs the claim nothing",
            Box::pin(duplicate(case)),
        ),
        ("a node that is deleted by hand takes its machine along", Box::pin(deleted(case))),
    ]
}

async fn foreign(case: Case<'_>) -> anyhow::Result<()> {
    node(case, "foreign", "scarpenter://hcloud/3f2f9d1e-0000-4000-8000-000000000000").await?;
    case.event("foreign", "ForeignNode", &["no live NodeClaim"]).await?;
    case.until_gone(&case.nodes(), "foreign").await
}

async fn garbage(case: Case<'_>) -> anyhow::Result<()> {
    let nodes =
        [("garbage", "scarpenter://"), ("another-cloud", "aws:///us-west-2a/i-0abc"), ("words", "x y/z")];
    for (name, id) in nodes {
        node(case, name, id).await?;
    }
    never(Duration::from_secs(8), "one of them is touched", async || {
        for (name, _) in nodes {
            let Some(node) = case.nodes().get_opt(name).await? else { return Ok(true) };
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            if taints.iter().any(|taint| taint.key.starts_with("karpenter.sh/")) {
                return Ok(true);
            }
        }
        Ok(false)
    })
    .await?;
    for (name, _) in nodes {
        case.delete(&case.nodes(), name).await?;
    }
    Ok(())
}

/// One comes before the claim's own node, the other while that one runs.
async fn duplicate(case: Case<'_>) -> anyhow::Result<()> {
    let long = json!({"metadata": {"annotations": {RUN_SECONDS: "10"}}});
    case.pod("duplicate", and(exactly("hcloud", "cpx41"), long)).await?;
    let claim = case
        .claim("duplicate", "its machine boots", |claim| {
            claim.status.as_ref().is_some_and(|status| status.provider_id.is_some())
        })
        .await?;
    let id = claim.status.as_ref().and_then(|status| status.provider_id.clone()).context("provider id")?;
    let name = claim.name_any();
    node(case, "early-impostor", &id).await?;
    case.running("duplicate").await?;
    node(case, "late-impostor", &id).await?;
    for impostor in ["early-impostor", "late-impostor"] {
        case.event(impostor, "ForeignNode", &["provider id of NodeClaim", &name]).await?;
        case.until_gone(&case.nodes(), impostor).await?;
    }
    let pod = case.ran("duplicate").await?;
    ensure!(pod.spec.and_then(|spec| spec.node_name).as_ref() == Some(&name));
    case.until_gone(&case.claims(), &name).await?;
    ensure!(case.sold("cpx41")?.gone == 1);
    Ok(())
}

async fn deleted(case: Case<'_>) -> anyhow::Result<()> {
    let long = json!({"metadata": {"annotations": {RUN_SECONDS: "600"}}});
    case.pod("node-deleted", and(exactly("hcloud", "cpx21"), long)).await?;
    case.running("node-deleted").await?;
    let claim = case.claim("node-deleted", "it is there", |_| true).await?.name_any();
    case.delete(&case.nodes(), &claim).await?;
    case.event(&claim, "Abandoned", &["node was deleted"]).await?;
    case.delete(&case.pods(), "node-deleted").await.ok();
    case.until_gone(&case.claims(), &claim).await?;
    let sold = case.sold("cpx21")?;
    ensure!((sold.made, sold.gone) == (1, 1), "{sold:?}");
    Ok(())
}

async fn node(case: Case<'_>, name: &str, provider_id: &str) -> anyhow::Result<()> {
    let node = serde_json::from_value(json!({
        "metadata": {"name": name}, "spec": {"providerID": provider_id, "unschedulable": true},
    }))?;
    case.nodes().create(&PostParams::default(), &node).await.with_context(|| format!("create {name}"))?;
    Ok(())
}
