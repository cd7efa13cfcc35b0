//! What a kubelet reads.

use std::collections::BTreeMap;

use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::{Resources, parse_quantity};
use serde::Deserialize;

use super::{Error, Node, json, pairs};
use crate::render::{KUBECONFIG_PATH, KUBELET_CONFIG_PATH, NODE_ENV_PATH};

pub(super) fn read<'a>(text: &impl Fn(&'static str) -> Result<&'a str, Error>) -> Result<Node, Error> {
    let kubelet: KubeletFile = json(KUBELET_CONFIG_PATH, text(KUBELET_CONFIG_PATH)?)?;
    let kubeconfig: Kubeconfig = json(KUBECONFIG_PATH, text(KUBECONFIG_PATH)?)?;
    let (server, token) = kubeconfig.first().ok_or(Error::Malformed(KUBECONFIG_PATH))?;
    Ok(Node {
        server,
        token,
        provider_id: kubelet.provider_id.clone(),
        labels: labels(text(NODE_ENV_PATH)?).ok_or(Error::Malformed(NODE_ENV_PATH))?,
        taints: kubelet.taints().ok_or(Error::Malformed(KUBELET_CONFIG_PATH))?,
        kubelet: kubelet.settings().ok_or(Error::Malformed(KUBELET_CONFIG_PATH))?,
    })
}

fn labels(env: &str) -> Option<BTreeMap<String, String>> {
    let line = env.lines().find_map(|line| line.strip_prefix("NODE_LABELS="))?;
    pairs(line.split(',').filter(|item| !item.is_empty()))
}

#[derive(Deserialize)]
struct Kubeconfig {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    server: String,
}

#[derive(Deserialize)]
struct NamedUser {
    user: User,
}

#[derive(Deserialize)]
struct User {
    token: String,
}

impl Kubeconfig {
    fn first(self) -> Option<(String, Secret)> {
        let cluster = self.clusters.into_iter().next()?.cluster;
        let user = self.users.into_iter().next()?.user;
        Some((cluster.server, Secret::new(user.token)))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KubeletFile {
    #[serde(rename = "providerID")]
    provider_id: String,
    max_pods: u32,
    #[serde(default)]
    register_with_taints: Vec<TaintFile>,
    #[serde(default)]
    kube_reserved: BTreeMap<String, String>,
    #[serde(default)]
    system_reserved: BTreeMap<String, String>,
    #[serde(default)]
    eviction_hard: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct TaintFile {
    key: String,
    #[serde(default)]
    value: String,
    effect: String,
}

impl KubeletFile {
    fn taints(&self) -> Option<Vec<Taint>> {
        let taint = |taint: &TaintFile| {
            let effect = TaintEffect::parse(&taint.effect)?;
            Some(Taint { key: taint.key.clone(), value: taint.value.clone(), effect })
        };
        self.register_with_taints.iter().map(taint).collect()
    }

    fn settings(&self) -> Option<Kubelet> {
        Some(Kubelet {
            max_pods: self.max_pods,
            kube_reserved: amounts(&self.kube_reserved)?,
            system_reserved: amounts(&self.system_reserved)?,
            eviction_hard: self.eviction_hard.clone(),
        })
    }
}

fn amounts(quantities: &BTreeMap<String, String>) -> Option<Resources> {
    let amount = |(name, text): (&String, &String)| Some((name.clone(), parse_quantity(name, text).ok()?));
    quantities.iter().map(amount).collect()
}
