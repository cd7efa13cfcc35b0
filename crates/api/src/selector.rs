//! Label selectors into core's lines.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as WireSelector;
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::topology::LabelSelector;

use crate::requirement;

/// Reads a selector: none selects nothing, an empty one selects everything. Keys are taken as they are.
///
/// # Errors
/// What is malformed, in words.
pub(crate) fn parse(selector: Option<&WireSelector>) -> Result<Option<LabelSelector>, String> {
    let Some(selector) = selector else { return Ok(None) };
    let mut out = LabelSelector::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        out.push(Requirement::new(key, Operator::In, &[value]));
    }
    for line in selector.match_expressions.iter().flatten() {
        let operator =
            Operator::parse(&line.operator).filter(|operator| KNOWN.contains(operator)).ok_or_else(|| {
                format!("{}: {:?} is not an operator of a label selector", line.key, line.operator)
            })?;
        let values = line.values.clone().unwrap_or_default();
        out.push(Requirement { key: line.key.clone(), operator, values, min_values: None });
    }
    match out.iter().flat_map(requirement::problems).next() {
        Some(problem) => Err(problem),
        None => Ok(Some(out)),
    }
}

const KNOWN: [Operator; 4] = [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];

/// Narrows a selector to pods that have the same values as `labels` for these keys, or other ones (`NotIn`).
///
/// A key that `labels` lacks says nothing. The API server writes such lines into the selector when it makes the pod,
/// so a line that is there already is not added again.
pub(crate) fn add_label_keys(
    selector: &mut Option<LabelSelector>,
    keys: Option<&Vec<String>>,
    operator: Operator,
    labels: &BTreeMap<String, String>,
) {
    let Some(lines) = selector else { return };
    for key in keys.into_iter().flatten() {
        let is_there = lines.iter().any(|line| line.key == *key && line.operator == operator);
        if let Some(value) = labels.get(key).filter(|_| !is_there) {
            lines.push(Requirement::new(key, operator, &[value]));
        }
    }
}
