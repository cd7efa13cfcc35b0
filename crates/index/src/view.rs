//! The view: everything known of the cluster, by apply and remove.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node as KubeNode, Pod as KubePod};
use kube::ResourceExt;
use scarpenter_api::limit_range::Defaults;
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass, daemon};
use scarpenter_core::name::ClaimUid;
use scarpenter_core::node::Daemon;
use scarpenter_core::pod::{Pod, PodKey};
use scarpenter_core::topology::Namespaces;

use crate::claims::ClaimRecord;
use crate::nodes::NodeRecord;
use crate::pods::{PodRecord, Pods};
use crate::volumes::Volumes;

/// How many claims that are gone are remembered, so that a late answer does not bring one back.
const TOMBSTONES: usize = 4096;

/// What an event changed, for whoever waits for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Names of claims to look at again.
    pub claims: Vec<String>,
    /// A pod newly wants a machine.
    pub pending: bool,
}

/// The cluster as far as scarpenter cares.
#[derive(Debug, Default)]
pub struct View {
    pub(crate) pods: Pods,
    pub(crate) nodes: BTreeMap<String, NodeRecord>,
    nodes_of: BTreeMap<ClaimUid, BTreeSet<String>>,
    pub(crate) claims: BTreeMap<String, ClaimRecord>,
    by_uid: BTreeMap<ClaimUid, String>,
    gone: (BTreeSet<ClaimUid>, VecDeque<ClaimUid>),
    pools: BTreeMap<String, Arc<NodePool>>,
    classes: BTreeMap<String, Arc<ScarpenterNodeClass>>,
    daemons: BTreeMap<PodKey, DaemonSet>,
    pub(crate) volumes: Volumes,
    pub(crate) limit_ranges: BTreeMap<PodKey, Defaults>,
    pub(crate) namespaces: Namespaces,
}

impl View {
    /// Takes in a pod.
    pub fn apply_pod(&mut self, object: &KubePod) -> Touched {
        let change = self.pods.apply(object);
        Touched {
            claims: change.nodes.iter().filter_map(|node| self.claim_on(node)).collect(),
            pending: change.pending,
        }
    }

