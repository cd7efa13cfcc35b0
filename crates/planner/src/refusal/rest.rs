//! What to say when a rule that is no label leaves nothing.

use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::label;
use scarpenter_core::offering::Price;
use scarpenter_core::pod::{Pod, untolerated};
use scarpenter_core::resources::MICRO_USD_PER_HOUR;
use scarpenter_core::snapshot::{OfferingId, Snapshot};

use super::asked;
use super::rules::{Case, Left, Table};
use crate::Kind;
use crate::ground::Ground;
use crate::words::{amount, count, list, said, utc};

type Cases<'c, 'p, 'a> = &'c [Case<'p, 'a>];

/// One sentence for each pool that a rule shut out, joined.
fn each(before: Cases<'_, '_, '_>, say: impl Fn(&Ground<'_>, &Case<'_, '_>) -> Option<String>) -> String {
    let mut said: Vec<String> = Vec::new();
    for (ground, case) in before.iter().filter_map(|case| Some((case.ground?, case))) {
        said.extend(say(ground, case).filter(|words| !said.contains(words)));
    }
    said.join("; ")
}

pub(super) fn broken(_: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    each(before, |ground, _| ground.broken.clone())
}

pub(super) fn class_vendor(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let snapshot = table.pass.market.snapshot;
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    for case in before {
        for id in case.left.ids(snapshot) {
            let offering = snapshot.offering(id);
            wanted.insert((offering.instance_type().vendor.to_string(), offering.place().region.clone()));
        }
    }
    each(before, |ground, _| {
        let named: BTreeSet<&str> = ground.class.vendors.keys().map(|vendor| vendor.as_str()).collect();
        let vendors: BTreeSet<&str> = wanted.iter().map(|(vendor, _)| vendor.as_str()).collect();
        let missing: Vec<String> = vendors.difference(&named).map(|vendor| (*vendor).to_owned()).collect();
        let class = &ground.class.name;
        Some(if missing.is_empty() {
            let regions: BTreeSet<&str> = wanted.iter().map(|(_, region)| region.as_str()).collect();
            let regions: Vec<String> = regions.into_iter().take(5).map(str::to_owned).collect();
            format!("ScarpenterNodeClass {class} names other regions of the vendor than {}", list(&regions))
        } else {
            format!("ScarpenterNodeClass {class} does not use vendor {}", list(&missing))
        })
    })
}

pub(super) fn pool_requirements(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let snapshot = table.pass.market.snapshot;
    let shut_out = each(before, |ground, case| {
        let carried: Vec<_> = ground.requirements.iter().filter(|(key, _)| Snapshot::carries(key)).collect();
        let guilty: Vec<String> = carried
            .iter()
            .filter(|(key, set)| {
                let mut left = case.left.clone();
                left.choose(|selection| snapshot.narrow(selection, key, set));
                left.is_empty(snapshot)
            })
            .map(|(key, set)| said(key, set))
            .collect();
        let all = || carried.iter().map(|(key, set)| said(key, set)).collect();
        let guilty: Vec<String> = if guilty.is_empty() { all() } else { guilty };
        (!guilty.is_empty())
            .then(|| format!("NodePool {} takes only {}", ground.pool.name, guilty.join(" and ")))
    });
    match before.iter().find_map(refused_capacity_type) {
        Some(asked) => format!(
            "{shut_out}; it takes a NodePool whose requirements allow {} {asked}",
            label::CAPACITY_TYPE
        ),
        None => shut_out,
    }
}

/// The capacity type that a pod names and its pool does not allow.
fn refused_capacity_type(case: &Case<'_, '_>) -> Option<String> {
    let asked = case.term.get(label::CAPACITY_TYPE)?;
    let own = case.ground?.requirements.get(label::CAPACITY_TYPE)?;
    let listed: Vec<String> = asked.listed()?.iter().cloned().collect();
    own.intersect(asked).is_empty().then(|| list(&listed))
}

pub(super) fn only_spot(_: &Table<'_, '_>, _: Cases<'_, '_, '_>) -> String {
    "all that is left is spot, which is taken only when the pod or its NodePool names karpenter.sh/capacity-type".to_owned()
}

pub(super) fn taints(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    each(before, |ground, _| {
        let taint = untolerated(ground.taints(), table.asked.tolerations, false)?;
        Some(format!("NodePool {} has the taint {taint}, which the pod does not tolerate", ground.pool.name))
    })
}

pub(super) fn vendors(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let market = &table.pass.market;
    let mut vendors = BTreeSet::new();
    for case in before {
        for id in case.left.ids(market.snapshot) {
            vendors.insert(&market.snapshot.offering(id).instance_type().vendor);
        }
    }
    let reasons = vendors.into_iter().filter_map(|vendor| {
        let reason = market.vendors.get(vendor)?;
        Some(format!("vendor {vendor} cannot be used now: {reason}"))
    });
    reasons.collect::<Vec<_>>().join("; ")
}

pub(super) fn host_ports(table: &Table<'_, '_>, _: Cases<'_, '_, '_>) -> String {
    let left = count(table.left, "offering");
    format!(
        "daemon pods take {} on every machine of the {left} left; use another port",
        asked::host_ports(table)
    )
}

pub(super) fn capacity(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let (names, need) = (&table.pass.names, table.asked.need);
    let mut most = vec![0; need.len()];
    let mut daemons = false;
    for case in before {
        let (Some(ground), Left::Chosen(selection)) = (case.ground, &case.left) else { continue };
        daemons |= ground.has_daemons();
        for (most, have) in most.iter_mut().zip(ground.most(selection)) {
            *most = (*most).max(have);
        }
    }
    let beside = if daemons { " beside the daemon pods" } else { "" };
    let short = need.iter().zip(&most).enumerate().find(|(_, (need, most))| need > most);
    match short {
        Some((at, (need, most))) => {
            let name = names.name(at);
            format!(
                "the pod asks for {name} {}, and a machine of the {} left has at most {} for pods",
                amount(name, *need),
                count(table.left, "offering"),
                amount(name, *most)
            )
        }
        None => format!("{}{beside}", no_room_together(table.asked.pod)),
    }
}

