//! The rules one after another: what each removes, and at which nothing is left.

use std::collections::BTreeSet;

use scarpenter_core::label;
use scarpenter_core::offering::{CapacityType, Price};
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::snapshot::{Bits, OfferingId, Selection, Snapshot};

use super::{Asked, asked, labels, rest, topology};
use crate::explain::{Priced, RuleLine};
use crate::ground::Ground;
use crate::output::{Refusal, Removed};
use crate::pass::Pass;
use crate::shape::implied;
use crate::{tolerate, words};

/// One pool with one of the pod's alternatives, and what is left for it.
#[derive(Clone)]
pub(super) struct Case<'p, 'a> {
    /// `None` while no rule has looked at pools.
    pub(super) ground: Option<&'p Ground<'a>>,
    pub(super) term: &'p Requirements,
    pub(super) left: Left,
}

#[derive(Clone)]
pub(super) enum Left {
    Chosen(Selection),
    Listed(Vec<OfferingId>),
}

impl Left {
    pub(super) fn is_empty(&self, snapshot: &Snapshot) -> bool {
        match self {
            Self::Chosen(selection) => snapshot.first(selection, |_| true).is_none(),
            Self::Listed(ids) => ids.is_empty(),
        }
    }

    pub(super) fn ids<'l>(&'l self, snapshot: &'l Snapshot) -> Box<dyn Iterator<Item = OfferingId> + 'l> {
        match self {
            Self::Chosen(selection) => Box::new(snapshot.selected(selection)),
            Self::Listed(ids) => Box::new(ids.iter().copied()),
        }
    }

    fn clear(&mut self) {
        *self = Self::Listed(Vec::new());
    }

    pub(super) fn choose(&mut self, by: impl FnOnce(&mut Selection)) {
        if let Self::Chosen(selection) = self {
            by(selection);
        }
    }

    /// Keeps offerings whose label `key`, or lack of it, `set` allows.
    pub(super) fn narrow(&mut self, snapshot: &Snapshot, key: &str, set: &ValueSet) {
        match self {
            Self::Chosen(selection) => snapshot.narrow(selection, key, set),
            Self::Listed(ids) => ids.retain(|id| set.allows(snapshot.offering(*id).label(key).as_deref())),
        }
    }

    fn retain(&mut self, snapshot: &Snapshot, keep: impl Fn(OfferingId) -> bool) {
        *self = Self::Listed(self.ids(snapshot).filter(|id| keep(*id)).collect());
    }
}

/// The table while it grows.
pub(super) struct Table<'p, 'a> {
    pub(super) pass: &'p Pass<'a>,
    pub(super) asked: &'p Asked<'p>,
    pub(super) left: usize,
    pub(super) removed: Vec<Removed>,
    cases: Vec<Case<'p, 'a>>,
    /// Whether offerings are counted at each rule; where they are not, only the last count is made.
    counts: bool,
    /// Kept only for an explanation: prices cost time.
    lines: Option<Vec<RuleLine>>,
}

pub(super) type Step = Result<(), Box<Refusal>>;

impl<'p, 'a> Table<'p, 'a> {
    pub(super) fn new(pass: &'p Pass<'a>, asked: &'p Asked<'p>) -> Self {
        let everything = pass.market.snapshot.everything();
        let case = |term| Case { ground: None, term, left: Left::Chosen(everything.clone()) };
        let cases = asked.terms.iter().map(case).collect();
        let left = pass.market.snapshot.len();
        Self { pass, asked, cases, left, removed: Vec::new(), counts: true, lines: None }
    }

    /// A table without counts, which cost more than all else.
    pub(super) fn quick(pass: &'p Pass<'a>, asked: &'p Asked<'p>) -> Self {
        Self { counts: false, ..Self::new(pass, asked) }
    }

    /// A table that keeps a line for every rule.
    pub(super) fn recording(pass: &'p Pass<'a>, asked: &'p Asked<'p>) -> Self {
        Self { lines: Some(Vec::new()), ..Self::new(pass, asked) }
    }

    /// A line for every rule up to that which leaves nothing, and for what decides among the offerings that are left.
    pub(super) fn lines(mut self) -> Vec<RuleLine> {
        if self.run().is_ok() {
            self.rank();
        }
        self.lines.unwrap_or_default()
    }

