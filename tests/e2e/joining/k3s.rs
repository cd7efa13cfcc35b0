//! Claims of k3s agents. The machines are hollow, which join by certificate request as no agent does: what is tried is
//! the life of the password, which a k3s server would ask for.

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use scarpenter_api::NodeClaim;
use scarpenter_bootstrap::open;
use scarpenter_core::label;
use serde_json::json;

use crate::case::{Case, and, exactly, of_pool};

pub(super) const RULES: &str = "
  - {instanceType: c7a.large, fault: {machine: {bootDelay: 8s}}}
  - {instanceType: c7i.large, fault: {machine: {neverJoins: true}}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("the password is there first, comes back, and outlives the token", Box::pin(joins(case))),
        ("a machine that never joins leaves no password", Box::pin(never_joins(case))),
    ]
}

pub(super) async fn prepare(case: Case<'_>) -> anyhow::Result<()> {
    for (name, deadline) in [("agents", "15m"), ("hasty-agents", "10s")] {
        let join = json!({
            "method": "K3sAgent", "kubernetesVersion": "v1.37.2+k3s1", "registrationDeadline": deadline,
        });
        case.class(name, json!({"spec": {"vendors": {"aws": {}}, "join": join}})).await?;
        case.pool(name, name, json!({})).await?;
    }
    Ok(())
}

async fn joins(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("agent", and(of_pool("agents"), exactly("aws", "c7a.large"))).await?;
    let claim = bought(case, "agent").await?;
    let name = password_of(&claim);
    // No look in between: it was stored before the machine was asked for.
    let first = case.secrets().get(&name).await.context("the password of a machine that was bought")?;
    let hash = hash(&first)?;
    let fields: Vec<&str> = hash.split(':').collect();
    ensure!(
        fields.len() == 6
            && fields[0] == "$1"
            && fields[1].len() == 16
            && fields[2..5] == ["10", "8", "1"]
            && fields[5].len() == 86,
        "not as k3s writes it: {hash}"
    );
    ensure!(first.immutable == Some(true) && first.type_.as_deref() == Some("Opaque"), "{:?}", first.type_);
    let owner = first.owner_references().first().context("an owner")?;
    ensure!((owner.kind.as_str(), &owner.uid) == ("NodeClaim", &claim.uid().context("a UID")?), "{owner:?}");
    shipped(case, &claim).await?;

    // As a k3s server does that takes it for one of a node that never came.
    case.delete(&case.secrets(), &name).await?;
    case.until_object(&case.secrets(), &name, "it is back", |_| true).await?;

    case.running("agent").await?;
    let tokens = case.secrets().list(&Default::default()).await?.items;
    let of_claim =
        |secret: &Secret| secret.labels().values().any(|value| Some(value) == claim.uid().as_ref());
    let left: Vec<String> = tokens.iter().filter(|own| of_claim(own)).map(ResourceExt::name_any).collect();
    ensure!(left == [name.clone()], "token and join Secret are gone, the password is not: {left:?}");
    case.ran("agent").await?;
    case.until_gone(&case.claims(), &claim.name_any()).await?;
    ensure!(case.secrets().get_opt(&name).await?.is_none(), "{name} outlived its claim");
    case.until_sold_is_gone("c7a.large").await.map(drop)
}

/// The machine is sent what the join Secret keeps.
async fn shipped(case: Case<'_>, claim: &NodeClaim) -> anyhow::Result<()> {
    let uid = claim.uid().context("a claim has a UID")?;
    let join = case.secrets().get(&format!("join-{uid}")).await?.data.context("its data")?;
    let opened = open(&join["userData"].0)?;
    let sent = opened.file("/etc/rancher/node/password").context("the document holds a password")?;
    ensure!(sent == join["nodePassword"].0.as_slice() && sent.len() == 32, "another password is sent");
    Ok(())
}

async fn never_joins(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("hasty", and(of_pool("hasty-agents"), exactly("aws", "c7i.large"))).await?;
    let claim = bought(case, "hasty").await?;
    let name = password_of(&claim);
    case.secrets().get(&name).await?;
    case.event(&claim.name_any(), "Abandoned", &["registration deadline"]).await?;
    case.delete(&case.pods(), "hasty").await?;
    case.until_gone(&case.claims(), &claim.name_any()).await?;
    ensure!(case.secrets().get_opt(&name).await?.is_none(), "{name} outlived its claim");
    case.until_sold_is_gone("c7i.large").await.map(drop)
}

async fn bought(case: Case<'_>, pod: &str) -> anyhow::Result<NodeClaim> {
    case.claim(pod, "its machine is bought", |claim| claim.annotations().contains_key(label::MACHINE_ID))
        .await
}

fn password_of(claim: &NodeClaim) -> String {
    format!("{}.node-password.k3s", claim.name_any())
}

fn hash(secret: &Secret) -> anyhow::Result<String> {
    let data = secret.data.as_ref().and_then(|data| data.get("hash")).context("key hash")?;
    Ok(String::from_utf8(data.0.clone())?)
}
