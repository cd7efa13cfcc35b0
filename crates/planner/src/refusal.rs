//! Why a pod gets nothing: the rules one after another, and what each removed.

use std::collections::BTreeSet;

use scarpenter_core::label;
use scarpenter_core::offering::CapacityType;
use scarpenter_core::pod::Pod;
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::snapshot::{Bits, OfferingId, Selection, Snapshot};

use crate::ground::Ground;
use crate::output::{Refusal, Removed};
use crate::pass::Pass;
use crate::shape::{Shape, implied};
use crate::{tolerate, words};

mod labels;
mod rest;

/// A refusal that needs no table.
pub(crate) fn plain(reason: &str, message: String) -> Refusal {
    Refusal { reason: reason.to_owned(), message, removed: Vec::new(), until: None }
}

/// Why a pod is not looked at, when it cannot be read or asks for what is not decided here.
pub(crate) fn unreadable(pod: &Pod) -> Option<Refusal> {
    if !pod.invalid.is_empty() {
        return Some(plain("invalid", format!("the pod is malformed: {}", pod.invalid.join("; "))));
    }
    let undecided = (!pod.undecided.is_empty()).then(|| pod.undecided.join(" and "))?;
    Some(plain("undecided", format!("the pod has {undecided}, which scarpenter does not support yet")))
}

/// Why nothing was found for a pod, with the limits and caps as they stand now.
pub(crate) fn of(pass: &Pass<'_>, pod: &Pod, shape: &Shape) -> Refusal {
    if pass.grounds.is_empty() {
        return plain("no-nodepool", "no NodePool with a ScarpenterNodeClass".to_owned());
    }
    if pass.market.snapshot.is_empty() {
        return plain("catalog", "the catalog has no offering".to_owned());
    }
    let mut table = Table::new(pass, pod, shape);
    match table.run() {
        Err(refusal) => *refusal,
        Ok(()) => Refusal { removed: table.removed, ..plain("capacity", rest::no_room_together(pass, pod)) },
    }
}

/// One pool with one of the pod's alternatives, and what is left for it.
#[derive(Clone)]
struct Case<'p, 'a> {
    /// `None` while no rule has looked at pools.
    ground: Option<&'p Ground<'a>>,
    term: &'p Requirements,
    left: Left,
}

#[derive(Clone)]
enum Left {
    Chosen(Selection),
    Listed(Vec<OfferingId>),
}

impl Left {
    fn is_empty(&self, snapshot: &Snapshot) -> bool {
        self.ids(snapshot).next().is_none()
    }

    fn ids<'l>(&'l self, snapshot: &'l Snapshot) -> Box<dyn Iterator<Item = OfferingId> + 'l> {
        match self {
            Self::Chosen(selection) => Box::new(snapshot.selected(selection)),
            Self::Listed(ids) => Box::new(ids.iter().copied()),
        }
    }

    fn clear(&mut self) {
        *self = Self::Listed(Vec::new());
    }

    fn choose(&mut self, by: impl FnOnce(&mut Selection)) {
        if let Self::Chosen(selection) = self {
            by(selection);
        }
    }

    fn retain(&mut self, snapshot: &Snapshot, keep: impl Fn(OfferingId) -> bool) {
        *self = Self::Listed(self.ids(snapshot).filter(|id| keep(*id)).collect());
    }
}

/// The table while it grows.
struct Table<'p, 'a> {
    pass: &'p Pass<'a>,
    pod: &'p Pod,
    shape: &'p Shape,
    cases: Vec<Case<'p, 'a>>,
    left: usize,
    removed: Vec<Removed>,
}

type Step = Result<(), Box<Refusal>>;

impl<'p, 'a> Table<'p, 'a> {
    fn new(pass: &'p Pass<'a>, pod: &'p Pod, shape: &'p Shape) -> Self {
        let everything = pass.market.snapshot.everything();
        let case = |term| Case { ground: None, term, left: Left::Chosen(everything.clone()) };
        let cases = shape.terms.iter().map(case).collect();
        Self { pass, pod, shape, cases, left: pass.market.snapshot.len(), removed: Vec::new() }
    }

    fn run(&mut self) -> Step {
        self.labels_of_offerings()?;
        let cases = self.cases.iter().flat_map(|case| {
            self.pass.grounds.iter().map(|ground| Case { ground: Some(ground), ..case.clone() })
        });
        self.cases = cases.collect();
        self.labels_of_pools()?;
        self.pools()?;
        self.machines()
    }

