//! Where a pod may be because of where other pods are: topology spread, pod affinity and anti-affinity.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PodAffinityTerm, PodSpec, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use scarpenter_core::pod::{Pod, WeightedTerm};
use scarpenter_core::requirements::Operator;
use scarpenter_core::topology::{PodTerm, Spread};

use crate::{requirement, selector};

/// Reads the rules of a spec; the pod's own namespace and labels are known by then.
pub(super) fn read(spec: &PodSpec, out: &mut Pod) {
    for (index, constraint) in spec.topology_spread_constraints.iter().flatten().enumerate() {
        match spread(constraint, &out.labels) {
            Ok(spread) => out.spread.push(spread),
            Err(words) => out.invalid.push(format!("topologySpreadConstraints[{index}]: {words}")),
        }
    }
    let Some(affinity) = &spec.affinity else { return };
    if let Some(near) = &affinity.pod_affinity {
        out.affinity =
            terms("podAffinity", near.required_during_scheduling_ignored_during_execution.as_deref(), out);
        out.preferred_affinity =
            wishes("podAffinity", near.preferred_during_scheduling_ignored_during_execution.as_deref(), out);
    }
    if let Some(far) = &affinity.pod_anti_affinity {
        out.anti_affinity =
            terms("podAntiAffinity", far.required_during_scheduling_ignored_during_execution.as_deref(), out);
        out.preferred_anti_affinity = wishes(
            "podAntiAffinity",
            far.preferred_during_scheduling_ignored_during_execution.as_deref(),
            out,
        );
    }
}

/// Absent fields mean what the kube-scheduler takes them for (SCH-30).
fn spread(
    constraint: &TopologySpreadConstraint,
    labels: &BTreeMap<String, String>,
) -> Result<Spread, String> {
    let key = topology_key(&constraint.topology_key)?;
    let max_skew = u32::try_from(constraint.max_skew).ok().filter(|skew| *skew > 0);
    let required = match constraint.when_unsatisfiable.as_str() {
        "DoNotSchedule" => true,
        "ScheduleAnyway" => false,
        other => {
            return Err(format!("whenUnsatisfiable: {other:?} is neither DoNotSchedule nor ScheduleAnyway"));
        }
    };
    let min_domains = match constraint.min_domains {
        Some(_) if !required => return Err("minDomains needs whenUnsatisfiable DoNotSchedule".to_owned()),
        Some(count) => Some(
            u32::try_from(count)
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(|| format!("minDomains: {count} is less than 1"))?,
        ),
        None => None,
    };
    let mut selected = selector::parse(constraint.label_selector.as_ref())
        .map_err(|words| format!("labelSelector: {words}"))?;
    selector::add_label_keys(&mut selected, constraint.match_label_keys.as_ref(), Operator::In, labels);
    Ok(Spread {
        topology_key: key,
        max_skew: max_skew.ok_or_else(|| format!("maxSkew: {} is less than 1", constraint.max_skew))?,
        min_domains,
        selector: selected,
        required,
        honor_affinity: honors("nodeAffinityPolicy", constraint.node_affinity_policy.as_deref(), true)?,
        honor_taints: honors("nodeTaintsPolicy", constraint.node_taints_policy.as_deref(), false)?,
    })
}

fn honors(field: &str, policy: Option<&str>, default: bool) -> Result<bool, String> {
    match policy {
        None => Ok(default),
        Some("Honor") => Ok(true),
        Some("Ignore") => Ok(false),
        Some(other) => Err(format!("{field}: {other:?} is neither Honor nor Ignore")),
    }
}

/// Keys are not renamed: the kube-scheduler looks for exactly this label on a node.
fn topology_key(key: &str) -> Result<String, String> {
    match requirement::key_problem(key) {
        Some(problem) => Err(format!("topologyKey: {problem}")),
        None => Ok(key.to_owned()),
    }
}

fn terms(kind: &str, list: Option<&[PodAffinityTerm]>, out: &mut Pod) -> Vec<PodTerm> {
    let mut good = Vec::new();
    for term in list.unwrap_or_default() {
        match pod_term(term, out) {
            Ok(term) => good.push(term),
            Err(words) => out.invalid.push(format!("required {kind}: {words}")),
        }
    }
    good
}

fn wishes(kind: &str, list: Option<&[WeightedPodAffinityTerm]>, out: &mut Pod) -> Vec<WeightedTerm> {
    let mut good = Vec::new();
    for wish in list.unwrap_or_default() {
        match pod_term(&wish.pod_affinity_term, out) {
            Ok(term) => good.push(WeightedTerm { weight: wish.weight, term }),
            Err(words) => out.invalid.push(format!("preferred {kind}: {words}")),
        }
    }
    good
}

fn pod_term(term: &PodAffinityTerm, own: &Pod) -> Result<PodTerm, String> {
    let topology_key = topology_key(&term.topology_key)?;
    let mut selected =
        selector::parse(term.label_selector.as_ref()).map_err(|words| format!("labelSelector: {words}"))?;
    selector::add_label_keys(&mut selected, term.match_label_keys.as_ref(), Operator::In, &own.labels);
    selector::add_label_keys(&mut selected, term.mismatch_label_keys.as_ref(), Operator::NotIn, &own.labels);
    let namespace_selector = selector::parse(term.namespace_selector.as_ref())
        .map_err(|words| format!("namespaceSelector: {words}"))?;
    let named = term.namespaces.iter().flatten().cloned().collect();
    let mut out = PodTerm { topology_key, selector: selected, namespaces: named, namespace_selector };
    if out.namespaces.is_empty() && out.namespace_selector.is_none() {
        out.namespaces.insert(own.key.namespace.clone());
    }
    Ok(out)
}
