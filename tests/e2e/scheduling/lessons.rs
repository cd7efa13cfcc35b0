//! Machines that are not what was promised.

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use scarpenter_core::label;
use scarpenter_tests::stage::Stage;
use serde_json::{Value, json};

use crate::case::{Case, and, of_pool, phase};

pub(super) const RULES: &str = "
  - {instanceType: m7i.large, fault: {machine: {memoryPercent: 60}}}
  - {instanceType: c8a.large, fault: {machine: {memoryPercent: 60}}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("a machine with too little memory is followed by a larger one, once", Box::pin(less_memory(case))),
        ("a node with a taint that nobody planned is followed by another kind", Box::pin(odd_taint(case))),
    ]
}

/// A pod that fits what the smaller type promises, and not what it has.
fn either(smaller: &str, larger: &str, memory: &str) -> Value {
    json!({"spec": {
        "nodeSelector": {label::VENDOR: "aws", label::REGION: "us-east-1"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": label::INSTANCE_TYPE, "operator": "In", "values": [smaller, larger]},
            ]}],
        }}},
        "containers": [{
            "name": "main", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": memory}},
        }],
    }})
}

async fn less_memory(case: Case<'_>) -> anyhow::Result<()> {
    case.pod("less-memory", either("m7i.large", "r7i.large", "6Gi")).await?;
    let claim = case.claim("less-memory", "it is there", |_| true).await?;
    ensure!(claim.labels().get(label::INSTANCE_TYPE).is_some_and(|name| name == "m7i.large"));
    for about in ["less-memory", &claim.name_any()] {
        case.event(about, "MachineUnfit", &["m7i.large", "6Gi of memory", "short"]).await?;
    }
    case.ran("less-memory").await?;
    // What was learned holds for pods that come later, too.
    case.pod("less-memory-again", either("m7i.large", "r7i.large", "6Gi")).await?;
    case.ran("less-memory-again").await?;
    // And only for what does not fit: the machine is no worse for others.
    case.pod("less-memory-small", either("m7i.large", "r7i.large", "2Gi")).await?;
    case.ran("less-memory-small").await?;
    let small = case.until_sold_is_gone("m7i.large").await?;
    let large = case.until_sold_is_gone("r7i.large").await?;
    ensure!(small.claims.len() <= 2 && small.made == small.claims.len(), "{small:?}");
    ensure!((1..=2).contains(&large.made), "{large:?}");
    Ok(())
}

async fn odd_taint(case: Case<'_>) -> anyhow::Result<()> {
    // The startup taint keeps the scheduler away until the odd one is there.
    let held = json!({"key": "trial/held", "effect": "NoSchedule"});
    let template = json!({"spec": {"template": {"spec": {"startupTaints": [held]}}}});
    case.pool("odd-taint", "default", template).await?;
    case.pod("odd-taint", and(of_pool("odd-taint"), either("c8a.large", "c8a.xlarge", "1Gi"))).await?;
    let claim = case.claim("odd-taint", "it is there", |_| true).await?;
    let first = claim.name_any();
    case.until("the pod ran", async || {
        for node in case.nodes().list(&ListParams::default()).await? {
            let own = node.labels().get(label::NODEPOOL).is_some_and(|pool| pool == "odd-taint");
            // Before that a startup taint that is gone is put on again.
            if own && node.labels().contains_key(label::REGISTERED) {
                taint(case, &node, node.name_any() == first).await;
            }
        }
        let pod = case.pods().get("odd-taint").await?;
        Ok(if phase(&pod) == "Succeeded" { Ok(()) } else { Err(format!("{:?}", pod.status)) })
    })
    .await?;
    for about in ["odd-taint", &first] {
        case.event(about, "MachineUnfit", &["taint odd:NoSchedule"]).await?;
    }
    let [small, large] = ["c8a.large", "c8a.xlarge"];
    let sold = [case.until_sold_is_gone(small).await?, case.until_sold_is_gone(large).await?];
    ensure!(sold.iter().all(|sold| sold.made == 1), "{sold:?}");
    Ok(())
}

/// Puts the odd taint in the place of the startup taint, or takes that off.
async fn taint(case: Case<'_>, node: &k8s_openapi::api::core::v1::Node, odd: bool) {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.clone()).flatten().collect::<Vec<_>>();
    let Some(held) = taints.iter().position(|taint| taint.key == "trial/held") else { return };
    if odd {
        taints[held].key = "odd".to_owned();
    } else {
        taints.remove(held);
    }
    // Another may write the node at the same time: then the next look does it.
    let version = node.metadata.resource_version.clone();
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
    case.patch(&case.nodes(), &node.name_any(), patch).await.ok();
}

/// The second controller finds no node of the kind any more.
pub(super) async fn outlives(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_controller()?;
    stage.until_ready().await?;
    let case = Case::new(stage);
    case.pod("before", either("c8a.large", "c8a.xlarge", "3Gi")).await?;
    case.ran("before").await?;
    let lessons: Api<ConfigMap> = Api::namespaced(stage.client().clone(), "kube-system");
    let written = lessons.get("scarpenter-lessons").await?;
    let text = written.data.as_ref().and_then(|data| data.get("lessons.json")).context("it has its key")?;
    let file: Value = serde_json::from_str(text)?;
    let kinds = file["machines"].as_array().context("it has machines")?;
    ensure!(kinds.iter().any(|kind| kind["instanceType"] == "c8a.large"), "{text}");
    let sold = case.until_sold_is_gone("c8a.large").await?;
    ensure!(sold.made == 1, "{sold:?}");
    case.until_sold_is_gone("c8a.xlarge").await?;
    case.delete(&case.pods(), "before").await?;

    stage.kill_controller("controller");
    stage.start_controller()?;
    let case = Case::new(stage);
    case.pod("after", either("c8a.large", "c8a.xlarge", "3Gi")).await?;
    case.ran("after").await?;
    let sold = case.sold("c8a.large")?;
    ensure!(sold.made == 1, "bought again after a restart: {sold:?}");

    // What cannot be read is no reason to stop.
    let broken = json!({"data": {"lessons.json": "{\"version\": 99}"}});
    case.patch(&lessons, "scarpenter-lessons", broken).await?;
    case.delete(&case.pods(), "after").await?;
    case.until_sold_is_gone("c8a.xlarge").await?;
    stage.kill_controller("controller");
    stage.start_controller()?;
    let case = Case::new(stage);
    case.pod("last", crate::case::exactly("aws", "c8a.xlarge")).await?;
    case.ran("last").await.map(drop)
}