    /// What the pod would get if it were alone, when any rule but those that are skipped holds.
    pub(super) fn outcome(mut self) -> Option<Priced> {
        self.run().ok()?;
        self.rank();
        self.cheapest()
    }

    pub(super) fn run(&mut self) -> Step {
        self.labels_of_offerings()?;
        let cases = self.cases.iter().flat_map(|case| {
            self.pass.grounds.iter().map(|ground| Case { ground: Some(ground), ..case.clone() })
        });
        self.cases = cases.collect();
        self.labels_of_pools()?;
        self.pools()?;
        self.places()?;
        self.machines()?;
        self.market()
    }

    /// What the pod asks of labels that offerings carry, vendor and type first.
    fn labels_of_offerings(&mut self) -> Step {
        let snapshot = self.pass.market.snapshot;
        for key in keys(&self.asked.terms, true) {
            self.step(
                words::rule(&key),
                |table| asked::label(table, &key),
                |case| {
                    let term = case.term;
                    if let Some(set) = term.get(&key) {
                        case.left.choose(|selection| snapshot.narrow(selection, &key, set));
                    }
                },
                |table, before| (labels::of_offering(table, before, &key), None),
            )?;
        }
        Ok(())
    }

    /// What it asks of labels that only a pool can give.
    fn labels_of_pools(&mut self) -> Step {
        for key in keys(&self.asked.terms, false) {
            self.step(
                words::rule(&key),
                |table| asked::label(table, &key),
                |case| {
                    if case.term.get(&key).is_some_and(|set| !may_have(case.ground, &key, set)) {
                        case.left.clear();
                    }
                },
                |table, _| (labels::of_pool(table, &key), None),
            )?;
        }
        Ok(())
    }

    fn pools(&mut self) -> Step {
        self.step_on(
            "node-class",
            asked::broken,
            |ground, case| {
                if ground.broken.is_some() {
                    case.left.clear();
                }
            },
            rest::broken,
        )?;
        self.step_on(
            "class-vendor",
            asked::class_vendor,
            |ground, case| {
                case.left.choose(|selection| selection.and(&ground.of_class));
            },
            rest::class_vendor,
        )?;
        self.step_on(
            "pool-requirements",
            asked::pool_requirements,
            |ground, case| {
                case.left.choose(|selection| selection.and(&ground.of_pool));
            },
            rest::pool_requirements,
        )?;
        let named = self.asked.skips("capacity-type");
        self.step_on(
            "default-capacity-type",
            asked::only_on_demand,
            |ground, case| {
                if ground.on_demand_by_default && !named && case.term.get(label::CAPACITY_TYPE).is_none() {
                    let on_demand = ValueSet::one_of([CapacityType::OnDemand.as_str()]);
                    case.left.choose(|selection| selection.keep_capacity_types(&on_demand));
                }
            },
            rest::only_spot,
        )?;
        let (snapshot, tolerations) = (self.pass.market.snapshot, self.asked.tolerations);
        self.step_on(
            "taints",
            asked::taints,
            |ground, case| match tolerate::missing(&refusing(ground), tolerations, case.term) {
                Err(_) => case.left.clear(),
                Ok(tolerated) => {
                    // What is on-demand by default was narrowed above, where it may have been skipped.
                    let implied = implied(case.term, ground, &tolerated).into_iter();
                    for (key, set) in implied.filter(|(key, _)| *key != label::CAPACITY_TYPE) {
                        case.left.choose(|selection| snapshot.narrow(selection, key, &set));
                    }
                }
            },
            rest::taints,
        )
    }

    /// Where the pod's volumes and the rules about other pods let it be.
    fn places(&mut self) -> Step {
        let snapshot = self.pass.market.snapshot;
        let alternatives = self.asked.volumes.clone();
        if !alternatives.is_empty() && !self.asked.skips("volume") {
            let cases = self.cases.iter().flat_map(|case| {
                alternatives.iter().map(move |term| {
                    let mut case = case.clone();
                    narrow(snapshot, &mut case, term);
                    case
                })
            });
            let narrowed = cases.collect();
            self.replace("volume", narrowed, asked::volume, |table, _| (rest::volume(table), None))?;
        }
        for verdict in self.asked.verdicts {
            self.step(
                verdict.rule,
                |_| topology::asked(verdict),
                |case| {
                    let mut only = Requirements::new();
                    only.require(&verdict.key, verdict.allowed.clone());
                    narrow(snapshot, case, &only);
                },
                |table, before| (topology::refused(table, before, verdict), None),
            )?;
        }
        Ok(())
    }

