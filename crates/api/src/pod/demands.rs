//! Node selectors, node affinity, tolerations, and what is not decided here.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration as WireToleration, Volume,
};
use scarpenter_core::label;
use scarpenter_core::pod::{Pod, Preference, TaintEffect, Toleration};
use scarpenter_core::requirements::{Operator, Requirement};

use crate::requirement;

/// Reads what a spec asks of its node's labels and taints.
pub(super) fn read(spec: &PodSpec, out: &mut Pod) {
    let (selector, problems) = node_selector(spec.node_selector.as_ref());
    out.node_selector = selector;
    out.invalid.extend(problems);
    let affinity = spec.affinity.as_ref();
    if let Some(node) = affinity.and_then(|affinity| affinity.node_affinity.as_ref()) {
        required_terms(node, out);
        preferred_terms(node, out);
    }
    let (tolerations, problems) = tolerations(spec);
    out.tolerations = tolerations;
    out.invalid.extend(problems);
    out.undecided.extend(undecided(spec).into_iter().map(str::to_owned));
}

fn node_selector(selector: Option<&BTreeMap<String, String>>) -> (BTreeMap<String, String>, Vec<String>) {
    let mut out = BTreeMap::new();
    let mut problems = Vec::new();
    for (key, value) in selector.into_iter().flatten() {
        let key = label::normalize_key(key).to_owned();
        let words = [requirement::key_problem(&key), requirement::value_problem(&key, value)];
        problems.extend(words.into_iter().flatten().map(|words| format!("nodeSelector: {words}")));
        if let Some(other) = out.insert(key.clone(), value.clone())
            && other != *value
        {
            problems.push(format!("nodeSelector: {key} is asked to be both {other:?} and {value:?}"));
        }
    }
    (out, problems)
}

/// A term with nothing in it matches no node, so it is no alternative.
fn required_terms(affinity: &NodeAffinity, out: &mut Pod) {
    let Some(required) = &affinity.required_during_scheduling_ignored_during_execution else { return };
    for term in &required.node_selector_terms {
        if term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty()) {
            out.invalid.push("required node affinity: matchFields".to_owned());
        }
        let (lines, problems) = term_lines(term);
        out.invalid.extend(problems.into_iter().map(|words| format!("required node affinity: {words}")));
        if !lines.is_empty() {
            out.required_terms.push(lines);
        }
    }
    if out.required_terms.is_empty() {
        out.invalid.push("required node affinity: no term that a node could match".to_owned());
    }
}

fn preferred_terms(affinity: &NodeAffinity, out: &mut Pod) {
    for wish in affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten() {
        let (requirements, problems) = term_lines(&wish.preference);
        out.invalid.extend(problems.into_iter().map(|words| format!("preferred node affinity: {words}")));
        let by_field = wish.preference.match_fields.as_ref().is_some_and(|fields| !fields.is_empty());
        if !by_field && !requirements.is_empty() {
            out.preferred_terms.push(Preference { weight: wish.weight, requirements });
        }
    }
}

fn term_lines(term: &NodeSelectorTerm) -> (Vec<Requirement>, Vec<String>) {
    let mut lines = Vec::new();
    let mut problems = Vec::new();
    for line in term.match_expressions.iter().flatten() {
        match parse_line(line) {
            Ok(line) => {
                problems.extend(requirement::problems(&line));
                lines.push(line);
            }
            Err(words) => problems.push(words),
        }
    }
    (lines, problems)
}

/// Pods know six operators; Gte and Lte are the pools' own.
pub(crate) fn parse_line(line: &NodeSelectorRequirement) -> Result<Requirement, String> {
    let operator = Operator::parse(&line.operator)
        .filter(|operator| !matches!(operator, Operator::Gte | Operator::Lte))
        .ok_or_else(|| format!("{}: {:?} is not an operator", line.key, line.operator))?;
    Ok(Requirement {
        key: label::normalize_key(&line.key).to_owned(),
        operator,
        values: line.values.clone().unwrap_or_default(),
        min_values: None,
    })
}

/// Tolerations, and what is wrong with those that are left out.
pub(super) fn tolerations(spec: &PodSpec) -> (Vec<Toleration>, Vec<String>) {
    let mut out = (Vec::new(), Vec::new());
    for toleration in spec.tolerations.iter().flatten() {
        match parse_toleration(toleration) {
            Ok(toleration) => out.0.push(toleration),
            Err(words) => out.1.push(words),
        }
    }
    out
}

fn parse_toleration(toleration: &WireToleration) -> Result<Toleration, String> {
    let key = toleration.key.clone().filter(|key| !key.is_empty());
    let effect = match toleration.effect.as_deref() {
        None | Some("") => None,
        Some(text) => {
            Some(TaintEffect::parse(text).ok_or_else(|| format!("toleration: {text:?} is not an effect"))?)
        }
    };
    let value = match toleration.operator.as_deref() {
        Some("Exists") => None,
        None | Some("" | "Equal") if key.is_some() => Some(toleration.value.clone().unwrap_or_default()),
        None | Some("" | "Equal") => {
            return Err("toleration: without a key the operator must be Exists".to_owned());
        }
        Some(other) => return Err(format!("toleration: operator {other:?} is not known")),
    };
    Ok(Toleration { key, value, effect })
}

/// Fields that narrow where a pod may run and that nothing here decides, each with what to do about it.
fn undecided(spec: &PodSpec) -> Vec<&'static str> {
    let has = |is: fn(&Volume) -> bool| spec.volumes.iter().flatten().any(is);
    let facts = [
        (
            has(|volume| volume.vsphere_volume.is_some() || volume.rbd.is_some()),
            "a vsphereVolume or rbd volume in the pod itself (use a PersistentVolumeClaim)",
        ),
        (
            spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()),
            "a resourceClaim of dynamic resource allocation (remove it)",
        ),
    ];
    facts.into_iter().filter_map(|(asked, words)| asked.then_some(words)).collect()
}