pub(super) fn no_room_together(pod: &Pod) -> String {
    format!("no offering that is left has room for {} at once", pod.requests)
}

pub(super) fn volume(table: &Table<'_, '_>) -> String {
    format!("{}, and none of the {} left is there", asked::volume(table), count(table.left, "offering"))
}

/// Whether a machine of that kind was bought for the pod and did not take it.
pub(super) fn is_unfit(
    unfit: &BTreeMap<Kind, String>,
    ground: &Ground<'_>,
    snapshot: &Snapshot,
    id: OfferingId,
) -> bool {
    gap(unfit, ground, snapshot, id).is_some()
}

fn gap<'u>(
    unfit: &'u BTreeMap<Kind, String>,
    ground: &Ground<'_>,
    snapshot: &Snapshot,
    id: OfferingId,
) -> Option<(&'u Kind, &'u String)> {
    let instance_type = snapshot.offering(id).instance_type();
    unfit.iter().find(|(kind, _)| {
        kind.instance_type == instance_type.name
            && kind.vendor == instance_type.vendor
            && kind.class == ground.class.name
    })
}

pub(super) fn unfit(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let (snapshot, Some(unfit)) = (table.pass.market.snapshot, table.asked.unfit) else {
        return String::new();
    };
    let mut gaps: BTreeSet<String> = BTreeSet::new();
    for case in before {
        let Some(ground) = case.ground else { continue };
        let known = case.left.ids(snapshot).filter_map(|id| gap(unfit, ground, snapshot, id));
        gaps.extend(known.map(|(kind, words)| format!("{} {}: {words}", kind.vendor, kind.instance_type)));
    }
    let gaps: Vec<String> = gaps.into_iter().take(5).collect();
    let why = gaps.join("; ");
    format!(
        "every machine that would do was bought for this pod before and did not take it ({why}); ask for less"
    )
}

/// The label of which the offerings left have fewer values than the pool wants, with both numbers.
pub(super) fn too_few_values<'g>(
    ground: &'g Ground<'_>,
    case: &Case<'_, '_>,
    snapshot: &Snapshot,
) -> Option<(&'g str, usize, u32)> {
    let carried = ground.requirements.iter().filter(|(key, _)| Snapshot::carries(key));
    let mut wanted = carried.filter_map(|(key, set)| Some((key, set.min_values()?)));
    wanted.find_map(|(key, wanted)| {
        let values: BTreeSet<_> =
            case.left.ids(snapshot).filter_map(|id| snapshot.offering(id).label(key)).collect();
        let few = values.len() < usize::try_from(wanted).unwrap_or(usize::MAX);
        few.then_some((key, values.len(), wanted))
    })
}

pub(super) fn min_values(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let snapshot = table.pass.market.snapshot;
    each(before, |ground, case| {
        let (key, there, wanted) = too_few_values(ground, case, snapshot)?;
        let pool = &ground.pool.name;
        Some(format!(
            "NodePool {pool} wants at least {wanted} values of {key}, and the offerings left have {there}; lower minValues"
        ))
    })
}

pub(super) fn stock_out(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> (String, Option<i64>) {
    let market = &table.pass.market;
    let until =
        before.iter().flat_map(|case| case.left.ids(market.snapshot)).filter_map(|id| market.until(id)).min();
    let left = if table.left == 1 {
        "the one offering left is".to_owned()
    } else {
        format!("all {} offerings left are", table.left)
    };
    let when = until.map(|until| format!("; the next try is at {}", utc(until))).unwrap_or_default();
    (format!("{left} sold out or over quota{when}"), until)
}

pub(super) fn limits(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let (pass, snapshot) = (table.pass, table.pass.market.snapshot);
    each(before, |ground, case| {
        let least =
            case.left.ids(snapshot).map(|id| ground.counted(snapshot, id)).reduce(|mut least, other| {
                least.iter_mut().zip(&other).for_each(|(least, other)| *least = (*least).min(*other));
                least
            })?;
        let short = ground.left.iter().zip(&least).enumerate().filter(|(_, (left, least))| least > left);
        let mut short: Vec<String> = short
            .map(|(at, (left, _))| {
                let name = pass.names.name(at);
                let named = if name == MICRO_USD_PER_HOUR { String::new() } else { format!("{name} ") };
                let limit = ground.pool.limits.get(name);
                format!("{named}{} of {}", amount(name, (*left).max(0)), amount(name, limit))
            })
            .collect();
        if short.is_empty() {
            short.push("too little".to_owned());
        }
        Some(format!("the limits of NodePool {} leave {}", ground.pool.name, short.join(" and ")))
    })
}

pub(super) fn caps(table: &Table<'_, '_>, before: Cases<'_, '_, '_>) -> String {
    let snapshot = table.pass.market.snapshot;
    if table.pass.caps.machines == Some(0) {
        return "the controller's --max-machines is reached".to_owned();
    }
    let prices = before.iter().filter_map(|case| Some((case.ground?, case)));
    let prices =
        prices.flat_map(|(ground, case)| case.left.ids(snapshot).map(|id| ground.price(snapshot, id)));
    let price = Price::from_micro_usd(prices.min().unwrap_or_default());
    let left = Price::from_micro_usd(table.pass.caps.micro_usd.unwrap_or_default());
    format!("the controller's --max-usd-per-hour leaves {left}, and the cheapest offering left costs {price}")
}
