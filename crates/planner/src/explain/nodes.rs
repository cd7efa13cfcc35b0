use std::collections::BTreeSet;

use scarpenter_core::label;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::{HostPort, Pod, Taint, untolerated};
use scarpenter_core::requirements::{Requirement, Requirements};
use scarpenter_core::resources::Resources;

use super::NodeRefusal;
use crate::places::{free_resources, runs_on};
use crate::words::{amount, said};
use crate::{Input, tolerate};

/// So many nodes are named.
const NAMED: usize = 5;

/// The nodes that exist, each with what is free of it.
pub(super) struct Free<'n> {
    nodes: Vec<(&'n Node, Resources)>,
}

impl<'n> Free<'n> {
    pub(super) fn new(nodes: &'n [Node], daemons: &[Daemon]) -> Self {
        Self { nodes: nodes.iter().map(|node| (node, free_resources(node, daemons))).collect() }
    }

    /// Why the nodes did not take the pod: those that came nearest, and how many more.
    pub(super) fn refusals(&self, input: &Input<'_>, pod: &Pod) -> (Vec<NodeRefusal>, usize) {
        let selector = Requirements::from_labels(&pod.node_selector);
        let read = |lines: &Vec<Vec<Requirement>>| -> Vec<Requirements> {
            lines.iter().filter_map(|term| Requirements::from_list(term).ok()).collect()
        };
        let mut terms: Vec<Requirements> =
            read(&pod.required_terms).iter().map(|term| term.intersect(&selector)).collect();
        if pod.required_terms.is_empty() {
            terms.push(selector);
        }
        let volumes = read(&pod.volume_terms);
        let mut all: Vec<(usize, NodeRefusal)> = Vec::new();
        for (node, free) in &self.nodes {
            let judged = judge(node, free, pod, &terms, &volumes, input.daemons);
            let refused = judged.err().or_else(|| other_pods(pod));
            all.extend(refused.map(|(stage, reason, message)| {
                (stage, NodeRefusal { node: node.name.clone(), reason, message })
            }));
        }
        all.sort_by(|a, b| (b.0, &a.1.node).cmp(&(a.0, &b.1.node)));
        let more = all.len().saturating_sub(NAMED);
        (all.into_iter().take(NAMED).map(|(_, refusal)| refusal).collect(), more)
    }
}

/// How far a pod came with a node, the reason, and the reason in words.
type Refused = (usize, &'static str, String);

fn judge(
    node: &Node,
    free: &Resources,
    pod: &Pod,
    terms: &[Requirements],
    volumes: &[Requirements],
    daemons: &[Daemon],
) -> Result<(), Refused> {
    if !node.open {
        return Err((0, "closed", "it is going, cordoned or disrupted".to_owned()));
    }
    let fitting = terms.iter().find(|term| term.match_labels(&node.labels));
    let Some(term) = fitting else { return Err((1, "label", labels(node, terms))) };
    if let Some(taint) = untolerated_taint(node, pod, term) {
        return Err((2, "taint", format!("it has the taint {taint}, which the pod does not tolerate")));
    }
    if !volumes.is_empty() && !volumes.iter().any(|term| term.match_labels(&node.labels)) {
        return Err((3, "volume", format!("the pod's volumes are elsewhere: {}", labels(node, volumes))));
    }
    if let Some(short) = short(free, &pod.requests) {
        return Err((4, "resource", short));
    }
    let coming = daemons.iter().filter(|daemon| runs_on(&daemon.pod, node));
    let taken = node.host_ports.iter().chain(coming.flat_map(|daemon| &daemon.pod.host_ports));
    if let Some(port) = pod.host_ports.iter().find(|own| taken.clone().any(|other| clash(own, other))) {
        return Err((5, "host-port", format!("port {}/{} of it is taken", port.port, port.protocol)));
    }
    attachments(node, pod).map_or(Ok(()), |words| Err((6, "attachments", words)))
}

/// A node that would take the pod by itself: only rules about other pods can have kept it away.
fn other_pods(pod: &Pod) -> Option<Refused> {
    let kinds = [
        (pod.spread.iter().any(|spread| spread.required), "topologySpreadConstraints"),
        (!pod.affinity.is_empty(), "podAffinity"),
        (!pod.anti_affinity.is_empty(), "podAntiAffinity"),
    ];
    let own: Vec<&str> = kinds.into_iter().filter(|(has, _)| *has).map(|(_, words)| words).collect();
    let words = match own.as_slice() {
        [] => "it has room; a pod that is there, or that goes there, keeps others away".to_owned(),
        own => format!("it has room; the pod's {}, or other pods', keep it away", own.join(" and ")),
    };
    Some((7, "other-pods", words))
}

/// The first label of the nearest alternative that the node does not have as asked.
fn labels(node: &Node, terms: &[Requirements]) -> String {
    let first = terms.iter().find_map(|term| {
        let key = term.unmatched(&node.labels)?;
        Some((key, term.get(key)?))
    });
    let Some((key, set)) = first else { return "no alternative of the pod can be met".to_owned() };
    match node.labels.get(key) {
        Some(value) => format!("its label {key} is {value}, asked is {}", said(key, set)),
        None => format!("it has no label {key}, asked is {}", said(key, set)),
    }
}

fn untolerated_taint<'n>(node: &'n Node, pod: &Pod, term: &Requirements) -> Option<&'n Taint> {
    let refusing: Vec<&Taint> = node
        .taints
        .iter()
        .filter(|taint| untolerated(std::slice::from_ref(*taint), &pod.tolerations, false).is_some())
        .collect();
    let arch = node.labels.get(label::ARCH);
    refusing.into_iter().find(|taint| {
        let added = node.pool.is_some() && arch == Some(&taint.value);
        !added || tolerate::missing(std::slice::from_ref(*taint), &[], term).is_err()
    })
}

/// What there is too little of, and how much.
fn short(free: &Resources, asked: &Resources) -> Option<String> {
    let short = asked.iter().filter(|(name, asked)| *asked > 0 && *asked > free.get(name));
    let short: Vec<String> = short
        .map(|(name, asked)| {
            format!("{name} {} free, {} asked", amount(name, free.get(name).max(0)), amount(name, asked))
        })
        .collect();
    (!short.is_empty()).then(|| short.join(" and "))
}

/// Two pods cannot both listen there.
fn clash(a: &HostPort, b: &HostPort) -> bool {
    let meets = a.ip == b.ip || [&a.ip, &b.ip].iter().any(|ip| ip.is_empty());
    a.port == b.port && a.protocol == b.protocol && meets
}

fn attachments(node: &Node, pod: &Pod) -> Option<String> {
    node.attach_limits.iter().find_map(|(driver, most)| {
        let attached = node.attached.iter().chain(&pod.attachments);
        let volumes: BTreeSet<_> = attached.filter(|own| own.driver == *driver).collect();
        let asks = pod.attachments.iter().any(|own| own.driver == *driver);
        let most = usize::try_from(*most).unwrap_or(usize::MAX);
        (asks && volumes.len() > most).then(|| format!("{driver} can attach only {most} volumes there"))
    })
}
