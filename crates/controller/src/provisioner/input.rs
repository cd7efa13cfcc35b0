//! The facts of one pass, copied out of the view so that it is not held while planning.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, PoisonError};

use kube::ResourceExt;
use scarpenter_api::NodePool;
use scarpenter_api::condition::{self, Status};
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::Pod;
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::resources::{MICRO_USD_PER_HOUR, NODES};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;
use scarpenter_index::View;
use scarpenter_planner::{Caps, Input, Lessons, Refusal, Rules, Unavailable, Unplaced};

use super::write::GIVEN_UP;
use crate::context::Context;
use crate::lessons::promise::MOST_KINDS;
use crate::{clock, lessons};

/// Everything that one pass looks at.
pub(crate) struct Facts {
    pub(crate) pods: Vec<Pod>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) classes: BTreeMap<String, Class>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) daemons: Vec<Daemon>,
    pub(crate) unavailable: Unavailable,
    pub(crate) caps: Caps,
    pub(crate) namespaces: Namespaces,
    pub(crate) lessons: Lessons,
    pub(crate) rules: Rules,
    /// Pods that get no further machine, since several came that did not do.
    pub(crate) given_up: Vec<Unplaced>,
    pub(crate) now: i64,
    /// Pools of ours that were left out because they, or their classes, are not ready: a sentence each.
    pub(crate) unready: Vec<String>,
}

impl Facts {
    pub(crate) fn input<'a>(&'a self, snapshot: &'a Snapshot) -> Input<'a> {
        Input {
            snapshot,
            pods: &self.pods,
            pools: &self.pools,
            classes: &self.classes,
            nodes: &self.nodes,
            daemons: &self.daemons,
            unavailable: &self.unavailable,
            caps: &self.caps,
            namespaces: &self.namespaces,
            lessons: &self.lessons,
            rules: self.rules,
            now: self.now,
        }
    }

    /// Pods that no place is promised to.
    pub(crate) fn wanting(&self) -> impl Iterator<Item = &Pod> {
        let places = self.nodes.iter().filter(|node| node.open);
        let promised: HashSet<&str> =
            places.flat_map(|node| node.promised.iter().map(String::as_str)).collect();
        self.pods.iter().filter(move |pod| !promised.contains(pod.uid.as_str()))
    }
}

/// Copies the facts. Nodes come before pods, so that a pod that is bound between is not counted twice (SCH-4).
pub(crate) fn gather(context: &Context) -> Facts {
    let view = context.view();
    let nodes = view.places();
    let pods = ours(context, &view);
    let classes = usable_classes(context, &view);
    let pools = usable_pools(&view, &classes);
    let caps = caps(context, &view);
    let daemons = view.daemons();
    let unready = unready_pools(context, &view, &pools);
    let namespaces = view.namespaces().clone();
    let boots = view.classes().map(|class| (class.name_any(), lessons::boots(&class.spec))).collect();
    drop(view);
    let (given_up, pods) = pods.into_iter().partition(|pod| is_given_up(context, &pod.uid));
    Facts {
        pods,
        pools,
        classes,
        nodes,
        daemons,
        unavailable: unavailable(context),
        caps,
        namespaces,
        lessons: lessons::taught(context, &boots),
        rules: context.settings.rules,
        given_up: given_up.iter().filter_map(|pod: &Pod| give_up(context, pod)).collect(),
        now: clock::now().millis().div_euclid(1000),
        unready,
    }
}

fn is_given_up(context: &Context, pod: &str) -> bool {
    context.lessons.memory().unfit(pod).is_some_and(|kinds| kinds.len() >= MOST_KINDS)
}

/// Each machine that did not do was paid for: the next is for a person to decide.
fn give_up(context: &Context, pod: &Pod) -> Option<Unplaced> {
    let memory = context.lessons.memory();
    let kinds = memory.unfit(&pod.uid)?;
    let tries: Vec<String> = kinds
        .iter()
        .map(|(kind, words)| format!("{} {}: {words}", kind.vendor, kind.instance_type))
        .collect();
    let message = format!(
        "{} kinds of machines were bought for it and did not do, so no other is; change the pod. {}",
        tries.len(),
        tries.join("; ")
    );
    let refusal = Refusal { reason: GIVEN_UP.to_owned(), message, removed: Vec::new(), until: None };
    Some(Unplaced { pod: pod.key.clone(), uid: pod.uid.clone(), refusal })
}

