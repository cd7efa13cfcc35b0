//! What to say of rules that place pods by where other pods are.

use std::collections::BTreeSet;

use scarpenter_core::label;
use scarpenter_core::requirements::ValueSet;

use super::rules::{Case, Table};
use crate::words::{count, list};

/// So many domains are named.
const NAMED: usize = 6;

/// What one rule about other pods leaves of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// `spread`, `pod-affinity` or `pod-anti-affinity`.
    pub(crate) rule: &'static str,
    /// The label whose values are the domains.
    pub(crate) key: String,
    /// Values where one more such pod may go.
    pub(crate) allowed: ValueSet,
    /// Domains, with how many matching pods each holds.
    pub(crate) counts: Vec<(String, u32)>,
    /// What else it says, such as `maxSkew 1`.
    pub(crate) detail: String,
}

impl Verdict {
    /// As the pod's spec calls it.
    fn name(&self) -> String {
        let what = match self.rule {
            "spread" => "topologySpreadConstraint",
            "pod-affinity" => "podAffinity",
            _ => "podAntiAffinity",
        };
        let detail = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        format!("{what} on {}{detail}", self.key)
    }

    /// `matching pods by zone: a 2, b 0`.
    fn counted(&self) -> String {
        let domain = if self.key == label::HOSTNAME { "node" } else { short(&self.key) };
        if self.counts.iter().all(|(_, pods)| *pods == 0) {
            return "no pod matches anywhere".to_owned();
        }
        let named: Vec<String> =
            self.counts.iter().take(NAMED).map(|(value, pods)| format!("{value} {pods}")).collect();
        let more = self.counts.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("matching pods by {domain}: {}{more}", named.join(", "))
    }

    fn to_change(&self) -> &'static str {
        match self.rule {
            "spread" => {
                "allow offerings in another domain, raise maxSkew, or set whenUnsatisfiable: ScheduleAnyway"
            }
            "pod-affinity" => "start a pod that it may be near, or make the term a preferred one",
            _ => "allow offerings in another domain, or make the term a preferred one",
        }
    }
}

/// The last part of a key: `zone` of `topology.kubernetes.io/zone`.
fn short(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// What the rule asks, with the counts.
pub(super) fn asked(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.name(), verdict.counted())
}

/// What to say when it leaves nothing.
pub(super) fn refused(table: &Table<'_, '_>, before: &[Case<'_, '_>], verdict: &Verdict) -> String {
    let allowed = match allowed(&verdict.allowed) {
        Some(values) => format!("one more may go only to {values}"),
        None => "no domain may take one more".to_owned(),
    };
    let there = there(table, before, verdict);
    format!("{}; {allowed}{there}; {}", asked(verdict), verdict.to_change())
}

fn allowed(set: &ValueSet) -> Option<String> {
    match set.listed() {
        Some(values) if values.is_empty() => None,
        Some(values) => Some(list(&some(values.iter().map(String::as_str)))),
        None => {
            let excluded = set.excluded()?;
            Some(if excluded.is_empty() {
                "any other".to_owned()
            } else {
                format!("others than {}", list(&some(excluded.iter().map(String::as_str))))
            })
        }
    }
}

/// Where the offerings are that were left.
fn there(table: &Table<'_, '_>, before: &[Case<'_, '_>], verdict: &Verdict) -> String {
    if verdict.key == label::HOSTNAME {
        return ", and a machine that is still to be bought is a domain of its own".to_owned();
    }
    let snapshot = table.pass.market.snapshot;
    let mut values: BTreeSet<String> = BTreeSet::new();
    for id in before.iter().flat_map(|case| case.left.ids(snapshot)) {
        if let Some(value) = snapshot.offering(id).label(&verdict.key) {
            values.insert(value.into_owned());
        }
    }
    let left = count(table.left, "offering");
    if values.is_empty() {
        return format!(", and none of the {left} left has the label");
    }
    format!(", and the {left} left are in {}", list(&some(values.iter().map(String::as_str))))
}

/// The first few, and how many more.
fn some<'v>(values: impl Iterator<Item = &'v str>) -> Vec<String> {
    let all: Vec<String> = values.map(str::to_owned).collect();
    let more = all.len().saturating_sub(NAMED);
    let named = all.into_iter().take(NAMED);
    named.chain((more > 0).then(|| format!("{more} more"))).collect()
}
