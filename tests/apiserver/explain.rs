//! `explain pod` on a real API server with a real scheduler: what is read of the cluster, and what is said of each pod.

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use scarpenter_api::{NodePool, ScarpenterNodeClass};
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Value, json};

const NAMESPACE: &str = "explained";
/// Label of the pool of this trial, so that its pods are kept from the nodes of others.
const KEY: &str = "example.com/explained";
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn add(trials: &mut Trials) {
    trials.add("explain::each_pod_is_told_what_comes_of_it", each_pod);
}

async fn each_pod(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    crate::schema::apply(&client, &scarpenter_api::crds::all()).await?;
    intent(&client).await?;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    let pods = Api::<Pod>::namespaced(client, NAMESPACE);
    account(&plane).await?;
    // A key of ours, since other trials bring somebody else's NodePools at the same time.
    let vendor = scarpenter_core::label::VENDOR;
    let exact = json!({KEY: "yes", vendor: "hcloud", "node.kubernetes.io/instance-type": "ccx33"});
    create(&pods, "exact", &exact).await?;
    let typo = json!({KEY: "yes", vendor: "hcloud", "node.kubernetes.io/instancetype": "ccx33"});
    create(&pods, "typo", &typo).await?;
    for name in ["exact", "typo"] {
        let refused = await_condition(pods.clone(), name, |pod: Option<&Pod>| {
            pod.is_some_and(scarpenter_api::pod::is_provisionable)
        });
        let waited = tokio::time::timeout(SETTLES_WITHIN, refused).await;
        waited.with_context(|| format!("the scheduler has not refused {name}"))??;
    }

    let exact = document(&explain(&plane, "exact", &["-o", "json"])?, 0)?;
    ensure!(exact["state"] == "pending" && exact["explanation"]["outcome"] == "machine", "{exact:#}");
    ensure!(exact["explanation"]["offering"]["instanceType"] == "ccx33", "{exact:#}");
    let reasons: Vec<&str> = exact["events"]
        .as_array()
        .context("events")?
        .iter()
        .filter_map(|own| own["reason"].as_str())
        .collect();
    ensure!(reasons.contains(&"FailedScheduling"), "the scheduler's own words are told: {exact:#}");

    let typo = document(&explain(&plane, "typo", &["-o", "json"])?, 3)?;
    ensure!(typo["explanation"]["reason"] == "node.kubernetes.io/instancetype", "{typo:#}");
    let words = said(&explain(&plane, "typo", &[])?);
    ensure!(words.contains("the nearest known label is node.kubernetes.io/instance-type"), "{words}");

    let missing = explain(&plane, "nobody", &[])?;
    ensure!(missing.status.code() == Some(2), "{missing:?}");
    let words = String::from_utf8_lossy(&missing.stderr);
    ensure!(words.contains("there is no pod explained/nobody"), "{words}");
    Ok(())
}

/// A class and a pool that a controller would have found ready.
async fn intent(client: &kube::Client) -> anyhow::Result<()> {
    let ready = |types: &[&str]| -> Value {
        let at = "2026-01-01T00:00:00Z";
        let condition = |type_: &&str| json!({"type": type_, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": at});
        json!({"status": {"conditions": types.iter().map(condition).collect::<Vec<Value>>()}})
    };
    let classes = Api::<ScarpenterNodeClass>::all(client.clone());
    let class = json!({
        "apiVersion": "scarpenter.sparecores.com/v1alpha1", "kind": "ScarpenterNodeClass",
        "metadata": {"name": "explained"}, "spec": {"vendors": {"hcloud": {}}},
    });
    classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    let patch = Patch::Merge(ready(&["Ready", "HcloudReady"]));
    classes.patch_status("explained", &PatchParams::default(), &patch).await?;
    let pools = Api::<NodePool>::all(client.clone());
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "explained"},
        "spec": {"template": {"metadata": {"labels": {KEY: "yes"}}, "spec": {"requirements": [], "nodeClassRef":
            {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "explained"}}}},
    });
    pools.create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
    pools.patch_status("explained", &PatchParams::default(), &Patch::Merge(ready(&["Ready"]))).await?;
    Ok(())
}

/// The service account of a new namespace takes a moment.
async fn account(plane: &ControlPlane) -> anyhow::Result<()> {
    use k8s_openapi::api::core::v1::ServiceAccount;
    let accounts = Api::<ServiceAccount>::namespaced(plane.client().await?, NAMESPACE);
    let there = await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some());
    tokio::time::timeout(SETTLES_WITHIN, there).await.context("the service account does not come")??;
    Ok(())
}

async fn create(pods: &Api<Pod>, name: &str, selector: &Value) -> anyhow::Result<()> {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {"nodeSelector": selector, "containers": [{"name": "main", "image": "pause"}]},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(())
}

fn explain(plane: &ControlPlane, pod: &str, more: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scarpenter-on-trial"));
    command.args([
        "explain",
        "pod",
        &format!("{NAMESPACE}/{pod}"),
        "--catalog-folder",
        "/nowhere",
        "--kubeconfig",
    ]);
    command.arg(plane.kubeconfig()).args(more).output().context("run explain")
}

fn said(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stdout);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn document(output: &Output, code: i32) -> anyhow::Result<Value> {
    ensure!(output.status.code() == Some(code), "{output:?}");
    Ok(serde_json::from_slice(&output.stdout)?)
}
