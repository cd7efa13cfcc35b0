//! What the controller plans on, as far as it can be seen from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scarpenter_api::condition::{self, Status};
use scarpenter_api::{NodePool, ScarpenterNodeClass};
use scarpenter_core::name::Vendor;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::{Pod, PodKey};
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::resources::{MICRO_USD_PER_HOUR, NODES};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;
use scarpenter_index::View;
use scarpenter_planner::{Caps, Explanation, Input, Lessons, Rules, Unavailable};

/// Everything that the planner looks at.
pub(super) struct Facts {
    pods: Vec<Pod>,
    pub(super) pools: Vec<Pool>,
    pub(super) classes: BTreeMap<String, Class>,
    nodes: Vec<Node>,
    daemons: Vec<Daemon>,
    pub(super) unavailable: Unavailable,
    caps: Caps,
    namespaces: Namespaces,
    now: i64,
    /// Pools of ours that are left out: a sentence each.
    pub(super) notes: Vec<String>,
}

impl Facts {
    /// `most` is the most machines, and the most money an hour in micro-USD.
    pub(super) fn gather(view: &View, most: (Option<u64>, Option<u64>), now: i64) -> Self {
        let refused = refused_vendors(view);
        let classes = usable_classes(view, &refused);
        let (pools, notes) = usable_pools(view, &classes);
        Self {
            pods: view.pending(),
            pools,
            classes,
            nodes: view.places(),
            daemons: view.daemons(),
            unavailable: Unavailable { vendors: refused, ..Unavailable::default() },
            caps: caps(view, most),
            namespaces: view.namespaces().clone(),
            now,
            notes,
        }
    }

    pub(super) fn explain(&self, snapshot: &Snapshot, pod: &PodKey) -> Option<Explanation> {
        let input = Input {
            snapshot,
            pods: &self.pods,
            pools: &self.pools,
            classes: &self.classes,
            nodes: &self.nodes,
            daemons: &self.daemons,
            unavailable: &self.unavailable,
            caps: &self.caps,
            namespaces: &self.namespaces,
            lessons: &Lessons::default(),
            rules: Rules { most_pods: usize::MAX, most_refusals: usize::MAX, ..Rules::default() },
            now: self.now,
        };
        scarpenter_planner::explain(&input, pod)
    }
}

fn is_usable(class: &ScarpenterNodeClass) -> bool {
    condition::is_true(class.conditions(), condition::READY) && class.metadata.deletion_timestamp.is_none()
}

/// Vendors that none of the classes can use, and why.
fn refused_vendors(view: &View) -> BTreeMap<Vendor, String> {
    let mut refused: BTreeMap<Vendor, String> = BTreeMap::new();
    let mut usable: BTreeSet<Vendor> = BTreeSet::new();
    for class in view.classes() {
        for vendor in class.spec.vendors.keys() {
            match condition::find(class.conditions(), &condition::vendor_ready(vendor)) {
                Some(own) if own.status == Status::True => {
                    usable.insert(Vendor::new(vendor));
                }
                Some(own) if own.status == Status::False => {
                    refused.insert(Vendor::new(vendor), own.message.clone());
                }
                _ => {}
            }
        }
    }
    refused.retain(|vendor, _| !usable.contains(vendor));
    refused
}

/// Classes that are ready, with the vendors that can be used for them.
fn usable_classes(view: &View, refused: &BTreeMap<Vendor, String>) -> BTreeMap<String, Class> {
    let mut out = BTreeMap::new();
    for object in view.classes().filter(|class| is_usable(class)) {
        let mut class = object.to_class();
        class.vendors.retain(|vendor, _| {
            match condition::status(object.conditions(), &condition::vendor_ready(vendor.as_str())) {
                Status::True => true,
                // Of one that no class can use the planner is told why.
                Status::False => refused.contains_key(vendor),
                Status::Unknown => false,
            }
        });
        out.insert(class.name.clone(), class);
    }
    out
}

/// Pools that can be planned with, and a sentence for each of ours that cannot.
fn usable_pools(view: &View, classes: &BTreeMap<String, Class>) -> (Vec<Pool>, Vec<String>) {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    for object in view.pools() {
        let going = object.metadata.deletion_timestamp.is_some();
        if !object.is_ours() || going || object.spec.replicas.is_some() {
            continue;
        }
        let pool = object.to_pool().ok().filter(|pool| classes.contains_key(&pool.class));
        match pool.filter(|_| condition::is_true(object.conditions(), condition::READY)) {
            Some(pool) => out.push(pool),
            None => notes.push(unready(view, object)),
        }
    }
    (out, notes)
}

fn unready(view: &View, pool: &Arc<NodePool>) -> String {
    let class = &pool.spec.template.spec.node_class_ref.name;
    let not_true = |own: Option<&scarpenter_api::Condition>| {
        own.filter(|own| own.status != Status::True && !own.message.is_empty()).map(|own| own.message.clone())
    };
    let own = not_true(condition::find(pool.conditions(), condition::READY));
    let of_class = || {
        let Some(object) = view.class(class) else { return Some("it does not exist".to_owned()) };
        not_true(condition::find(object.conditions(), condition::READY))
    };
    let why = own.unwrap_or_else(|| {
        let why =
            of_class().unwrap_or_else(|| "nothing has looked at it yet: does the controller run?".to_owned());
        format!("ScarpenterNodeClass {class}: {why}")
    });
    format!(
        "NodePool {} is not ready, so it is left out: {why}",
        pool.metadata.name.as_deref().unwrap_or_default()
    )
}

fn caps(view: &View, (max_machines, max_micro_usd_per_hour): (Option<u64>, Option<u64>)) -> Caps {
    let (mut machines, mut money) = (0u64, 0u64);
    for record in view.claims() {
        let counted = record.counted();
        machines += u64::try_from(counted.get(NODES)).unwrap_or(0);
        money = money.saturating_add(u64::try_from(counted.get(MICRO_USD_PER_HOUR)).unwrap_or(0));
    }
    Caps { max_machines, max_micro_usd_per_hour, used_machines: machines, used_micro_usd_per_hour: money }
}
