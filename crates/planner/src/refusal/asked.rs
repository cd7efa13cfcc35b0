//! What a pod asks for, and what each rule asks of offerings, in words.

use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::label;
use scarpenter_core::offering::Price;
use scarpenter_core::pod::{Pod, Taint, TaintEffect, Toleration};
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::resources::MICRO_USD_PER_HOUR;
use scarpenter_core::snapshot::Snapshot;

use super::rules::Table;
use super::{Verdict, labels};
use crate::ground::Ground;
use crate::shape::{self, Shape};
use crate::words::{self, amount, list, said};
use crate::{Input, Kind};

/// What a pod asks for, as the rules look at it.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'p> {
    pub(crate) pod: &'p Pod,
    /// What must hold: alternatives.
    pub(crate) terms: Vec<Requirements>,
    pub(crate) need: &'p [i64],
    /// Whether only one type by name will do, so that all of a machine may be asked for.
    pub(super) exact: bool,
    pub(crate) tolerations: &'p [Toleration],
    /// Where its volumes are: alternatives.
    pub(super) volumes: Vec<Requirements>,
    /// What its rules about other pods allow.
    pub(super) verdicts: &'p [Verdict],
    /// Kinds of machines that did not take it.
    pub(super) unfit: Option<&'p BTreeMap<Kind, String>>,
    /// What it would like, by weight, heaviest first.
    pub(super) preferences: Vec<(i64, Requirements)>,
    pub(super) strict_min_values: bool,
    /// A rule that is left out, to see what it costs.
    skipped: Option<String>,
}

impl<'p> Asked<'p> {
    pub(crate) fn new(input: &Input<'p>, pod: &'p Pod, shape: &'p Shape, verdicts: &'p [Verdict]) -> Self {
        let volumes = pod.volume_terms.iter().filter_map(|term| Requirements::from_list(term).ok());
        Self {
            pod,
            terms: shape.profile.terms.clone(),
            need: &shape.need,
            exact: shape.profile.exact,
            tolerations: &pod.tolerations,
            volumes: volumes.collect(),
            verdicts,
            unfit: input.lessons.unfit.get(&pod.uid),
            preferences: if input.rules.respect_preferences { shape::preferences(pod) } else { Vec::new() },
            strict_min_values: input.rules.strict_min_values,
            skipped: None,
        }
    }

    /// The same but for one rule.
    pub(super) fn without(&self, rule: &str) -> Self {
        let mut out = self.clone();
        for term in &mut out.terms {
            let keys: Vec<String> = term.iter().map(|(key, _)| key.to_owned()).collect();
            for key in keys.iter().filter(|key| words::rule(key) == rule) {
                term.remove(key);
            }
        }
        out.exact &= rule != words::rule(label::INSTANCE_TYPE);
        out.skipped = Some(rule.to_owned());
        out
    }

    pub(super) fn skips(&self, rule: &str) -> bool {
        self.skipped.as_deref() == Some(rule)
    }
}

/// Distinct words, joined.
fn joined(words: impl Iterator<Item = String>, between: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join(between)
}

fn each_pool(table: &Table<'_, '_>, say: impl Fn(&Ground<'_>) -> Option<String>) -> String {
    joined(table.pass.grounds.iter().filter_map(say), "; ")
}

pub(super) fn label(table: &Table<'_, '_>, key: &str) -> String {
    // Bounds are told as they were written.
    if table.asked.terms.iter().filter_map(|term| term.get(key)).any(ValueSet::is_bounded) {
        return joined(labels::own_lines(table, key).into_iter(), " and ");
    }
    joined(table.asked.terms.iter().filter_map(|term| Some(said(key, term.get(key)?))), " or ")
}

pub(super) fn broken(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| ground.broken.clone())
}

pub(super) fn class_vendor(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| {
        let vendors = ground.class.vendors.iter().map(|(vendor, regions)| {
            let regions: Vec<&str> = regions.iter().map(String::as_str).collect();
            if regions.is_empty() { vendor.to_string() } else { format!("{vendor} ({})", regions.join(", ")) }
        });
        let vendors: Vec<String> = vendors.collect();
        let class = &ground.class.name;
        ground.broken.is_none().then(|| format!("ScarpenterNodeClass {class} uses {}", vendors.join(", ")))
    })
}

pub(super) fn pool_requirements(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| {
        let carried = ground.requirements.iter().filter(|(key, _)| Snapshot::carries(key));
        let lines: Vec<String> = carried.map(|(key, set)| said(key, set)).collect();
        (!lines.is_empty()).then(|| format!("NodePool {} takes {}", ground.pool.name, lines.join(" and ")))
    })
}

