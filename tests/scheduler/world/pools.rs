//! Pools, their classes, and DaemonSets.

use scarpenter_core::label;
use serde_json::{Value, json};

use super::draw::Draw;
use super::{SHELF, TEAM};

/// Class of machines for many pods.
pub(super) const SHARED: &str = "shared";
/// Class of machines for one pod each.
pub(super) const SINGLE: &str = "single";

pub(super) fn classes(draw: &mut Draw) -> Vec<Value> {
    [(SHARED, "Shared"), (SINGLE, "SinglePod")].map(|(name, tenancy)| class(draw, name, tenancy)).to_vec()
}

fn class(draw: &mut Draw, name: &str, tenancy: &str) -> Value {
    let mut vendors = json!({"aws": {}, "gcp": {}, "hcloud": {}});
    if draw.chance(15) {
        vendors["aws"]["regions"] = json!(["east"]);
    }
    let max_pods = *draw.pick(&[110, 110, 8, 4]);
    let mut kubelet = json!({"maxPods": max_pods});
    if draw.chance(30) {
        kubelet["kubeReserved"] = json!({"cpu": "100m", "memory": "200Mi"});
    }
    json!({
        "apiVersion": "scarpenter.sparecores.com/v1alpha1",
        "kind": "ScarpenterNodeClass",
        "metadata": {"name": name},
        "spec": {
            "vendors": vendors,
            "tenancy": tenancy,
            "bootDisk": {"sizeGiB": draw.pick(&[20, 40])},
            "join": {"kubelet": kubelet},
        },
    })
}

/// One to three pools; the first asks for less than the others.
pub(super) fn pools(draw: &mut Draw) -> Vec<Value> {
    let count = draw.between(1, 3);
    (0..count).map(|number| pool(draw, number)).collect()
}

fn pool(draw: &mut Draw, number: usize) -> Value {
    let share = |percent: u32| if number == 0 { percent / 2 } else { percent };
    let mut labels = json!({});
    if draw.chance(share(50)) {
        labels[TEAM] = json!(draw.pick(&["red", "blue"]));
    }
    let class = if number > 0 && draw.chance(25) { SINGLE } else { SHARED };
    let mut template = json!({
        "nodeClassRef": {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": class},
        "requirements": requirements(draw, &share),
    });
    taints(draw, &share, &mut template);
    let mut spec = json!({"template": {"metadata": {"labels": labels}, "spec": template}});
    if draw.chance(50) {
        spec["weight"] = json!(draw.pick(&[1, 10, 50]));
    }
    if draw.chance(10) {
        spec["limits"] = if draw.chance(50) {
            json!({"cpu": draw.pick(&["10", "40"])})
        } else {
            json!({"nodes": draw.pick(&["2", "5"])})
        };
    }
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": format!("pool{number}")},
        "spec": spec,
    })
}

fn requirements(draw: &mut Draw, share: &impl Fn(u32) -> u32) -> Vec<Value> {
    let mut out = Vec::new();
    let mut add = |key: &str, operator: &str, values: Vec<String>| {
        out.push(json!({"key": key, "operator": operator, "values": values}));
    };
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    if draw.chance(50) {
        let count = draw.between(1, 3);
        add(SHELF, "In", owned(&draw.some(&["a", "b", "c"], count)));
    }
    if draw.chance(share(40)) {
        add(label::ARCH, "In", owned(&[*draw.pick(&["amd64", "arm64"])]));
    }
    if draw.chance(40) {
        add(label::CAPACITY_TYPE, "In", owned(&["on-demand", "spot"]));
    } else if draw.chance(share(10)) {
        add(label::CAPACITY_TYPE, "In", owned(&["spot"]));
    }
    if draw.chance(share(20)) {
        add(label::VENDOR, "NotIn", owned(&[*draw.pick(&["aws", "gcp", "hcloud"])]));
    }
    if draw.chance(share(15)) {
        let operator = *draw.pick(&["Gt", "Gte", "Lt", "Lte"]);
        add(label::INSTANCE_CPU, operator, owned(&["4"]));
    }
    if draw.chance(share(12)) {
        let operator = *draw.pick(&["In", "NotIn"]);
        add(label::ZONE, operator, owned(&draw.some(&["z1", "z2", "z3", "z4"], 2)));
    }
    if draw.chance(share(8)) {
        add(&format!("{}{}", label::BENCHMARK_PREFIX, label::BENCHMARKS[0]), "Gt", owned(&["1500"]));
    }
    out
}

fn taints(draw: &mut Draw, share: &impl Fn(u32) -> u32, template: &mut Value) {
    let mut taints = Vec::new();
    if draw.chance(share(30)) {
        let effect = *draw.pick(&["NoSchedule", "NoSchedule", "NoExecute"]);
        taints.push(json!({"key": "dedicated", "value": "batch", "effect": effect}));
    }
    if draw.chance(share(20)) {
        taints.push(json!({"key": "soft", "value": "yes", "effect": "PreferNoSchedule"}));
    }
    if draw.chance(share(10)) {
        let arch = *draw.pick(&["amd64", "arm64"]);
        taints.push(json!({"key": label::ARCH, "value": arch, "effect": "NoSchedule"}));
        template["requirements"]
            .as_array_mut()
            .expect("requirements are a list")
            .push(json!({"key": label::ARCH, "operator": "In", "values": [arch]}));
    }
    template["taints"] = json!(taints);
    if draw.chance(10) {
        template["startupTaints"] = json!([{"key": "starting", "effect": "NoSchedule"}]);
    }
}

/// None, one or two.
pub(super) fn daemons(draw: &mut Draw) -> Vec<Value> {
    let count = if draw.chance(40) { draw.between(1, 2) } else { 0 };
    (0..count).map(|number| daemon(draw, number)).collect()
}

fn daemon(draw: &mut Draw, number: usize) -> Value {
    let cpu = *draw.pick(&["50m", "100m", "200m"]);
    let mut container = json!({
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    });
    if draw.chance(20) {
        container["ports"] = json!([{"containerPort": 9100 + number, "hostPort": 9100 + number}]);
    }
    let mut spec = json!({"containers": [container]});
    match draw.between(0, 5) {
        0 => spec["nodeSelector"] = json!({label::ARCH: draw.pick(&["amd64", "arm64"])}),
        1 => spec["nodeSelector"] = json!({label::VENDOR: draw.pick(&["aws", "gcp", "hcloud"])}),
        2 => spec["nodeSelector"] = json!({label::INSTANCE_TYPE: draw.pick(&["s0", "m0", "s1", "m1"])}),
        3 => spec["nodeSelector"] = json!({label::ZONE: draw.pick(&["z1", "z2", "z3"])}),
        _ => {}
    }
    if draw.chance(50) {
        spec["tolerations"] = json!([{"operator": "Exists"}]);
    }
    let labels = json!({"app": format!("daemon{number}")});
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": format!("daemon{number}"), "namespace": "n0", "uid": format!("daemon{number}")},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}
