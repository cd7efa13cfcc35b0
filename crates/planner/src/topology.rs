//! Where other pods are: counts by domain for spread, affinity and anti-affinity, as the kube-scheduler keeps them.
//!
//! A group counts the pods that some rule looks at; equal rules share one.
//! A site is a node, or a claim of this pass; what it counts as is known by the labels it has or will have.
//! All groups are known before the first pod is placed, so a pod is counted once, where it lands.

mod demand;
mod groups;
mod reach;
mod sites;
mod verdicts;

use std::collections::BTreeMap;
use std::rc::Rc;

use scarpenter_core::label;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::pod::Pod;
use scarpenter_core::requirements::{BadRequirement, ValueSet};

use crate::Input;
use crate::market::Market;
use crate::places::runs_on;
use crate::shape::Shape;

pub(crate) use demand::{Demand, Rule, SpreadKeys};
use groups::{Group, GroupId, Groups};
pub(crate) use reach::Reach;
pub(crate) use sites::Place;
use sites::{DomainId, Sites};

/// Position of a site: nodes as the input lists them, then claims as they are made.
pub(crate) type SiteId = usize;

/// All that is counted in a pass.
#[derive(Debug)]
pub(crate) struct Topology<'a> {
    groups: Groups<'a>,
    sites: Sites<'a>,
    /// Daemons that some rule counts or that keep others away, by position in the input.
    residents: BTreeMap<usize, Resident>,
}

/// A daemon that matters to rules wherever it runs.
#[derive(Debug)]
struct Resident {
    matched: Rc<[GroupId]>,
    repelled: Vec<GroupId>,
}

/// What a pod's rules come to as counts stand now, so that many sites are judged quickly.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// Groups whose owners keep the pod away.
    repelled: Vec<GroupId>,
    checks: Vec<Check>,
}

#[derive(Debug)]
enum Check {
    /// The label is there, and no more pods than the skew allows.
    AtMost(GroupId, Skew),
    /// The label is there, and a pod.
    Some(GroupId),
    /// The label is there.
    Present(GroupId),
    /// No pod.
    None(GroupId),
}

/// A spread as counts stand.
#[derive(Clone, Copy, Debug)]
struct Skew {
    max: u32,
    /// How many more pods its domain counts with the pod.
    own: u32,
    emptiest: Emptiest,
}

/// How many pods the emptiest domains hold.
#[derive(Clone, Copy, Debug, Default)]
struct Emptiest {
    least: u32,
    /// How many domains hold no more than that.
    ties: usize,
    /// How many the emptiest of the others holds.
    next: Option<u32>,
    /// Whether it is that whatever happens.
    fixed: bool,
}

impl Emptiest {
    /// What it is once a domain that held `before` holds `after`.
    fn once(&self, before: u32, after: u32) -> u32 {
        if self.fixed || before > self.least || self.ties > 1 {
            return self.least;
        }
        self.next.map_or(after, |next| next.min(after))
    }
}

impl Skew {
    /// Whether a domain that holds so many takes the pod, when `coming` daemons will be there first.
    fn allows(&self, pods: u32, coming: u32) -> bool {
        let there = pods.saturating_add(coming);
        there.saturating_add(self.own) <= self.max.saturating_add(self.emptiest.once(pods, there))
    }
}

/// What a domain holds of a group.
#[derive(Clone, Copy, Debug)]
struct Held {
    pods: u32,
    /// Daemons of the group that will be there, too.
    coming: u32,
    /// Pods that keep those of the group away, such daemons included.
    owners: u32,
}

impl Judgement {
    /// Whether a place will do; `held` says what its domain holds, where it has the label.
    fn holds(&self, held: impl Fn(GroupId) -> Option<Held>) -> bool {
        let repelled = self.repelled.iter().any(|id| held(*id).is_some_and(|held| held.owners > 0));
        let pods = |id: GroupId| held(id).map(|held| held.pods.saturating_add(held.coming));
        let holds = |check: &Check| match check {
            Check::AtMost(id, skew) => held(*id).is_some_and(|held| skew.allows(held.pods, held.coming)),
            Check::Some(id) => pods(*id).is_some_and(|pods| pods > 0),
            Check::Present(id) => pods(*id).is_some(),
            Check::None(id) => pods(*id).is_none_or(|pods| pods == 0),
        };
        !repelled && self.checks.iter().all(holds)
    }
}

