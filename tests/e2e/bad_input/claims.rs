//! Claims and classes that somebody else makes, changes or deletes.

use std::time::Duration;

use anyhow::ensure;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use scarpenter_core::label;
use serde_json::json;

use crate::case::{Case, RUN_SECONDS, and, condition, exactly, never, of_pool, phase};

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("a claim that a user made becomes a node and goes when it is deleted", Box::pin(user_claim(case))),
        (
            "a claim that loses its finalizer leaves a machine that the sweep removes",
            Box::pin(finalizer(case)),
        ),
        ("a claim that is deleted waits for a pod that may not be disrupted", Box::pin(do_not_disrupt(case))),
        (
            "a budget that forbids an eviction is said, and the end of the grace period ends the wait",
            Box::pin(blocked_eviction(case)),
        ),
        ("a class is held while claims use it", Box::pin(class_is_held(case))),
    ]
}

async fn blocked_eviction(case: Case<'_>) -> anyhow::Result<()> {
    let grace = json!({"spec": {"template": {"spec": {"terminationGracePeriod": "10s"}}}});
    case.pool("blocked", "default", grace).await?;
    let budgets = Api::<PodDisruptionBudget>::namespaced(case.stage.client().clone(), case.stage.namespace());
    let budget = serde_json::from_value(json!({
        "metadata": {"name": "nobody-goes"},
        "spec": {"minAvailable": 5, "selector": {"matchLabels": {"app": "blocked"}}},
    }))?;
    budgets.create(&PostParams::default(), &budget).await?;
    let long = json!({"metadata": {"labels": {"app": "blocked"}, "annotations": {RUN_SECONDS: "600"}}});
    case.pod("blocked", and(and(of_pool("blocked"), exactly("hcloud", "ccx43")), long)).await?;
    case.running("blocked").await?;
    let claim = case.claim("blocked", "it is there", |_| true).await?.name_any();
    case.delete(&case.claims(), &claim).await?;
    case.event(&claim, "FailedDraining", &["blocked", "disruption budget"]).await?;
    case.event(&claim, "TerminationGracePeriodExpiring", &[]).await?;
    case.until_gone(&case.claims(), &claim).await?;
    // Its machine is gone; what is left of the pod is the test's to remove.
    let now = DeleteParams::default().grace_period(0);
    case.pods().delete("blocked", &now).await.ok();
    Ok(())
}

async fn user_claim(case: Case<'_>) -> anyhow::Result<()> {
    let claim = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "by-hand"},
        "spec": {
            "nodeClassRef": {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "default"},
            "requirements": [
                {"key": label::VENDOR, "operator": "In", "values": ["hcloud"]},
                {"key": label::INSTANCE_TYPE, "operator": "In", "values": ["cx33"]},
            ],
        },
    }))?;
    case.claims().create(&PostParams::default(), &claim).await?;
    case.until_object(&case.claims(), "by-hand", "it is Ready", |claim| {
        condition(claim.conditions(), "Ready").is_some_and(|said| said.starts_with("True"))
    })
    .await?;
    never(Duration::from_secs(4), "it goes although nobody deleted it", async || {
        Ok(case.claims().get("by-hand").await?.metadata.deletion_timestamp.is_some())
    })
    .await?;
    case.delete(&case.claims(), "by-hand").await?;
    case.until_gone(&case.claims(), "by-hand").await?;
    let sold = case.sold("cx33")?;
    ensure!((sold.made, sold.gone) == (1, 1), "{sold:?}");
    Ok(())
}

async fn finalizer(case: Case<'_>) -> anyhow::Result<()> {
    let long = json!({"metadata": {"annotations": {RUN_SECONDS: "600"}}});
    case.pod("finalizer", and(exactly("hcloud", "cx43"), long)).await?;
    case.running("finalizer").await?;
    let claim = case.claim("finalizer", "it is there", |_| true).await?.name_any();
    case.delete(&case.pods(), "finalizer").await?;
    // In this order: a claim that is not going gets its finalizer again.
    case.delete(&case.claims(), &claim).await?;
    case.patch(&case.claims(), &claim, json!({"metadata": {"finalizers": null}})).await?;
    case.until_gone(&case.claims(), &claim).await?;
    case.event(&claim, "ForeignNode", &["no live NodeClaim"]).await?;
    case.until_gone(&case.nodes(), &claim).await?;
    case.until_sold_is_gone("cx43").await?;
    case.event("default", "OrphanDeleted", &["hcloud"]).await.map(drop)
}

async fn do_not_disrupt(case: Case<'_>) -> anyhow::Result<()> {
    let kept = json!({"metadata": {"annotations": {label::DO_NOT_DISRUPT: "true", RUN_SECONDS: "15"}}});
    case.pod("kept", and(exactly("hcloud", "cx53"), kept)).await?;
    case.running("kept").await?;
    let claim = case.claim("kept", "it is there", |_| true).await?.name_any();
    case.delete(&case.claims(), &claim).await?;
    case.event(&claim, "FailedDraining", &["kept", "not to be disrupted"]).await?;
    ensure!(phase(&case.pods().get("kept").await?) == "Running");
    case.ran("kept").await?;
    case.until_gone(&case.claims(), &claim).await
}

async fn class_is_held(case: Case<'_>) -> anyhow::Result<()> {
    case.class("held", json!({"spec": {"vendors": {"hcloud": {}}}})).await?;
    case.pool("held", "held", json!({})).await?;
    let long = json!({"metadata": {"annotations": {RUN_SECONDS: "8"}}});
    case.pod("class-held", and(and(of_pool("held"), exactly("hcloud", "ccx33")), long)).await?;
    case.running("class-held").await?;
    case.delete(&case.classes(), "held").await?;
    case.until_object(&case.pools(), "held", "its class is going", |pool| {
        condition(pool.conditions(), "NodeClassReady").is_some_and(|said| said.contains("being deleted"))
    })
    .await?;
    let class = case.classes().get("held").await?;
    ensure!(class.metadata.deletion_timestamp.is_some(), "it is not going");
    case.ran("class-held").await?;
    case.until_gone(&case.classes(), "held").await?;
    let sold = case.until_sold_is_gone("ccx33").await?;
    ensure!((sold.made, sold.gone) == (1, 1), "{sold:?}");
    Ok(())
}
