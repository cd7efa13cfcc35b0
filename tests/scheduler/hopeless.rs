//! What could be bought for pods that were refused: everything there is, put up at once.
//!
//! A machine more never makes a rule of a pod stricter but in one way: a spread is counted from its emptiest domain, and
//! a new empty domain is that. A pod that fits among all of them therefore fits one of them alone, and the planner was
//! wrong; one that fits none of them may still have fitted one alone, which this does not see.

use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::label;
use scarpenter_core::pod::{PodKey, Taint, TaintEffect};
use scarpenter_core::pool::{Class, Pool, Tenancy};
use scarpenter_core::requirements::Requirements;
use scarpenter_core::snapshot::{Offering, Snapshot};
use scarpenter_planner::{Plan, allocatable};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Verdict};
use crate::facts::Facts;
use crate::machine::{daemon_pods, object};
use crate::world::{World, text};

/// Reasons that no other machine helps against.
const NOT_FOR_WANT_OF_A_MACHINE: [&str; 4] = ["limits", "caps", "stock-out", "vendor-unavailable"];

/// How the look at everything went.
pub(crate) struct Taken {
    /// How many pods were shown all machines.
    pub(crate) tried: usize,
    /// The first that fits one, in words.
    pub(crate) fitted: Option<String>,
}

/// Shows each refused pod an empty machine of every offering and pool. The world is not the same afterwards.
pub(crate) async fn try_everything(
    cluster: &mut Cluster,
    world: &World,
    facts: &Facts,
    plan: &Plan,
) -> anyhow::Result<Taken> {
    let refused: BTreeMap<&PodKey, &str> = plan
        .unplaced
        .iter()
        .filter(|unplaced| !NOT_FOR_WANT_OF_A_MACHINE.contains(&unplaced.refusal.reason.as_str()))
        .map(|unplaced| (&unplaced.pod, unplaced.refusal.message.as_str()))
        .collect();
    if refused.is_empty() {
        return Ok(Taken { tried: 0, fitted: None });
    }
    let machines = everything(facts);
    let nodes: Vec<Value> = machines.iter().map(|machine| machine.node.clone()).collect();
    cluster.put_nodes(&nodes).await?;
    let daemons: Vec<Value> = machines.iter().flat_map(|machine| machine.daemons(world)).collect();
    cluster.put_pods(&daemons).await?;
    let others = facts.nodes.len();
    cluster.until_seen(others + nodes.len()).await?;
    cluster.remove_pods(plan.unplaced.iter().map(|unplaced| &unplaced.pod)).await?;
    let places: BTreeSet<String> = machines.iter().map(|machine| machine.name.clone()).collect();
    let by_choice: BTreeSet<String> =
        machines.iter().filter(|machine| machine.by_choice).map(|machine| machine.name.clone()).collect();
    let none = BTreeSet::new();
    for pod in world.pods.iter().filter(|pod| refused.contains_key(&key(pod))) {
        let kept: &BTreeSet<String> = if names_no_capacity_type(pod) { &by_choice } else { &none };
        cluster.steer(&key(pod), places.difference(kept).cloned().chain(world.open_nodes()));
        cluster.put_pod(pod).await?;
    }
    let verdicts = cluster.settle().await?;
    let fitted = refused.iter().find_map(|(pod, message)| {
        let Some(Verdict::Bound(node)) = verdicts.get(*pod) else { return None };
        let node = nodes.iter().find(|object| text(&object["metadata"]["name"]) == *node);
        Some(format!("{pod} was refused ({message}) and fits {}", node.unwrap_or(&Value::Null)))
    });
    Ok(Taken { tried: refused.len(), fitted })
}

fn key(pod: &Value) -> PodKey {
    PodKey::new(&text(&pod["metadata"]["namespace"]), &text(&pod["metadata"]["name"]))
}

