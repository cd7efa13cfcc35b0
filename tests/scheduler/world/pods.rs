//! Pods that want a place, in groups as a Deployment makes them.

use scarpenter_core::label;
use scarpenter_core::snapshot::Snapshot;
use serde_json::{Value, json};

use super::draw::Draw;
use super::{SHELF, TEAM};

mod near;
mod size;

/// What a world may have, so that it can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    Selector,
    Terms,
    Preferred,
    Tolerations,
    Spread,
    Affinity,
    AntiAffinity,
    Ports,
    Priority,
    /// DaemonSets of the world rather than of a pod.
    Daemons,
}

impl Feature {
    const ALL: [Self; 10] = [
        Self::Selector,
        Self::Terms,
        Self::Preferred,
        Self::Tolerations,
        Self::Spread,
        Self::Affinity,
        Self::AntiAffinity,
        Self::Ports,
        Self::Priority,
        Self::Daemons,
    ];

    /// The feature that a word names, in any letter case.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| format!("{feature:?}").eq_ignore_ascii_case(word))
    }
}

/// Groups of pods, sixteen to forty pods in all.
pub(super) fn pods(draw: &mut Draw, market: &Snapshot, without: &[Feature]) -> Vec<Value> {
    let wanted = draw.between(16, 34);
    let mut out: Vec<Value> = Vec::new();
    let mut group = 0;
    while out.len() < wanted {
        let namespace = *draw.pick(&["n0", "n0", "n0", "n1", "n2"]);
        let app = format!("g{group}");
        let spec = spec(draw, market, &app, without);
        for _ in 0..*draw.pick(&[1, 1, 2, 3, 4, 6]) {
            let labels = json!({"app": app, "version": draw.pick(&["v1", "v2"])});
            out.push(json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": format!("p{:02}", out.len()), "namespace": namespace, "labels": labels},
                "spec": spec,
            }));
        }
        group += 1;
    }
    out
}

/// Every chance is taken whether or not its feature is left out, so that leaving one out changes nothing else.
fn spec(draw: &mut Draw, market: &Snapshot, app: &str, without: &[Feature]) -> Value {
    let mut spec = size::spec(draw);
    let parts: [(Feature, u32, Part); 9] = [
        (Feature::Selector, 32, selector),
        (Feature::Terms, 22, terms),
        (Feature::Preferred, 15, preferred),
        (Feature::Tolerations, 40, tolerations),
        (Feature::Spread, 25, near::spread),
        (Feature::Affinity, 12, near::affinity),
        (Feature::AntiAffinity, 18, near::anti_affinity),
        (Feature::Ports, 10, ports),
        (Feature::Priority, 20, priority),
    ];
    for (feature, percent, part) in parts {
        let mut with = spec.clone();
        let taken = draw.chance(percent);
        part(draw, market, app, &mut with);
        if taken && !without.contains(&feature) {
            spec = with;
        }
    }
    spec
}

type Part = fn(&mut Draw, &Snapshot, &str, &mut Value);

/// Keys that a person selects by.
const KEYS: [&str; 10] = [
    label::VENDOR,
    label::ARCH,
    label::ZONE,
    label::REGION,
    label::UNIQUE_ZONE,
    label::UNIQUE_REGION,
    label::INSTANCE_TYPE,
    label::CAPACITY_TYPE,
    SHELF,
    TEAM,
];

/// A value that is there, mostly.
fn value(draw: &mut Draw, market: &Snapshot, key: &str) -> String {
    let known: Vec<&str> = match key {
        SHELF => vec!["a", "b", "c", "z"],
        TEAM => vec!["red", "blue"],
        _ => market.known_values(key),
    };
    if known.is_empty() || draw.chance(3) { "nothing".to_owned() } else { (*draw.pick(&known)).to_owned() }
}