    fn machines(&mut self) -> Step {
        let (market, snapshot) = (&self.pass.market, self.pass.market.snapshot);
        let (need, exact) = (self.asked.need, self.asked.exact);
        self.step_on(
            "vendor-unavailable",
            asked::vendors,
            |_, case| {
                case.left.choose(|selection| selection.and(&market.usable));
            },
            rest::vendors,
        )?;
        let ports: Vec<usize> = self.pass.names.ports().filter(|at| need[*at] > 0).collect();
        if !ports.is_empty() {
            self.step_on(
                "host-port",
                asked::host_ports,
                |ground, case| {
                    let free = |id| {
                        let daemons = ground.daemons_on(snapshot, id);
                        ports.iter().all(|at| daemons[*at] == 0)
                    };
                    if ground.has_daemons() {
                        case.left.retain(snapshot, free);
                    }
                },
                rest::host_ports,
            )?;
        }
        self.step_on(
            "capacity",
            asked::capacity,
            |ground, case| {
                case.left.choose(|selection| {
                    selection.types.retain(|index| ground.type_has_room(index, need, exact))
                });
                if ground.has_local_daemons() || matches!(case.left, Left::Listed(_)) {
                    case.left.retain(snapshot, |id| ground.has_room(snapshot, id, need, exact));
                }
            },
            rest::capacity,
        )?;
        let Some(unfit) = self.asked.unfit else { return Ok(()) };
        self.step_on(
            "unfit",
            asked::unfit,
            |ground, case| {
                let known = |id| rest::is_unfit(unfit, ground, snapshot, id);
                case.left.retain(snapshot, |id| !known(id));
            },
            rest::unfit,
        )
    }

    fn market(&mut self) -> Step {
        let pass = self.pass;
        let (market, snapshot) = (&pass.market, pass.market.snapshot);
        self.step(
            "stock-out",
            |_| String::new(),
            |case| case.left.retain(snapshot, |id| market.in_stock(id)),
            |table, before| rest::stock_out(table, before),
        )?;
        if self.asked.strict_min_values {
            self.step_on(
                "min-values",
                asked::min_values,
                |ground, case| {
                    if rest::too_few_values(ground, case, snapshot).is_some() {
                        case.left.clear();
                    }
                },
                rest::min_values,
            )?;
        }
        self.step_on(
            "limits",
            asked::limits,
            |ground, case| {
                case.left.retain(snapshot, |id| ground.limits_allow(snapshot, id));
            },
            rest::limits,
        )?;
        self.step_on(
            "caps",
            asked::caps,
            |ground, case| {
                case.left.retain(snapshot, |id| pass.caps.allow(ground.price(snapshot, id)));
            },
            rest::caps,
        )
    }

    /// What decides among the offerings that are left, besides the price.
    fn rank(&mut self) {
        self.avoid();
        self.prefer();
        self.weigh();
    }

    /// Of what is left, pools that would rather not take the pod come last.
    fn avoid(&mut self) {
        let tolerations = self.asked.tolerations;
        let willing = |case: &&Case<'p, 'a>| {
            case.ground
                .is_none_or(|ground| tolerate::missing(ground.taints(), tolerations, case.term).is_ok())
        };
        let cases: Vec<Case<'p, 'a>> = self.cases.iter().filter(willing).cloned().collect();
        if cases.is_empty() || cases.len() == self.cases.len() || self.asked.skips("prefer-no-schedule") {
            return;
        }
        let _ = self.replace("prefer-no-schedule", cases, asked::avoided, |_, _| (String::new(), None));
    }

