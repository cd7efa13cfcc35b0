//! The definition of SCNodePool, its type and emission's reading of it have the same fields.
#![allow(clippy::unwrap_used)]

use scarpenter_api::SCNodePool;
use scarpenter_emission::Intent;
use serde_json::{Map, Value, json};

/// An object with every field of a schema, each with the first value that it takes.
fn filled(schema: &Value, path: &str) -> Value {
    match schema["type"].as_str().unwrap_or_else(|| panic!("{path}: {schema}")) {
        "object" => match schema["properties"].as_object() {
            Some(fields) => {
                let fields =
                    fields.iter().map(|(name, of)| (name.clone(), filled(of, &format!("{path}.{name}"))));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            None => json!({"a": "b"}),
        },
        "array" => json!([filled(&schema["items"], path)]),
        "boolean" => json!(true),
        "integer" => json!(2),
        "number" => json!(1.5),
        _ => match (schema["enum"].as_array(), schema["pattern"].as_str()) {
            (Some(words), _) => words.last().unwrap().clone(),
            (None, Some(pattern)) if pattern.contains("s|m|h") => json!("1h"),
            (None, Some(pattern)) if pattern.starts_with("^[0-9]") => json!("1.5"),
            _ => json!("text"),
        },
    }
}

fn spec() -> Value {
    let crds = scarpenter_api::crds::all();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "SCNodePool").unwrap();
    let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    let schema = serde_json::to_value(schema).unwrap();
    filled(&schema["properties"]["spec"], "spec")
}

#[test]
fn the_type_keeps_every_field_of_the_definition() {
    let spec = spec();
    let object: SCNodePool =
        serde_json::from_value(json!({"metadata": {"name": "all"}, "spec": spec})).unwrap();
    assert_eq!(serde_json::to_value(&object.spec).unwrap(), spec);
}

#[test]
fn emission_knows_every_field_of_the_definition() {
    let mut spec = spec();
    // Of these two pairs the definition's rules allow only one.
    spec["selector"]["benchmarks"][0].as_object_mut().unwrap().remove("max");
    spec["ranking"]["score"].as_object_mut().unwrap().remove("workloadProfile");
    spec["ranking"]["normalize"] = json!("PerVcpu");
    Intent::parse("all", spec.clone()).unwrap_or_else(|refusal| panic!("{refusal}"));
    spec["selector"]["memory"]["new"] = json!(1);
    assert!(Intent::parse("all", spec).unwrap_err().message.contains("unknown field `new`"));
}