    /// Forgets a pod.
    pub fn remove_pod(&mut self, object: &KubePod) -> Touched {
        let key = PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any());
        let node = self.pods.remove(&key);
        Touched { claims: node.iter().filter_map(|node| self.claim_on(node)).collect(), pending: false }
    }

    /// Takes in a node.
    pub fn apply_node(&mut self, object: &KubeNode) -> Touched {
        let record = NodeRecord::parse(object);
        let mut touched = self.forget_node(&record.name);
        touched.claims.extend(self.node_touched(&record).claims);
        touched.claims.dedup();
        if let Some(id) = &record.provider_id {
            self.nodes_of.entry(id.claim.clone()).or_default().insert(record.name.clone());
        }
        self.nodes.insert(record.name.clone(), record);
        touched
    }

    /// Forgets a node.
    pub fn remove_node(&mut self, object: &KubeNode) -> Touched {
        self.forget_node(&object.name_any())
    }

    fn forget_node(&mut self, name: &str) -> Touched {
        let Some(record) = self.nodes.remove(name) else { return Touched::default() };
        if let Some(id) = &record.provider_id
            && let Some(names) = self.nodes_of.get_mut(&id.claim)
        {
            names.remove(name);
            if names.is_empty() {
                self.nodes_of.remove(&id.claim);
            }
        }
        self.node_touched(&record)
    }

    /// Takes in a claim of ours; one that is gone does not come back by a late answer.
    pub fn apply_claim(&mut self, object: Arc<NodeClaim>) {
        let record = ClaimRecord::parse(object);
        if !self.gone.0.contains(&record.claim.uid) {
            self.by_uid.insert(record.claim.uid.clone(), record.claim.name.clone());
            self.claims.insert(record.claim.name.clone(), record);
        }
    }

    /// Forgets a claim.
    pub fn remove_claim(&mut self, object: &NodeClaim) {
        self.forget_claim(&object.name_any());
    }

    fn forget_claim(&mut self, name: &str) {
        if let Some(record) = self.claims.remove(name) {
            self.by_uid.remove(&record.claim.uid);
            self.bury(record.claim.uid);
        }
    }

    fn bury(&mut self, uid: ClaimUid) {
        if self.gone.0.insert(uid.clone()) {
            self.gone.1.push_back(uid);
        }
        while self.gone.1.len() > TOMBSTONES {
            if let Some(oldest) = self.gone.1.pop_front() {
                self.gone.0.remove(&oldest);
            }
        }
    }

    /// Takes in a pool; what is not ours is forgotten.
    pub fn apply_pool(&mut self, object: Arc<NodePool>) {
        self.pools.insert(object.name_any(), object);
    }

    /// Forgets a pool.
    pub fn remove_pool(&mut self, name: &str) {
        self.pools.remove(name);
    }

    /// Takes in a class.
    pub fn apply_class(&mut self, object: Arc<ScarpenterNodeClass>) {
        self.classes.insert(object.name_any(), object);
    }

    /// Forgets a class.
    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// Takes in a DaemonSet.
    pub fn apply_daemon(&mut self, object: &DaemonSet) {
        let key = PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any());
        self.daemons.insert(key, object.clone());
    }

    /// Forgets a DaemonSet.
    pub fn remove_daemon(&mut self, object: &DaemonSet) {
        self.daemons.remove(&PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any()));
    }

    /// Forgets DaemonSets that a fresh and complete list does not hold.
    pub fn keep_daemons(&mut self, listed: &BTreeSet<PodKey>) {
        self.daemons.retain(|key, _| listed.contains(key));
    }

    /// Forgets pods that a fresh and complete list does not hold.
    pub fn keep_pods(&mut self, listed: &BTreeSet<PodKey>) {
        let stale: Vec<PodKey> = self.pods.keys().filter(|key| !listed.contains(key)).cloned().collect();
        for key in stale {
            self.pods.remove(&key);
        }
    }

    /// Forgets nodes that a fresh and complete list does not hold; claims to look at again.
    pub fn keep_nodes(&mut self, listed: &BTreeSet<String>) -> Vec<String> {
        let stale: Vec<String> = self.nodes.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        stale.iter().flat_map(|name| self.forget_node(name).claims).collect()
    }

    /// Forgets claims that a fresh and complete list does not hold.
    pub fn keep_claims(&mut self, listed: &BTreeSet<String>) {
        let stale: Vec<String> = self.claims.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in stale {
            self.forget_claim(&name);
        }
    }

    fn node_touched(&self, record: &NodeRecord) -> Touched {
        let name = record
            .provider_id
            .as_ref()
            .and_then(|id| self.claim_of(&id.claim))
            .map(|claim| claim.claim.name.clone());
        Touched { claims: name.into_iter().collect(), pending: false }
    }

    fn claim_on(&self, node: &str) -> Option<String> {
        Some(self.claim_of_node(self.nodes.get(node)?)?.claim.name.clone())
    }

    /// The claim whose node this is: it has the claim's provider id, and the claim's name.
    ///
    /// A node of another name is never the claim's, whatever it says: no certificate admits one.
    #[must_use]
    pub fn claim_of_node(&self, node: &NodeRecord) -> Option<&ClaimRecord> {
        self.claim_of(&node.provider_id.as_ref()?.claim).filter(|record| record.claim.name == node.name)
    }

    /// The claim with that UID.
    #[must_use]
    pub fn claim_of(&self, uid: &ClaimUid) -> Option<&ClaimRecord> {
        self.claims.get(self.by_uid.get(uid)?)
    }

    /// The claim with that name.
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<&ClaimRecord> {
        self.claims.get(name)
    }

    /// All claims, by name.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimRecord> {
        self.claims.values()
    }

    /// The node with that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&NodeRecord> {
        self.nodes.get(name)
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeRecord> {
        self.nodes.values()
    }

    /// Nodes of this claim, also when it is gone. Of a claim that is there, see [`claim_of_node`](Self::claim_of_node).
    pub fn nodes_of(&self, claim: &ClaimUid) -> impl Iterator<Item = &NodeRecord> {
        let names = self.nodes_of.get(claim).into_iter().flatten();
        let name = self.claim_of(claim).map(|record| record.claim.name.as_str());
        names
            .filter(move |own| name.is_none_or(|name| name == own.as_str()))
            .filter_map(|name| self.nodes.get(name))
    }

    /// Pods that are bound to a node.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &PodRecord> {
        self.pods.on(node)
    }

    /// One pod.
    #[must_use]
    pub fn pod(&self, key: &PodKey) -> Option<&PodRecord> {
        self.pods.get(key)
    }

    /// Pods that want a machine, with what their volumes mean.
    #[must_use]
    pub fn pending(&self) -> Vec<Pod> {
        let resolved = |record: &PodRecord| {
            let mut pod = Pod::clone(&record.pod);
            self.volumes.resolve(&mut pod);
            pod
        };
        self.pods.pending().map(resolved).collect()
    }

    /// UIDs of pods that want a machine.
    pub fn pending_uids(&self) -> impl Iterator<Item = &str> {
        self.pods.pending().map(|record| record.pod.uid.as_str())
    }

    /// Pods that are bound, though they were told last that they have no machine.
    pub fn arrived(&self) -> impl Iterator<Item = &PodRecord> {
        self.pods.arrived()
    }

    /// A pool.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&Arc<NodePool>> {
        self.pools.get(name)
    }

    /// All pools, ours and others', by name.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<NodePool>> {
        self.pools.values()
    }

    /// A class.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Arc<ScarpenterNodeClass>> {
        self.classes.get(name)
    }

    /// All classes, by name.
    pub fn classes(&self) -> impl Iterator<Item = &Arc<ScarpenterNodeClass>> {
        self.classes.values()
    }

    /// What runs on every node: templates as LimitRanges fill them, with the requests of the youngest pod there is, since
    /// whatever else changes pods at their creation has changed that one (SCH-25).
    #[must_use]
    pub fn daemons(&self) -> Vec<Daemon> {
        self.daemons.iter().map(|(key, set)| self.daemon(key, set)).collect()
    }

    fn daemon(&self, key: &PodKey, set: &DaemonSet) -> Daemon {
        let mut out = daemon::parse_under(set, self.limit_ranges(&key.namespace));
        let living =
            self.pods.of_daemon(&out.pod.uid).filter(|record| !record.terminal && !record.terminating);
        let current = living.filter(|record| daemon::is_current(set, &record.pod));
        let age = |record: &PodRecord| (record.pod.created, record.pod.key.clone());
        if let Some(youngest) = current.max_by_key(|record| age(record)) {
            out.pod.requests = youngest.pod.requests.clone();
        }
        out
    }

    /// Whether a claim was made for a pod that still waits for it.
    #[must_use]
    pub fn is_awaited(&self, claim: &ClaimRecord) -> bool {
        self.pods.pending().any(|record| claim.pods.contains(&record.pod.uid))
    }
}