    /// Of what is left, what meets the heaviest preferences is taken, however dear.
    fn prefer(&mut self) {
        if self.asked.preferences.is_empty() || self.asked.skips("preferences") {
            return;
        }
        let snapshot = self.pass.market.snapshot;
        let mut groups: Vec<(i64, Vec<Case<'p, 'a>>)> = Vec::new();
        for term in &self.asked.terms {
            let of_term = self.cases.iter().filter(|case| std::ptr::eq(case.term, term));
            let mut group: (i64, Vec<Case<'p, 'a>>) = (0, of_term.cloned().collect());
            for (weight, preference) in &self.asked.preferences {
                let mut narrowed = group.1.clone();
                narrowed.iter_mut().for_each(|case| narrow(snapshot, case, preference));
                if narrowed.iter().any(|case| !case.left.is_empty(snapshot)) {
                    group = (group.0 + weight, narrowed);
                }
            }
            groups.push(group);
        }
        let held =
            |group: &(i64, Vec<Case<'_, '_>>)| group.1.iter().any(|case| !case.left.is_empty(snapshot));
        let most = groups.iter().filter(|group| held(group)).map(|(weight, _)| *weight).max();
        let best = groups.into_iter().filter(|(weight, _)| Some(*weight) == most);
        let cases = best.flat_map(|(_, cases)| cases).collect();
        let _ = self.replace("preferences", cases, asked::preferences, |_, _| (String::new(), None));
    }

    /// Of what is left then, the heaviest pools' is taken, however dear.
    fn weigh(&mut self) {
        let weight = |case: &Case<'_, '_>| case.ground.map(|ground| ground.pool.weight);
        let Some(most) = self.cases.iter().map(weight).max().flatten() else { return };
        if self.asked.skips("nodepool-weight") || self.cases.iter().all(|case| weight(case) == Some(most)) {
            return;
        }
        let cases = self.cases.iter().filter(|case| weight(case) == Some(most)).cloned().collect();
        let asked = |_: &Self| format!("the heaviest NodePools that have any, of weight {most}");
        let _ = self.replace("nodepool-weight", cases, asked, |_, _| (String::new(), None));
    }

    fn step_on(
        &mut self,
        rule: &str,
        asked: impl FnOnce(&Self) -> String,
        apply: impl Fn(&Ground<'a>, &mut Case<'p, 'a>),
        words: impl FnOnce(&Self, &[Case<'p, 'a>]) -> String,
    ) -> Step {
        let applied = |case: &mut Case<'p, 'a>| {
            if let Some(ground) = case.ground {
                apply(ground, case);
            }
        };
        self.step(rule, asked, applied, |table, before| (words(table, before), None))
    }

    /// Applies one rule to all cases; an error once nothing is left.
    fn step(
        &mut self,
        rule: &str,
        asked: impl FnOnce(&Self) -> String,
        apply: impl Fn(&mut Case<'p, 'a>),
        words: impl FnOnce(&Self, &[Case<'p, 'a>]) -> (String, Option<i64>),
    ) -> Step {
        if self.asked.skips(rule) {
            return Ok(());
        }
        let mut cases = self.cases.clone();
        cases.iter_mut().for_each(apply);
        self.replace(rule, cases, asked, words)
    }

    /// Puts what a rule leaves in the place of what was there before it.
    fn replace(
        &mut self,
        rule: &str,
        cases: Vec<Case<'p, 'a>>,
        asked: impl FnOnce(&Self) -> String,
        words: impl FnOnce(&Self, &[Case<'p, 'a>]) -> (String, Option<i64>),
    ) -> Step {
        let so_far = self.lines.is_some().then(|| (asked(self), self.price_so_far()));
        let before = std::mem::replace(&mut self.cases, cases);
        let snapshot = self.pass.market.snapshot;
        self.cases.retain(|case| !case.left.is_empty(snapshot));
        let left =
            if self.counts { count(snapshot, &self.cases) } else { usize::from(!self.cases.is_empty()) };
        if self.counts && left < self.left {
            self.removed.push(Removed { rule: rule.to_owned(), offerings: self.left - left });
        }
        if let Some(so_far) = so_far {
            self.record(rule, so_far, left);
        }
        if left > 0 {
            self.left = left;
            return Ok(());
        }
        if !self.counts {
            self.left = count(snapshot, &before);
        }
        let (message, until) = words(self, &before);
        let removed = std::mem::take(&mut self.removed);
        Err(Box::new(Refusal { reason: rule.to_owned(), message, removed, until }))
    }

    fn record(&mut self, rule: &str, (asked, cheapest_before): (String, Option<Priced>), left: usize) {
        let cheapest_after = self.cheapest();
        let removed = self.left.saturating_sub(left);
        let line = RuleLine { rule: rule.to_owned(), asked, removed, left, cheapest_before, cheapest_after };
        self.lines.get_or_insert_default().push(line);
    }

    fn price_so_far(&self) -> Option<Priced> {
        match self.lines.as_ref().and_then(|lines| lines.last()) {
            Some(line) => line.cheapest_after.clone(),
            None => self.cheapest(),
        }
    }

    /// The cheapest of what is left that has room for the pod, whichever pool buys it.
    fn cheapest(&self) -> Option<Priced> {
        let snapshot = self.pass.market.snapshot;
        let (price, id) = self.cases.iter().filter_map(|case| self.cheapest_of(case)).min()?;
        let offering = snapshot.offering(id);
        let arch = offering.instance_type().arch;
        Some(Priced { offering: offering.key(), arch, price: Price::from_micro_usd(price) })
    }

    fn cheapest_of(&self, case: &Case<'p, 'a>) -> Option<(u64, OfferingId)> {
        let snapshot = self.pass.market.snapshot;
        let (need, exact) = (self.asked.need, self.asked.exact);
        let of_pool = |ground: &Ground<'a>| {
            let room = |id| ground.has_room(snapshot, id, need, exact);
            let id = match &case.left {
                Left::Chosen(selection) => ground.first(snapshot, selection, room)?,
                Left::Listed(ids) => {
                    let roomy = ids.iter().copied().filter(|id| room(*id));
                    roomy.min_by_key(|id| (ground.price(snapshot, *id), *id))?
                }
            };
            Some((ground.price(snapshot, id), id))
        };
        match case.ground {
            Some(ground) => of_pool(ground),
            None => self.pass.grounds.iter().filter_map(of_pool).min(),
        }
    }
}

