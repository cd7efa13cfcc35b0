//! What a k3s agent reads.

use std::collections::BTreeMap;

use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::{Resources, parse_quantity};
use serde::Deserialize;

use super::{Error, Node, json, pairs};
use crate::render::{K3S_CONFIG_PATH, K3S_TOKEN_PATH};

pub(super) fn read<'a>(text: &impl Fn(&'static str) -> Result<&'a str, Error>) -> Result<Node, Error> {
    let config: Config = json(K3S_CONFIG_PATH, text(K3S_CONFIG_PATH)?)?;
    // Before the `::` stands the hash of the CA, which whoever has the CA itself need not look at.
    let token = text(K3S_TOKEN_PATH)?.trim();
    let token = token.split_once("::").map_or(token, |(_, token)| token);
    config.node(Secret::new(token)).ok_or(Error::Malformed(K3S_CONFIG_PATH))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Config {
    server: String,
    node_label: Vec<String>,
    node_taint: Vec<String>,
    kubelet_arg: Vec<String>,
}

impl Config {
    fn node(self, token: Secret) -> Option<Node> {
        let arguments = pairs(self.kubelet_arg.iter().map(String::as_str))?;
        Some(Node {
            token,
            provider_id: arguments.get("provider-id")?.clone(),
            labels: pairs(self.node_label.iter().map(String::as_str))?,
            taints: self.node_taint.iter().map(|text| taint(text)).collect::<Option<_>>()?,
            kubelet: Kubelet {
                max_pods: arguments.get("max-pods")?.parse().ok()?,
                kube_reserved: amounts(arguments.get("kube-reserved"))?,
                system_reserved: amounts(arguments.get("system-reserved"))?,
                eviction_hard: thresholds(arguments.get("eviction-hard")?)?,
            },
            server: self.server,
        })
    }
}

fn taint(text: &str) -> Option<Taint> {
    let (rest, effect) = text.rsplit_once(':')?;
    let (key, value) = rest.split_once('=')?;
    Some(Taint { key: key.to_owned(), value: value.to_owned(), effect: TaintEffect::parse(effect)? })
}

fn amounts(argument: Option<&String>) -> Option<Resources> {
    let listed = pairs(argument.iter().flat_map(|text| text.split(',')))?;
    listed.iter().map(|(name, text)| Some((name.clone(), parse_quantity(name, text).ok()?))).collect()
}

fn thresholds(argument: &str) -> Option<BTreeMap<String, String>> {
    let one = |text: &str| text.split_once('<').map(|(signal, below)| (signal.to_owned(), below.to_owned()));
    argument.split(',').map(one).collect()
}
