//! Pods and pools that ask for what there is not, or for more than there may be.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use kube::ResourceExt;
use kube::api::ListParams;
use scarpenter_core::label;
use serde_json::{Value, json};

use crate::case::{Case, RUN_SECONDS, and, condition, exactly, never, of_pool, phase};

pub(super) const RULES: &str = "
  - {instanceType: ecs.c8a.large, fault: {machine: {bootDelay: 4s}}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("an unknown label key buys nothing and names the nearest key", Box::pin(unknown_key(case))),
        ("bounds that leave nothing buy nothing and say so", Box::pin(impossible_bounds(case))),
        ("a bound that is no number buys nothing and says so", Box::pin(no_number(case))),
        ("a pool of a class that is not there is not ready and says so", Box::pin(unknown_class(case))),
        ("a vendor without a plugin costs only its own offerings", Box::pin(no_plugin(case))),
        ("a pod that is deleted while its machine boots leaves nothing", Box::pin(deleted_mid_launch(case))),
        ("two small pods share one machine", Box::pin(two_share(case))),
        ("machines of a tenancy of one take one pod each", Box::pin(single_pod(case))),
        ("a pool's limit of nodes is never passed and all pods run in the end", Box::pin(limited_pool(case))),
        ("a finished pod with a finalizer holds its machine", Box::pin(held_by_finalizer(case))),
        ("a pod whose room another pod took gets another machine", Box::pin(robbed(case))),
    ]
}

async fn unknown_key(case: Case<'_>) -> anyhow::Result<()> {
    let typo = json!({"spec": {"nodeSelector": {"node.kubernetes.io/instancetype": "cx23"}}});
    case.pod("unknown-key", typo).await?;
    case.event("unknown-key", "FailedScheduling", &["instancetype", label::INSTANCE_TYPE]).await?;
    case.machine_ready("unknown-key", "False", "NoOffering", &["instancetype"]).await?;
    buys_nothing(case, "unknown-key").await
}

async fn impossible_bounds(case: Case<'_>) -> anyhow::Result<()> {
    case.pod(
        "no-bounds",
        affinity(json!([
            {"key": label::INSTANCE_CPU, "operator": "Gt", "values": ["7"]},
            {"key": label::INSTANCE_CPU, "operator": "Lt", "values": ["8"]},
        ])),
    )
    .await?;
    case.event("no-bounds", "FailedScheduling", &["instance-cpu"]).await?;
    case.machine_ready("no-bounds", "False", "NoOffering", &["instance-cpu"]).await?;
    buys_nothing(case, "no-bounds").await
}

async fn no_number(case: Case<'_>) -> anyhow::Result<()> {
    let bound = affinity(json!([{"key": label::INSTANCE_CPU, "operator": "Gt", "values": ["abc"]}]));
    // A newer API server refuses it itself, which is as good.
    if case.pod("no-number", bound).await.is_err() {
        return Ok(());
    }
    case.event("no-number", "FailedScheduling", &["abc"]).await?;
    buys_nothing(case, "no-number").await
}

async fn unknown_class(case: Case<'_>) -> anyhow::Result<()> {
    case.pool("classless", "not-there", json!({})).await?;
    case.until_object(&case.pools(), "classless", "its class is not found", |pool| {
        condition(pool.conditions(), "NodeClassReady")
            .is_some_and(|said| said.starts_with("False NodeClassNotFound ") && said.contains("not-there"))
    })
    .await?;
    case.pod("classless", of_pool("classless")).await?;
    case.event("classless", "FailedScheduling", &[]).await?;
    buys_nothing(case, "classless").await
}

