//! Nodes that were there before, foreign ones, with the pods that run on them.

use scarpenter_core::label;
use serde_json::{Value, json};

use super::draw::Draw;
use super::{SHELF, TEAM};

/// None to three nodes, and the pods on them.
pub(super) fn nodes(draw: &mut Draw) -> (Vec<Value>, Vec<Value>) {
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    for number in 0..draw.between(0, 3) {
        let name = format!("e{number}");
        nodes.push(node(draw, &name));
        for place in 0..draw.between(0, 2) {
            pods.push(pod(draw, &name, place));
        }
    }
    (nodes, pods)
}

fn node(draw: &mut Draw, name: &str) -> Value {
    let arch = *draw.pick(&["amd64", "amd64", "arm64"]);
    let mut labels = json!({label::HOSTNAME: name, label::ARCH: arch, label::OS: "linux"});
    if draw.chance(60) {
        let (region, zone) = *draw.pick(&[("east", "z1"), ("east", "z2"), ("east", "zx"), ("home", "rack1")]);
        labels[label::REGION] = json!(region);
        labels[label::ZONE] = json!(zone);
    }
    if draw.chance(25) {
        labels[label::VENDOR] = json!(draw.pick(&["aws", "local"]));
    }
    if draw.chance(25) {
        labels[label::INSTANCE_TYPE] = json!(draw.pick(&["s0", "m1", "k3s"]));
    }
    if draw.chance(25) {
        labels[SHELF] = json!(draw.pick(&["a", "z"]));
    }
    if draw.chance(25) {
        labels[TEAM] = json!(draw.pick(&["red", "blue"]));
    }
    let mut spec = json!({});
    if draw.chance(30) {
        spec["taints"] = json!([draw.pick(&[
            json!({"key": "dedicated", "value": "batch", "effect": "NoSchedule"}),
            json!({"key": "control-plane", "effect": "NoSchedule"}),
            json!({"key": "soft", "value": "yes", "effect": "PreferNoSchedule"}),
            json!({"key": "dedicated", "value": "web", "effect": "NoExecute"}),
        ])]);
    }
    if draw.chance(15) {
        spec["unschedulable"] = json!(true);
    }
    let has = json!({
        "cpu": draw.pick(&["1", "2", "4"]),
        "memory": draw.pick(&["2Gi", "8Gi"]),
        "ephemeral-storage": "20Gi",
        "pods": draw.pick(&["8", "110"]),
    });
    super::node(name, &labels, spec, &has, &has)
}

fn pod(draw: &mut Draw, node: &str, place: usize) -> Value {
    let mut container = json!({
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": draw.pick(&["50m", "200m"]), "memory": "128Mi"}},
    });
    if draw.chance(25) {
        container["ports"] = json!([{"containerPort": 8080, "hostPort": 8080 + place}]);
    }
    let mut spec = json!({
        "nodeName": node,
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
    });
    if draw.chance(30) {
        let key = *draw.pick(&[label::HOSTNAME, label::ZONE, label::REGION]);
        let app = format!("g{}", draw.between(0, 3));
        spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}},
        ]}});
    }
    let namespace = *draw.pick(&["n0", "n0", "n1"]);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{node}-{place}"),
            "namespace": namespace,
            "labels": {"app": format!("g{}", draw.between(0, 4)), "version": draw.pick(&["v1", "v2"])},
        },
        "spec": spec,
    })
}