/// Such a pod is given on-demand machines only, where the pool does not say otherwise.
fn names_no_capacity_type(pod: &Value) -> bool {
    let spec = &pod["spec"];
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = |value: &Value| value.to_string().contains(label::CAPACITY_TYPE);
    !names(&spec["nodeSelector"]) && (terms.is_empty() || !terms.iter().all(names))
}

/// A machine that could be bought.
struct Possible {
    name: String,
    node: Value,
    /// A spot machine of a pool that does not speak of capacity types: only for pods that do.
    by_choice: bool,
    single: bool,
}

impl Possible {
    /// Daemon pods know the taint of a single-pod machine, which the pod that it is for tolerates.
    fn daemons(&self, world: &World) -> Vec<Value> {
        let mut node = self.node.clone();
        if self.single {
            let taint = Taint {
                key: label::POD_TAINT.to_owned(),
                value: "?".to_owned(),
                effect: TaintEffect::NoSchedule,
            };
            let taints = node["spec"]["taints"].as_array_mut().expect("every machine has a list of taints");
            taints.push(json!(scarpenter_api::node::write_taint(&taint)));
        }
        daemon_pods(world, &node)
    }
}

fn everything(facts: &Facts) -> Vec<Possible> {
    let mut out = Vec::new();
    for pool in &facts.pools {
        let class = &facts.classes[&pool.class];
        let requirements = Requirements::from_list(&pool.requirements).expect("a generated pool is sound");
        for index in 0..facts.snapshot.types().len() {
            for id in facts.snapshot.offerings_of(index) {
                let offering = facts.snapshot.offering(id);
                if sells(class, &offering) && allows(&requirements, &offering) {
                    let spot_by_choice = requirements.get(label::CAPACITY_TYPE).is_none()
                        && offering.label(label::CAPACITY_TYPE).as_deref() == Some("spot");
                    for labels in custom(&requirements) {
                        let name = format!("h{:03}", out.len());
                        let node = node(&name, pool, class, &offering, labels);
                        let single = class.tenancy == Tenancy::SinglePod;
                        out.push(Possible { name, node, by_choice: spot_by_choice, single });
                    }
                }
            }
        }
    }
    out
}

fn sells(class: &Class, offering: &Offering<'_>) -> bool {
    let regions = class.vendors.get(&offering.instance_type().vendor);
    regions.is_some_and(|regions| regions.is_empty() || regions.contains(&offering.place().region))
}

fn allows(requirements: &Requirements, offering: &Offering<'_>) -> bool {
    let carried = requirements.iter().filter(|(key, _)| Snapshot::carries(key));
    carried.into_iter().all(|(key, set)| set.allows(offering.label(key).as_deref()))
}

/// Every choice of values for keys that no offering carries.
fn custom(requirements: &Requirements) -> Vec<BTreeMap<String, String>> {
    let mut out = vec![BTreeMap::new()];
    for (key, set) in requirements.iter().filter(|(key, _)| !Snapshot::carries(key)) {
        let values = set.listed().expect("a generated pool lists the values of its own keys");
        out = out
            .iter()
            .flat_map(|labels| {
                values.iter().map(move |value| {
                    let mut labels: BTreeMap<String, String> = labels.clone();
                    labels.insert(key.to_owned(), value.clone());
                    labels
                })
            })
            .collect();
    }
    out
}

fn node(
    name: &str,
    pool: &Pool,
    class: &Class,
    offering: &Offering<'_>,
    custom: BTreeMap<String, String>,
) -> Value {
    let mut labels = offering.labels();
    labels.extend(custom);
    labels.extend(pool.labels.clone());
    labels.insert(label::NODEPOOL.to_owned(), pool.name.clone());
    labels.insert(label::NODE_CLASS.to_owned(), class.name.clone());
    labels.insert(label::TENANCY.to_owned(), class.tenancy.label().to_owned());
    let instance_type = offering.instance_type();
    let capacity = instance_type.capacity(class.boot_disk_gib, class.kubelet.max_pods);
    object(name, labels, &pool.taints, json!({}), &capacity, &allocatable(instance_type, class))
}