async fn no_plugin(case: Case<'_>) -> anyhow::Result<()> {
    case.class("two-vendors", json!({"spec": {"vendors": {"local": {}, "hcloud": {}}}})).await?;
    case.pool("two-vendors", "two-vendors", json!({})).await?;
    case.until_object(&case.classes(), "two-vendors", "one vendor has no plugin", |class| {
        let is = |type_: &str, words: &str| {
            condition(class.conditions(), type_).is_some_and(|said| said.starts_with(words))
        };
        is("LocalReady", "False NoProvider ") && is("HcloudReady", "True") && is("Ready", "True")
    })
    .await?;
    case.pod("no-plugin", and(of_pool("two-vendors"), exactly("local", "local"))).await?;
    case.event("no-plugin", "FailedScheduling", &["local"]).await?;
    case.delete(&case.pods(), "no-plugin").await?;
    case.pod("two-vendors", of_pool("two-vendors")).await?;
    case.ran("two-vendors").await.map(drop)
}

async fn deleted_mid_launch(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("deleted", exactly("alicloud", "ecs.c8a.large")).await?;
    let claim = case
        .claim("deleted", "its machine boots", |claim| claim.annotations().contains_key(label::MACHINE_ID))
        .await?
        .name_any();
    case.delete(&case.pods(), "deleted").await?;
    case.event(&claim, "DisruptionTerminating", &["mpty"]).await?;
    case.until_gone(&case.claims(), &claim).await?;
    let sold = case.sold("ecs.c8a.large")?;
    ensure!((sold.made, sold.gone) == (1, 1), "{sold:?}");
    Ok(())
}

async fn two_share(case: Case<'_>) -> anyhow::Result<()> {
    for pod in ["share-1", "share-2"] {
        case.pod(pod, and(exactly("hcloud", "cpx22"), small(2))).await?;
    }
    let first = case.ran("share-1").await?;
    let second = case.ran("share-2").await?;
    let node =
        |pod: &k8s_openapi::api::core::v1::Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    ensure!(node(&first) == node(&second), "{:?} and {:?}", node(&first), node(&second));
    Ok(())
}

async fn single_pod(case: Case<'_>) -> anyhow::Result<()> {
    case.class("single", json!({"spec": {"tenancy": "SinglePod", "vendors": {"hcloud": {}}}})).await?;
    case.pool("single", "single", json!({})).await?;
    let pods = ["single-1", "single-2"];
    for pod in pods {
        case.pod(pod, and(of_pool("single"), small(4))).await?;
    }
    let mut nodes = std::collections::BTreeSet::new();
    for pod in pods {
        let pod = case.running(pod).await?;
        nodes.insert(pod.spec.and_then(|spec| spec.node_name).context("it is bound")?);
    }
    ensure!(nodes.len() == 2, "{nodes:?}");
    // One that comes later finds room on both, and no way in.
    case.pod("single-3", and(of_pool("single"), small(1))).await?;
    let late = case.ran("single-3").await?;
    let node = late.spec.and_then(|spec| spec.node_name).context("it is bound")?;
    ensure!(!nodes.contains(&node), "a second pod landed on {node}");
    Ok(())
}

async fn limited_pool(case: Case<'_>) -> anyhow::Result<()> {
    case.pool("limited", "default", json!({"spec": {"limits": {"nodes": "2"}}})).await?;
    let pods: Vec<String> = (0..4).map(|number| format!("limited-{number}")).collect();
    for pod in &pods {
        case.pod(pod, and(of_pool("limited"), exactly("aws", "c7i.large"))).await?;
    }
    case.event_about_any(&pods, "FailedScheduling", &["limit"]).await?;
    for pod in &pods {
        case.ran(pod).await?;
    }
    let sold = case.until_sold_is_gone("c7i.large").await?;
    ensure!(sold.most <= 2, "{sold:?}");
    Ok(())
}

async fn held_by_finalizer(case: Case<'_>) -> anyhow::Result<()> {
    let held = json!({"metadata": {"finalizers": ["example.com/reader"]}});
    case.pod("held", and(exactly("hcloud", "ccx13"), held)).await?;
    let claim = case.claim("held", "it is there", |_| true).await?.name_any();
    case.ran("held").await?;
    case.until_object(&case.claims(), &claim, "it is going", |claim| {
        claim.metadata.deletion_timestamp.is_some()
    })
    .await?;
    never(Duration::from_secs(8), "the machine goes before the pod was read", async || {
        Ok(case.sold("ccx13")?.gone > 0 || case.nodes().get_opt(&claim).await?.is_none())
    })
    .await?;
    case.patch(&case.pods(), "held", json!({"metadata": {"finalizers": null}})).await?;
    case.until_gone(&case.claims(), &claim).await
}

