//! Machines that never become nodes, or not the nodes that they should be.

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use kube::ResourceExt;
use scarpenter_core::label;
use serde_json::json;

use super::creating::long;
use crate::case::{Case, and, condition, exactly, of_pool};

pub(super) const RULES: &str = "
  - {instanceType: c7a.large, call: CreateMachine, times: 1, fault: {machine: {neverJoins: true}}}
  - {instanceType: r7i.large, call: CreateMachine, times: 1, fault: {machine: {joinsAs: kube-control-plane-1}}}
  - {instanceType: c8a.large, fault: {machine: {dropTaints: true, dropLabels: true}}}
  - {instanceType: m7i.large, fault: {machine: {memoryPercent: 50}}}
  - {instanceType: ecs.g8i.large, fault: {machine: {bootDelay: 5s}}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("a machine that never joins is given up at its deadline", Box::pin(never_joins(case))),
        ("a machine that joins under another name is denied and given up", Box::pin(other_name(case))),
        ("a node without our taints and labels is said and gets its labels", Box::pin(no_taints(case))),
        (
            "a node with less memory than promised is said and not bought again and again",
            Box::pin(less_memory(case)),
        ),
        ("a join Secret that is lost once the machine is known costs nothing", Box::pin(late_secret(case))),
    ]
}

async fn never_joins(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("never-joins", and(of_pool("impatient"), exactly("aws", "c7a.large"))).await?;
    let claim = case.claim("never-joins", "it is there", |_| true).await?.name_any();
    case.event(&claim, "Abandoned", &["registration deadline", "Failed to locate executable"]).await?;
    case.ran("never-joins").await?;
    let sold = case.until_sold_is_gone("c7a.large").await?;
    ensure!((sold.claims.len(), sold.made, sold.most) == (2, 2, 2) || sold.most == 1, "{sold:?}");
    Ok(())
}

async fn other_name(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("other-name", and(of_pool("impatient"), exactly("aws", "r7i.large"))).await?;
    let claim = case.claim("other-name", "it is there", |_| true).await?.name_any();
    case.event(&claim, "CertificateDenied", &["the subject is not exactly"]).await?;
    case.event(&claim, "Abandoned", &["registration deadline"]).await?;
    ensure!(case.nodes().get_opt("kube-control-plane-1").await?.is_none());
    case.ran("other-name").await?;
    case.until_sold_is_gone("r7i.large").await.map(drop)
}

async fn no_taints(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("no-taints", and(exactly("aws", "c8a.large"), long(5))).await?;
    let claim = case.claim("no-taints", "it is there", |_| true).await?.name_any();
    case.event(&claim, "UnregisteredTaintMissing", &["without taint karpenter.sh/unregistered"]).await?;
    case.running("no-taints").await?;
    let node = case.nodes().get(&claim).await?;
    ensure!(
        node.labels().get(label::INSTANCE_TYPE).is_some_and(|held| held == "c8a.large"),
        "{:?}",
        node.labels()
    );
    case.ran("no-taints").await?;
    case.until_sold_is_gone("c8a.large").await.map(drop)
}

/// The pod fits what was promised, and not what came: another machine of the same type would be no better.
async fn less_memory(case: Case<'_>) -> anyhow::Result<()> {
    let big = json!({"spec": {"nodeSelector": {label::REGION: "us-east-1"}, "containers": [{
        "name": "main", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "5Gi"}},
    }]}});
    case.pod("less-memory", and(exactly("aws", "m7i.large"), big)).await?;
    let claim = case.claim("less-memory", "it is there", |_| true).await?.name_any();
    case.event(&claim, "FailedConsistencyCheck", &["memory"]).await?;
    case.event(&claim, "MachineUnfit", &["5Gi of memory", "short"]).await?;
    case.machine_ready("less-memory", "False", "NoOffering", &["memory 5Gi", "at most"]).await?;
    let sold = case.until_sold_is_gone("m7i.large").await?;
    ensure!(sold.made == 1, "bought again and again: {sold:?}");
    crate::case::never(std::time::Duration::from_secs(5), "another is bought", async || {
        Ok(case.sold("m7i.large")?.made > sold.made)
    })
    .await?;
    case.delete(&case.pods(), "less-memory").await
}

async fn late_secret(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("late-secret", exactly("alicloud", "ecs.g8i.large")).await?;
    let claim = case
        .claim("late-secret", "its machine is known", |claim| {
            condition(claim.conditions(), "Launched").is_some_and(|said| said.starts_with("True"))
        })
        .await?;
    let uid = claim.uid().context("a claim has a UID")?;
    case.delete(&case.secrets(), &format!("join-{uid}")).await?;
    case.ran("late-secret").await?;
    let sold = case.until_sold_is_gone("ecs.g8i.large").await?;
    ensure!((sold.claims.len(), sold.made) == (1, 1), "{sold:?}");
    Ok(())
}
