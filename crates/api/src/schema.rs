//! Schemas of the leaves that NodePool and NodeClaim share, with the published patterns and rules.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A label key or a taint key.
pub(crate) const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const DOMAIN_IS_FREE: &str = r#"x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !x.find("^([^/]+)").endsWith("karpenter.sh")"#;

/// A resource list.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true,
        },
    })
}

/// Labels of a pool's template (API-13).
pub(crate) fn template_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE},
        "maxProperties": 100,
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [
            rule("label domain \"karpenter.sh\" is restricted", &format!("self.all(x, {DOMAIN_IS_FREE})")),
            rule("label \"karpenter.sh/nodepool\" is restricted", "self.all(x, x != \"karpenter.sh/nodepool\")"),
            rule("label \"kubernetes.io/hostname\" is restricted", "self.all(x, x != \"kubernetes.io/hostname\")"),
        ],
    })
}

/// Annotations of a pool's template.
pub(crate) fn template_annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string"},
        "x-kubernetes-map-type": "granular",
    })
}

/// Taints (API-20).
pub(crate) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["effect", "key"],
            "properties": {
                "key": {"type": "string", "minLength": 1, "pattern": QUALIFIED_NAME},
                "value": {"type": "string", "pattern": QUALIFIED_NAME},
                "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                "timeAdded": {"type": "string", "format": "date-time"},
            },
        },
    })
}

/// Requirements of a pool's template (API-14, API-15).
pub(crate) fn pool_requirements(_: &mut SchemaGenerator) -> Schema {
    requirements(&[rule(
        "label \"karpenter.sh/nodepool\" is restricted",
        "self != \"karpenter.sh/nodepool\"",
    )])
}

/// Requirements of a claim: as a pool's, but the pool's own label may be named.
pub(crate) fn claim_requirements(_: &mut SchemaGenerator) -> Schema {
    requirements(&[])
}

fn requirements(more_key_rules: &[Value]) -> Schema {
    let mut key_rules = vec![rule(
        "label domain \"karpenter.sh\" is restricted",
        &DOMAIN_IS_FREE.replace("x in", "self in").replace("!x.", "!self."),
    )];
    key_rules.extend_from_slice(more_key_rules);
    key_rules
        .push(rule("label \"kubernetes.io/hostname\" is restricted", "self != \"kubernetes.io/hostname\""));
    json_schema!({
        "type": "array",
        "maxItems": 100,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": QUALIFIED_NAME,
                    "x-kubernetes-validations": key_rules,
                },
                "operator": {
                    "type": "string",
                    "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"],
                },
                // The published schema puts the pattern on the array, where it never fires (API-21).
                "values": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "atomic",
                    "maxLength": 63,
                    "pattern": LABEL_VALUE,
                },
                "minValues": {"type": "integer", "minimum": 1, "maximum": 50},
            },
        },
        "x-kubernetes-validations": [
            rule(
                "requirements with operator 'In' must have a value defined",
                "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
            ),
            rule(
                "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
                "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",
            ),
            rule(
                "requirements with 'minValues' must have at least that many values specified in the 'values' field",
                "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
            ),
        ],
    })
}

/// Conditions of a pool or class: each with a reason and a message.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    let reason = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    });
    condition_list(&reason, &["lastTransitionTime", "message", "reason", "status", "type"])
}

/// Conditions of a claim: the reason may be empty (API-12).
pub(crate) fn claim_conditions(_: &mut SchemaGenerator) -> Schema {
    let reason = json!({
        "type": "string",
        "maxLength": 1024,
        "pattern": "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$",
    });
    condition_list(&reason, &["lastTransitionTime", "status", "type"])
}

fn condition_list(reason: &Value, required: &[&str]) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": required,
            "properties": {
                "type": {"type": "string", "maxLength": 316, "pattern": CONDITION_TYPE},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": reason,
                "message": {"type": "string", "maxLength": 32768},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            },
        },
    })
}

/// A point in time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// An object of whatever fields.
pub(crate) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn rule(message: &str, rule: &str) -> Value {
    json!({"message": message, "rule": rule})
}
