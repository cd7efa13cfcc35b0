use scarpenter_core::label;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::{Pod, Taint, Toleration, untolerated};
use scarpenter_core::requirements::Requirements;
use scarpenter_core::resources::Resources;

use crate::shape::{Shape, preferences};
use crate::table::{self, Amounts, Names};
use crate::tolerate;

/// A place that exists or is being made, with what is still free of it.
#[derive(Debug)]
pub(crate) struct Spot<'a> {
    node: &'a Node,
    free: Amounts,
}

/// A place where pods of a shape may go.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    spot: usize,
    tolerated: Vec<Toleration>,
}

/// Open places, initialized first, then by name.
pub(crate) fn spots<'a>(names: &Names, nodes: &'a [Node], daemons: &[Daemon]) -> Vec<Spot<'a>> {
    let mut open: Vec<&Node> = nodes.iter().filter(|node| node.open).collect();
    open.sort_by_key(|node| (!node.initialized, &node.name));
    open.into_iter().filter_map(|node| Some(Spot { node, free: names.row(&free(node, daemons)?) })).collect()
}

/// What is free of a node once all its daemons run; `None` when it holds more than it has.
fn free(node: &Node, daemons: &[Daemon]) -> Option<Resources> {
    let mut coming = Resources::new();
    for daemon in daemons.iter().filter(|daemon| runs_on(&daemon.pod, node)) {
        coming.add(&daemon.pod.requests);
    }
    coming.subtract(&node.daemon_requested);
    let mut free = node.allocatable.clone();
    free.subtract(&node.requested);
    for (name, amount) in coming.iter().filter(|(_, amount)| *amount > 0) {
        free.set(name, free.get(name) - amount);
    }
    let over = free.iter().any(|(_, amount)| amount < 0);
    (!over).then_some(free)
}

fn runs_on(daemon: &Pod, node: &Node) -> bool {
    untolerated(&node.taints, &daemon.tolerations, false).is_none()
        && Requirements::from_labels(&daemon.node_selector).match_labels(&node.labels)
        && (daemon.required_terms.is_empty()
            || daemon
                .required_terms
                .iter()
                .any(|term| Requirements::from_list(term).is_ok_and(|term| term.match_labels(&node.labels))))
}

/// Where pods like this may go: initialized places first, then where most preferences hold, then by name.
pub(crate) fn fitting(spots: &[Spot<'_>], shape: &Shape, pod: &Pod) -> Vec<Fit> {
    let preferences = preferences(pod);
    let mut out: Vec<(bool, i64, Fit)> = Vec::new();
    for (index, spot) in spots.iter().enumerate() {
        let Some(tolerated) = admitted(spot.node, shape) else { continue };
        let held = preferences.iter().filter(|(_, wish)| wish.match_labels(&spot.node.labels));
        let weight: i64 = held.map(|(weight, _)| weight).sum();
        out.push((!spot.node.initialized, -weight, Fit { spot: index, tolerated }));
    }
    out.sort_by_key(|(late, weight, _)| (*late, *weight));
    out.into_iter().map(|(_, _, fit)| fit).collect()
}

fn admitted(node: &Node, shape: &Shape) -> Option<Vec<Toleration>> {
    let term = shape.terms.iter().find(|term| term.match_labels(&node.labels))?;
    // The kube-scheduler takes a preference not to for no refusal.
    let strict =
        |taint: &&Taint| untolerated(std::slice::from_ref(*taint), &shape.tolerations, false).is_some();
    let refusing: Vec<Taint> = node.taints.iter().filter(strict).cloned().collect();
    if refusing.is_empty() {
        return Some(Vec::new());
    }
    let arch = node.labels.get(label::ARCH)?;
    let of_this_arch = refusing.iter().all(|taint| taint.value == *arch);
    (node.pool.is_some() && of_this_arch).then(|| tolerate::missing(&refusing, &[], term).ok()).flatten()
}

/// Puts a pod on the first place of `fits` that has room.
pub(crate) fn settle<'f>(
    spots: &mut [Spot<'_>],
    fits: &'f [Fit],
    need: &[i64],
) -> Option<(String, &'f [Toleration])> {
    let fit = fits.iter().find(|fit| table::fits(need, &spots[fit.spot].free))?;
    let spot = &mut spots[fit.spot];
    for (free, need) in spot.free.iter_mut().zip(need) {
        *free -= need;
    }
    Some((spot.node.name.clone(), &fit.tolerated))
}