    /// What the pod asks of labels that offerings carry, vendor and type first.
    fn labels_of_offerings(&mut self) -> Step {
        let snapshot = self.pass.market.snapshot;
        for key in keys(&self.shape.terms, true) {
            self.step(
                words::rule(&key),
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
        for key in keys(&self.shape.terms, false) {
            self.step(
                words::rule(&key),
                |case| {
                    let own = case.ground.and_then(|ground| ground.requirements.get(&key));
                    let held = case.term.get(&key).is_none_or(|set| match own {
                        Some(own) => !own.intersect(set).is_empty(),
                        None => set.allows(None),
                    });
                    if !held {
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
            |ground, case| {
                if ground.broken.is_some() {
                    case.left.clear();
                }
            },
            rest::broken,
        )?;
        self.step_on(
            "class-vendor",
            |ground, case| {
                case.left.choose(|selection| selection.and(&ground.of_class));
            },
            rest::class_vendor,
        )?;
        self.step_on(
            "pool-requirements",
            |ground, case| {
                case.left.choose(|selection| selection.and(&ground.of_pool));
            },
            rest::pool_requirements,
        )?;
        self.step_on(
            "default-capacity-type",
            |ground, case| {
                if ground.on_demand_by_default && case.term.get(label::CAPACITY_TYPE).is_none() {
                    let on_demand = ValueSet::one_of([CapacityType::OnDemand.as_str()]);
                    case.left.choose(|selection| selection.keep_capacity_types(&on_demand));
                }
            },
            rest::only_spot,
        )?;
        let (snapshot, tolerations) = (self.pass.market.snapshot, &self.shape.tolerations);
        self.step_on(
            "taints",
            |ground, case| match tolerate::missing(ground.taints(), tolerations, case.term) {
                Err(_) => case.left.clear(),
                Ok(tolerated) => {
                    for (key, set) in implied(case.term, ground, &tolerated) {
                        case.left.choose(|selection| snapshot.narrow(selection, key, &set));
                    }
                }
            },
            rest::taints,
        )
    }

    fn machines(&mut self) -> Step {
        let pass = self.pass;
        let (market, snapshot, need) = (&pass.market, pass.market.snapshot, &self.shape.need);
        self.step_on(
            "vendor-unavailable",
            |_, case| {
                case.left.choose(|selection| selection.and(&market.usable));
            },
            rest::vendors,
        )?;
        self.step_on(
            "capacity",
            |ground, case| {
                case.left
                    .choose(|selection| selection.types.retain(|index| ground.type_has_room(index, need)));
                if ground.has_local_daemons() {
                    case.left.retain(snapshot, |id| ground.has_room(snapshot, id, need));
                }
            },
            rest::capacity,
        )?;
        self.step(
            "stock-out",
            |case| case.left.retain(snapshot, |id| market.in_stock(id)),
            |table, before| rest::stock_out(table, before),
        )?;
        self.step_on(
            "limits",
            |ground, case| {
                case.left.retain(snapshot, |id| ground.limits_allow(snapshot, id));
            },
            rest::limits,
        )?;
        self.step_on(
            "caps",
            |ground, case| {
                case.left.retain(snapshot, |id| pass.caps.allow(ground.price(snapshot, id)));
            },
            rest::caps,
        )
    }

    fn step_on(
        &mut self,
        rule: &str,
        apply: impl Fn(&Ground<'a>, &mut Case<'p, 'a>),
        words: impl FnOnce(&Self, &[Case<'p, 'a>]) -> String,
    ) -> Step {
        let applied = |case: &mut Case<'p, 'a>| {
            if let Some(ground) = case.ground {
                apply(ground, case);
            }
        };
        self.step(rule, applied, |table, before| (words(table, before), None))
    }

    /// Applies one rule to all cases; an error once nothing is left.
    fn step(
        &mut self,
        rule: &str,
        apply: impl Fn(&mut Case<'p, 'a>),
        words: impl FnOnce(&Self, &[Case<'p, 'a>]) -> (String, Option<i64>),
    ) -> Step {
        let before = self.cases.clone();
        self.cases.iter_mut().for_each(apply);
        let left = self.count();
        if left < self.left {
            self.removed.push(Removed { rule: rule.to_owned(), offerings: self.left - left });
        }
        if left > 0 {
            self.left = left;
            self.cases.retain(|case| !case.left.is_empty(self.pass.market.snapshot));
            return Ok(());
        }
        let (message, until) = words(self, &before);
        let removed = std::mem::take(&mut self.removed);
        Err(Box::new(Refusal { reason: rule.to_owned(), message, removed, until }))
    }

    /// How many offerings are left in any case.
    fn count(&self) -> usize {
        let snapshot = self.pass.market.snapshot;
        match self.cases.as_slice() {
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
