//! From the list of types to the NodePool.

use std::collections::BTreeSet;

use scarpenter_core::requirements::Operator;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::adapter::Zones;
use crate::refusal::{Reason, Refusal};
use crate::select::Selection;
use crate::spec::Intent;
use crate::template::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE};

mod validate;

/// Label that names the SCNodePool.
pub const SCNODEPOOL: &str = "karpenter.sparecores.com/scnodepool";
/// Annotation with the hash of the list.
pub const SELECTION_HASH: &str = "karpenter.sparecores.com/selection-hash";
/// Annotation with the time of the data.
pub const DATA_TIMESTAMP: &str = "karpenter.sparecores.com/data-timestamp";
/// Annotation with the hash of the data.
pub const DATA_HASH: &str = "karpenter.sparecores.com/data-hash";

/// Hex SHA-256 of the sorted names, one a line.
#[must_use]
pub fn selection_hash(types: &BTreeSet<String>) -> String {
    let list = types.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    Sha256::digest(list).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The NodePool that lists `types`, without owner and without the label that says who manages it.
///
/// Only keys that every provider labels its nodes with are added, so that no node drifts for them.
/// `data_timestamp` is RFC 3339.
///
/// # Errors
/// [`Refusal`] with reason `ValidationFailed` and all that is wrong, `NoCandidates` when `types` is empty.
pub fn emit(
    intent: &Intent,
    selection: &Selection<'_>,
    types: &BTreeSet<String>,
    data: (Option<&str>, Option<&str>),
) -> Result<Value, Refusal> {
    if types.is_empty() {
        return Err(selection
            .refusal()
            .unwrap_or_else(|| Reason::NoCandidates.because("the list would be empty")));
    }
    let requirements = requirements(intent, selection, types);
    let template = &intent.spec.node_pool_template;
    let mut spec = Value::Object(template.spec.clone());
    spec["template"]["spec"]["requirements"] = Value::Array(requirements);
    // Every provider's definition wants it once there is a disruption; only core's has a default.
    if let Some(disruption) = spec.get_mut("disruption").and_then(Value::as_object_mut) {
        disruption.entry("consolidateAfter").or_insert_with(|| "0s".into());
    }
    validate::validate(&spec, selection.adapter())?;
    let nodepool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata(intent, types, data),
        "spec": spec,
    });
    Ok(nodepool)
}

fn metadata(
    intent: &Intent,
    types: &BTreeSet<String>,
    (timestamp, hash): (Option<&str>, Option<&str>),
) -> Value {
    let template = &intent.spec.node_pool_template.metadata;
    let mut labels = template.labels.clone();
    labels.insert(SCNODEPOOL.to_owned(), intent.name.clone());
    let mut annotations = template.annotations.clone();
    annotations.insert(SELECTION_HASH.to_owned(), selection_hash(types));
    for (key, value) in [(DATA_TIMESTAMP, timestamp), (DATA_HASH, hash)] {
        annotations.extend(value.map(|value| (key.to_owned(), value.to_owned())));
    }
    json!({"name": intent.name, "labels": labels, "annotations": annotations})
}

/// The template's own in its order, then what it lacks, the list of types last.
fn requirements(intent: &Intent, selection: &Selection<'_>, types: &BTreeSet<String>) -> Vec<Value> {
    let constraints = &selection.constraints;
    let mut out: Vec<Value> = constraints.lines.iter().map(|(_, raw)| raw.clone()).collect();
    if !constraints.has(ARCH) {
        out.push(one_of(ARCH, &architectures(selection, types)));
    }
    if !constraints.has(CAPACITY_TYPE) {
        let default = selection.adapter().capacity.iter().take(1).map(|word| (*word).to_owned());
        out.push(one_of(CAPACITY_TYPE, &default.collect()));
    }
    let asked: BTreeSet<String> = intent.spec.location.zones.iter().cloned().collect();
    if !asked.is_empty() {
        out.push(one_of(ZONE, &asked));
    } else if selection.adapter().zones == Zones::Always && !constraints.has(ZONE) {
        out.push(one_of(ZONE, &selection.zones.iter().cloned().collect()));
    }
    let mut list = one_of(INSTANCE_TYPE, types);
    if let Some(least) = constraints.min_values {
        list["minValues"] = least.into();
    }
    out.push(list);
    out
}

/// Those of the types on the list, held ones too, since their nodes would drift otherwise.
fn architectures(selection: &Selection<'_>, types: &BTreeSet<String>) -> BTreeSet<String> {
    let known = types.iter().filter_map(|name| selection.find(name));
    let found: BTreeSet<String> = known.map(|of| of.row.of.arch.as_str().to_owned()).collect();
    let allowed = &selection.constraints.architectures;
    if found.is_empty() { allowed.iter().map(|arch| (*arch).to_owned()).collect() } else { found }
}

fn one_of(key: &str, values: &BTreeSet<String>) -> Value {
    json!({"key": key, "operator": Operator::In.as_str(), "values": values})
}

/// The types that a NodePool lists, and whether nobody has changed them since they were written.
#[must_use]
pub fn listed(nodepool: &Value) -> Option<(BTreeSet<String>, bool)> {
    let requirements = nodepool.pointer("/spec/template/spec/requirements")?.as_array()?;
    let is_list = |line: &&Value| line["key"] == INSTANCE_TYPE && line["operator"] == Operator::In.as_str();
    let values = requirements.iter().find(is_list)?["values"].as_array()?;
    let types: BTreeSet<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let annotations = nodepool.pointer("/metadata/annotations").and_then(Value::as_object);
    let hash = annotations.and_then(|annotations| annotations.get(SELECTION_HASH)).and_then(Value::as_str);
    let untouched = hash == Some(selection_hash(&types).as_str());
    Some((types, untouched))
}

/// Whether `live` may become what `intent` wants: the kind of node class can never change.
///
/// # Errors
/// [`Refusal`] with reason `NodeClassRefImmutable`.
pub fn check_live(intent: &Intent, live: &Value) -> Result<(), Refusal> {
    let reference = |spec: Option<&Map<String, Value>>| {
        let reference = spec?.get("template")?.pointer("/spec/nodeClassRef")?;
        let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
        Some((text("group"), text("kind")))
    };
    let old = reference(live["spec"].as_object());
    let new = reference(Some(&intent.spec.node_pool_template.spec));
    match (old, new) {
        (Some(old), Some(new)) if old != new => Err(Reason::NodeClassRefImmutable.because(format!(
            "the NodePool has node class {} of {}, the template {} of {}; delete the NodePool first",
            old.1, old.0, new.1, new.0
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
