use scarpenter_core::label;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::{Pod, Taint, Toleration, untolerated};
use scarpenter_core::requirements::Requirements;
use scarpenter_core::resources::Resources;

use crate::shape::preferences;
use crate::table::{self, Amounts, Names};
use crate::tolerate;
use crate::topology::SiteId;

/// A place that exists or is being made, with what is still free of it.
#[derive(Debug)]
pub(crate) struct Spot<'a> {
    node: &'a Node,
    /// Where the node stands in the input.
    pub(crate) site: SiteId,
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
    let mut open: Vec<(SiteId, &Node)> = nodes.iter().enumerate().filter(|(_, node)| node.open).collect();
    open.sort_by_key(|(_, node)| (!node.initialized, &node.name));
    let spot = |(site, node)| Some(Spot { node, site, free: free(names, node, daemons)? });
    open.into_iter().filter_map(spot).collect()
}

/// Resources that are free of a node once all its daemons run; below 0 where it holds more than it has.
pub(crate) fn free_resources(node: &Node, daemons: &[Daemon]) -> Resources {
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
    free
}

/// All that is free of a node once all its daemons run; `None` when it holds more than it has.
fn free(names: &Names, node: &Node, daemons: &[Daemon]) -> Option<Amounts> {
    let free = free_resources(node, daemons);
    if free.iter().any(|(_, amount)| amount < 0) {
        return None;
    }
    let mut row = names.free(&free, node);
    // Daemons that are still to come take their ports, too.
    for daemon in
        daemons.iter().filter(|daemon| !daemon.pod.host_ports.is_empty() && runs_on(&daemon.pod, node))
    {
        let need = names.need(&daemon.pod);
        for at in names.ports().filter(|at| need[*at] > 0) {
            row[at] = 0;
        }
    }
    Some(row)
}

/// Whether a daemon runs on a node, or will.
pub(crate) fn runs_on(daemon: &Pod, node: &Node) -> bool {
    untolerated(&node.taints, &daemon.tolerations, false).is_none()
        && Requirements::from_labels(&daemon.node_selector).match_labels(&node.labels)
        && (daemon.required_terms.is_empty()
            || daemon
                .required_terms
                .iter()
                .any(|term| Requirements::from_list(term).is_ok_and(|term| term.match_labels(&node.labels))))
}

/// Where pods like this may go: initialized places first, then where most preferences hold, then by name.
pub(crate) fn fitting(
    spots: &[Spot<'_>],
    terms: &[Requirements],
    volumes: &[Requirements],
    pod: &Pod,
) -> Vec<Fit> {
    let preferences = preferences(pod);
    let mut out: Vec<(bool, i64, Fit)> = Vec::new();
    for (index, spot) in spots.iter().enumerate() {
        let reachable = volumes.is_empty() || volumes.iter().any(|term| term.match_labels(&spot.node.labels));
        let Some(tolerated) = admitted(spot.node, terms, &pod.tolerations).filter(|_| reachable) else {
            continue;
        };
        let held = preferences.iter().filter(|(_, wish)| wish.match_labels(&spot.node.labels));
        let weight: i64 = held.map(|(weight, _)| weight).sum();
        out.push((!spot.node.initialized, -weight, Fit { spot: index, tolerated }));
    }
    out.sort_by_key(|(late, weight, _)| (*late, *weight));
    out.into_iter().map(|(_, _, fit)| fit).collect()
}

fn admitted(node: &Node, terms: &[Requirements], tolerations: &[Toleration]) -> Option<Vec<Toleration>> {
    let term = terms.iter().find(|term| term.match_labels(&node.labels))?;
    // The kube-scheduler takes a preference not to for no refusal.
    let strict = |taint: &&Taint| untolerated(std::slice::from_ref(*taint), tolerations, false).is_some();
    let refusing: Vec<Taint> = node.taints.iter().filter(strict).cloned().collect();
    if refusing.is_empty() {
        return Some(Vec::new());
    }
    let arch = node.labels.get(label::ARCH)?;
    let of_this_arch = refusing.iter().all(|taint| taint.value == *arch);
    (node.pool.is_some() && of_this_arch).then(|| tolerate::missing(&refusing, &[], term).ok()).flatten()
}

/// Puts a pod on the first place of `fits` that has room and that `admits` it.
pub(crate) fn settle<'f>(
    spots: &mut [Spot<'_>],
    fits: &'f [Fit],
    need: &[i64],
    admits: impl Fn(SiteId) -> bool,
) -> Option<(SiteId, String, &'f [Toleration])> {
    let takes = |fit: &&Fit| table::fits(need, &spots[fit.spot].free) && admits(spots[fit.spot].site);
    let fit = fits.iter().find(takes)?;
    let spot = &mut spots[fit.spot];
    for (free, need) in spot.free.iter_mut().zip(need) {
        *free = free.saturating_sub(*need);
    }
    Some((spot.site, spot.node.name.clone(), &fit.tolerated))
}