async fn robbed(case: Case<'_>) -> anyhow::Result<()> {
    // The startup taint keeps the scheduler away until the thief is there.
    let held = json!({"key": "trial/held", "effect": "NoSchedule"});
    let template = json!({"spec": {"template": {"spec": {"startupTaints": [held]}}}});
    case.pool("robbed", "default", template).await?;
    case.pod("robbed", and(and(of_pool("robbed"), exactly("hcloud", "ccx23")), three_cpus(1))).await?;
    let claim = case
        .claim("robbed", "its node is registered", |claim| {
            condition(claim.conditions(), "Registered").is_some_and(|said| said.starts_with("True"))
        })
        .await?
        .name_any();
    case.pod("thief", and(three_cpus(60), json!({"spec": {"nodeName": claim}}))).await?;
    case.until("the robbed pod ran", async || {
        for node in
            case.nodes().list(&ListParams::default().labels(&format!("{}=robbed", label::NODEPOOL))).await?
        {
            let mut taints =
                node.spec.iter().flat_map(|spec| spec.taints.clone()).flatten().collect::<Vec<_>>();
            let all = taints.len();
            taints.retain(|taint| taint.key != "trial/held");
            if taints.len() < all {
                // Another may write the node at the same time: then the next look does it.
                let version = node.metadata.resource_version.clone();
                let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
                case.patch(&case.nodes(), &node.name_any(), patch).await.ok();
            }
        }
        let pod = case.pods().get("robbed").await?;
        Ok(if phase(&pod) == "Succeeded" { Ok(()) } else { Err(format!("{:?}", pod.status)) })
    })
    .await?;
    case.delete(&case.pods(), "thief").await?;
    let sold = case.until_sold_is_gone("ccx23").await?;
    ensure!((sold.claims.len(), sold.made) == (2, 2), "{sold:?}");
    Ok(())
}

/// Four pods and two machines at a time.
pub(super) async fn capped(case: Case<'_>) -> anyhow::Result<()> {
    let pods: Vec<String> = (0..4).map(|number| format!("capped-{number}")).collect();
    for pod in &pods {
        case.pod(pod, exactly("hcloud", "cx23")).await?;
    }
    case.event_about_any(&pods, "FailedScheduling", &["max-machines"]).await?;
    for pod in &pods {
        case.ran(pod).await?;
    }
    let sold = case.until_sold_is_gone("cx23").await?;
    ensure!(sold.most <= 2, "{sold:?}");
    Ok(())
}

async fn buys_nothing(case: Case<'_>, pod: &str) -> anyhow::Result<()> {
    never(Duration::from_secs(3), "a claim is made", async || Ok(!case.claims_of(pod).await?.is_empty()))
        .await?;
    ensure!(phase(&case.pods().get(pod).await?) == "Pending");
    ensure!(case.claims().list(&ListParams::default()).await.is_ok());
    case.delete(&case.pods(), pod).await
}

/// A pod that fills no machine and runs for so many seconds.
fn small(seconds: u32) -> Value {
    json!({
        "metadata": {"annotations": {RUN_SECONDS: seconds.to_string()}},
        "spec": {"containers": [{
            "name": "main", "image": "none", "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}},
        }]},
    })
}

/// A pod that fills a machine of four CPUs and runs for so many seconds.
fn three_cpus(seconds: u32) -> Value {
    json!({
        "metadata": {"annotations": {RUN_SECONDS: seconds.to_string()}},
        "spec": {"containers": [{
            "name": "main", "image": "none", "resources": {"requests": {"cpu": "3", "memory": "128Mi"}},
        }]},
    })
}

fn affinity(expressions: Value) -> Value {
    json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expressions}],
        },
    }}}})
}
