//! A kubelet that bootstraps its certificates by TLS.

use scarpenter_core::pod::Taint;
use serde_json::{Value, json};

use super::base::CA_PATH;
use super::{servers, sysext};
use crate::join::{self, Join};
use crate::parts::Parts;

const UNIT: &str = include_str!("../../../../ignition/units/scarpenter-kubelet.service");
const CONTAINERD: &str = include_str!("../../../../ignition/units/containerd-cni.conf");
const CONFIG: &str = include_str!("../../../../ignition/files/kubelet.json");

pub(crate) const NODE_ENV_PATH: &str = "/etc/scarpenter/node.env";
pub(crate) const CONFIG_PATH: &str = "/etc/kubernetes/kubelet.json";
pub(crate) const KUBECONFIG_PATH: &str = "/etc/kubernetes/bootstrap-kubeconfig.json";

/// Adds it and names its unit.
pub(super) fn add(parts: &mut Parts, join: &Join) -> Result<&'static str, join::Error> {
    let name = "scarpenter-kubelet.service";
    parts.file(NODE_ENV_PATH, &node_env(join));
    // Only for root: whoever reads the token may ask for this node's certificate.
    parts.secret(KUBECONFIG_PATH, &kubeconfig(join).to_string());
    parts.file(CONFIG_PATH, &config(join).to_string());
    sysext::add(parts, join, "kubernetes", &join.kubernetes_version)?;
    parts.dropin("containerd.service", "cni.conf", CONTAINERD);
    parts.enabled(name, UNIT);
    // The image brings kubeadm's unit of that name; two kubelets would fight for one machine.
    parts.masked("kubelet.service");
    Ok(name)
}

fn node_env(join: &Join) -> String {
    let labels = join.kubelet_labels();
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let cloud = if join.external_addresses { "CLOUD_FLAG=--cloud-provider=external\n" } else { "" };
    format!("NODE_NAME={}\nNODE_LABELS={}\n{cloud}", join.node_name, pairs.join(","))
}

/// JSON is YAML to the kubelet, and needs no quoting rules.
fn kubeconfig(join: &Join) -> Value {
    let token = format!("{}.{}", join.token_id, join.token_secret.reveal());
    let server = servers::url(join);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": server, "certificate-authority": CA_PATH}}],
        "users": [{"name": "bootstrap", "user": {"token": token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "cluster", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    })
}

fn config(join: &Join) -> Value {
    let mut config: Value = serde_json::from_str(CONFIG).expect("ignition/files/kubelet.json is JSON");
    config["providerID"] = json!(join.provider_id);
    config["clusterDNS"] = json!(join.cluster_dns);
    config["clusterDomain"] = json!(join.cluster_domain);
    config["maxPods"] = json!(join.kubelet.max_pods);
    config["registerWithTaints"] = join.register_with_taints().iter().map(taint).collect();
    let mut put = |key: &str, value: Value| {
        if value.as_object().is_some_and(|fields| !fields.is_empty()) {
            config[key] = value;
        }
    };
    put("kubeReserved", json!(join.kubelet.kube_reserved.to_quantities()));
    put("systemReserved", json!(join.kubelet.system_reserved.to_quantities()));
    put("evictionHard", json!(join.kubelet.eviction_hard));
    config
}

fn taint(taint: &Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": taint.effect.as_str()})
}
