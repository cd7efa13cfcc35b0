//! The rules one after another: what each removes, and at which nothing is left.

use scarpenter_core::offering::Price;
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::snapshot::{Bits, OfferingId, Selection, Snapshot};

use super::Asked;
use crate::explain::{Priced, RuleLine};
use crate::ground::Ground;
use crate::output::{Refusal, Removed};
use crate::pass::Pass;

mod order;
mod rank;

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

/// Whether a machine of the pool may have a label that no offering carries.
fn may_have(ground: Option<&Ground<'_>>, key: &str, set: &ValueSet) -> bool {
    match ground.and_then(|ground| ground.requirements.get(key)) {
        Some(own) => !own.intersect(set).is_empty(),
        None => set.allows(None),
    }
}
