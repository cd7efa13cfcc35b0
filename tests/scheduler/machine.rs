//! A machine that was bought: its claim, its node, and the daemon pods that run there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node as KubeNode;
use kube::core::ObjectMeta;
use scarpenter_api::{NodeClaim, NodeClaimSpec, NodePool, daemon, node, quantity};
use scarpenter_core::label;
use scarpenter_core::name::{ClaimUid, ProviderId};
use scarpenter_core::pod::{Pod, Taint, untolerated};
use scarpenter_core::requirements::Requirements;
use scarpenter_core::resources::Resources;
use scarpenter_planner::PlannedClaim;
use serde_json::{Value, json};

use crate::cluster::parse;
use crate::world::{self, World, text};

/// A machine that was bought.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) planned: PlannedClaim,
    pub(crate) claim: NodeClaim,
    /// Its node, as the controller leaves it once it is initialized.
    pub(crate) node: Value,
    /// Whether the node is there.
    pub(crate) is_up: bool,
}

impl Machine {
    pub(crate) fn new(world: &World, planned: &PlannedClaim, number: usize) -> Self {
        let name = format!("c{number:03}");
        let claim = claim(world, planned, &name);
        let mut labels = planned.launch.labels.clone();
        labels.extend(planned.labels.clone());
        let spec = json!({"providerID": provider_id(planned, &name).to_string()});
        let launch = &planned.launch;
        let node = object(&name, labels, &planned.taints, spec, &launch.capacity, &launch.allocatable);
        Self { name, planned: planned.clone(), claim, node, is_up: false }
    }

    /// Forgets for whom it was bought, as the controller does once they had their chance.
    pub(crate) fn release(&mut self) {
        self.claim.metadata.annotations.get_or_insert_default().remove(label::PODS);
    }
}

/// A node of ours: initialized, with nothing of its start left on it.
pub(crate) fn object(
    name: &str,
    mut labels: BTreeMap<String, String>,
    taints: &[Taint],
    mut spec: Value,
    capacity: &Resources,
    allocatable: &Resources,
) -> Value {
    labels.insert(label::HOSTNAME.to_owned(), name.to_owned());
    for key in [label::REGISTERED, label::INITIALIZED] {
        labels.insert(key.to_owned(), "true".to_owned());
    }
    spec["taints"] = json!(taints.iter().map(node::write_taint).collect::<Vec<_>>());
    let [capacity, allocatable] = [capacity, allocatable].map(|amounts| json!(quantity::write(amounts)));
    world::node(name, &json!(labels), spec, &capacity, &allocatable)
}

fn provider_id(planned: &PlannedClaim, name: &str) -> ProviderId {
    ProviderId { vendor: planned.launch.offering.vendor.clone(), claim: ClaimUid::new(name) }
}

/// The claim as the controller writes it.
fn claim(world: &World, planned: &PlannedClaim, name: &str) -> NodeClaim {
    let pool = world.pools.iter().find(|pool| text(&pool["metadata"]["name"]) == planned.pool);
    let pool: NodePool = parse(pool.expect("a claim is planned for a pool that there is"));
    let launch = serde_json::to_string(&planned.launch).expect("a launch is plain data");
    let pods: Vec<&str> = planned.pods.iter().map(|(_, uid)| uid.as_str()).collect();
    let mut labels = planned.launch.labels.clone();
    labels.extend(planned.labels.clone());
    let spec = NodeClaimSpec {
        taints: planned.taints.iter().map(node::write_taint).collect(),
        startup_taints: planned.startup_taints.iter().map(node::write_taint).collect(),
        ..NodeClaimSpec::from(&pool.spec.template.spec)
    };
    let mut claim = NodeClaim::new(name, spec);
    claim.metadata = ObjectMeta {
        uid: Some(name.to_owned()),
        labels: Some(labels),
        annotations: Some(BTreeMap::from([
            (label::LAUNCH.to_owned(), launch),
            (label::PODS.to_owned(), pods.join(",")),
        ])),
        finalizers: Some(vec![label::FINALIZER.to_owned()]),
        ..claim.metadata
    };
    claim
}

/// The daemon pods of a node, bound as the DaemonSet controller and the scheduler would.
pub(crate) fn daemon_pods(world: &World, on: &Value) -> Vec<Value> {
    let object: KubeNode = parse(on);
    let name = text(&on["metadata"]["name"]);
    let (labels, taints) = (node::labels(&object), node::taints(&object));
    let sets = world.daemons.iter();
    let here = sets.filter(|set| runs_on(&daemon::parse(&parse(set)).pod, &labels, &taints));
    here.map(|set| {
        let own = text(&set["metadata"]["name"]);
        let mut spec = set["spec"]["template"]["spec"].clone();
        spec["nodeName"] = json!(name);
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("{own}-{name}"),
                "namespace": set["metadata"]["namespace"],
                "labels": set["spec"]["template"]["metadata"]["labels"],
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": own, "uid": own, "controller": true},
                ],
            },
            "spec": spec,
        })
    })
    .collect()
}

fn runs_on(daemon: &Pod, labels: &BTreeMap<String, String>, taints: &[Taint]) -> bool {
    untolerated(taints, &daemon.tolerations, false).is_none()
        && Requirements::from_labels(&daemon.node_selector).match_labels(labels)
}
