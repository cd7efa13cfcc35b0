//! Schemas of the leaves.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Keys that are written by the controller or by Karpenter.
const OWN_KEYS: &str =
    "!k.startsWith('karpenter.sparecores.com/') && !k.startsWith('karpenter.sh/nodepool-hash')";

/// A NodePoolSpec of whatever version of Karpenter; only the reference to the node class is looked at.
pub(super) fn nodepool_spec(_: &mut SchemaGenerator) -> Schema {
    let text = json!({"type": "string", "minLength": 1});
    let reference = json!({
        "type": "object",
        "required": ["group", "kind", "name"],
        "properties": {"group": text, "kind": text, "name": text},
    });
    let open = |name: &str, inner: &Value| {
        json!({
            "type": "object",
            "required": [name],
            "properties": {name: inner},
            "x-kubernetes-preserve-unknown-fields": true,
        })
    };
    let spec = open("template", &open("spec", &open("nodeClassRef", &reference)));
    Schema::try_from(spec).expect("an object is a schema")
}

/// Labels of the NodePool.
pub(super) fn labels(_: &mut SchemaGenerator) -> Schema {
    map(
        &json!({"type": "string", "maxLength": 63}),
        &format!("self.all(k, k != 'app.kubernetes.io/managed-by' && {OWN_KEYS})"),
    )
}

/// Annotations of the NodePool.
pub(super) fn annotations(_: &mut SchemaGenerator) -> Schema {
    map(&json!({"type": "string"}), &format!("self.all(k, {OWN_KEYS})"))
}

fn map(values: &Value, rule: &str) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": values,
        "maxProperties": 100,
        "x-kubernetes-map-type": "granular",
        "x-kubernetes-validations": [{
            "message": "keys app.kubernetes.io/managed-by (as a label), karpenter.sparecores.com/… and karpenter.sh/nodepool-hash… are not for templates",
            "rule": rule,
        }],
    })
}

fn set(items: &Value, most: usize) -> Schema {
    json_schema!({
        "type": "array",
        "items": items,
        "maxItems": most,
        "x-kubernetes-list-type": "set",
    })
}

/// Regions, zones, makers, models.
pub(super) fn names(_: &mut SchemaGenerator) -> Schema {
    set(&json!({"type": "string", "minLength": 1, "maxLength": 253}), 32)
}

/// Patterns of names.
pub(super) fn globs(_: &mut SchemaGenerator) -> Schema {
    set(&json!({"type": "string", "minLength": 1, "maxLength": 253}), 128)
}

/// CPU flags as `/proc/cpuinfo` names them.
pub(super) fn flags(_: &mut SchemaGenerator) -> Schema {
    set(&json!({"type": "string", "pattern": "^[a-z0-9_]+$", "maxLength": 64}), 64)
}

/// Architectures.
pub(super) fn architectures(_: &mut SchemaGenerator) -> Schema {
    set(&json!({"type": "string", "enum": ["amd64", "arm64"]}), 2)
}

/// How CPUs are given.
pub(super) fn allocations(_: &mut SchemaGenerator) -> Schema {
    set(&json!({"type": "string", "enum": ["Shared", "Burstable", "Dedicated"]}), 3)
}

/// A number above 0.
pub(super) fn positive(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0, "exclusiveMinimum": true})
}

/// A number of at least 0.
pub(super) fn not_negative(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0})
}

/// US dollars an hour, as text so that no digit is lost.
pub(super) fn dollars(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 20,
        "pattern": r"^[0-9]+(\.[0-9]{1,6})?$",
        "x-kubernetes-validations": [{"message": "a price must be above 0", "rule": "double(self) > 0.0"}],
    })
}

/// Name of a workload profile; open, so that a new one needs no new definition.
pub(super) fn profile_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 63})
}

/// Id of a benchmark, such as `geekbench:score`.
pub(super) fn benchmark_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 253})
}
