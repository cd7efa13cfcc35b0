//! Whether the kubelet takes a pod that was bound to it. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scarpenter_core::pod::{Taint, TaintEffect, Toleration, untolerated};
use scarpenter_core::resources::{self, Resources, parse_quantity};

/// Why a pod is rejected, in a kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Whether a pod fits what is left. Resources that the node does not have are not asked for, as in a kubelet.
pub(crate) fn fits(asked: &Resources, used: &Resources, allocatable: &Resources) -> Result<(), Rejection> {
    let lacking = asked.iter().find(|(name, amount)| {
        allocatable
            .find(name)
            .is_some_and(|whole| *amount > 0 && used.get(name).saturating_add(*amount) > whole)
    });
    let Some((name, amount)) = lacking else { return Ok(()) };
    let message = format!(
        "Pod was rejected: Node didn't have enough resource: {name}, requested: {amount}, used: {}, capacity: {}",
        used.get(name),
        allocatable.get(name)
    );
    Err(Rejection { reason: format!("OutOf{name}"), message })
}

/// Whether the pod puts up with the taints that evict.
pub(crate) fn tolerates(pod: &core::Pod, taints: &[Taint]) -> Result<(), Rejection> {
    let evicting: Vec<Taint> =
        taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect();
    match untolerated(&evicting, &tolerations(pod), true) {
        None => Ok(()),
        Some(_) => Err(Rejection {
            reason: "TaintToleration".to_owned(),
            message: "Pod was rejected: Predicate TaintToleration failed".to_owned(),
        }),
    }
}

/// Taints of a Node as it is now.
pub(crate) fn taints_of(node: &core::Node) -> Vec<Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let taint = |taint: &core::Taint| {
        let value = taint.value.clone().unwrap_or_default();
        TaintEffect::parse(&taint.effect).map(|effect| Taint { key: taint.key.clone(), value, effect })
    };
    taints.iter().filter_map(taint).collect()
}

fn tolerations(pod: &core::Pod) -> Vec<Toleration> {
    let list = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let toleration = |toleration: &core::Toleration| {
        let value = match toleration.operator.as_deref() {
            Some("Exists") => None,
            None | Some("" | "Equal") => Some(toleration.value.clone().unwrap_or_default()),
            Some(_) => return None,
        };
        let effect = toleration.effect.as_deref().filter(|effect| !effect.is_empty());
        Some(Toleration {
            key: toleration.key.clone().filter(|key| !key.is_empty()),
            value,
            effect: match effect {
                None => None,
                Some(word) => Some(TaintEffect::parse(word)?),
            },
        })
    };
    list.iter().filter_map(toleration).collect()
}

/// What the pod asks for, as kube-scheduler and kubelet count it: sidecars run beside what starts after them,
/// other init containers run alone, pod-level amounts replace the sum, overhead comes on top.
pub(crate) fn requests(pod: &core::Pod) -> Resources {
    let Some(spec) = &pod.spec else { return Resources::new() };
    let mut sidecars = Resources::new();
    let mut peak = Resources::new();
    for container in spec.init_containers.iter().flatten() {
        let asked = amounts(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&asked);
            peak.max(&sidecars);
        } else {
            let mut with_sidecars = sidecars.clone();
            with_sidecars.add(&asked);
            peak.max(&with_sidecars);
        }
    }
    let mut sum = sidecars;
    for container in &spec.containers {
        sum.add(&amounts(container.resources.as_ref().and_then(|resources| resources.requests.as_ref())));
    }
    sum.max(&peak);
    for (name, amount) in
        amounts(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref())).iter()
    {
        sum.set(name, amount);
    }
    sum.add(&amounts(spec.overhead.as_ref()));
    sum.set(resources::PODS, 1);
    sum
}

fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> Resources {
    let amount = |(name, quantity): (&String, &Quantity)| {
        parse_quantity(name, &quantity.0).ok().map(|amount| (name.clone(), amount))
    };
    quantities.into_iter().flatten().filter_map(amount).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use scarpenter_core::resources::{CPU, MEMORY, PODS};
    use serde_json::json;

    fn pod(spec: serde_json::Value) -> core::Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_sidecar_counts_beside_the_init_container_that_follows_it() {
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = json!("Always");
        let pod = pod(json!({"containers": [container("1")], "initContainers": [sidecar, container("2")]}));
        assert_eq!(requests(&pod).get(CPU), 3000);
    }

    #[test]
    fn pod_level_amounts_replace_the_sum_and_overhead_comes_on_top() {
        let spec = json!({
            "containers": [container("1"), container("2")],
            "resources": {"requests": {"cpu": "4"}},
            "overhead": {"cpu": "250m", "memory": "64Mi"},
        });
        let asked = requests(&pod(spec));
        assert_eq!((asked.get(CPU), asked.get(MEMORY), asked.get(PODS)), (4250, 64 << 20, 1));
    }

    #[test]
    fn a_pod_that_does_not_fit_is_rejected_in_a_kubelets_words() {
        let allocatable = Resources::new().with(CPU, 2000).with(PODS, 2);
        let used = Resources::new().with(CPU, 1500).with(PODS, 1);
        let asked = Resources::new().with(CPU, 600).with(PODS, 1);
        let rejection = fits(&asked, &used, &allocatable).unwrap_err();
        assert_eq!(rejection.reason, "OutOfcpu");
        assert!(
            rejection.message.contains("requested: 600, used: 1500, capacity: 2000"),
            "{}",
            rejection.message
        );
        let full = Resources::new().with(PODS, 2);
        assert_eq!(
            fits(&Resources::new().with(PODS, 1), &full, &allocatable).unwrap_err().reason,
            "OutOfpods"
        );
        assert_eq!(fits(&Resources::new().with(CPU, 500), &used, &allocatable), Ok(()));
        assert_eq!(fits(&Resources::new().with("example.com/shared", 9), &used, &allocatable), Ok(()));
    }

    #[test]
    fn only_taints_that_evict_keep_a_bound_pod_out() {
        let taint =
            |effect| Taint { key: "karpenter.sh/unregistered".to_owned(), value: String::new(), effect };
        let plain = pod(json!({"containers": []}));
        assert_eq!(tolerates(&plain, &[taint(TaintEffect::NoSchedule)]), Ok(()));
        assert_eq!(
            tolerates(&plain, &[taint(TaintEffect::NoExecute)]).unwrap_err().reason,
            "TaintToleration"
        );
        for toleration in [json!({"operator": "Exists"}), json!({"key": "karpenter.sh/unregistered"})] {
            let tolerant = pod(json!({"containers": [], "tolerations": [toleration]}));
            assert_eq!(tolerates(&tolerant, &[taint(TaintEffect::NoExecute)]), Ok(()));
        }
        let other = pod(json!({"containers": [], "tolerations": [{"key": "other", "operator": "Exists"}]}));
        assert!(tolerates(&other, &[taint(TaintEffect::NoExecute)]).is_err());
    }
}
