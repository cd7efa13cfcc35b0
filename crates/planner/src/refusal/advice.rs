//! What to change about a rule that makes the machine dearer, or leaves none.

use scarpenter_core::label;
use scarpenter_core::offering::Price;
use scarpenter_core::snapshot::Snapshot;

use super::Asked;
use super::rules::Table;
use crate::explain::{Advice, Priced, RuleLine};
use crate::ground::Ground;
use crate::pass::Pass;
use crate::words::said;

/// About each rule that took the cheapest away, if changing it would help; about the first in any case.
pub(super) fn of(pass: &Pass<'_>, asked: &Asked<'_>, lines: &[RuleLine]) -> Vec<Advice> {
    let now = lines.last().and_then(|line| line.cheapest_after.as_ref());
    let dearer = lines.iter().filter(|line| line.is_dearer());
    let all = dearer.filter_map(|line| about(pass, asked, line, now));
    all.enumerate()
        .filter(|(number, advice)| *number == 0 || advice.helps)
        .map(|(_, advice)| advice)
        .collect()
}

fn about(pass: &Pass<'_>, asked: &Asked<'_>, line: &RuleLine, now: Option<&Priced>) -> Option<Advice> {
    let without = asked.without(&line.rule);
    let instead = Table::quick(pass, &without).outcome();
    let removed = line.cheapest_before.clone()?;
    let change = change(pass, line, &removed);
    let words = format!("{change}: {}", effect(&removed, now, instead.as_ref()));
    let helps = instead.as_ref().is_some_and(|instead| now.is_none_or(|now| instead.price < now.price));
    Some(Advice { rule: line.rule.clone(), words, helps, removed, instead })
}

/// What would come of it, which may be nothing: a later rule may take the same offerings away.
fn effect(removed: &Priced, now: Option<&Priced>, instead: Option<&Priced>) -> String {
    let Some(instead) = instead else {
        return format!("it removes {removed} and others, but without it nothing would be left either");
    };
    match now {
        None => format!("without it {instead} would be bought"),
        Some(now) if instead.price < now.price => {
            let less = Price::from_micro_usd(now.price.micro_usd() - instead.price.micro_usd());
            format!("without it {instead} would be bought, which is {less} less")
        }
        Some(_) => format!("it removes {removed}, but without it others remove it too"),
    }
}

/// What to do to make the rule let an offering through.
fn change(pass: &Pass<'_>, line: &RuleLine, removed: &Priced) -> String {
    let pools = |say: &dyn Fn(&Ground<'_>) -> Option<String>| {
        pass.grounds.iter().find_map(say).unwrap_or_else(|| format!("change `{}`", line.asked))
    };
    let vendor = &removed.offering.vendor;
    match line.rule.as_str() {
        "node-class" => format!("make the class ready ({})", line.asked),
        "class-vendor" => pools(&|ground| {
            let region = &removed.offering.region;
            let named = ground.class.vendors.get(vendor);
            let used = named.is_some_and(|regions| regions.is_empty() || regions.contains(region));
            (!used).then(|| format!("let ScarpenterNodeClass {} use {vendor} in {region}", ground.class.name))
        }),
        "pool-requirements" => guilty(pass, removed).unwrap_or_else(|| format!("change `{}`", line.asked)),
        "default-capacity-type" => {
            format!("name {} spot in the pod or its NodePool, if it may be interrupted", label::CAPACITY_TYPE)
        }
        "taints" => format!("tolerate the taint ({})", line.asked),
        "volume" => "use a volume that can be reached from elsewhere".to_owned(),
        "spread" => "raise maxSkew, or set whenUnsatisfiable: ScheduleAnyway".to_owned(),
        "pod-affinity" | "pod-anti-affinity" => "make the term a preferred one".to_owned(),
        "vendor-unavailable" => format!("make vendor {vendor} usable ({})", line.asked),
        "host-port" => format!("use another port than {}", line.asked),
        "capacity" => "ask for less".to_owned(),
        "unfit" => "ask for less, or for another machine".to_owned(),
        "stock-out" => "wait, or allow other types and regions: it is sold out or over quota".to_owned(),
        "min-values" => format!("lower minValues ({})", line.asked),
        "limits" => format!("raise the limits of the NodePool ({})", line.asked),
        "caps" => format!("raise the controller's caps ({})", line.asked),
        "preferences" => format!("drop the preference ({})", line.asked),
        "prefer-no-schedule" => format!("tolerate the taint ({})", line.asked),
        "nodepool-weight" => "weigh the NodePools alike".to_owned(),
        _ => format!("drop or widen `{}` of the pod", line.asked),
    }
}

/// The requirements that an offering does not meet, of the pool that comes nearest to taking it.
fn guilty(pass: &Pass<'_>, removed: &Priced) -> Option<String> {
    let snapshot = pass.market.snapshot;
    let id = snapshot.find(&removed.offering)?;
    let of_pool = |ground: &Ground<'_>| {
        let carried = ground.requirements.iter().filter(|(key, _)| Snapshot::carries(key));
        let lines = carried.filter(|(key, set)| !set.allows(snapshot.offering(id).label(key).as_deref()));
        let lines: Vec<String> = lines.map(|(key, set)| said(key, set)).collect();
        (!lines.is_empty()).then(|| (lines, ground.pool.name.clone()))
    };
    let (lines, pool) = pass.grounds.iter().filter_map(of_pool).min_by_key(|(lines, _)| lines.len())?;
    Some(format!("widen `{}` of NodePool {pool}", lines.join(" and ")))
}
