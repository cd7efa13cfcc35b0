//! The choice by the total price of a plan: claims that were made one pod at a time against machines of one offering.
//!
//! Claims of a pool that ask for the same and hold only pods that no rule counts are taken together. For each such mix
//! the offerings that would do for all of its pods are weighed, those with the least possible price first: all pods,
//! from large to small, each to the first machine of that offering that has room. The cheapest way stays, so no mix
//! costs more than first-fit-decreasing onto the best single offering.

use std::collections::HashMap;
use std::rc::Rc;

use scarpenter_core::pool::Tenancy;
use scarpenter_core::requirements::Requirements;
use scarpenter_core::snapshot::{OfferingId, Selection};

use crate::pass::{Draft, Pass, Passenger};
use crate::table;

mod bins;
mod bound;

use bins::Bins;
pub use bound::lower_bound;

/// Claims whose pods could be mixed at will, and the pods.
struct Mix {
    ground: usize,
    drafts: Vec<usize>,
    pods: Vec<Passenger>,
    requirements: Rc<Requirements>,
    /// Offerings that would do for each of the pods.
    options: Selection,
    exact: bool,
}

/// Machines of one offering for all pods of a mix.
struct Packed {
    offering: OfferingId,
    /// By machine, its pods as positions in the mix.
    machines: Vec<Vec<usize>>,
}

/// Exchanges claims where machines of one offering cost less: first those that ask for the same, then all of a pool.
pub(crate) fn improve(pass: &mut Pass<'_>) {
    let alike = alike(pass);
    exchange_all(pass, alike);
    let pools = (0..pass.grounds.len()).filter_map(|ground| together(alike_in(pass, ground))).collect();
    exchange_all(pass, pools);
}

fn exchange_all(pass: &mut Pass<'_>, mixes: Vec<Mix>) {
    let mut replaced = Vec::new();
    for mix in mixes.into_iter().filter(|mix| mix.pods.len() > 1) {
        if let Some(packed) = cheaper(pass, &mix) {
            exchange(pass, &mix, packed);
            replaced.extend(mix.drafts);
        }
    }
    let mut index = 0;
    pass.drafts.retain(|_| {
        index += 1;
        !replaced.contains(&(index - 1))
    });
}

fn alike(pass: &Pass<'_>) -> Vec<Mix> {
    (0..pass.grounds.len()).flat_map(|ground| alike_in(pass, ground)).collect()
}

/// Claims of a pool that ask for the same, in the order of their first claims.
fn alike_in(pass: &Pass<'_>, index: usize) -> Vec<Mix> {
    let ground = &pass.grounds[index];
    if ground.class.tenancy != Tenancy::Shared || ground.wants_many() {
        return Vec::new();
    }
    let mut out: Vec<Mix> = Vec::new();
    let mut known: HashMap<*const Requirements, usize> = HashMap::new();
    for (at, draft) in pass.drafts.iter().enumerate() {
        if draft.ground != index || draft.counted {
            continue;
        }
        let mix = *known.entry(Rc::as_ptr(&draft.requirements)).or_insert(out.len());
        if mix == out.len() {
            out.push(Mix {
                ground: index,
                drafts: Vec::new(),
                pods: Vec::new(),
                requirements: Rc::clone(&draft.requirements),
                options: draft.options.clone(),
                exact: draft.exact,
            });
        }
        let mix = &mut out[mix];
        mix.drafts.push(at);
        mix.pods.extend(draft.pods.iter().cloned());
        mix.options.and(&draft.options);
        mix.exact &= draft.exact;
    }
    out
}

/// All of them as one, where a machine could serve them all and there is more than one.
fn together(mixes: Vec<Mix>) -> Option<Mix> {
    let several = mixes.len() > 1;
    let mut mixes = mixes.into_iter();
    let mut all = mixes.next().filter(|_| several)?;
    for mix in mixes {
        if all.requirements.conflict_with(&mix.requirements).is_some() || !all.options.meets(&mix.options) {
            return None;
        }
        all.requirements = Rc::new(all.requirements.intersect(&mix.requirements));
        all.options.and(&mix.options);
        all.exact &= mix.exact;
        all.drafts.extend(mix.drafts);
        all.pods.extend(mix.pods);
    }
    Some(all)
}

/// The cheapest way to put all pods of a mix on machines of one offering, if that costs less than what is planned.
fn cheaper(pass: &Pass<'_>, mix: &Mix) -> Option<Packed> {
    let snapshot = pass.market.snapshot;
    let ground = &pass.grounds[mix.ground];
    let price = |index: &usize| ground.price(snapshot, pass.drafts[*index].launch);
    let mut best: Option<Packed> = None;
    let mut least: u64 = mix.drafts.iter().map(price).sum();
    let mut most = vec![0i64; ground.left.len()];
    let mut total = vec![0i64; ground.left.len()];
    for pod in &mix.pods {
        for ((most, total), need) in most.iter_mut().zip(&mut total).zip(&pod.need) {
            *most = (*most).max(*need);
            *total = total.saturating_add(*need);
        }
    }
    let mut options = mix.options.clone();
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
    let ground = &pass.grounds[mix.ground];
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
    let Some((profile, site)) =
        mix.drafts.first().map(|index| (pass.drafts[*index].profile, pass.drafts[*index].site))
    else {
        return;
    };
    let Some(span) = mix.options.types.span() else { return };
    for index in &mix.drafts {
        pass.give_back(*index);
    }
    for machine in packed.machines {
        let pods: Vec<Passenger> = machine.into_iter().map(|at| mix.pods[at].clone()).collect();
        let need = pods.iter().skip(1).fold(pods[0].need.clone(), |need, pod| table::sum(&need, &pod.need));
        let draft = Draft {
            pods,
            need,
            requirements: Rc::clone(&mix.requirements),
            options: mix.options.clone(),
            span,
            launch: packed.offering,
            exact: mix.exact,
            ground: mix.ground,
            profile,
            counted: false,
            site,
        };
        let ground = &mut pass.grounds[draft.ground];
        let counted = ground.counted(snapshot, draft.launch);
        ground.reserve(&counted);
        pass.caps.reserve(ground.price(snapshot, draft.launch));
        pass.drafts.push(draft);
    }
}
