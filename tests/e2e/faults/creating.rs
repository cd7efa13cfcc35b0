//! Creates that are refused, lost, doubled or not understood.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use scarpenter_core::label;

use crate::case::{Case, RUN_SECONDS, and, condition, exactly, never, phase};

pub(super) const RULES: &str = "
  - {instanceType: cx23, call: CreateMachine, fault: {error: {reason: SOLD_OUT, message: none left}}}
  - {instanceType: cx53, call: CreateMachine, times: 1, fault: {error: {reason: SOLD_OUT}}}
  - {instanceType: ccx13, call: CreateMachine, times: 1, fault: {loseAnswer: aborted}}
  - {instanceType: ccx23, call: CreateMachine, fault: twice}
  - {instanceType: ccx33, call: CreateMachine, times: 1, fault: double}
  - {instanceType: ccx43, fault: {listLag: 1500ms}}
  - {instanceType: Standard_F4als_v7, call: CreateMachine, times: 1, fault: {error: {code: UNKNOWN, message: STRANGE_WITH_DETAILS}}}
  - {instanceType: Standard_D2s_v6, call: CreateMachine, times: 1, fault: {error: {reason: INVALID, message: impossible place}}}
  - {instanceType: n2-standard-4, call: CreateMachine, fault: {error: {reason: AUTH, scope: account, message: no such key}}}
  - {instanceType: b3-8, call: CreateMachine, times: 1, fault: {error: {code: UNAVAILABLE}}}
  - {instanceType: ecs.g7.large, call: CreateMachine, times: 1, fault: {loseAnswer: aborted}}
  - {instanceType: ecs.c8a.2xlarge, call: CreateMachine, times: 1, fault: {nonsense: wrongClaim}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        (
            "a type that is sold out everywhere is tried once in each place and then waited for",
            Box::pin(sold_out(case)),
        ),
        ("a type that is sold out in one place comes from another", Box::pin(sold_out_here(case))),
        ("a machine whose answer was lost is adopted", Box::pin(lost_answer(case))),
        ("a request that is carried out twice makes one machine", Box::pin(twice(case))),
        ("of two machines for one claim one is swept", Box::pin(double(case))),
        ("a list that lags costs time alone", Box::pin(list_lag(case))),
        ("an error that nobody knows is tried again and leaves one machine", Box::pin(unknown_error(case))),
        ("a place that is impossible is not tried again", Box::pin(impossible(case))),
        ("a key that does not work is said and others go on", Box::pin(bad_key(case))),
        ("a vendor that is away for a while is asked again", Box::pin(away(case))),
        (
            "a join Secret that is lost before the machine is known costs the claim",
            Box::pin(lost_secret(case)),
        ),
        ("an answer about another claim is not believed", Box::pin(wrong_claim(case))),
    ]
}

async fn sold_out(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("sold-out", exactly("hcloud", "cx23")).await?;
    case.machine_ready("sold-out", "False", "SoldOut", &["none left", "the next try is at "]).await?;
    case.event("sold-out", "FailedScheduling", &["the next try is at "]).await?;
    let tried = case.sold("cx23")?;
    let places: BTreeSet<&String> = tried.creates.iter().collect();
    ensure!(places.len() > 1 && places.len() == tried.creates.len(), "{tried:?}");
    // The memory holds for half a minute; nothing is bought, and no claim made, until it ends. The last of the claims
    // that were refused may still be going.
    never(Duration::from_secs(8), "a claim is made although all is sold out", async || {
        let claims = case.claims_of("sold-out").await?;
        let made = claims.iter().any(|claim| claim.metadata.deletion_timestamp.is_none());
        Ok(made || case.sold("cx23")?.creates != tried.creates)
    })
    .await?;
    let claims = tried.claims.len();
    case.until("the places are tried again when the memory ends", async || {
        let again = case.sold("cx23")?;
        Ok(if again.claims.len() > claims { Ok(()) } else { Err(format!("{again:?}")) })
    })
    .await?;
    case.delete(&case.pods(), "sold-out").await?;
    ensure!(case.sold("cx23")?.made == 0);
    Ok(())
}

async fn sold_out_here(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("sold-out-here", exactly("hcloud", "cx53")).await?;
    case.ran("sold-out-here").await?;
    let sold = case.until_sold_is_gone("cx53").await?;
    let places: BTreeSet<&String> = sold.creates.iter().collect();
    ensure!(sold.creates.len() == 2 && places.len() == 2 && sold.made == 1, "{sold:?}");
    Ok(())
}

async fn lost_answer(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("lost-answer", exactly("hcloud", "ccx13")).await?;
    case.claim("lost-answer", "it says that the outcome is unknown", |claim| {
        condition(claim.conditions(), "Launched").is_some_and(|said| said.contains("not known yet"))
    })
    .await?;
    case.ran("lost-answer").await?;
    let sold = case.until_sold_is_gone("ccx13").await?;
    ensure!((sold.creates.len(), sold.claims.len(), sold.made) == (1, 1, 1), "{sold:?}");
    Ok(())
}