impl<'a> Topology<'a> {
    /// Counts what is there.
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let groups = Groups::new(input);
        let sites = Sites::new(groups.keys(), groups.filters());
        let mut out = Self { groups, sites, residents: BTreeMap::new() };
        if out.is_empty() {
            return out;
        }
        for (at, daemon) in input.daemons.iter().enumerate() {
            let matched = out.groups.matched(&daemon.pod.key.namespace, &daemon.pod.labels);
            let repelled = out.groups.repelled_by(&daemon.pod);
            if !matched.is_empty() || !repelled.is_empty() {
                out.residents.insert(at, Resident { matched, repelled });
            }
        }
        for node in input.nodes {
            let site = out.sites.add(node);
            for pod in &node.pods {
                out.count_present(site, pod);
            }
            let coming = |(at, daemon): (usize, &Daemon)| {
                (runs_on(&daemon.pod, node) && !runs_already(&daemon.pod, node)).then_some(at)
            };
            let coming: Vec<usize> = input.daemons.iter().enumerate().filter_map(coming).collect();
            out.count_residents(site, &coming);
        }
        out
    }

    /// Which of some daemons matter to rules.
    pub(crate) fn counted(&self, daemons: Vec<usize>) -> Vec<usize> {
        daemons.into_iter().filter(|at| self.residents.contains_key(at)).collect()
    }

    /// Whether any daemon matters to rules.
    pub(crate) fn has_residents(&self) -> bool {
        !self.residents.is_empty()
    }

    /// Counts daemons where they run, or will.
    pub(crate) fn count_residents(&mut self, site: SiteId, daemons: &[usize]) {
        for resident in daemons.iter().filter_map(|at| self.residents.get(at)) {
            for group in resident.matched.iter() {
                self.groups.count(*group, site, &self.sites);
            }
            for group in &resident.repelled {
                self.groups.own(*group, site, &self.sites);
            }
        }
    }

    /// Whether no pod's place depends on another's.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// What a pod asks of where others are, and what is asked of it; `None` when nothing.
    ///
    /// # Errors
    /// [`BadRequirement`] when one of its selectors is malformed.
    pub(crate) fn demand(&mut self, pod: &'a Pod) -> Result<Option<Rc<Demand>>, BadRequirement> {
        if self.is_empty() { Ok(None) } else { Ok(self.groups.demand(pod)?.map(Rc::new)) }
    }

    fn count_present(&mut self, site: SiteId, pod: &Pod) {
        for group in self.groups.matched(&pod.key.namespace, &pod.labels).iter() {
            self.groups.count(*group, site, &self.sites);
        }
        for group in self.groups.repelled_by(pod) {
            self.groups.own(group, site, &self.sites);
        }
    }

    /// Makes a site for a new claim.
    pub(crate) fn add(&mut self, place: &impl Place) -> SiteId {
        if self.is_empty() { 0 } else { self.sites.add(place) }
    }

    /// Takes note that a claim without counted pods will be another machine.
    pub(crate) fn change(&mut self, site: SiteId, place: &impl Place) {
        if !self.is_empty() {
            self.sites.change(site, place);
        }
    }

    /// Counts a pod where it lands.
    pub(crate) fn settle(&mut self, demand: &Demand, site: SiteId) {
        for group in demand.matched.iter() {
            self.groups.count(*group, site, &self.sites);
        }
        for group in demand.repelled() {
            self.groups.own(group, site, &self.sites);
        }
    }

    /// Domains that machines for a pod could be in, by the keys that it is spread over.
    pub(crate) fn reach(&self, market: &Market<'_>, shape: &Shape, over: &SpreadKeys) -> Reach {
        let names =
            |keys: &[usize]| -> Vec<&str> { keys.iter().map(|key| self.groups.keys()[*key]).collect() };
        let (required, wished) = (names(&over.required), names(&over.wished));
        let wished: Vec<&str> = wished.into_iter().filter(|key| !required.contains(key)).collect();
        Reach::new(market, shape, &required, &required).and(Reach::new(market, shape, &[], &wished))
    }

    /// What the rules come to while so many of the wishes hold.
    pub(crate) fn judge(&self, demand: &Demand, soft: usize, reach: &Reach) -> Judgement {
        let mut checks = Vec::new();
        for rule in demand.rules(soft) {
            match rule {
                Rule::Spread { group, max_skew, min_domains, own } => {
                    let emptiest = self.emptiest(self.groups.get(*group), *min_domains, reach);
                    checks
                        .push(Check::AtMost(*group, Skew { max: *max_skew, own: u32::from(*own), emptiest }));
                }
                Rule::Near { groups, .. } if self.is_first(rule) => {
                    checks.extend(groups.iter().map(|group| Check::Present(*group)));
                }
                Rule::Near { groups, .. } => checks.extend(groups.iter().map(|group| Check::Some(*group))),
                Rule::Apart { group } => checks.push(Check::None(*group)),
            }
        }
        let repelled = demand.matched.iter().copied().filter(|id| self.keeps_away(*id)).collect();
        Judgement { repelled, checks }
    }

    /// Whether the pod may go to a site.
    pub(crate) fn admits(&self, judgement: &Judgement, site: SiteId) -> bool {
        let count = |id: GroupId| {
            let group = self.groups.get(id);
            self.sites.domain(site, group.key).map(|domain| Held {
                pods: group.pods_in(domain),
                coming: 0,
                owners: group.owners_in(domain),
            })
        };
        judgement.holds(count)
    }

    /// Whether the pod may go to a machine that is still to be bought, beside these daemons.
    pub(crate) fn admits_new(&self, judgement: &Judgement, place: &impl Place, daemons: &[usize]) -> bool {
        let residents = || daemons.iter().filter_map(|at| self.residents.get(at));
        let count = |id: GroupId| {
            let group = self.groups.get(id);
            let value = place.label(self.groups.keys()[group.key])?;
            let (pods, owners) = match self.sites.find(group.key, &value) {
                Some(domain) => (group.pods_in(domain), group.owners_in(domain)),
                None => (0, 0),
            };
            let matched = residents().filter(|resident| resident.matched.contains(&id)).count();
            let repelling = residents().filter(|resident| resident.repelled.contains(&id)).count();
            let more = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            Some(Held { pods, coming: more(matched), owners: owners.saturating_add(more(repelling)) })
        };
        judgement.holds(count)
    }

    /// Whether anything keeps the pods of a group away, or a daemon will.
    fn keeps_away(&self, id: GroupId) -> bool {
        self.groups.get(id).has_owners()
            || self.residents.values().any(|resident| resident.repelled.contains(&id))
    }

    /// Whether a pod with this rule may be the first of those that it looks for.
    fn is_first(&self, rule: &Rule) -> bool {
        let Rule::Near { groups, own } = rule else { return false };
        *own && groups.iter().all(|id| self.groups.get(*id).total == 0)
    }

    /// How many pods a domain may hold with one more.
    fn most(&self, group: GroupId, max_skew: u32, min_domains: Option<u32>, reach: &Reach) -> u32 {
        max_skew.saturating_add(self.emptiest(self.groups.get(group), min_domains, reach).least)
    }

    /// How many pods the emptiest domains of a spread hold.
    ///
    /// Every host may get a neighbour that is empty, so for host names it is always none.
    fn emptiest(&self, group: &Group, min_domains: Option<u32>, reach: &Reach) -> Emptiest {
        let none = Emptiest { fixed: true, ..Emptiest::default() };
        let key = self.groups.keys()[group.key];
        let Some(filter) = group.filter.filter(|_| key != label::HOSTNAME) else { return none };
        let is_there = |domain: &DomainId| {
            self.sites.eligible_in(filter, group.key, *domain) > 0
                || reach.contains(key, self.sites.value(group.key, *domain))
        };
        let unseen = reach.count(key, |value| self.sites.find(group.key, value).is_none());
        let seen = (0..self.sites.known(group.key)).filter(is_there).map(|domain| group.pods_in(domain));
        let mut counts: Vec<u32> = seen.chain(std::iter::repeat_n(0, unseen)).collect();
        counts.sort_unstable();
        let Some(least) = counts.first().copied() else { return Emptiest::default() };
        if min_domains.is_some_and(|wanted| counts.len() < wanted as usize) {
            return none;
        }
        let ties = counts.iter().take_while(|count| **count == least).count();
        Emptiest { least, ties, next: counts.get(ties).copied(), fixed: false }
    }

    /// What the rules leave of each label for a machine that is bought for the pod; `None` when no machine will do.
    pub(crate) fn narrow(
        &self,
        demand: &Demand,
        soft: usize,
        reach: &Reach,
    ) -> Option<Vec<(&'a str, ValueSet)>> {
        let mut out = BTreeMap::new();
        for group in demand.matched.iter().map(|id| self.groups.get(*id)).filter(|group| group.has_owners()) {
            self.exclude(&mut out, group.key, |domain| group.owners_in(domain) > 0);
        }
        if !demand.rules(soft).all(|rule| self.narrow_by(rule, reach, &mut out)) {
            return None;
        }
        let keys = self.groups.keys();
        Some(out.into_iter().map(|(key, set)| (keys[key], set)).collect())
    }

    /// Whether a new machine can meet the rule at all; a host name is always new.
    fn narrow_by(&self, rule: &Rule, reach: &Reach, out: &mut BTreeMap<usize, ValueSet>) -> bool {
        let is_host = |group: &Group| self.groups.keys()[group.key] == label::HOSTNAME;
        match rule {
            Rule::Spread { group: id, max_skew, min_domains, own } => {
                let group = self.groups.get(*id);
                if is_host(group) {
                    return u32::from(*own) <= *max_skew;
                }
                let most = self.most(*id, *max_skew, *min_domains, reach);
                require(out, group.key, ValueSet::present());
                self.exclude(out, group.key, |domain| group.pods_in(domain) + u32::from(*own) > most);
                u32::from(*own) <= most
            }
            Rule::Near { groups, .. } => {
                let first = self.is_first(rule);
                let mut possible = true;
                for group in groups.iter().map(|id| self.groups.get(*id)) {
                    if is_host(group) {
                        possible &= first;
                    } else if first {
                        require(out, group.key, ValueSet::present());
                    } else {
                        let domains = 0..self.sites.known(group.key);
                        let held = domains.filter(|domain| group.pods_in(*domain) > 0);
                        let held = held.map(|domain| self.sites.value(group.key, domain));
                        require(out, group.key, ValueSet::one_of(held));
                        possible &= group.total > 0;
                    }
                }
                possible
            }
            Rule::Apart { group } => {
                let group = self.groups.get(*group);
                self.exclude(out, group.key, |domain| group.pods_in(domain) > 0);
                true
            }
        }
    }

    fn exclude(&self, out: &mut BTreeMap<usize, ValueSet>, key: usize, taken: impl Fn(DomainId) -> bool) {
        if self.groups.keys()[key] == label::HOSTNAME {
            return;
        }
        let taken = (0..self.sites.known(key)).filter(|domain| taken(*domain));
        let values: Vec<&str> = taken.map(|domain| self.sites.value(key, domain)).collect();
        if !values.is_empty() {
            require(out, key, ValueSet::none_of(values));
        }
    }

    /// Keys by whose values pods are counted, host names aside.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.groups.keys().iter().copied().filter(|key| *key != label::HOSTNAME)
    }

    /// How many pods a rule counts in each domain that it knows of, for a person.
    fn counts(&self, rule: &Rule) -> Vec<(String, Vec<(String, u32)>)> {
        let of = |group: &Group| {
            let name = |domain| self.sites.value(group.key, domain).to_owned();
            let known = 0..self.sites.known(group.key);
            let counts: Vec<(String, u32)> =
                known.map(|domain| (name(domain), group.pods_in(domain))).collect();
            (self.groups.keys()[group.key].to_owned(), counts)
        };
        rule.groups().iter().map(|id| of(self.groups.get(*id))).collect()
    }
}

/// Whether a pod with all labels of the daemon's is there.
fn runs_already(daemon: &Pod, node: &Node) -> bool {
    node.pods.iter().any(|pod| {
        pod.key.namespace == daemon.key.namespace
            && daemon.labels.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
    })
}

fn require(out: &mut BTreeMap<usize, ValueSet>, key: usize, set: ValueSet) {
    match out.get_mut(&key) {
        Some(own) => *own = own.intersect(&set),
        None => drop(out.insert(key, set)),
    }
}
