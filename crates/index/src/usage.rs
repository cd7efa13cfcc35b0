//! Small readings that nodes and claims share.

use scarpenter_api::node;
use scarpenter_core::node::Node;
use scarpenter_core::pod::Taint;
use scarpenter_core::resources::Resources;

use crate::claims::ClaimRecord;
use crate::nodes::NodeRecord;
use crate::pods::PodRecord;

/// What the pods of a node that have not ended ask for together, and the daemon pods among them.
pub(crate) fn requests(held: &[&PodRecord]) -> (Resources, Resources) {
    let (mut all, mut daemons) = (Resources::new(), Resources::new());
    for record in held {
        all.add(&record.pod.requests);
        if record.stays_with_node {
            daemons.add(&record.pod.requests);
        }
    }
    (all, daemons)
}

/// A node that is there, joined with its claim where it has one (STA-1 to STA-4).
pub(crate) fn present(
    node: &NodeRecord,
    claim: Option<&ClaimRecord>,
    (requested, daemon_requested): (Resources, Resources),
    promised: Vec<String>,
) -> Node {
    let managed = claim.filter(|_| !node.is_initialized());
    let going =
        node.deleting || node.is_disrupted() || claim.is_some_and(|record| record.claim.deleted.is_some());
    Node {
        name: node.name.clone(),
        pool: claim.and_then(|record| record.pool.clone()),
        labels: labels(node, claim),
        taints: open_taints(node, claim),
        allocatable: filled(
            &node.allocatable,
            managed.and_then(|record| record.claim.launch.as_ref()).map(|launch| &launch.allocatable),
        ),
        counted: claim.map_or_else(Resources::new, ClaimRecord::counted),
        requested,
        daemon_requested,
        open: !going && !node.cordoned,
        initialized: claim.is_none() || node.is_initialized(),
        promised,
        ..Node::default()
    }
}

fn labels(node: &NodeRecord, claim: Option<&ClaimRecord>) -> std::collections::BTreeMap<String, String> {
    let mut out = node.labels.clone();
    if let Some(record) = claim.filter(|_| !node.is_registered()) {
        if let Some(launch) = &record.claim.launch {
            out.extend(launch.labels.clone());
        }
        out.extend(record.object.metadata.labels.clone().unwrap_or_default());
    }
    out
}

/// Until a node is initialized, taints that go by themselves do not count (STA-3).
fn open_taints(seen: &NodeRecord, claim: Option<&ClaimRecord>) -> Vec<Taint> {
    let Some(record) = claim else { return seen.taints.clone() };
    if !seen.is_registered() {
        return record.taints();
    }
    if seen.is_initialized() {
        return seen.taints.clone();
    }
    node::settled_taints(seen.taints.clone(), &node::parse_taints(&record.object.spec.startup_taints))
}

/// Node values, with what is zero or missing from the claim (STA-4).
fn filled(node: &Resources, launch: Option<&Resources>) -> Resources {
    let mut out = node.clone();
    for (name, amount) in launch.into_iter().flat_map(Resources::iter) {
        if out.get(name) == 0 {
            out.set(name, amount);
        }
    }
    out
}
