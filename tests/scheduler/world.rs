//! One random world: a catalog, pools, nodes that were there before, and pods that want a place.
//!
//! Everything but the catalog is Kubernetes objects as JSON, so that the same object is read by our parsers and
//! written to the API server. A seed makes the same world wherever it is drawn.

pub(crate) mod draw;
mod market;
mod nodes;
mod pods;
mod pools;

use std::collections::BTreeMap;

use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;
use serde_json::{Value, json};

use draw::Draw;
pub(crate) use market::Sold;
pub(crate) use pods::Feature;

/// A key of which pools define several values, or one, or none.
pub(crate) const SHELF: &str = "example.com/shelf";
/// A key that a pool's template sets to one value.
pub(crate) const TEAM: &str = "example.com/team";

/// All of one world.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) market: Vec<Sold>,
    pub(crate) classes: Vec<Value>,
    pub(crate) pools: Vec<Value>,
    pub(crate) daemons: Vec<Value>,
    /// Nodes that were there before.
    pub(crate) nodes: Vec<Value>,
    /// Pods that run on them.
    pub(crate) bound: Vec<Value>,
    /// Pods that want a place, in the order in which they were made.
    pub(crate) pods: Vec<Value>,
}

impl World {
    /// The world of a seed, without these features.
    pub(crate) fn draw(seed: u64, without: &[Feature]) -> Self {
        let mut draw = Draw::new(seed);
        let market = market::draw(&mut draw);
        let snapshot = market::snapshot(&market);
        let classes = pools::classes(&mut draw);
        let pools = pools::pools(&mut draw);
        let mut daemons = pools::daemons(&mut draw);
        if without.contains(&Feature::Daemons) {
            daemons.clear();
        }
        let (nodes, bound) = nodes::nodes(&mut draw);
        let pods = pods::pods(&mut draw, &snapshot, without);
        Self { market, classes, pools, daemons, nodes, bound, pods }
    }

    /// Nodes of before that are not cordoned. A pod that tolerates everything may be bound to a cordoned node, too; no
    /// plan counts on that.
    pub(crate) fn open_nodes(&self) -> impl Iterator<Item = String> {
        let open = self.nodes.iter().filter(|node| node["spec"]["unschedulable"] != true);
        open.map(|node| text(&node["metadata"]["name"]))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        market::snapshot(&self.market)
    }
}

/// The namespaces of every world, as objects.
pub(crate) fn namespaces() -> Vec<Value> {
    [("n0", json!({"team": "a"})), ("n1", json!({"team": "b"})), ("n2", json!({"team": "a", "tier": "back"}))]
        .map(|(name, labels)| {
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        })
        .to_vec()
}

/// The same as the API server knows them, which adds a label.
pub(crate) fn namespace_labels() -> Namespaces {
    let named = |object: Value| {
        let name = text(&object["metadata"]["name"]);
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let mut labels: BTreeMap<String, String> =
            labels.map(|(key, value)| (key.clone(), text(value))).collect();
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        (name, labels)
    };
    namespaces().into_iter().map(named).collect()
}

/// Priority classes of every world. None preempts: a plan does not count on pods that go.
pub(crate) fn priorities() -> Vec<Value> {
    let class = |name: &str, value: i32| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": name == "plain",
            "preemptionPolicy": "Never",
        })
    };
    vec![class("plain", 0), class("high", 1000), class("low", -10)]
}

/// A runtime class, and what it adds of CPU and memory.
pub(crate) const OVERHEAD: (&str, [&str; 2]) = ("heavy", ["120m", "30Mi"]);

/// The runtime class, as an object.
pub(crate) fn runtime() -> Value {
    let (name, [cpu, memory]) = OVERHEAD;
    json!({
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": name,
        "overhead": {"podFixed": {"cpu": cpu, "memory": memory}},
    })
}

/// A node that is ready.
pub(crate) fn node(
    name: &str,
    labels: &Value,
    mut spec: Value,
    capacity: &Value,
    allocatable: &Value,
) -> Value {
    if spec.is_null() {
        spec = json!({});
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

/// A text in an object; empty when it is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
