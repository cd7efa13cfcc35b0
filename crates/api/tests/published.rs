//! Our NodePool and NodeClaim against the published ones: equal in everything but descriptions.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// Folder of the published schemas; where it is absent the test says so and ends.
fn published(file: &str) -> Option<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("SCARPENTER_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let path = shared.join("crds/core").join(file);
    if !shared.exists() {
        // Straight to stderr: what `eprintln` says is swallowed when a test passes.
        let words =
            format!("not run: comparison with the published {file}, since SCARPENTER_SHARED is not there\n");
        std::io::stderr().write_all(words.as_bytes()).unwrap();
        return None;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    Some(serde_saphyr::from_str(&text).unwrap())
}

fn ours(name: &str) -> Value {
    let crds = scarpenter_api::crds::yaml();
    let (_, text) = crds.iter().find(|(found, _)| found == name).unwrap();
    serde_saphyr::from_str(text).unwrap()
}

/// Drops what does not matter: descriptions, the generator's annotation, order of `required` and of enum words.
fn bare(value: &Value, is_schema: bool) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !(is_schema && *name == "description"))
            .map(|(name, field)| (name.clone(), keyword(name, field, is_schema)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| bare(item, is_schema)).collect(),
        Value::Number(number) => Value::from(number.as_f64().unwrap()),
        other => other.clone(),
    }
}

fn keyword(name: &str, field: &Value, is_schema: bool) -> Value {
    match (name, field) {
        ("properties", Value::Object(fields)) if is_schema => fields
            .iter()
            .map(|(name, schema)| (name.clone(), bare(schema, true)))
            .collect::<Map<_, _>>()
            .into(),
        ("default", field) if is_schema => bare(field, false),
        ("required" | "enum", Value::Array(words)) if is_schema => {
            let mut words = words.clone();
            words.sort_by_key(ToString::to_string);
            words.into()
        }
        (_, field) => bare(field, is_schema),
    }
}

/// Paths at which two values differ.
fn differences(path: &str, published: &Value, ours: &Value, out: &mut Vec<String>) {
    match (published, ours) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left.keys().chain(right.keys().filter(|name| !left.contains_key(*name))) {
                let path = format!("{path}.{name}");
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => differences(&path, left, right, out),
                    (Some(left), None) => out.push(format!("{path}: published {left}, ours has none")),
                    (_, right) => out.push(format!("{path}: published has none, ours {}", right.unwrap())),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}[{at}]"), left, right, out);
            }
        }
        (left, right) if left == right => {}
        (left, right) => out.push(format!("{path}: published {left}, ours {right}")),
    }
}

fn compare(file: &str, name: &str) {
    let Some(published) = published(file) else { return };
    let ours = ours(name);
    let mut out = Vec::new();
    for part in ["/spec/group", "/spec/scope", "/spec/names"] {
        differences(part, published.pointer(part).unwrap(), ours.pointer(part).unwrap(), &mut out);
    }
    let version = "/spec/versions/0";
    differences(
        version,
        &bare(published.pointer(version).unwrap(), true),
        &bare(ours.pointer(version).unwrap(), true),
        &mut out,
    );
    assert!(out.is_empty(), "{name} differs from the published one:\n{}", out.join("\n"));
}

#[test]
fn our_nodepool_is_the_published_one() {
    compare("nodepools.yaml", "nodepools.karpenter.sh");
}

#[test]
fn our_nodeclaim_is_the_published_one() {
    compare("nodeclaims.yaml", "nodeclaims.karpenter.sh");
}

#[test]
fn a_changed_pattern_is_a_difference() {
    let schema = |pattern: &str| serde_json::json!({"properties": {"description": {"type": "string", "pattern": pattern}}});
    let mut out = Vec::new();
    differences("", &bare(&schema("a"), true), &bare(&schema("b"), true), &mut out);
    assert_eq!(out.len(), 1, "{out:?}");
}
