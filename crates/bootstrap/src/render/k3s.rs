//! A k3s agent, which brings its own containerd, kubelet and flannel.
//!
//! Flags and the configuration file are those of <https://docs.k3s.io/cli/agent>.

use std::collections::BTreeMap;

use scarpenter_core::name::Secret;
use serde_json::{Value, json};

use super::{servers, sysext};
use crate::join::{self, Join};
use crate::k3s_token;
use crate::parts::Parts;

const UNIT: &str = include_str!("../../../../ignition/units/scarpenter-k3s-agent.service");

pub(crate) const CONFIG_PATH: &str = "/etc/rancher/k3s/config.yaml";
pub(crate) const TOKEN_PATH: &str = "/etc/scarpenter/k3s-token";
/// Where k3s looks for the password of its node's name.
const PASSWORD_PATH: &str = "/etc/rancher/node/password";
/// k3s's own default is the port of our proxy.
const BALANCER_PORT: u16 = 6446;

/// The kubelet's own thresholds; k3s has others, and the planner counts with these.
const EVICTION: [(&str, &str); 5] = [
    ("imagefs.available", "15%"),
    ("imagefs.inodesFree", "5%"),
    ("memory.available", "100Mi"),
    ("nodefs.available", "10%"),
    ("nodefs.inodesFree", "5%"),
];

/// Adds it and names its unit.
pub(super) fn add(
    parts: &mut Parts,
    join: &Join,
    node_password: &Secret,
) -> Result<&'static str, join::Error> {
    let name = "scarpenter-k3s-agent.service";
    parts.file(CONFIG_PATH, &config(join).to_string());
    parts.secret(TOKEN_PATH, &k3s_token::of(join)?);
    parts.secret(PASSWORD_PATH, node_password.reveal());
    sysext::add(parts, join, "k3s", &join.kubernetes_version)?;
    parts.enabled(name, UNIT);
    Ok(name)
}

/// JSON is YAML to k3s, and needs no quoting rules.
fn config(join: &Join) -> Value {
    let labels = join.kubelet_labels();
    let taints = join.register_with_taints();
    let mut config = json!({
        "server": servers::url(join),
        "token-file": TOKEN_PATH,
        "node-name": join.node_name,
        "node-label": labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
        "node-taint": taints
            .iter()
            .map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect.as_str()))
            .collect::<Vec<_>>(),
        "kubelet-arg": kubelet_arguments(join),
    });
    if servers::is_proxied(join) {
        config["lb-server-port"] = json!(BALANCER_PORT);
    }
    if join.mesh.is_some() {
        config["flannel-iface"] = json!("tailscale0");
    }
    config
}

fn kubelet_arguments(join: &Join) -> Vec<String> {
    let kubelet = &join.kubelet;
    let mut out = vec![format!("provider-id={}", join.provider_id), format!("max-pods={}", kubelet.max_pods)];
    let mut put = |flag: &str, pairs: Vec<String>| {
        if !pairs.is_empty() {
            out.push(format!("{flag}={}", pairs.join(",")));
        }
    };
    let amounts = |quantities: &BTreeMap<String, String>| {
        quantities.iter().map(|(name, amount)| format!("{name}={amount}")).collect()
    };
    put("kube-reserved", amounts(&kubelet.kube_reserved.to_quantities()));
    put("system-reserved", amounts(&kubelet.system_reserved.to_quantities()));
    let below = |(signal, threshold): (&str, &str)| format!("{signal}<{threshold}");
    put(
        "eviction-hard",
        match kubelet.eviction_hard.is_empty() {
            true => EVICTION.into_iter().map(below).collect(),
            false => kubelet.eviction_hard.iter().map(|(s, t)| below((s, t))).collect(),
        },
    );
    out
}