fn selector(draw: &mut Draw, market: &Snapshot, _: &str, spec: &mut Value) {
    let count = *draw.pick(&[1, 1, 1, 2]);
    for key in draw.some(&KEYS, count) {
        spec["nodeSelector"][key] = json!(value(draw, market, key));
    }
}

/// Alternatives of one or two lines each.
fn terms(draw: &mut Draw, market: &Snapshot, _: &str, spec: &mut Value) {
    let terms: Vec<Value> = (0..draw.between(1, 3)).map(|_| term(draw, market)).collect();
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": terms});
}

fn term(draw: &mut Draw, market: &Snapshot) -> Value {
    let lines: Vec<Value> = (0..draw.between(1, 2)).map(|_| line(draw, market)).collect();
    json!({"matchExpressions": lines})
}

fn line(draw: &mut Draw, market: &Snapshot) -> Value {
    let key = *draw.pick(&KEYS);
    let benchmark = format!("{}{}", label::BENCHMARK_PREFIX, label::BENCHMARKS[0]);
    let mut values = |count: usize| -> Vec<String> { (0..count).map(|_| value(draw, market, key)).collect() };
    let (some, one) = (values(2), values(1));
    match draw.between(0, 9) {
        0..=2 => json!({"key": key, "operator": "In", "values": some}),
        3 | 4 => json!({"key": key, "operator": "NotIn", "values": one}),
        5 => {
            let key = *draw.pick(&[SHELF, TEAM, label::ZONE, label::UNIQUE_ZONE, label::INSTANCE_GPU_COUNT]);
            json!({"key": key, "operator": draw.pick(&["Exists", "DoesNotExist"])})
        }
        6 => json!({"key": benchmark, "operator": draw.pick(&["Gt", "Lt"]), "values": ["2400"]}),
        7 => json!({
            "key": label::INSTANCE_CPU,
            "operator": draw.pick(&["Gt", "Lt"]),
            "values": [draw.pick(&["1", "3", "7"])],
        }),
        8 => json!({
            "key": label::INSTANCE_MEMORY,
            "operator": draw.pick(&["Gt", "Lt"]),
            "values": [draw.pick(&["4000", "9000", "33000"])],
        }),
        _ => json!({"key": label::PRICE, "operator": "Lt", "values": [draw.pick(&["30000", "90000"])]}),
    }
}

fn preferred(draw: &mut Draw, market: &Snapshot, _: &str, spec: &mut Value) {
    let wishes: Vec<Value> = (0..draw.between(1, 2))
        .map(|_| json!({"weight": draw.pick(&[1, 50, 100]), "preference": term(draw, market)}))
        .collect();
    spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = json!(wishes);
}

fn tolerations(draw: &mut Draw, _: &Snapshot, _: &str, spec: &mut Value) {
    spec["tolerations"] = json!([draw.pick(&[
        json!({"operator": "Exists"}),
        json!({"key": "dedicated", "operator": "Exists"}),
        json!({"key": "dedicated", "value": "batch"}),
        json!({"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}),
        json!({"key": "dedicated", "operator": "Equal", "value": "web"}),
        json!({"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"}),
    ])]);
}

fn ports(draw: &mut Draw, _: &Snapshot, _: &str, spec: &mut Value) {
    let mut port = json!({"containerPort": 80, "hostPort": draw.pick(&[8080, 8080, 8081, 9100])});
    match draw.between(0, 5) {
        0 => port["protocol"] = json!("UDP"),
        1 => port["hostIP"] = json!("127.0.0.1"),
        2 => port["hostIP"] = json!("127.0.0.2"),
        _ => {}
    }
    spec["containers"][0]["ports"] = json!([port]);
}

fn priority(draw: &mut Draw, _: &Snapshot, _: &str, spec: &mut Value) {
    let (class, value) = *draw.pick(&[("high", 1000), ("low", -10)]);
    spec["priorityClassName"] = json!(class);
    spec["priority"] = json!(value);
}
