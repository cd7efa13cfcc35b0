//! What would change in a NodePool.

use std::collections::BTreeSet;
use std::fmt::Write;

use scarpenter_emission::emit::listed;
use scarpenter_emission::{Outcome, Selection, Verdict};
use serde_json::Value;

/// The difference in words, and whether there is one.
pub(super) fn diff(
    selection: &Selection<'_>,
    outcome: &Outcome,
    nodepool: &Value,
    live: Option<&Value>,
) -> (String, bool) {
    let name = nodepool["metadata"]["name"].as_str().unwrap_or_default();
    let before = live.and_then(listed).map_or_else(BTreeSet::new, |(types, _)| types);
    let added: Vec<&String> = outcome.emitted.difference(&before).collect();
    let removed: Vec<&String> = before.difference(&outcome.emitted).collect();
    let held: Vec<&String> =
        outcome.emitted.iter().filter(|name| selection.verdict(name).is_some()).collect();
    let fields = live.map_or_else(Vec::new, |live| fields(nodepool, live));
    let new = if live.is_none() { "is new: " } else { "" };
    let mut out = format!(
        "NodePool {name} {new}{} types, {} added, {} removed, {} held\n",
        outcome.emitted.len(),
        added.len(),
        removed.len(),
        held.len()
    );
    for name in &added {
        let _ = writeln!(out, "+ {name}");
    }
    for name in &removed {
        let _ = writeln!(out, "- {name}: {}", why(selection, name));
    }
    for name in held {
        let entry = outcome.pending.iter().find(|entry| entry.name == *name);
        let state = match entry {
            None => "for as long as it misses by so little".to_owned(),
            Some(entry) if entry.due => "until the cap of removals lets it go".to_owned(),
            Some(entry) => format!("after {} refreshes that want it gone", entry.refreshes),
        };
        let _ = writeln!(out, "~ {name} is held {state}: {}", why(selection, name));
    }
    for field in &fields {
        let _ = writeln!(out, "! {field}");
    }
    if outcome.mass_disappearance {
        out.push_str(
            "! more than half of the list is gone from the data, so it is taken off by the cap only\n",
        );
    }
    (out, live.is_none() || !added.is_empty() || !removed.is_empty() || !fields.is_empty())
}

fn why(selection: &Selection<'_>, name: &str) -> String {
    match selection.verdict(name) {
        None => "it is wanted".to_owned(),
        Some(Verdict::Contradicted(words) | Verdict::Gone(words) | Verdict::Fails(words, None)) => words,
        Some(Verdict::Fails(words, Some(margin))) => format!("{words} (misses by {margin:.1} %)"),
    }
}

/// Fields that are set and are otherwise in the NodePool that is there; what only that one has is not ours.
fn fields(nodepool: &Value, live: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let mut ours = nodepool["spec"].clone();
    let mut theirs = live["spec"].clone();
    for spec in [&mut ours, &mut theirs] {
        without_list(spec);
    }
    compare("spec", &ours, &theirs, &mut out);
    compare("metadata.labels", &nodepool["metadata"]["labels"], &live["metadata"]["labels"], &mut out);
    out
}

/// The list of types is told of apart.
fn without_list(spec: &mut Value) {
    let requirements = spec.pointer_mut("/template/spec/requirements").and_then(Value::as_array_mut);
    let is_list =
        |line: &&mut Value| line["key"] == "node.kubernetes.io/instance-type" && line["operator"] == "In";
    if let Some(list) = requirements.and_then(|requirements| requirements.iter_mut().find(is_list)) {
        list["values"] = Value::Null;
    }
}

fn compare(path: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                compare(&format!("{path}.{key}"), value, theirs.get(key).unwrap_or(&Value::Null), out);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{path}[{at}]"), ours, theirs, out);
            }
        }
        _ if ours != theirs => out.push(format!("{path}: {theirs} becomes {ours}")),
        _ => {}
    }
}
