//! How slowly types are taken off a list: adding one disturbs nothing, removing one replaces every node of it.
//!
//! All state is the list of pending removals; losing it only delays removals.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::lifecycle::Time;

use crate::select::{Selection, Verdict};
use crate::spec::Churn;

/// Why a list is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The interval is over.
    Scheduled,
    /// Somebody asked for it.
    Requested,
    /// The spec has changed: margin and count are passed over, the cap is not.
    Spec,
    /// The next batch of removals that only the cap held back.
    Step,
}

impl Pass {
    fn is_refresh(self) -> bool {
        matches!(self, Self::Scheduled | Self::Requested)
    }
}

/// A type that is to go.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: Time,
    /// How many refreshes in a row wanted it gone.
    pub refreshes: u32,
    /// Why.
    pub reason: String,
    /// By how much it misses, in percent; `None` where that is no number.
    pub margin: Option<f64>,
    /// It goes as soon as the cap allows.
    pub due: bool,
}

/// What is listed now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The list: all that is wanted, and what is held.
    pub emitted: BTreeSet<String>,
    /// What is to go, by name; part of the list still.
    pub pending: Vec<Pending>,
    /// More than half of the list is gone from the data, which rather means bad data: it is taken off by the cap.
    pub mass_disappearance: bool,
    /// The cap alone holds something back, so a step is to follow.
    pub step_follows: bool,
}

/// What is listed after a pass at `now`, where `current` is listed and `before` was pending.
#[must_use]
pub fn churn(
    pass: Pass,
    selection: &Selection<'_>,
    current: &BTreeSet<String>,
    before: &[Pending],
    rules: &Churn,
    now: Time,
) -> Outcome {
    let unwanted: Vec<(String, Verdict)> =
        current.iter().filter_map(|name| Some((name.clone(), selection.verdict(name)?))).collect();
    settle(pass, &selection.desired(), current, unwanted, before, rules, now)
}

/// The same, with the verdict on each type of `current` that is not in `desired`.
fn settle(
    pass: Pass,
    desired: &BTreeSet<String>,
    current: &BTreeSet<String>,
    unwanted: Vec<(String, Verdict)>,
    before: &[Pending],
    rules: &Churn,
    now: Time,
) -> Outcome {
    let gone = unwanted.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Gone(_))).count();
    let mass = gone * 2 > current.len();
    let mut emitted: BTreeSet<String> = desired.union(current).cloned().collect();
    let mut pending: BTreeMap<String, (Pending, bool)> = BTreeMap::new();
    for (name, verdict) in unwanted {
        let (reason, margin, is_gone) = match verdict {
            Verdict::Contradicted(_) => {
                emitted.remove(&name);
                continue;
            }
            Verdict::Gone(reason) => (reason, None, true),
            Verdict::Fails(reason, margin) => (reason, margin, false),
        };
        let known = before.iter().find(|entry| entry.name == name);
        let was_due = known.is_some_and(|entry| entry.due);
        let far = margin.is_none_or(|margin| margin > f64::from(rules.remove_margin_percent));
        if !(is_gone || was_due || pass == Pass::Spec || far) {
            continue;
        }
        let refreshes = known.map_or(0, |entry| entry.refreshes) + u32::from(pass.is_refresh());
        let entry = Pending {
            since: known.map_or(now, |entry| entry.since),
            refreshes,
            reason,
            margin,
            due: was_due || pass == Pass::Spec || refreshes >= rules.remove_after_refreshes,
            name: name.clone(),
        };
        pending.insert(name, (entry, is_gone));
    }
    let mut drop = |name: &str, pending: &mut BTreeMap<String, (Pending, bool)>| {
        emitted.remove(name);
        pending.remove(name);
    };
    if !mass {
        for name in due(&pending, |is_gone| is_gone) {
            drop(&name, &mut pending);
        }
    }
    let capped = due(&pending, |is_gone| !(is_gone && pass == Pass::Step));
    for name in capped.iter().take(rules.max_removals_per_refresh) {
        drop(name, &mut pending);
    }
    let waits = pending.values().any(|(entry, is_gone)| entry.due && !is_gone);
    Outcome {
        emitted,
        pending: pending.into_values().map(|(entry, _)| entry).collect(),
        mass_disappearance: mass,
        step_follows: waits && rules.max_removals_per_refresh > 0,
    }
}

/// Names of those that are due, in the order in which they go.
fn due(pending: &BTreeMap<String, (Pending, bool)>, of: impl Fn(bool) -> bool) -> Vec<String> {
    let mut list: Vec<&Pending> = pending
        .values()
        .filter(|(entry, is_gone)| entry.due && of(*is_gone))
        .map(|(entry, _)| entry)
        .collect();
    list.sort_by(|a, b| wider(a, b).then_with(|| (a.since, &a.name).cmp(&(b.since, &b.name))));
    list.into_iter().map(|entry| entry.name.clone()).collect()
}

fn wider(a: &Pending, b: &Pending) -> Ordering {
    let margin = |entry: &Pending| entry.margin.unwrap_or(f64::INFINITY);
    margin(b).total_cmp(&margin(a))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
