//! Objects, and what the published definitions say to them.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NodePool,
    NodeClaim,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NodePool => "NodePool",
            Self::NodeClaim => "NodeClaim",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    Refused,
}

/// An object to create.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) spec: Value,
    pub(crate) verdict: Verdict,
}

/// A change of an object that is there.
pub(crate) struct Change {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) before: Value,
    pub(crate) patch: Value,
    pub(crate) verdict: Verdict,
}

fn reference() -> Value {
    json!({"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "default"})
}

/// A pool with `at` (a JSON pointer below `spec`) set to `value`.
fn pool(at: &str, value: Value) -> Value {
    let mut spec = json!({
        "template": {"metadata": {"labels": {}}, "spec": {"nodeClassRef": reference(), "requirements": []}},
        "disruption": {},
    });
    put(&mut spec, at, value);
    spec
}

fn claim(at: &str, value: Value) -> Value {
    let mut spec = json!({"nodeClassRef": reference(), "requirements": []});
    put(&mut spec, at, value);
    spec
}

fn put(spec: &mut Value, at: &str, value: Value) {
    let (parent, field) = at.rsplit_once('/').unwrap();
    let parent = spec.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(field);
    } else {
        parent.insert(field.to_owned(), value);
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    let mut add = |name: &str, kind: Kind, spec: Value, verdict: Verdict| {
        out.push(Case { name: format!("{} {name}", kind.as_str()), kind, spec, verdict });
    };
    for (name, at, value, verdict) in pool_cases() {
        add(name, Kind::NodePool, pool(at, value), verdict);
    }
    for (name, at, value, verdict) in claim_cases() {
        add(name, Kind::NodeClaim, claim(at, value), verdict);
    }
    for (name, line, verdict) in requirement_cases() {
        add(name, Kind::NodePool, pool("/template/spec/requirements", json!([line])), verdict);
        add(name, Kind::NodeClaim, claim("/requirements", json!([line])), verdict);
    }
    for (name, taint, verdict) in taint_cases() {
        add(name, Kind::NodePool, pool("/template/spec/taints", json!([taint])), verdict);
        add(name, Kind::NodePool, pool("/template/spec/startupTaints", json!([taint])), verdict);
        add(name, Kind::NodeClaim, claim("/taints", json!([taint])), verdict);
        add(name, Kind::NodeClaim, claim("/startupTaints", json!([taint])), verdict);
    }
    out
}

type Field = (&'static str, &'static str, Value, Verdict);

use Verdict::{Admitted, Refused};

fn pool_cases() -> Vec<Field> {
    let labels = "/template/metadata/labels";
    let budgets = "/disruption/budgets";
    let mut out = vec![
        ("nothing but what is required", "/disruption", Value::Null, Admitted),
        ("no template", "/template", Value::Null, Refused),
        ("no requirements", "/template/spec/requirements", Value::Null, Refused),
        ("no class", "/template/spec/nodeClassRef", Value::Null, Refused),
        ("label nodepool", labels, json!({"karpenter.sh/nodepool": "x"}), Refused),
        ("label of the domain", labels, json!({"karpenter.sh/custom-label": "x"}), Refused),
        ("label of a subdomain", labels, json!({"a.karpenter.sh/x": "x"}), Refused),
        ("label capacity type", labels, json!({"karpenter.sh/capacity-type": "spot"}), Admitted),
        ("label hostname", labels, json!({"kubernetes.io/hostname": "x"}), Refused),
        (
            "label node-restriction",
            labels,
            json!({"node-restriction.kubernetes.io/custom-label": "x"}),
            Admitted,
        ),
        (
            "label sub node-restriction",
            labels,
            json!({"sub.node-restriction.kubernetes.io/custom-label": "x"}),
            Admitted,
        ),
        ("label value too long", labels, json!({"a": "x".repeat(64)}), Refused),
        ("label value malformed", labels, json!({"a": "-x"}), Refused),
        (
            "too many labels",
            labels,
            (0..101).map(|n| (format!("l{n}"), json!("x"))).collect::<serde_json::Map<_, _>>().into(),
            Refused,
        ),
        (
            "requirement nodepool",
            "/template/spec/requirements",
            json!([{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["x"]}]),
            Refused,
        ),
        ("annotations", "/template/metadata/annotations", json!({"a": "b c"}), Admitted),
        ("consolidateAfter -1s", "/disruption/consolidateAfter", json!("-1s"), Refused),
        ("consolidateAfter Never", "/disruption/consolidateAfter", json!("Never"), Admitted),
        ("consolidateAfter 1h30m", "/disruption/consolidateAfter", json!("1h30m"), Admitted),
        ("consolidateAfter 1d", "/disruption/consolidateAfter", json!("1d"), Refused),
        (
            "consolidate underutilized after 1m",
            "/disruption",
            json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"}),
            Admitted,
        ),
        ("policy Balanced", "/disruption/consolidationPolicy", json!("Balanced"), Admitted),
        ("policy unknown", "/disruption/consolidationPolicy", json!("Never"), Refused),
        ("expireAfter Never", "/template/spec/expireAfter", json!("Never"), Admitted),
        ("expireAfter empty", "/template/spec/expireAfter", json!(""), Refused),
        ("grace 1h", "/template/spec/terminationGracePeriod", json!("1h"), Admitted),
        ("grace Never", "/template/spec/terminationGracePeriod", json!("Never"), Refused),
        ("budget 100%", budgets, json!([{"nodes": "100%"}]), Admitted),
        ("budget 101%", budgets, json!([{"nodes": "101%"}]), Refused),
        ("budget number", budgets, json!([{"nodes": "7"}]), Admitted),
        ("budget integer", budgets, json!([{"nodes": 7}]), Refused),
        ("budget without nodes", budgets, json!([{"reasons": ["Empty"]}]), Admitted),
        ("budget of an unknown reason", budgets, json!([{"nodes": "1", "reasons": ["Expired"]}]), Refused),
        (
            "budget of one reason twice",
            budgets,
            json!([{"nodes": "1", "reasons": ["Empty", "Empty"]}]),
            Refused,
        ),
        (
            "budget with schedule",
            budgets,
            json!([{"nodes": "1", "schedule": "0 9 * * mon-fri", "duration": "8h"}]),
            Admitted,
        ),
        (
            "budget with a word",
            budgets,
            json!([{"nodes": "1", "schedule": "@daily", "duration": "10m0s"}]),
            Admitted,
        ),
        ("budget with schedule only", budgets, json!([{"nodes": "1", "schedule": "@daily"}]), Refused),
        ("budget with duration only", budgets, json!([{"nodes": "1", "duration": "8h"}]), Refused),
        (
            "budget of seconds",
            budgets,
            json!([{"nodes": "1", "schedule": "@daily", "duration": "30s"}]),
            Refused,
        ),
        (
            "budget of four fields",
            budgets,
            json!([{"nodes": "1", "schedule": "0 9 * *", "duration": "8h"}]),
            Refused,
        ),
        ("51 budgets", budgets, json!(vec![json!({"nodes": "1"}); 51]), Refused),
        ("weight 100", "/weight", json!(100), Admitted),
        ("weight 0", "/weight", json!(0), Refused),
        ("weight 101", "/weight", json!(101), Refused),
        (
            "limits",
            "/limits",
            json!({"cpu": 1000, "memory": "4000Gi", "nodes": "10", "example.com/x": "1.5k"}),
            Admitted,
        ),
        ("limits malformed", "/limits", json!({"cpu": "lots"}), Refused),
        ("limits a float", "/limits", json!({"cpu": 1.5}), Refused),
        ("static", "/replicas", json!(0), Admitted),
        ("static below zero", "/replicas", json!(-1), Refused),
        ("unknown field", "/unknown", json!("x"), Admitted),
    ];
    for (field, name) in [("group", "group empty"), ("kind", "kind empty"), ("name", "name empty")] {
        let mut empty = reference();
        empty[field] = json!("");
        out.push((name, "/template/spec/nodeClassRef", empty, Refused));
    }
    let mut slash = reference();
    slash["group"] = json!("a/v1");
    out.push(("group with a version", "/template/spec/nodeClassRef", slash, Refused));
    out
}

fn claim_cases() -> Vec<Field> {
    vec![
        ("nothing but what is required", "/resources", Value::Null, Admitted),
        ("no requirements", "/requirements", Value::Null, Refused),
        ("requests", "/resources", json!({"requests": {"cpu": "3", "memory": "11Gi"}}), Admitted),
        ("requests malformed", "/resources", json!({"requests": {"cpu": "3 cores"}}), Refused),
        (
            "requirement nodepool",
            "/requirements",
            json!([{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["x"]}]),
            Admitted,
        ),
        ("expireAfter -1s", "/expireAfter", json!("-1s"), Refused),
        ("group empty", "/nodeClassRef", json!({"group": "", "kind": "k", "name": "n"}), Refused),
        ("no name", "/nodeClassRef", json!({"group": "g", "kind": "k"}), Refused),
        (
            "101 requirements",
            "/requirements",
            json!(vec![json!({"key": "a", "operator": "Exists"}); 101]),
            Refused,
        ),
    ]
}

fn requirement_cases() -> Vec<(&'static str, Value, Verdict)> {
    let bound =
        |operator: &str, values: Value| json!({"key": "a.b/c", "operator": operator, "values": values});
    let least = |count: i64, values: Value| json!({"key": "a", "operator": "In", "values": values, "minValues": count});
    let mut out = vec![
        ("In", bound("In", json!(["x"])), Admitted),
        ("In []", bound("In", json!([])), Refused),
        ("In without values", json!({"key": "a", "operator": "In"}), Refused),
        ("NotIn []", bound("NotIn", json!([])), Admitted),
        ("Exists", json!({"key": "a", "operator": "Exists"}), Admitted),
        ("DoesNotExist", json!({"key": "a", "operator": "DoesNotExist"}), Admitted),
        ("operator within", bound("within", json!(["x"])), Refused),
        ("value of any text", bound("In", json!(["not a label value!"])), Admitted),
        ("minValues -1", least(-1, json!(["x", "y"])), Refused),
        ("minValues 0", least(0, json!(["x", "y"])), Refused),
        ("minValues 1", least(1, json!(["x"])), Admitted),
        ("minValues 51", least(51, json!(["x", "y"])), Refused),
        ("minValues 3 of two", least(3, json!(["x", "y"])), Refused),
        ("minValues of Exists", json!({"key": "a", "operator": "Exists", "minValues": 3}), Admitted),
        ("key of the domain", json!({"key": "karpenter.sh/x", "operator": "Exists"}), Refused),
        (
            "key capacity type",
            json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}),
            Admitted,
        ),
        ("key hostname", json!({"key": "kubernetes.io/hostname", "operator": "Exists"}), Refused),
        ("key malformed", json!({"key": "-a", "operator": "Exists"}), Refused),
        ("key too long", json!({"key": "a".repeat(317), "operator": "Exists"}), Refused),
        ("no key", json!({"operator": "Exists"}), Refused),
    ];
    for operator in ["Gt", "Lt", "Gte", "Lte"] {
        out.push((operator, bound(operator, json!(["0"])), Admitted));
        out.push(("bound of two", bound(operator, json!(["1", "2"])), Refused));
        out.push(("bound below zero", bound(operator, json!(["-1"])), Refused));
        out.push(("bound without number", bound(operator, json!(["many"])), Refused));
    }
    out
}