async fn twice(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("twice", exactly("hcloud", "ccx23")).await?;
    case.ran("twice").await?;
    let sold = case.until_sold_is_gone("ccx23").await?;
    ensure!((sold.claims.len(), sold.made) == (1, 1), "{sold:?}");
    Ok(())
}

async fn double(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("double", and(exactly("hcloud", "ccx33"), long(60))).await?;
    case.running("double").await?;
    case.until("one of two machines is swept", async || {
        let sold = case.sold("ccx33")?;
        Ok(if (sold.made, sold.gone) == (2, 1) { Ok(()) } else { Err(format!("{sold:?}")) })
    })
    .await?;
    let claim = case.claim("double", "it is there", |_| true).await?;
    case.event(&claim.name_any(), "DuplicateMachine", &[]).await?;
    // The pod's own machine is not the one that went.
    never(Duration::from_secs(3), "the pod is lost", async || {
        Ok(phase(&case.pods().get("double").await?) != "Running")
    })
    .await?;
    case.delete(&case.pods(), "double").await?;
    case.until_sold_is_gone("ccx33").await.map(drop)
}

async fn list_lag(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("list-lag", exactly("hcloud", "ccx43")).await?;
    case.ran("list-lag").await?;
    let sold = case.until_sold_is_gone("ccx43").await?;
    ensure!((sold.creates.len(), sold.made) == (1, 1), "{sold:?}");
    Ok(())
}

async fn unknown_error(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("unknown-error", exactly("azure", "Standard_F4als_v7")).await?;
    case.ran("unknown-error").await?;
    let sold = case.until_sold_is_gone("Standard_F4als_v7").await?;
    ensure!((sold.creates.len(), sold.made) == (2, 1), "{sold:?}");
    Ok(())
}

async fn impossible(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("impossible", exactly("azure", "Standard_D2s_v6")).await?;
    let told =
        |pod: &Pod| phase(pod) == "Succeeded" || format!("{:?}", pod.status).contains("the next try is at");
    case.until_object(&case.pods(), "impossible", "it ran or is told why not", told).await?;
    let sold = case.sold("Standard_D2s_v6")?;
    let places: BTreeSet<&String> = sold.creates.iter().collect();
    ensure!(places.len() == sold.creates.len(), "a place is tried twice: {sold:?}");
    case.delete(&case.pods(), "impossible").await?;
    case.until_sold_is_gone("Standard_D2s_v6").await.map(drop)
}

async fn bad_key(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("bad-key", exactly("gcp", "n2-standard-4")).await?;
    case.event("bad-key", "FailedScheduling", &["gcp cannot be used now", "no such key"]).await?;
    case.until_object(&case.classes(), "default", "it says that the key does not work", |class| {
        condition(class.conditions(), "GcpReady")
            .is_some_and(|said| said.starts_with("False Unauthenticated ") && said.contains("no such key"))
    })
    .await?;
    case.delete(&case.pods(), "bad-key").await
}

async fn away(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("away", exactly("ovh", "b3-8")).await?;
    case.ran("away").await?;
    let sold = case.until_sold_is_gone("b3-8").await?;
    ensure!(sold.made == 1, "{sold:?}");
    Ok(())
}

async fn lost_secret(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("lost-secret", exactly("alicloud", "ecs.g7.large")).await?;
    let claim = case
        .claim("lost-secret", "its answer is lost", |claim| {
            condition(claim.conditions(), "Launched").is_some_and(|said| said.contains("not known yet"))
        })
        .await?;
    ensure!(!claim.annotations().contains_key(label::MACHINE_ID));
    let uid = claim.uid().context("a claim has a UID")?;
    case.delete(&case.secrets(), &format!("join-{uid}")).await?;
    case.event(&claim.name_any(), "Abandoned", &["join Secret"]).await?;
    case.ran("lost-secret").await?;
    let sold = case.until_sold_is_gone("ecs.g7.large").await?;
    ensure!((sold.claims.len(), sold.made) == (2, 2), "{sold:?}");
    Ok(())
}

async fn wrong_claim(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("wrong-claim", exactly("alicloud", "ecs.c8a.2xlarge")).await?;
    case.ran("wrong-claim").await?;
    let sold = case.until_sold_is_gone("ecs.c8a.2xlarge").await?;
    ensure!((sold.claims.len(), sold.made) == (1, 1), "{sold:?}");
    Ok(())
}

/// A pod that runs for so many seconds.
pub(super) fn long(seconds: u32) -> serde_json::Value {
    serde_json::json!({"metadata": {"annotations": {RUN_SECONDS: seconds.to_string()}}})
}