pub(super) fn only_on_demand(table: &Table<'_, '_>) -> String {
    let named = table.asked.terms.iter().all(|term| term.get(label::CAPACITY_TYPE).is_some());
    each_pool(table, |ground| {
        (ground.on_demand_by_default && !named).then(|| {
            format!("NodePool {} and the pod do not name {}", ground.pool.name, label::CAPACITY_TYPE)
        })
    })
}

/// Taints of pools that would rather not take the pod.
pub(super) fn avoided(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| {
        let tolerations = table.asked.tolerations;
        let own = ground.taints().iter().filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
        let mut refusing = own.filter(|taint| !tolerations.iter().any(|toleration| toleration.covers(taint)));
        refusing.next().map(|taint| format!("NodePool {} has {taint}, so it comes last", ground.pool.name))
    })
}

pub(super) fn host_ports(table: &Table<'_, '_>) -> String {
    let names = &table.pass.names;
    let taken = names.ports().filter(|at| table.asked.need[*at] > 0);
    joined(taken.map(|at| names.name(at).to_owned()), ", ")
}

pub(super) fn taints(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| {
        let taints: Vec<String> = ground.taints().iter().map(Taint::to_string).collect();
        (!taints.is_empty()).then(|| format!("NodePool {} has {}", ground.pool.name, taints.join(", ")))
    })
}

pub(super) fn volume(table: &Table<'_, '_>) -> String {
    let lines = table.asked.volumes.iter().map(|term| {
        let lines: Vec<String> = term.iter().map(|(key, set)| said(key, set)).collect();
        lines.join(" and ")
    });
    format!("the pod's volumes are at {}", joined(lines, " or "))
}

pub(super) fn vendors(table: &Table<'_, '_>) -> String {
    let words = |(vendor, why): (_, &String)| format!("vendor {vendor} cannot be used now: {why}");
    joined(table.pass.market.vendors.iter().map(words), "; ")
}

pub(super) fn capacity(table: &Table<'_, '_>) -> String {
    let beside = table.pass.grounds.iter().any(Ground::has_daemons);
    format!("room for {}{}", table.asked.pod.requests, if beside { " beside the daemon pods" } else { "" })
}

pub(super) fn unfit(table: &Table<'_, '_>) -> String {
    let kinds: BTreeSet<&str> = table
        .asked
        .unfit
        .iter()
        .flat_map(|unfit| unfit.keys())
        .map(|kind| kind.instance_type.as_str())
        .collect();
    let kinds: Vec<String> = kinds.into_iter().map(str::to_owned).collect();
    format!("machines that were bought for this pod and did not take it: {}", list(&kinds))
}

pub(super) fn min_values(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| {
        let lines = ground
            .requirements
            .iter()
            .filter_map(|(key, set)| Some(format!("{} values of {key}", set.min_values()?)));
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty())
            .then(|| format!("NodePool {} wants at least {}", ground.pool.name, lines.join(" and ")))
    })
}

pub(super) fn limits(table: &Table<'_, '_>) -> String {
    each_pool(table, |ground| {
        let limits = ground.pool.limits.iter().filter_map(|(name, limit)| {
            let at = table.pass.names.position(name)?;
            let named = if name == MICRO_USD_PER_HOUR { String::new() } else { format!("{name} ") };
            Some(format!("{named}{} of {}", amount(name, ground.left[at].max(0)), amount(name, limit)))
        });
        let limits: Vec<String> = limits.collect();
        let pool = &ground.pool.name;
        (!limits.is_empty()).then(|| format!("the limits of NodePool {pool} leave {}", limits.join(" and ")))
    })
}

pub(super) fn caps(table: &Table<'_, '_>) -> String {
    let caps = &table.pass.caps;
    let machines = caps.machines.map(|left| format!("--max-machines leaves {left}"));
    let money =
        caps.micro_usd.map(|left| format!("--max-usd-per-hour leaves {}", Price::from_micro_usd(left)));
    joined(machines.into_iter().chain(money), ", ")
}

pub(super) fn preferences(table: &Table<'_, '_>) -> String {
    let lines = table.asked.preferences.iter().map(|(weight, wish)| {
        let lines: Vec<String> = wish.iter().map(|(key, set)| said(key, set)).collect();
        format!("{} (weight {weight})", lines.join(" and "))
    });
    format!("the pod prefers {}", joined(lines, ", then "))
}
