use std::collections::BTreeMap;

use scarpenter_core::label;
use scarpenter_core::requirements::ValueSet;

use super::{Demand, Reach, Rule, Topology};
use crate::refusal::Verdict;

impl Topology<'_> {
    /// What each rule that must hold leaves of its label for a new machine, with the counts, for a person.
    ///
    /// A rule that any new machine meets, since it is a domain of its own, is left out.
    pub(crate) fn verdicts(&self, demand: &Demand, reach: &Reach) -> Vec<Verdict> {
        let mut out: Vec<Verdict> = self.repelled(demand).into_iter().collect();
        for rule in &demand.required {
            let mut narrowed = BTreeMap::new();
            let possible = self.narrow_by(rule, reach, &mut narrowed);
            for (key, counts) in self.counts(rule) {
                let at = self.groups.keys().iter().position(|own| *own == key);
                let allowed = at.and_then(|at| narrowed.remove(&at));
                let is_host = key == label::HOSTNAME;
                let allowed = if is_host {
                    (!possible).then(|| ValueSet::one_of(held(&counts)))
                } else {
                    allowed.or_else(|| (!possible).then(ValueSet::present))
                };
                let detail = detail(rule);
                out.extend(allowed.map(|allowed| Verdict {
                    rule: rule.reason(),
                    key,
                    allowed,
                    counts,
                    detail,
                }));
            }
        }
        out
    }

    /// What the anti-affinity of pods that are placed keeps the pod away from.
    fn repelled(&self, demand: &Demand) -> Vec<Verdict> {
        let mut by_key: BTreeMap<usize, BTreeMap<String, u32>> = BTreeMap::new();
        for group in demand.matched.iter().map(|id| self.groups.get(*id)) {
            for domain in 0..self.sites.known(group.key) {
                let owners = group.owners_in(domain);
                if owners > 0 {
                    let value = self.sites.value(group.key, domain).to_owned();
                    *by_key.entry(group.key).or_default().entry(value).or_default() += owners;
                }
            }
        }
        let keys = self.groups.keys();
        let of_machines = by_key.into_iter().filter(|(key, _)| keys[*key] != label::HOSTNAME);
        let verdict = |(key, counts): (usize, BTreeMap<String, u32>)| Verdict {
            rule: "pod-anti-affinity",
            key: keys[key].to_owned(),
            allowed: ValueSet::none_of(counts.keys().cloned()),
            counts: counts.into_iter().collect(),
            detail: "of other pods, which keep this one away".to_owned(),
        };
        of_machines.map(verdict).collect()
    }
}

fn held(counts: &[(String, u32)]) -> Vec<String> {
    counts.iter().filter(|(_, pods)| *pods > 0).map(|(value, _)| value.clone()).collect()
}

fn detail(rule: &Rule) -> String {
    match rule {
        Rule::Spread { max_skew, min_domains, .. } => {
            let least = min_domains.map(|least| format!(", minDomains {least}")).unwrap_or_default();
            format!("maxSkew {max_skew}{least}")
        }
        Rule::Near { .. } | Rule::Apart { .. } => String::new(),
    }
}
