//! Nodes that exist and claims that will be nodes, with what runs there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scarpenter_core::label;
use scarpenter_core::node::Node;
use scarpenter_core::pod::HostPort;
use scarpenter_core::resources::Resources;

use crate::claims::ClaimRecord;
use crate::nodes::NodeRecord;
use crate::pods::PodRecord;
use crate::{View, usage};

/// Pods that want a machine, by UID.
type Waiting<'a> = BTreeMap<&'a str, &'a PodRecord>;

impl View {
    /// Nodes that exist and claims that will be nodes, as the planner wants them.
    ///
    /// A claim counts from its creation with what it was bought with, until its node takes over.
    #[must_use]
    pub fn places(&self) -> Vec<Node> {
        let waiting = self.waiting();
        let mut claimed = BTreeSet::new();
        let mut out = Vec::new();
        for node in self.nodes.values() {
            let claim = self.claim_of_node(node);
            if let Some(record) = claim {
                claimed.insert(record.claim.name.as_str());
            } else if node.labels.contains_key(label::NODEPOOL)
                && !node.labels.contains_key(label::INSTANCE_TYPE)
            {
                continue;
            }
            out.push(self.present(node, claim, &waiting));
        }
        for record in self.claims.values().filter(|record| !claimed.contains(record.claim.name.as_str())) {
            let promised = still_waiting(record, &waiting);
            if let Some(mut place) = record.in_flight(uids(&promised), sum(&promised)) {
                self.settle(&mut place, &promised);
                out.push(place);
            }
        }
        out
    }

    /// One node that exists, as [`View::places`] gives it.
    #[must_use]
    pub fn place(&self, node: &str) -> Option<Node> {
        let node = self.nodes.get(node)?;
        Some(self.present(node, self.claim_of_node(node), &self.waiting()))
    }

    fn waiting(&self) -> Waiting<'_> {
        self.pods.pending().map(|record| (record.pod.uid.as_str(), record)).collect()
    }

    fn present(&self, node: &NodeRecord, claim: Option<&ClaimRecord>, waiting: &Waiting<'_>) -> Node {
        let mut held: Vec<&PodRecord> = self.pods.on(&node.name).filter(|record| !record.terminal).collect();
        let (mut requested, daemons) = usage::requests(&held);
        let mut promised = claim.map(|record| still_waiting(record, waiting)).unwrap_or_default();
        // Before that the node may not show all that it will have.
        if node.is_initialized() {
            promised = with_room(promised, &held, &node.allocatable);
        }
        requested.add(&sum(&promised));
        let mut place = usage::present(node, claim, (requested, daemons), uids(&promised));
        held.extend(promised);
        self.settle(&mut place, &held);
        place
    }

    /// Puts the pods that a place holds, and what they take of it, into it.
    fn settle(&self, place: &mut Node, held: &[&PodRecord]) {
        let counted = held.iter().filter(|record| !record.terminating);
        place.pods = counted.map(|record| Arc::clone(&record.pod)).collect();
        place.host_ports = held.iter().flat_map(|record| record.pod.host_ports.iter().cloned()).collect();
        let attached: BTreeSet<_> =
            held.iter().flat_map(|record| self.volumes.attachments(&record.pod)).collect();
        place.attached = attached.into_iter().collect();
        place.attach_limits = self.volumes.limits(&place.name);
    }
}

/// The pods that a claim was made for and that still wait; a claim that goes keeps nobody waiting.
fn still_waiting<'a>(claim: &ClaimRecord, waiting: &Waiting<'a>) -> Vec<&'a PodRecord> {
    if claim.claim.deleted.is_some() {
        return Vec::new();
    }
    claim.pods.iter().filter_map(|uid| waiting.get(uid.as_str()).copied()).collect()
}

/// Those of the pods for which there is room beside the pods that the scheduler bound meanwhile. The others are planned
/// anew: the scheduler keeps no place for anybody.
fn with_room<'a>(
    promised: Vec<&'a PodRecord>,
    held: &[&PodRecord],
    allocatable: &Resources,
) -> Vec<&'a PodRecord> {
    let mut taken = sum(held);
    let mut ports: Vec<&HostPort> = held.iter().flat_map(|record| &record.pod.host_ports).collect();
    let mut out = Vec::new();
    for record in promised {
        let mut with = taken.clone();
        with.add(&record.pod.requests);
        let own = &record.pod.host_ports;
        if with.fits(allocatable) && !own.iter().any(|port| ports.iter().any(|other| clash(port, other))) {
            taken = with;
            ports.extend(own);
            out.push(record);
        }
    }
    out
}

/// Whether two pods cannot both have their port (SCH-36).
fn clash(one: &HostPort, other: &HostPort) -> bool {
    let same_address = one.ip == other.ip || one.ip.is_empty() || other.ip.is_empty();
    same_address && one.port == other.port && one.protocol == other.protocol
}

fn uids(records: &[&PodRecord]) -> Vec<String> {
    records.iter().map(|record| record.pod.uid.clone()).collect()
}

fn sum(records: &[&PodRecord]) -> Resources {
    let mut out = Resources::new();
    for record in records {
        out.add(&record.pod.requests);
    }
    out
}
