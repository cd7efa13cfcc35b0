//! The custom resource definitions, generated from the Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::{NodeClaim, NodePool, SCNodePool, ScarpenterNodeClass};

/// NodePool, NodeClaim, ScarpenterNodeClass and SCNodePool, as they are applied.
///
/// # Panics
/// Never: a definition that was a definition before it was normalised is one after.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    [NodePool::crd(), NodeClaim::crd(), ScarpenterNodeClass::crd(), SCNodePool::crd()]
        .into_iter()
        .map(|crd| serde_json::from_value(document(crd)).expect("a normalised definition is a definition"))
        .collect()
}

/// Name and YAML of each definition, for one file each.
///
/// # Panics
/// Never: plain JSON values are written to memory.
#[must_use]
pub fn yaml() -> Vec<(String, String)> {
    all()
        .into_iter()
        .map(|crd| {
            let name = crd.metadata.name.clone().unwrap_or_default();
            let value = whole_numbers(serde_json::to_value(crd).expect("a definition is plain data"));
            (name, serde_saphyr::to_string(&value).expect("plain data is written to memory"))
        })
        .collect()
}

/// All definitions as one YAML stream.
#[must_use]
pub fn stream() -> String {
    yaml().into_iter().map(|(_, text)| format!("---\n{text}")).collect()
}

fn document(crd: CustomResourceDefinition) -> Value {
    let list_kind = format!("{}List", crd.spec.names.kind);
    let mut value = serde_json::to_value(crd).expect("a definition is plain data");
    value["spec"]["names"]["listKind"] = list_kind.into();
    if let Some(versions) = value.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        for version in versions {
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                normalise(schema);
                name_the_object(schema);
            }
        }
    }
    value
}

/// Takes out of a schema what the derive adds and the published schemas do not have.
///
/// `nullable` of every `Option` (a null is dropped by the API server before it is looked at), `title`, formats that
/// Kubernetes does not know, and the types that the derive strips from an int-or-string.
fn normalise(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("nullable");
    object.remove("title");
    if object.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with('u')) {
        object.remove("format");
    }
    if object.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        object.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    for keyword in ["items", "additionalProperties", "not"] {
        object.get_mut(keyword).into_iter().for_each(normalise);
    }
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(normalise);
    }
}

/// The fields that every object has.
fn name_the_object(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, type_) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            properties.entry(name).or_insert_with(|| json!({"type": type_}));
        }
    }
}

/// `1.0` as `1`: Kubernetes keeps bounds as floats, people do not write them so.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => json!(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, whole_numbers(field))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}
