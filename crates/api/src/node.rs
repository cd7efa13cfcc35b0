//! What is read off a Kubernetes Node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint as WireTaint};
use scarpenter_core::label;
use scarpenter_core::name::ProviderId;
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::Resources;

use crate::quantity;

/// Name; empty only for a Node that is not from the API.
#[must_use]
pub fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Value of a label.
#[must_use]
pub fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// All labels.
#[must_use]
pub fn labels(node: &Node) -> BTreeMap<String, String> {
    node.metadata.labels.clone().unwrap_or_default()
}

/// Its provider id when it is one of ours; foreign and garbage ids are `None`.
#[must_use]
pub fn provider_id(node: &Node) -> Option<ProviderId> {
    ProviderId::parse(node.spec.as_ref()?.provider_id.as_deref()?)
}

/// Whether condition Ready is True.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| {
        list.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

/// Whether it is registered (LIF-7).
#[must_use]
pub fn is_registered(node: &Node) -> bool {
    label(node, label::REGISTERED) == Some("true")
}

/// Whether it is initialized (LIF-10).
#[must_use]
pub fn is_initialized(node: &Node) -> bool {
    label(node, label::INITIALIZED) == Some("true")
}

/// Whether it is cordoned.
#[must_use]
pub fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

/// Its taints; those of an effect that does not exist are left out.
#[must_use]
pub fn taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    parse_taints(taints.unwrap_or_default())
}

/// Taints as core thinks of them; those of an effect that does not exist are left out.
#[must_use]
pub fn parse_taints(taints: &[WireTaint]) -> Vec<Taint> {
    taints
        .iter()
        .filter_map(|taint| {
            let effect = TaintEffect::parse(&taint.effect)?;
            Some(Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect })
        })
        .collect()
}

/// A taint as Kubernetes writes it.
#[must_use]
pub fn write_taint(taint: &Taint) -> WireTaint {
    WireTaint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.as_str().to_owned(),
        time_added: None,
    }
}

/// Whether a taint belongs to the start of a node and goes by itself (STA-3).
#[must_use]
pub fn is_ephemeral(taint: &Taint) -> bool {
    match taint.key.as_str() {
        "node.kubernetes.io/not-ready" => taint.effect != TaintEffect::PreferNoSchedule,
        "node.kubernetes.io/unreachable" => taint.effect == TaintEffect::NoSchedule,
        "node.cloudprovider.kubernetes.io/uninitialized" => {
            taint.effect == TaintEffect::NoSchedule && taint.value == "true"
        }
        label::UNREGISTERED_TAINT => true,
        key => key.starts_with("readiness.k8s.io/"),
    }
}

/// Taints that count before the node is initialized: without ephemeral and startup taints (STA-3).
#[must_use]
pub fn settled_taints(taints: Vec<Taint>, startup: &[Taint]) -> Vec<Taint> {
    let starts =
        |taint: &Taint| startup.iter().any(|other| other.key == taint.key && other.effect == taint.effect);
    taints.into_iter().filter(|taint| !is_ephemeral(taint) && !starts(taint)).collect()
}

/// All that it has.
#[must_use]
pub fn capacity(node: &Node) -> Resources {
    quantity::read(node.status.as_ref().and_then(|status| status.capacity.as_ref()))
}

/// What pods can have of it.
#[must_use]
pub fn allocatable(node: &Node) -> Resources {
    quantity::read(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
}

/// `seen` with its zero and missing entries filled from `expected`: a node that has only begun to report (STA-4).
#[must_use]
pub fn filled(seen: &Resources, expected: &Resources) -> Resources {
    let mut out = seen.clone();
    for (name, amount) in expected.iter() {
        if out.get(name) == 0 {
            out.set(name, amount);
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_core::resources::{CPU, MEMORY};

    use super::*;

    fn node(text: &str) -> Node {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn a_node_is_read() {
        let node = node(
            "metadata: {name: n, labels: {karpenter.sh/registered: 'true'}}\n\
             spec: {providerID: 'scarpenter://aws/u-1', unschedulable: true, taints: [{key: a, effect: NoSchedule}, {key: b, effect: Odd}]}\n\
             status: {capacity: {cpu: '2', memory: 4Gi, junk: x}, conditions: [{type: Ready, status: 'True'}]}",
        );
        assert_eq!(name(&node), "n");
        assert!(is_ready(&node) && is_registered(&node) && !is_initialized(&node) && is_unschedulable(&node));
        assert_eq!(provider_id(&node).unwrap().claim.as_str(), "u-1");
        assert_eq!(taints(&node).len(), 1);
        assert_eq!(capacity(&node), Resources::new().with(CPU, 2000).with(MEMORY, 4 << 30));
    }

    #[test]
    fn an_empty_node_is_neither_ready_nor_ours() {
        let node = Node::default();
        assert!(!is_ready(&node));
        assert_eq!(provider_id(&node), None);
    }

    #[test]
    fn taints_of_the_start_do_not_count_before_initialization() {
        let taint =
            |key: &str, value: &str, effect| Taint { key: key.to_owned(), value: value.to_owned(), effect };
        let kept = taint("team", "a", TaintEffect::NoSchedule);
        let all = vec![
            taint("node.kubernetes.io/not-ready", "", TaintEffect::NoExecute),
            taint("karpenter.sh/unregistered", "", TaintEffect::NoExecute),
            taint("readiness.k8s.io/gpu", "", TaintEffect::NoSchedule),
            taint("cilium", "", TaintEffect::NoSchedule),
            kept.clone(),
        ];
        let startup = [taint("cilium", "x", TaintEffect::NoSchedule)];
        assert_eq!(settled_taints(all, &startup), [kept]);
        assert!(!is_ephemeral(&taint("node.kubernetes.io/unreachable", "", TaintEffect::NoExecute)));
    }

    #[test]
    fn what_a_new_node_does_not_report_yet_is_filled_in() {
        let seen = Resources::new().with(CPU, 2000).with(MEMORY, 0);
        let expected = Resources::new().with(CPU, 9000).with(MEMORY, 5).with("nvidia.com/gpu", 1);
        assert_eq!(
            filled(&seen, &expected),
            Resources::new().with(CPU, 2000).with(MEMORY, 5).with("nvidia.com/gpu", 1)
        );
    }
}