fn taint_cases() -> Vec<(&'static str, Value, Verdict)> {
    vec![
        ("taint", json!({"key": "a.b/c", "value": "v", "effect": "NoSchedule"}), Admitted),
        ("taint without value", json!({"key": "a", "effect": "PreferNoSchedule"}), Admitted),
        ("taint NoExecute", json!({"key": "a", "effect": "NoExecute"}), Admitted),
        ("taint of no effect", json!({"key": "a"}), Refused),
        ("taint of another effect", json!({"key": "a", "effect": "Never"}), Refused),
        ("taint without key", json!({"effect": "NoSchedule"}), Refused),
        ("taint of an empty key", json!({"key": "", "effect": "NoSchedule"}), Refused),
        ("taint of a bad key", json!({"key": "a b", "effect": "NoSchedule"}), Refused),
        ("taint of a bad value", json!({"key": "a", "value": "v!", "effect": "NoSchedule"}), Refused),
    ]
}

pub(crate) fn changes() -> Vec<Change> {
    let pool_change =
        |name, before, patch, verdict| Change { name, kind: Kind::NodePool, before, patch, verdict };
    let plain = || pool("/disruption", json!({}));
    let fixed = || pool("/replicas", json!(2));
    vec![
        pool_change(
            "class name changed",
            plain(),
            json!({"template": {"spec": {"nodeClassRef": {"name": "x"}}}}),
            Admitted,
        ),
        pool_change(
            "class kind changed",
            plain(),
            json!({"template": {"spec": {"nodeClassRef": {"kind": "x"}}}}),
            Refused,
        ),
        pool_change(
            "class group changed",
            plain(),
            json!({"template": {"spec": {"nodeClassRef": {"group": "x"}}}}),
            Refused,
        ),
        pool_change("replicas added", plain(), json!({"replicas": 1}), Refused),
        pool_change("replicas removed", fixed(), json!({"replicas": null}), Refused),
        pool_change("replicas changed", fixed(), json!({"replicas": 5}), Admitted),
        pool_change("limit of nodes on a static pool", fixed(), json!({"limits": {"nodes": "5"}}), Admitted),
        pool_change("limit of cpu on a static pool", fixed(), json!({"limits": {"cpu": "5"}}), Refused),
        pool_change("weight on a static pool", fixed(), json!({"weight": 5}), Refused),
        Change {
            name: "claim changed",
            kind: Kind::NodeClaim,
            before: claim("/expireAfter", json!("1h")),
            patch: json!({"expireAfter": "2h"}),
            verdict: Refused,
        },
    ]
}
