//! What the planner is told of a world: its objects, read by our own parsers and joined by our own view.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod as KubePod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use scarpenter_api::{NodePool, ScarpenterNodeClass};
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::{Pod, PodKey};
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;
use scarpenter_index::View;
use scarpenter_planner::{Caps, Input, Lessons, Plan, Rules, Unavailable};

use crate::cluster::{key, parse};
use crate::machine::Machine;
use crate::world::{self, World};

/// Seconds since 1970 at which the first pod was made.
const BEGINNING: i64 = 1_700_000_000;

/// Everything that one pass looks at.
pub(crate) struct Facts {
    pub(crate) snapshot: Snapshot,
    pub(crate) pods: Vec<Pod>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) classes: BTreeMap<String, Class>,
    pub(crate) nodes: Vec<Node>,
    daemons: Vec<Daemon>,
    namespaces: Namespaces,
    lessons: Lessons,
    unavailable: Unavailable,
    caps: Caps,
}

impl Facts {
    /// `running` are the pods that hold a node, `waiting` those that do not.
    pub(crate) fn gather(
        world: &World,
        machines: &[Machine],
        running: &[KubePod],
        waiting: &[KubePod],
        lessons: &Lessons,
    ) -> Self {
        let mut view = View::default();
        for node in &world.nodes {
            view.apply_node(&parse(node));
        }
        for machine in machines {
            view.apply_claim(Arc::new(machine.claim.clone()));
            if machine.is_up {
                view.apply_node(&parse(&machine.node));
            }
        }
        for daemon in &world.daemons {
            view.apply_daemon(&parse(daemon));
        }
        for pod in running {
            view.apply_pod(&known(world, pod.clone()));
        }
        for pod in waiting {
            view.apply_pod(&refused(known(world, pod.clone())));
        }
        let classes = world.classes.iter().map(|class| parse::<ScarpenterNodeClass>(class).to_class());
        Self {
            snapshot: world.snapshot(),
            pods: view.pending(),
            pools: world.pools.iter().map(pool).collect(),
            classes: classes.map(|class| (class.name.clone(), class)).collect(),
            nodes: view.places(),
            daemons: view.daemons(),
            namespaces: world::namespace_labels(),
            lessons: lessons.clone(),
            unavailable: Unavailable::default(),
            caps: Caps::default(),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        scarpenter_planner::plan(&Input {
            snapshot: &self.snapshot,
            pods: &self.pods,
            pools: &self.pools,
            classes: &self.classes,
            nodes: &self.nodes,
            daemons: &self.daemons,
            unavailable: &self.unavailable,
            caps: &self.caps,
            namespaces: &self.namespaces,
            lessons: &self.lessons,
            rules: Rules::default(),
            now: BEGINNING,
        })
    }

    /// Pods in the order in which the planner takes them: the most important, then the largest, then the oldest.
    pub(crate) fn in_order(&self) -> Vec<PodKey> {
        let mut pods: Vec<&Pod> = self.pods.iter().collect();
        pods.sort_by_key(|pod| {
            let size = |name| std::cmp::Reverse(pod.requests.get(name));
            (std::cmp::Reverse(pod.priority), size("cpu"), size("memory"), pod.created, pod.uid.clone())
        });
        pods.into_iter().map(|pod| pod.key.clone()).collect()
    }
}

fn pool(object: &serde_json::Value) -> Pool {
    let pool = parse::<NodePool>(object).to_pool();
    pool.unwrap_or_else(|problems| panic!("{}: {object}", problems.join("; ")))
}

/// The UID by which the planner knows a pod: the same whenever the world is drawn, as the API server's would not be.
pub(crate) fn uid(pod: &PodKey) -> String {
    format!("{}.{}", pod.namespace, pod.name)
}

/// With the UID and the age that it has in this world, whatever the API server says.
fn known(world: &World, mut pod: KubePod) -> KubePod {
    let own = key(&pod);
    let place = world.pods.iter().position(|pod| pod["metadata"]["name"] == own.name.as_str());
    let age = place.and_then(|place| i64::try_from(place).ok()).unwrap_or_default();
    let created = Timestamp::from_second(BEGINNING + age).expect("it is within the times that there are");
    pod.metadata.uid = Some(uid(&own));
    pod.metadata.creation_timestamp = Some(Time(created));
    pod
}

/// As the scheduler leaves a pod for which it has found nothing.
fn refused(mut pod: KubePod) -> KubePod {
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        ..PodCondition::default()
    };
    pod.status = Some(PodStatus { conditions: Some(vec![condition]), ..PodStatus::default() });
    pod
}
