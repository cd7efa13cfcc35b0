//! The input as it will be once a plan is carried out.

use std::collections::BTreeMap;
use std::sync::Arc;

use scarpenter_core::node::Node;
use scarpenter_core::pod::Pod;
use scarpenter_core::resources::{MICRO_USD_PER_HOUR, NODES};

use crate::output::{Plan, PlannedClaim};
use crate::{Caps, Input};

/// What exists when the plan is carried out: limits count its machines, and nominated pods take their room.
pub(super) fn nodes(input: &Input<'_>, plan: &Plan) -> Vec<Node> {
    let pods: BTreeMap<&str, &Pod> = input.pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
    let mut out = input.nodes.to_vec();
    for nomination in &plan.nominated {
        let node = out.iter_mut().find(|node| node.name == nomination.node);
        if let (Some(node), Some(pod)) = (node, pods.get(nomination.uid.as_str())) {
            node.requested.add(&pod.requests);
            node.host_ports.extend(pod.host_ports.iter().cloned());
            node.attached.extend(pod.attachments.iter().cloned());
            node.pods.push(Arc::new(Pod::clone(pod)));
        }
    }
    out.extend((1..).zip(&plan.claims).map(|(number, claim)| planned(number, claim, &pods)));
    out
}

/// A machine of the plan, closed: it counts, and takes nothing more.
fn planned(number: usize, claim: &PlannedClaim, pods: &BTreeMap<&str, &Pod>) -> Node {
    let price = i64::try_from(claim.launch.price_per_hour_micro_usd.micro_usd()).unwrap_or(i64::MAX);
    let mut labels = claim.launch.labels.clone();
    labels.extend(claim.labels.clone());
    let own = claim.pods.iter().filter_map(|(_, uid)| pods.get(uid.as_str()));
    Node {
        name: format!("new machine {number}"),
        pool: Some(claim.pool.clone()),
        labels,
        counted: claim.launch.capacity.clone().with(NODES, 1).with(MICRO_USD_PER_HOUR, price),
        pods: own.map(|pod| Arc::new(Pod::clone(pod))).collect(),
        ..Node::default()
    }
}

pub(super) fn caps(caps: &Caps, plan: &Plan) -> Caps {
    let prices = plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd());
    let machines = u64::try_from(plan.claims.len()).unwrap_or(u64::MAX);
    Caps {
        used_machines: caps.used_machines.saturating_add(machines),
        used_micro_usd_per_hour: caps.used_micro_usd_per_hour.saturating_add(prices.sum()),
        ..*caps
    }
}

/// The same without one claim.
pub(super) fn without(caps: Caps, claim: &PlannedClaim) -> Caps {
    let price = claim.launch.price_per_hour_micro_usd.micro_usd();
    Caps {
        used_machines: caps.used_machines.saturating_sub(1),
        used_micro_usd_per_hour: caps.used_micro_usd_per_hour.saturating_sub(price),
        ..caps
    }
}
