//! Pods: what is kept of each, and which node holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as KubePod;
use scarpenter_api::pod;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::pod::{Pod, PodKey};

/// One pod, parsed.
#[derive(Clone, Debug)]
pub struct PodRecord {
    /// As the planner sees it, its volumes by the names of their claims only; shared, so that a pass copies no pod.
    pub pod: Arc<Pod>,
    /// Where it is bound.
    pub node: Option<String>,
    /// It wants a machine (SCH-1).
    pub provisionable: bool,
    /// Succeeded or Failed.
    pub terminal: bool,
    /// Its deletion was asked for.
    pub terminating: bool,
    /// UID of the DaemonSet that it is of.
    pub daemon: Option<String>,
    /// It belongs to a DaemonSet or is a mirror of a static pod.
    pub stays_with_node: bool,
    /// It keeps its node from being called empty: neither finished nor one that stays with its node.
    pub occupies: bool,
    /// Draining waits for it, unless it has been going for longer than anybody waits.
    pub holds: bool,
    /// When its deletion is due.
    pub going_since: Option<Time>,
    /// Its condition `MachineReady` is there and not True.
    pub told_to_wait: bool,
}

impl PodRecord {
    /// Parses a pod.
    #[must_use]
    pub fn parse(object: &KubePod) -> Self {
        let terminal = pod::is_terminal(object);
        let stays = pod::is_daemon(object) || pod::is_mirror(object);
        Self {
            pod: Arc::new(pod::parse(object)),
            node: object
                .spec
                .as_ref()
                .and_then(|spec| spec.node_name.clone())
                .filter(|name| !name.is_empty()),
            provisionable: pod::is_provisionable(object),
            terminal,
            terminating: object.metadata.deletion_timestamp.is_some(),
            daemon: pod::daemon_owner(object).map(str::to_owned),
            stays_with_node: stays,
            occupies: !terminal && !stays,
            // Asked as of long ago, so that only what never changes is kept.
            holds: pod::holds_drain(object, Timestamp::UNIX_EPOCH) || pod::holds_destroy(object),
            going_since: object
                .metadata
                .deletion_timestamp
                .as_ref()
                .map(|at| Time::from_millis(at.0.as_millisecond())),
            told_to_wait: pod::is_told_to_wait(object),
        }
    }
}

/// All pods, by key and by node.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    all: BTreeMap<PodKey, PodRecord>,
    by_node: BTreeMap<String, BTreeSet<PodKey>>,
    by_daemon: BTreeMap<String, BTreeSet<PodKey>>,
    pending: BTreeSet<PodKey>,
}

/// What a pod event changed.
#[derive(Debug, Default)]
pub(crate) struct PodChange {
    /// Nodes on which something changed.
    pub(crate) nodes: Vec<String>,
    /// The pod newly wants a machine.
    pub(crate) pending: bool,
}

impl Pods {
    pub(crate) fn apply(&mut self, object: &KubePod) -> PodChange {
        let record = PodRecord::parse(object);
        let key = record.pod.key.clone();
        let was_pending = self.pending.contains(&key);
        let mut change = PodChange { pending: record.provisionable && !was_pending, nodes: Vec::new() };
        change.nodes.extend(self.remove(&key));
        if let Some(node) = &record.node {
            self.by_node.entry(node.clone()).or_default().insert(key.clone());
            if !change.nodes.contains(node) {
                change.nodes.push(node.clone());
            }
        }
        if let Some(daemon) = &record.daemon {
            self.by_daemon.entry(daemon.clone()).or_default().insert(key.clone());
        }
        if record.provisionable {
            self.pending.insert(key.clone());
        }
        self.all.insert(key, record);
        change
    }

    /// Forgets a pod; the node that it was on, if any.
    pub(crate) fn remove(&mut self, key: &PodKey) -> Option<String> {
        self.pending.remove(key);
        let record = self.all.remove(key)?;
        if let Some(daemon) = &record.daemon {
            forget(&mut self.by_daemon, daemon, key);
        }
        let node = record.node?;
        forget(&mut self.by_node, &node, key);
        Some(node)
    }

    pub(crate) fn get(&self, key: &PodKey) -> Option<&PodRecord> {
        self.all.get(key)
    }

    pub(crate) fn on(&self, node: &str) -> impl Iterator<Item = &PodRecord> {
        self.by_node.get(node).into_iter().flatten().filter_map(|key| self.all.get(key))
    }

    /// Pods of the DaemonSet with that UID.
    pub(crate) fn of_daemon(&self, uid: &str) -> impl Iterator<Item = &PodRecord> {
        self.by_daemon.get(uid).into_iter().flatten().filter_map(|key| self.all.get(key))
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &PodRecord> {
        self.pending.iter().filter_map(|key| self.all.get(key))
    }

    /// Pods that are bound, though they were told last that they have no machine.
    pub(crate) fn arrived(&self) -> impl Iterator<Item = &PodRecord> {
        self.all.values().filter(|record| record.told_to_wait && record.node.is_some() && !record.terminating)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &PodKey> {
        self.all.keys()
    }
}

fn forget(by: &mut BTreeMap<String, BTreeSet<PodKey>>, name: &str, key: &PodKey) {
    if let Some(keys) = by.get_mut(name) {
        keys.remove(key);
        if keys.is_empty() {
            by.remove(name);
        }
    }
}