/// How many offerings are left in any case.
fn count(snapshot: &Snapshot, cases: &[Case<'_, '_>]) -> usize {
    match cases {
        [Case { left: Left::Chosen(selection), .. }] => snapshot.count(selection),
        [Case { left: Left::Listed(ids), .. }] => ids.len(),
        cases => {
            let mut all = Bits::none(snapshot.len());
            for id in cases.iter().flat_map(|case| case.left.ids(snapshot)) {
                all.insert(id.index());
            }
            all.count()
        }
    }
}

/// Keeps in a case what `requirements` leave; what no offering carries is the pool's to give.
fn narrow(snapshot: &Snapshot, case: &mut Case<'_, '_>, requirements: &Requirements) {
    for (key, set) in requirements.iter() {
        if Snapshot::carries(key) {
            case.left.narrow(snapshot, key, set);
        } else if !may_have(case.ground, key, set) {
            case.left.clear();
        }
    }
}

/// Taints of a pool that keep pods off.
fn refusing(ground: &Ground<'_>) -> Vec<Taint> {
    let strict = ground.taints().iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    strict.cloned().collect()
}

/// Whether a machine of the pool may have a label that no offering carries.
fn may_have(ground: Option<&Ground<'_>>, key: &str, set: &ValueSet) -> bool {
    match ground.and_then(|ground| ground.requirements.get(key)) {
        Some(own) => !own.intersect(set).is_empty(),
        None => set.allows(None),
    }
}

/// Keys that the terms name, vendor and type first, then in text order.
fn keys(terms: &[Requirements], carried: bool) -> Vec<String> {
    let keys: BTreeSet<(usize, &str)> = terms
        .iter()
        .flat_map(Requirements::iter)
        .map(|(key, _)| key)
        .filter(|key| Snapshot::carries(key) == carried)
        .map(|key| match key {
            label::VENDOR => (0, key),
            label::INSTANCE_TYPE => (1, key),
            label::CAPACITY_TYPE => (3, key),
            label::PRICE => (4, key),
            _ => (2, key),
        })
        .collect();
    keys.into_iter().map(|(_, key)| key.to_owned()).collect()
}
