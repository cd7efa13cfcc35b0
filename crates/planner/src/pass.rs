//! One pass: the order of pods, and where each goes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use scarpenter_core::pod::{Pod, Toleration};
use scarpenter_core::pool::{Class, Pool, Tenancy};
use scarpenter_core::requirements::Requirement;
use scarpenter_core::resources::Resources;
use scarpenter_core::snapshot::OfferingId;

use crate::claim;
use crate::ground::Ground;
use crate::market::Market;
use crate::output::{Nomination, Plan, Refusal, Unplaced};
use crate::places::{self, Fit, Spot};
use crate::refusal;
use crate::shape::{Offer, Shape};
use crate::table::{self, ClassTable, Names};
use crate::{Caps, Input};

mod draft;

pub(crate) use draft::Draft;

/// So many claims are asked whether a larger machine for one more pod would be cheaper than a machine of its own.
const GROWTH_TRIES: usize = 8;

/// The state of a pass.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    input: &'a Input<'a>,
    pub(crate) market: Market<'a>,
    pub(crate) names: Names,
    /// Pools, heaviest first, then by name from Z to A.
    pub(crate) grounds: Vec<Ground<'a>>,
    pub(crate) caps: CapsLeft,
    spots: Vec<Spot<'a>>,
    shapes: BTreeMap<ShapeKey<'a>, Rc<Known>>,
    drafts: Vec<Draft>,
    /// Claims that may take further pods: fewest pods first, then oldest first.
    joinable: BTreeSet<(usize, usize)>,
}

/// What is left of the caps; `None` is not capped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapsLeft {
    pub(crate) machines: Option<u64>,
    pub(crate) micro_usd: Option<u64>,
}

