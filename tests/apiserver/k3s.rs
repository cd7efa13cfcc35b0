//! What `deploy/k3s` tells people to apply: a real API server admits it, nothing is wrong with it, and its machines'
//! documents can be made.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass, crds};
use scarpenter_bootstrap::{open, render};
use scarpenter_controller::{Surroundings, preview};
use scarpenter_core::offering::Launch;
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Value, json};

/// What `k3s server` takes in its configuration file, of those that are used here: <https://docs.k3s.io/cli/server>.
const FLAGS: [&str; 17] = [
    "advertise-address",
    "cluster-init",
    "disable",
    "disable-kube-proxy",
    "disable-network-policy",
    "egress-selector-mode",
    "flannel-backend",
    "flannel-iface",
    "kubelet-arg",
    "node-ip",
    "node-label",
    "node-taint",
    "secrets-encryption",
    "server",
    "tls-san",
    "token-file",
    "write-kubeconfig-mode",
];

pub(crate) fn add(trials: &mut Trials) {
    trials.add("k3s::classes_and_pools_are_admitted_and_their_documents_render", classes);
    trials.add("k3s::servers_agree_and_hold_no_secret", servers);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/k3s")
}

fn read(file: &str) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(folder().join(file)).with_context(|| file.to_owned())?;
    serde_saphyr::from_multiple(&text).with_context(|| file.to_owned())
}

async fn classes(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    crate::schema::apply(&client, &crds::all()).await?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for (file, version, extension) in [
        ("class-kubelet.yaml", "v1.37.2", "kubernetes-v1.37.2-x86-64.raw"),
        ("class-agent.yaml", "v1.37.2+k3s1", "k3s-v1.37.2+k3s1-x86-64.raw"),
    ] {
        let [class, pool] = <[Value; 2]>::try_from(read(file)?).ok().context("a class and a pool")?;
        let class: ScarpenterNodeClass = serde_json::from_value(class)?;
        let pool: NodePool = serde_json::from_value(pool)?;
        Api::all(client.clone()).create(&dry, &class).await.with_context(|| file.to_owned())?;
        Api::all(client.clone()).create(&dry, &pool).await.with_context(|| file.to_owned())?;
        ensure!(class.problems().is_empty(), "{file}: {:?}", class.problems());
        ensure!(class.vendor_problems().is_empty(), "{file}: {:?}", class.vendor_problems());
        ensure!(pool.spec.template.spec.node_class_ref.name == class.name_any(), "{file}: another class");

        let surroundings = Surroundings {
            server: "https://127.0.0.1:6443".to_owned(),
            version: "v1.37.2+k3s1".to_owned(),
            ca_pem: plane.ca_certificate(),
            ignition: None,
        };
        let join = preview(claim()?, &launch()?, &class, surroundings)?;
        ensure!(join.kubernetes_version == version, "{file}: {}", join.kubernetes_version);
        let document = render(&join)?;
        ensure!(document.inner().contains(extension), "{file}: no {extension}");
        let opened = open(document.bytes())?;
        ensure!(opened.servers == class.spec.join.servers, "{file}: {:?}", opened.servers);
        let has_password = opened.file("/etc/rancher/node/password").is_some();
        ensure!(has_password == (file == "class-agent.yaml"), "{file}: password is {has_password}");
    }
    Ok(())
}

fn claim() -> anyhow::Result<NodeClaim> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": "k3s-0123456789", "uid": "00000000-0000-4000-8000-000000000000"},
        "spec": {"requirements": [], "nodeClassRef": {
            "group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "k3s",
        }},
    }))?)
}

fn launch() -> anyhow::Result<Launch> {
    Ok(serde_json::from_value(json!({
        "vendor": "hcloud", "region": "fsn1", "zone": "fsn1", "instanceType": "ccx33", "capacityType": "on-demand",
        "arch": "amd64", "pricePerHourMicroUsd": 100, "capacity": {}, "allocatable": {},
        "labels": {"kubernetes.io/arch": "amd64"},
    }))?)
}

async fn servers(_: Arc<ControlPlane>) -> anyhow::Result<()> {
    let one = |file: &str| read(file)?.pop().context("one document");
    let (first, next) = (one("server-first.yaml")?, one("server-next.yaml")?);
    for file in ["server-first.yaml", "server-next.yaml", "for-kubelet.yaml", "for-agents.yaml"] {
        let keys: BTreeSet<String> = one(file)?.as_object().context("a map")?.keys().cloned().collect();
        let unknown: Vec<&String> = keys.iter().filter(|key| !FLAGS.contains(&key.as_str())).collect();
        ensure!(unknown.is_empty(), "{file}: k3s knows no {unknown:?}");
    }
    let shared = ["tls-san", "secrets-encryption", "node-taint", "disable"];
    for key in shared {
        ensure!(first[key] == next[key] && !first[key].is_null(), "{key} differs between the servers");
    }
    ensure!(first["cluster-init"] == json!(true) && next["cluster-init"].is_null(), "one begins the cluster");
    let url = format!("https://{}:6443", first["node-ip"].as_str().context("an address")?);
    ensure!(next["server"] == json!(url), "the next joins the first");
    for server in [&first, &next] {
        let own = &server["node-ip"];
        ensure!(*own == server["advertise-address"], "one address: {own}");
        ensure!(
            server["tls-san"].as_array().is_some_and(|names| names.contains(own)),
            "{own} is in no certificate"
        );
    }
    Ok(())
}
