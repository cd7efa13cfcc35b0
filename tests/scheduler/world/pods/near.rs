//! Rules by where other pods are.

use scarpenter_core::label;
use serde_json::{Value, json};

use super::{Draw, SHELF, Snapshot};

const SPREAD_KEYS: [&str; 8] = [
    label::ZONE,
    label::ZONE,
    label::HOSTNAME,
    label::VENDOR,
    label::REGION,
    label::UNIQUE_ZONE,
    label::UNIQUE_REGION,
    SHELF,
];

const NEAR_KEYS: [&str; 6] =
    [label::HOSTNAME, label::ZONE, label::REGION, label::UNIQUE_ZONE, label::UNIQUE_REGION, label::VENDOR];

/// Its own app mostly; else some others, all, or none.
fn pods(draw: &mut Draw, app: &str) -> Value {
    let other = |draw: &mut Draw| format!("g{}", draw.between(0, 5));
    match draw.between(0, 11) {
        0 | 1 => json!({"matchLabels": {"app": other(draw)}}),
        2 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": [app, other(draw)]}]}),
        3 => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [other(draw)]}]}),
        4 => json!({"matchLabels": {"app": app, "version": "v1"}}),
        _ => json!({"matchLabels": {"app": app}}),
    }
}

/// One or two constraints on different keys.
pub(super) fn spread(draw: &mut Draw, _: &Snapshot, app: &str, spec: &mut Value) {
    let count = *draw.pick(&[1, 1, 2]);
    let mut keys = draw.some(&SPREAD_KEYS, count);
    keys.dedup();
    spec["topologySpreadConstraints"] = keys.into_iter().map(|key| constraint(draw, app, key)).collect();
}

fn constraint(draw: &mut Draw, app: &str, key: &str) -> Value {
    let required = draw.chance(85);
    let mut out = json!({
        "topologyKey": key,
        "maxSkew": draw.pick(&[1, 1, 2, 3]),
        "whenUnsatisfiable": if required { "DoNotSchedule" } else { "ScheduleAnyway" },
    });
    let selector = pods(draw, app);
    if draw.chance(95) {
        out["labelSelector"] = selector;
        // A key may not be in both.
        if draw.chance(20) && !out["labelSelector"].to_string().contains("version") {
            out["matchLabelKeys"] = json!(["version"]);
        }
    }
    if required && draw.chance(25) {
        out["minDomains"] = json!(draw.pick(&[2, 3, 6]));
    }
    if draw.chance(30) {
        out["nodeAffinityPolicy"] = json!(draw.pick(&["Honor", "Ignore"]));
    }
    if draw.chance(30) {
        out["nodeTaintsPolicy"] = json!(draw.pick(&["Honor", "Ignore"]));
    }
    out
}

pub(super) fn affinity(draw: &mut Draw, _: &Snapshot, app: &str, spec: &mut Value) {
    let required = draw.chance(80);
    near(draw, app, required, "podAffinity", spec);
}

pub(super) fn anti_affinity(draw: &mut Draw, _: &Snapshot, app: &str, spec: &mut Value) {
    let required = draw.chance(80);
    near(draw, app, required, "podAntiAffinity", spec);
}

fn near(draw: &mut Draw, app: &str, required: bool, kind: &str, spec: &mut Value) {
    let mut terms: Vec<Value> = (0..*draw.pick(&[1, 1, 1, 2])).map(|_| term(draw, app)).collect();
    let field = if required {
        "requiredDuringSchedulingIgnoredDuringExecution"
    } else {
        terms = terms.into_iter().map(|term| json!({"weight": 50, "podAffinityTerm": term})).collect();
        "preferredDuringSchedulingIgnoredDuringExecution"
    };
    spec["affinity"][kind][field] = json!(terms);
}

fn term(draw: &mut Draw, app: &str) -> Value {
    let key = if draw.chance(50) { label::HOSTNAME } else { *draw.pick(&NEAR_KEYS) };
    let mut out = json!({"topologyKey": key, "labelSelector": pods(draw, app)});
    match draw.between(0, 9) {
        0 => out["namespaces"] = json!([draw.pick(&["n0", "n1"])]),
        1 => out["namespaceSelector"] = json!({}),
        2 => out["namespaceSelector"] = json!({"matchLabels": {"team": draw.pick(&["a", "b"])}}),
        3 if !out["labelSelector"].to_string().contains("version") => {
            out[*draw.pick(&["matchLabelKeys", "mismatchLabelKeys"])] = json!(["version"]);
        }
        _ => {}
    }
    out
}