/// All that decides where a pod may go.
type ShapeKey<'a> = (
    &'a BTreeMap<String, String>,
    &'a [Vec<Requirement>],
    Vec<(i32, &'a [Requirement])>,
    &'a [Toleration],
    Vec<(&'a str, i64)>,
);

#[derive(Debug)]
struct Known {
    id: usize,
    shape: Shape,
    fits: Vec<Fit>,
}

/// A machine that could be bought for a pod.
struct New<'o> {
    ground: usize,
    offer: &'o Offer,
    id: OfferingId,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let names = Names::of(input);
        let market = Market::new(input.snapshot, input.unavailable, input.now);
        let mut tables = BTreeMap::new();
        let mut grounds: Vec<Ground<'a>> = input
            .pools
            .iter()
            .map(|pool| {
                let class = input.classes.get(&pool.class);
                let table = tables.entry(&pool.class).or_insert_with(|| {
                    let none = Class::default();
                    Rc::new(ClassTable::new(&names, input.snapshot, class.unwrap_or(&none)))
                });
                let used = names.row(&used_by(pool, input));
                let mut ground = Ground::new(&market, &names, pool, class, Rc::clone(table), &used);
                ground.add_daemons(input.snapshot, &names, input.daemons);
                ground
            })
            .collect();
        grounds.sort_by_key(|ground| Reverse((ground.pool.weight, ground.pool.name.clone())));
        let spots = places::spots(&names, input.nodes, input.daemons);
        Self {
            input,
            market,
            names,
            grounds,
            caps: CapsLeft::new(input.caps),
            spots,
            shapes: BTreeMap::new(),
            drafts: Vec::new(),
            joinable: BTreeSet::new(),
        }
    }

    pub(crate) fn run(mut self) -> Plan {
        let mut plan = Plan::default();
        for pod in self.waiting() {
            match self.place(pod) {
                Ok(Some((node, tolerations))) => {
                    plan.nominated.push(Nomination {
                        pod: pod.key.clone(),
                        uid: pod.uid.clone(),
                        node,
                        tolerations,
                    });
                }
                Ok(None) => {}
                Err(refusal) => {
                    plan.capped =
                        plan.capped.or_else(|| (refusal.reason == "caps").then(|| refusal.message.clone()));
                    plan.unplaced.push(Unplaced { pod: pod.key.clone(), uid: pod.uid.clone(), refusal });
                }
            }
        }
        plan.unplaced.sort_by(|a, b| (&a.pod, &a.uid).cmp(&(&b.pod, &b.uid)));
        plan.claims = self.drafts.iter().map(|draft| claim::planned(&self, draft)).collect();
        plan
    }

    /// Pods to place, in order (SCH-10): the largest first; those that a place is promised to are settled already.
    fn waiting(&self) -> Vec<&'a Pod> {
        let open = self.input.nodes.iter().filter(|node| node.open);
        let promised: BTreeSet<&str> =
            open.flat_map(|node| node.promised.iter().map(String::as_str)).collect();
        let mut pods: Vec<&Pod> =
            self.input.pods.iter().filter(|pod| !promised.contains(pod.uid.as_str())).collect();
        let size = |pod: &Pod, name| Reverse(pod.requests.get(name));
        pods.sort_by(|a, b| {
            let order = |pod: &Pod| (size(pod, "cpu"), size(pod, "memory"), pod.created);
            order(a).cmp(&order(b)).then_with(|| (&a.uid, &a.key).cmp(&(&b.uid, &b.key)))
        });
        pods
    }

    /// Places one pod: `Ok` with a node when it waits for a place that is there, `Ok(None)` when it is in a claim.
    fn place(&mut self, pod: &'a Pod) -> Result<Option<(String, Vec<Toleration>)>, Refusal> {
        if let Some(refusal) = refusal::unreadable(pod) {
            return Err(refusal);
        }
        let known = self.known(pod).map_err(|error| refusal::plain("invalid", error.to_string()))?;
        if let Some((node, tolerations)) = places::settle(&mut self.spots, &known.fits, &known.shape.need) {
            return Ok(Some((node, tolerations.to_vec())));
        }
        for wishes in known.shape.wishes.chunk_by(|a, b| a.weight == b.weight) {
            let offers = |ground: usize| wishes.iter().filter_map(move |wish| wish.offers[ground].as_ref());
            let new = self.cheapest(&known.shape, &offers);
            if self.join(pod, &known, &offers, new.as_ref()) {
                return Ok(None);
            }
            if let Some(new) = new {
                self.open(pod, &known, &new);
                return Ok(None);
            }
        }
        Err(refusal::of(self, pod, &known.shape))
    }

    fn known(&mut self, pod: &'a Pod) -> Result<Rc<Known>, scarpenter_core::requirements::BadRequirement> {
        let preferred =
            pod.preferred_terms.iter().map(|term| (term.weight, term.requirements.as_slice())).collect();
        let requests = pod.requests.iter().collect();
        let key: ShapeKey<'a> =
            (&pod.node_selector, &pod.required_terms, preferred, &pod.tolerations, requests);
        if let Some(known) = self.shapes.get(&key) {
            return Ok(Rc::clone(known));
        }
        let shape = Shape::new(&self.market, &self.names, &self.grounds, pod)?;
        let fits = places::fitting(&self.spots, &shape, pod);
        let known = Rc::new(Known { id: self.shapes.len(), shape, fits });
        self.shapes.insert(key, Rc::clone(&known));
        Ok(known)
    }

    /// The cheapest machine for the pod alone, of the heaviest pools that have any.
    fn cheapest<'o, I>(&self, shape: &Shape, offers: &impl Fn(usize) -> I) -> Option<New<'o>>
    where
        I: Iterator<Item = &'o Offer>,
    {
        let weights = self.grounds.chunk_by(|a, b| a.pool.weight == b.pool.weight);
        let mut start = 0;
        for group in weights {
            let grounds = start..start + group.len();
            start = grounds.end;
            let found = grounds.flat_map(|ground| {
                offers(ground).filter_map(move |offer| {
                    let id = self.first(ground, offer, &shape.need)?;
                    Some(New { ground, offer, id })
                })
            });
            // The first of equals stays, so equal offerings go to the pool that stands first.
            let price = |new: &New<'_>| self.grounds[new.ground].price(self.market.snapshot, new.id);
            if let Some(new) = found.min_by_key(|new| (price(new), new.id, new.ground)) {
                return Some(new);
            }
        }
        None
    }

    /// The cheapest offering in `offer` with room for `need`, in stock, and within limits and caps.
    fn first(&self, ground: usize, offer: &Offer, need: &[i64]) -> Option<OfferingId> {
        let ground = &self.grounds[ground];
        if self.caps.machines == Some(0)
            || !offer.selection.types.iter().any(|index| ground.limits_allow_type(index))
        {
            return None;
        }
        let snapshot = self.market.snapshot;
        ground.first(snapshot, &offer.selection, |id| {
            self.market.in_stock(id)
                && self.caps.allow(ground.price(snapshot, id))
                && ground.limits_allow(snapshot, id)
                && ground.has_room(snapshot, id, need)
        })
    }

    /// Puts the pod into a claim of this pass, if one has room or is cheaper to enlarge than a new one is to make.
    fn join<'o, I>(
        &mut self,
        pod: &Pod,
        known: &Known,
        offers: &impl Fn(usize) -> I,
        new: Option<&New<'_>>,
    ) -> bool
    where
        I: Iterator<Item = &'o Offer>,
    {
        let mut growing: Option<(u64, usize, Draft)> = None;
        let mut tries = 0;
        let mut roomy = None;
        for (_, index) in &self.joinable {
            let draft = &self.drafts[*index];
            for offer in offers(draft.ground).filter(|offer| draft.meets(offer)) {
                if let Some(joined) = self.squeeze(draft, offer, &known.shape.need) {
                    roomy = Some((*index, joined, offer.tolerated.clone()));
                    break;
                }
                if tries < GROWTH_TRIES && !draft.full_for.contains(&known.id) {
                    tries += 1;
                    let grown = self.grow(draft, offer, &known.shape.need);
                    if let Some((cost, mut grown)) = grown
                        && growing.as_ref().is_none_or(|(least, ..)| cost < *least)
                    {
                        grown.pods.push(draft::Passenger::new(pod, offer.tolerated.clone()));
                        growing = Some((cost, *index, grown));
                    }
                }
            }
            if roomy.is_some() {
                break;
            }
        }
        if let Some((index, mut joined, tolerated)) = roomy {
            joined.pods.push(draft::Passenger::new(pod, tolerated));
            self.replace(index, joined);
            return true;
        }
        let Some((cost, index, grown)) = growing else { return false };
        let alone = new.map(|new| self.grounds[new.ground].price(self.market.snapshot, new.id));
        if alone.is_some_and(|alone| cost > alone) {
            self.drafts[index].full_for.insert(known.id);
            return false;
        }
        self.replace(index, grown);
        true
    }

    /// The claim with `need` more, when the machine that it already has is large enough.
    fn squeeze(&self, draft: &Draft, offer: &Offer, need: &[i64]) -> Option<Draft> {
        let snapshot = self.market.snapshot;
        let total = table::sum(&draft.need, need);
        let ground = &self.grounds[draft.ground];
        if !snapshot.contains(&offer.selection, draft.launch)
            || !ground.has_room(snapshot, draft.launch, &total)
        {
            return None;
        }
        draft.with(ground, offer, total)
    }

    /// The claim with `need` more on the cheapest machine that is large enough, and what that costs more.
    fn grow(&self, draft: &Draft, offer: &Offer, need: &[i64]) -> Option<(u64, Draft)> {
        let snapshot = self.market.snapshot;
        let ground = &self.grounds[draft.ground];
        let total = table::sum(&draft.need, need);
        let mut grown = draft.with(ground, offer, total)?;
        let before = ground.counted(snapshot, draft.launch);
        let price = |id| ground.price(snapshot, id);
        let old = price(draft.launch);
        let within = |id| {
            let more = ground.counted(snapshot, id);
            ground
                .left
                .iter()
                .zip(&before)
                .zip(&more)
                .all(|((left, before), more)| *left == i64::MAX || *more <= left.saturating_add(*before))
        };
        grown.launch = ground.first(snapshot, &grown.options, |id| {
            self.market.in_stock(id)
                && self.caps.micro_usd.is_none_or(|left| price(id) <= left.saturating_add(old))
                && within(id)
                && ground.has_room(snapshot, id, &grown.need)
        })?;
        Some((price(grown.launch).saturating_sub(old), grown))
    }

    /// Puts a changed claim in the place of the old one; reservations follow.
    fn replace(&mut self, index: usize, draft: Draft) {
        let old = &self.drafts[index];
        self.joinable.remove(&(old.pods.len(), index));
        self.joinable.insert((draft.pods.len(), index));
        let (before, after) = (old.launch, draft.launch);
        if before != after {
            let snapshot = self.market.snapshot;
            let ground = &mut self.grounds[draft.ground];
            let counted = [before, after].map(|id| ground.counted(snapshot, id));
            ground.give_back(&counted[0]);
            ground.reserve(&counted[1]);
            self.caps.give_back(ground.price(snapshot, before));
            self.caps.reserve(ground.price(snapshot, after));
        }
        self.drafts[index] = draft;
    }

    /// Makes a new claim.
    fn open(&mut self, pod: &Pod, known: &Known, new: &New<'_>) {
        let snapshot = self.market.snapshot;
        let ground = &mut self.grounds[new.ground];
        let counted = ground.counted(snapshot, new.id);
        ground.reserve(&counted);
        self.caps.reserve(ground.price(snapshot, new.id));
        if ground.class.tenancy == Tenancy::Shared {
            self.joinable.insert((1, self.drafts.len()));
        }
        self.drafts.push(Draft {
            ground: new.ground,
            pods: vec![draft::Passenger::new(pod, new.offer.tolerated.clone())],
            requirements: Rc::clone(&new.offer.requirements),
            options: new.offer.selection.clone(),
            span: new.offer.span,
            need: known.shape.need.clone(),
            launch: new.id,
            full_for: BTreeSet::new(),
        });
    }
}

impl CapsLeft {
    fn new(caps: &Caps) -> Self {
        Self {
            machines: caps.max_machines.map(|most| most.saturating_sub(caps.used_machines)),
            micro_usd: caps
                .max_micro_usd_per_hour
                .map(|most| most.saturating_sub(caps.used_micro_usd_per_hour)),
        }
    }

    /// Whether one more machine of this price is allowed.
    pub(crate) fn allow(&self, price: u64) -> bool {
        self.machines != Some(0) && self.micro_usd.is_none_or(|left| price <= left)
    }

    fn reserve(&mut self, price: u64) {
        self.machines = self.machines.map(|left| left.saturating_sub(1));
        self.micro_usd = self.micro_usd.map(|left| left.saturating_sub(price));
    }

    fn give_back(&mut self, price: u64) {
        self.machines = self.machines.map(|left| left + 1);
        self.micro_usd = self.micro_usd.map(|left| left.saturating_add(price));
    }
}

fn used_by(pool: &Pool, input: &Input<'_>) -> Resources {
    let mut used = Resources::new();
    for node in input.nodes.iter().filter(|node| node.pool.as_ref() == Some(&pool.name)) {
        used.add(&node.counted);
    }
    used
}