fn unready_pools(context: &Context, view: &View, usable: &[Pool]) -> Vec<String> {
    let is_left_out = |pool: &&Arc<NodePool>| {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let going = pool.metadata.deletion_timestamp.is_some();
        pool.is_ours() && !going && pool.spec.replicas.is_none() && usable.iter().all(|own| own.name != name)
    };
    let words = |pool: &Arc<NodePool>| {
        let class = &pool.spec.template.spec.node_class_ref.name;
        let own = condition::find(pool.conditions(), condition::READY);
        let why = match own.filter(|own| own.status != Status::True) {
            Some(own) if !own.message.is_empty() => own.message.clone(),
            _ => format!("ScarpenterNodeClass {class}: {}", context.class_state(class).why),
        };
        format!("NodePool {} is not ready: {why}", pool.metadata.name.as_deref().unwrap_or_default())
    };
    view.pools().filter(is_left_out).map(words).collect()
}

/// Where somebody else's NodePools exist, only pods that name one of our keys are ours.
fn ours(context: &Context, view: &View) -> Vec<Pod> {
    let pods = view.pending();
    let shared = view.pools().any(|pool| !pool.is_ours());
    let no_pool = !view.pools().any(|pool| pool.is_ours());
    if context.settings.all_pods || !(shared || no_pool) {
        return pods;
    }
    pods.into_iter().filter(names_our_key).collect()
}

fn names_our_key(pod: &Pod) -> bool {
    pod.node_selector.keys().any(|key| label::is_ours(key))
        || pod.required_terms.iter().flatten().any(|requirement| label::is_ours(&requirement.key))
}

/// Classes with the vendors that can be used now; one whose join does not work is left out.
fn usable_classes(context: &Context, view: &View) -> BTreeMap<String, Class> {
    let mut out = BTreeMap::new();
    let refused = refused_vendors(context);
    for object in view.classes() {
        let mut class = object.to_class();
        let state = context.class_state(&class.name);
        if state.ready && object.metadata.deletion_timestamp.is_none() {
            class.vendors.retain(|vendor, _| match state.vendors.get(vendor) {
                Some(None) => true,
                // Of one that no class can use the planner is told why.
                Some(Some(_)) => refused.contains_key(vendor),
                None => false,
            });
            out.insert(class.name.clone(), class);
        }
    }
    out
}

/// Vendors that none of the classes can use, and why.
fn refused_vendors(context: &Context) -> BTreeMap<Vendor, String> {
    let classes = context.classes.lock().unwrap_or_else(PoisonError::into_inner);
    let verdicts = || classes.values().flat_map(|class| &class.vendors);
    let usable: BTreeSet<&Vendor> =
        verdicts().filter(|(_, why)| why.is_none()).map(|(vendor, _)| vendor).collect();
    let refused = verdicts().filter(|(vendor, _)| !usable.contains(vendor));
    refused.filter_map(|(vendor, why)| Some((vendor.clone(), why.clone()?))).collect()
}

fn usable_pools(view: &View, classes: &BTreeMap<String, Class>) -> Vec<Pool> {
    view.pools()
        .filter(|pool| {
            pool.is_ours() && pool.metadata.deletion_timestamp.is_none() && pool.spec.replicas.is_none()
        })
        .filter(|pool| condition::is_true(pool.conditions(), condition::READY))
        .filter_map(|pool| pool.to_pool().ok())
        .filter(|pool| classes.contains_key(&pool.class))
        .collect()
}

fn caps(context: &Context, view: &View) -> Caps {
    let (mut machines, mut money) = (0u64, 0u64);
    for record in view.claims() {
        let counted = record.counted();
        machines += u64::try_from(counted.get(NODES)).unwrap_or(0);
        money = money.saturating_add(u64::try_from(counted.get(MICRO_USD_PER_HOUR)).unwrap_or(0));
    }
    Caps {
        max_machines: Some(u64::from(context.settings.max_machines)),
        max_micro_usd_per_hour: Some(context.settings.max_micro_usd_per_hour),
        used_machines: machines,
        used_micro_usd_per_hour: money,
    }
}

fn unavailable(context: &Context) -> Unavailable {
    let now = clock::now();
    let mut vendors = refused_vendors(context);
    let stock = context.stock();
    vendors.extend(stock.vendors(now).into_iter().map(|(vendor, (_, why))| (vendor, why)));
    let broken = context.vendors.iter().filter_map(|slot| Some((slot.vendor.clone(), slot.problem()?)));
    vendors.extend(broken);
    Unavailable { offerings: stock.offerings(now), regions: stock.regions(now), vendors }
}
