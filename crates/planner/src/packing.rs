//! The choice by the total price of a plan: claims that were made one pod at a time against machines of one offering.
//!
//! Claims of a pool that ask for the same and hold only pods that no rule counts are taken together. For each such mix
//! the offerings that would do for all of its pods are weighed, those with the least possible price first: all pods,
//! from large to small, each to the first machine of that offering that has room. The cheapest way stays, so no mix
//! costs more than first-fit-decreasing onto the best single offering.

use std::collections::BTreeMap;
use std::rc::Rc;

use scarpenter_core::pool::Tenancy;
use scarpenter_core::requirements::Requirements;
use scarpenter_core::snapshot::OfferingId;

use crate::pass::{Draft, Pass, Passenger};
use crate::table;

mod bins;
mod bound;

use bins::Bins;
pub use bound::lower_bound;

/// Claims whose pods could be mixed at will, and the pods.
struct Mix {
    drafts: Vec<usize>,
    pods: Vec<Passenger>,
    exact: bool,
}

/// Machines of one offering for all pods of a mix.
struct Packed {
    offering: OfferingId,
    /// By machine, its pods as positions in the mix.
    machines: Vec<Vec<usize>>,
}

/// Exchanges claims where machines of one offering cost less.
pub(crate) fn improve(pass: &mut Pass<'_>) {
    let mut replaced = Vec::new();
    for mix in mixes(pass) {
        if let Some(packed) = cheaper(pass, &mix) {
            exchange(pass, &mix, packed);
            replaced.extend(mix.drafts);
        }
    }
    replaced.sort_unstable();
    for index in replaced.into_iter().rev() {
        pass.drafts.remove(index);
    }
}

/// Claims that ask for the same, by pool and requirements.
fn mixes(pass: &Pass<'_>) -> Vec<Mix> {
    let mut by_request: BTreeMap<(usize, *const Requirements), Mix> = BTreeMap::new();
    for (index, draft) in pass.drafts.iter().enumerate() {
        let ground = &pass.grounds[draft.ground];
        if draft.counted || ground.class.tenancy != Tenancy::Shared || ground.wants_many() {
            continue;
        }
        let mix = by_request.entry((draft.ground, Rc::as_ptr(&draft.requirements))).or_insert_with(|| Mix {
            drafts: Vec::new(),
            pods: Vec::new(),
            exact: draft.exact,
        });
        mix.drafts.push(index);
        mix.pods.extend(draft.pods.iter().cloned());
        mix.exact &= draft.exact;
    }
    // Pointers have no order that lasts; the first claim does.
    let mut out: Vec<Mix> = by_request.into_values().filter(|mix| mix.pods.len() > 1).collect();
    out.sort_by_key(|mix| mix.drafts.first().copied());
    out
}

/// The cheapest way to put all pods of a mix on machines of one offering, if that costs less than what is planned.
fn cheaper(pass: &Pass<'_>, mix: &Mix) -> Option<Packed> {
    let snapshot = pass.market.snapshot;
    let first = &pass.drafts[*mix.drafts.first()?];
    let ground = &pass.grounds[first.ground];
    let price = |index: &usize| ground.price(snapshot, pass.drafts[*index].launch);
    let mut best: Option<Packed> = None;
    let mut least: u64 = mix.drafts.iter().map(price).sum();
    let mut most = vec![0i64; first.need.len()];
    let mut total = vec![0i64; first.need.len()];
    for pod in &mix.pods {
        for ((most, total), need) in most.iter_mut().zip(&mut total).zip(&pod.need) {
            *most = (*most).max(*need);
            *total = total.saturating_add(*need);
        }
    }
    let mut options = first.options.clone();
    options.types.retain(|index| ground.type_has_room(index, &most, mix.exact));
    let accept = |id| pass.market.in_stock(id) && ground.has_room(snapshot, id, &most, mix.exact);
    let mut offers: Vec<(u64, OfferingId)> = snapshot
        .first_of_types(&options, accept)
        .into_iter()
        .map(|id| (at_least(&ground.room(snapshot, id, mix.exact), &total, ground.price(snapshot, id)), id))
        .collect();
    offers.sort_unstable();
    let order = largest_first(&mix.pods);
    for (bound, offering) in offers {
        if bound >= least {
            break;
        }
        let each = ground.price(snapshot, offering);
        let room = ground.room(snapshot, offering, mix.exact);
        let most = usize::try_from((least - 1) / each.max(1)).unwrap_or(usize::MAX);
        let Some(machines) = Bins::pack(&order, &mix.pods, &room, most) else { continue };
        let price = each.saturating_mul(machines.len() as u64);
        if price < least && allowed(pass, mix, offering, machines.len()) {
            least = price;
            best = Some(Packed { offering, machines });
        }
    }
    best
}

/// What machines with so much room cost at least for so much need.
fn at_least(room: &[i64], total: &[i64], price: u64) -> u64 {
    let machines = room.iter().zip(total).filter(|(_, total)| **total > 0).map(|(room, total)| {
        if *room <= 0 { u64::MAX } else { u64::try_from((total - 1) / room + 1).unwrap_or(u64::MAX) }
    });
    price.saturating_mul(machines.max().unwrap_or(1))
}

/// Positions of the pods, the largest by their greatest share of a machine first.
fn largest_first(pods: &[Passenger]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by(|a, b| pods[*b].need.cmp(&pods[*a].need).then(a.cmp(b)));
    order
}

/// Whether limits and caps leave enough for these machines in the place of those of the mix.
fn allowed(pass: &Pass<'_>, mix: &Mix, offering: OfferingId, machines: usize) -> bool {
    let snapshot = pass.market.snapshot;
    let Some(first) = mix.drafts.first().map(|index| &pass.drafts[*index]) else { return false };
    let ground = &pass.grounds[first.ground];
    let mut left = ground.left.clone();
    for draft in mix.drafts.iter().map(|index| &pass.drafts[*index]) {
        for (left, counted) in left.iter_mut().zip(ground.counted(snapshot, draft.launch)) {
            *left = left.saturating_add(counted);
        }
    }
    let machines = i64::try_from(machines).unwrap_or(i64::MAX);
    let counted = ground.counted(snapshot, offering);
    let fewer =
        machines <= i64::try_from(mix.drafts.len()).unwrap_or(i64::MAX) || pass.caps.machines.is_none();
    let within =
        |(left, counted): (&i64, &i64)| *left == i64::MAX || counted.saturating_mul(machines) <= *left;
    fewer && left.iter().zip(&counted).all(within)
}

/// Puts the machines in the place of the claims; the old ones are left for the caller to remove.
fn exchange(pass: &mut Pass<'_>, mix: &Mix, packed: Packed) {
    let snapshot = pass.market.snapshot;
    for index in &mix.drafts {
        pass.give_back(*index);
    }
    let Some(first) = mix.drafts.first().map(|index| pass.drafts[*index].clone()) else { return };
    for machine in packed.machines {
        let pods: Vec<Passenger> = machine.into_iter().map(|at| mix.pods[at].clone()).collect();
        let need = pods.iter().skip(1).fold(pods[0].need.clone(), |need, pod| table::sum(&need, &pod.need));
        let draft = Draft { pods, need, launch: packed.offering, exact: mix.exact, ..first.clone() };
        let ground = &mut pass.grounds[draft.ground];
        let counted = ground.counted(snapshot, draft.launch);
        ground.reserve(&counted);
        pass.caps.reserve(ground.price(snapshot, draft.launch));
        pass.drafts.push(draft);
    }
}
