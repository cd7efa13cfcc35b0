//! What to say when a label that the pod asks for leaves nothing.

use std::collections::BTreeSet;

use scarpenter_core::label;
use scarpenter_core::nearest::nearest;
use scarpenter_core::requirements::{Requirement, Requirements, ValueSet};
use scarpenter_core::snapshot::{Bits, Selection};

use super::rules::{Case, Table};
use crate::words::{count, list, said};

/// So many examples of what there is are named.
const EXAMPLES: usize = 5;
/// So many values are few enough to name all of them: the nearest may be far from what was meant.
const LISTED: usize = 12;

/// A label that offerings carry.
pub(super) fn of_offering(table: &Table<'_, '_>, before: &[Case<'_, '_>], key: &str) -> String {
    let sets: Vec<&ValueSet> = before.iter().filter_map(|case| case.term.get(key)).collect();
    let Some(set) = sets.first() else { return format!("{key} leaves nothing") };
    if set.is_empty() {
        return contradiction(table, key);
    }
    if let Some(unknown) = unknown_values(table, key, &sets) {
        return unknown;
    }
    let left = table.left;
    let asked = said(key, set);
    let of_all = table.pass.market.snapshot.select(&only(key, set));
    if set.listed().is_some() && table.pass.market.snapshot.count(&of_all) == 0 {
        return format!("{asked} is in the catalog, but nobody offers it at a known price");
    }
    let values = Values::of(table, before, key);
    if set.is_bounded() {
        let lines = own_lines(table, key).join(" and ");
        return format!("none of the {} left has {lines}: {}", count(left, "offering"), values.numbers());
    }
    let hint = sellers(table, key, &of_all).unwrap_or_else(|| values.examples());
    format!("none of the {} left has {asked}{hint}", count(left, "offering"))
}

/// Who sells the type that was asked for.
fn sellers(table: &Table<'_, '_>, key: &str, of_all: &Selection) -> Option<String> {
    let types = table.pass.market.snapshot.types();
    let vendors: BTreeSet<&str> = of_all.types.iter().map(|index| types[index].vendor.as_str()).collect();
    let vendors: Vec<&str> = vendors.into_iter().collect();
    (key == label::INSTANCE_TYPE && vendors.len() <= EXAMPLES)
        .then(|| format!("; it is sold by {}", vendors.join(", ")))
}

fn only(key: &str, set: &ValueSet) -> Requirements {
    let mut out = Requirements::new();
    out.require(key, set.clone());
    out
}

/// The pod's own lines about a key.
pub(super) fn own_lines(table: &Table<'_, '_>, key: &str) -> Vec<String> {
    let selector = table.asked.pod.node_selector.get(key);
    let selector = selector.map(|value| format!("nodeSelector {key}: {value}"));
    let lines = table.asked.pod.required_terms.iter().flatten().filter(|line| line.key == key);
    selector.into_iter().chain(lines.map(Requirement::to_string)).collect()
}

/// What to say when they exclude each other.
fn contradiction(table: &Table<'_, '_>, key: &str) -> String {
    match own_lines(table, key).as_slice() {
        [one] => format!("`{one}` can never hold"),
        several => format!("`{}` can never hold together", several.join("` and `")),
    }
}

/// Values of a known key that nothing in the catalog has, with those that something has: all, or the nearest to each.
fn unknown_values(table: &Table<'_, '_>, key: &str, sets: &[&ValueSet]) -> Option<String> {
    if key == label::PRICE {
        return None;
    }
    let known = table.pass.market.snapshot.known_values(key);
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    for set in sets {
        asked.extend(set.listed()?.iter().map(String::as_str));
    }
    if asked.is_empty() || asked.iter().any(|value| known.binary_search(value).is_ok()) {
        return None;
    }
    if known.is_empty() {
        return Some(format!("nothing in the catalog has a value of {key}"));
    }
    let is_short = known.len() <= LISTED;
    let hints = asked.iter().take(EXAMPLES).map(|value| match nearest(value, known.iter().copied()) {
        Some(near) if !is_short => format!("{value} (nearest: {near})"),
        _ => (*value).to_owned(),
    });
    let all = if is_short { format!(" (known: {})", known.join(", ")) } else { String::new() };
    Some(format!("nothing in the catalog has {key} {}{all}", list(&hints.collect::<Vec<_>>())))
}

/// Values of a label over the offerings that were left.
struct Values {
    missing: usize,
    range: Option<(i64, i64)>,
    some: BTreeSet<String>,
}

impl Values {
    fn of(table: &Table<'_, '_>, before: &[Case<'_, '_>], key: &str) -> Self {
        let snapshot = table.pass.market.snapshot;
        let mut out = Self { missing: 0, range: None, some: BTreeSet::new() };
        let mut seen = Bits::none(snapshot.len());
        for id in before.iter().flat_map(|case| case.left.ids(snapshot)) {
            if seen.contains(id.index()) {
                continue;
            }
            seen.insert(id.index());
            let value = snapshot.offering(id).label(key);
            match (&value, value.as_ref().and_then(|value| value.parse().ok())) {
                (None, _) => out.missing += 1,
                (_, Some(number)) => {
                    let (least, most) = out.range.unwrap_or((number, number));
                    out.range = Some((least.min(number), most.max(number)));
                }
                _ => {}
            }
            if out.some.len() <= EXAMPLES
                && let Some(value) = value
            {
                out.some.insert(value.into_owned());
            }
        }
        out
    }

    fn numbers(&self) -> String {
        let missing = match self.missing {
            0 => String::new(),
            1 => "1 has no value".to_owned(),
            many => format!("{many} have no value"),
        };
        let Some((least, most)) = self.range else { return missing };
        let others = if self.missing == 0 { "they are" } else { ", the others are" };
        format!("{missing}{others} between {least} and {most}")
    }

    fn examples(&self) -> String {
        let some: Vec<&str> = self.some.iter().take(EXAMPLES).map(String::as_str).collect();
        let more = if self.some.len() > EXAMPLES { ", …" } else { "" };
        if some.is_empty() { String::new() } else { format!("; they have {}{more}", some.join(", ")) }
    }
}

/// A label that no offering carries.
pub(super) fn of_pool(table: &Table<'_, '_>, key: &str) -> String {
    let set = table.asked.terms.iter().find_map(|term| term.get(key));
    if set.is_some_and(ValueSet::is_empty) {
        return contradiction(table, key);
    }
    let asked = set.map(|set| said(key, set)).unwrap_or_default();
    let grounds = &table.pass.grounds;
    let defined = grounds.iter().filter_map(|ground| {
        let own = ground.requirements.get(key)?;
        Some(format!("NodePool {} has {}", ground.pool.name, said(key, own)))
    });
    let defined: Vec<String> = defined.collect();
    if !defined.is_empty() {
        return format!("no NodePool allows {asked}: {}", defined.join(", "));
    }
    if [label::HOSTNAME, label::REGISTERED, label::INITIALIZED].contains(&key) {
        return format!("a machine that is still to be bought has no {key}: do not select on it");
    }
    let own = grounds.iter().flat_map(|ground| ground.requirements.iter().map(|(key, _)| key));
    let benchmarks: Vec<String> =
        label::BENCHMARKS.iter().map(|name| format!("{}{name}", label::BENCHMARK_PREFIX)).collect();
    let known = label::WELL_KNOWN.into_iter().chain(own).chain(benchmarks.iter().map(String::as_str));
    let near = nearest(key, known).unwrap_or_default();
    format!(
        "no machine will have the label {key}, and no NodePool defines it; the nearest known label is {near}"
    )
}
