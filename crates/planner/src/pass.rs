//! One pass: the order of pods, and where each goes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use scarpenter_core::pod::{Pod, Toleration};
use scarpenter_core::pool::{Class, Pool, Tenancy};
use scarpenter_core::requirements::BadRequirement;
use scarpenter_core::resources::{CPU, Resources};
use scarpenter_core::snapshot::OfferingId;

use crate::ground::Ground;
use crate::market::Market;
use crate::output::{Nomination, Plan, Refusal, Unplaced};
use crate::places::{self, Spot};
use crate::refusal;
use crate::shape::{Offer, Profile, Shape};
use crate::table::{Amounts, ClassTable, Names};
use crate::topology::{Demand, Judgement, Reach, SpreadKeys, Topology};
use crate::{Input, claim};

mod attempts;
mod caps;
mod draft;
mod join;
mod known;
mod shelf;
mod variety;

use attempts::{Attempt, attempts};
pub(crate) use caps::CapsLeft;
pub(crate) use draft::{Draft, Passenger, Planned};
use known::ProfileKey;
use shelf::Shelf;

/// So often are pods looked at again whose place depends on pods that came after them.
const ROUNDS: usize = 32;

/// The state of a pass.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) market: Market<'a>,
    pub(crate) names: Names,
    /// Pools, heaviest first, then by name from Z to A.
    pub(crate) grounds: Vec<Ground<'a>>,
    pub(crate) caps: CapsLeft,
    pub(crate) drafts: Vec<Draft>,
    topology: Topology<'a>,
    spots: Vec<Spot<'a>>,
    profiles: BTreeMap<ProfileKey<'a>, Rc<Profile>>,
    shapes: HashMap<(usize, Amounts), Rc<Shape>>,
    shapes_seen: usize,
    reaches: HashMap<(usize, SpreadKeys), Rc<Reach>>,
    shelf: Shelf,
    refusals: refusal::Memory,
    /// Where CPU stands in a row, if anybody asks for any.
    cpu: Option<usize>,
}

/// A machine that could be bought for a pod.
struct New<'o> {
    choice: &'o Choice<'o>,
    id: OfferingId,
}

/// What one pool may buy for a pod now.
struct Choice<'o> {
    ground: usize,
    offer: Cow<'o, Offer>,
}

/// Where a pod went.
enum Placed {
    /// It waits for a place that is there.
    Nominated(String, Vec<Toleration>),
    /// It is in a claim of this pass.
    Claimed,
}

/// Why a pod went nowhere, as far as it is known before words are needed.
enum Stuck {
    Refused(Box<Refusal>),
    /// Others that are placed later may change that.
    Waits,
    /// Enough was refused in this pass.
    Left,
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
                    Rc::new(ClassTable::new(&names, input, class.unwrap_or(&none)))
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
            cpu: names.position(CPU),
            names,
            grounds,
            caps: CapsLeft::new(input.caps),
            drafts: Vec::new(),
            topology: Topology::new(input),
            spots,
            profiles: BTreeMap::new(),
            shapes: HashMap::new(),
            shapes_seen: 0,
            reaches: HashMap::new(),
            shelf: Shelf::default(),
            refusals: refusal::Memory::default(),
        }
    }

    pub(crate) fn run(mut self) -> Plan {
        let mut plan = Plan::default();
        let mut queue = self.waiting();
        plan.deferred = queue.len().saturating_sub(self.input.rules.most_pods);
        queue.truncate(self.input.rules.most_pods);
        for _ in 0..ROUNDS {
            let before = queue.len();
            queue.retain(|pod| self.take(pod, &mut plan));
            if queue.is_empty() || queue.len() == before {
                break;
            }
        }
        for pod in queue {
            match self.refuse(pod) {
                Some(refusal) => {
                    plan.unplaced.push(Unplaced { pod: pod.key.clone(), uid: pod.uid.clone(), refusal });
                }
                None => plan.deferred += 1,
            }
        }
        let capped = plan.unplaced.iter().map(|unplaced| &unplaced.refusal);
        plan.capped = capped
            .into_iter()
            .find(|refusal| refusal.reason == "caps")
            .map(|refusal| refusal.message.clone());
        plan.unplaced.sort_by(|a, b| (&a.pod, &a.uid).cmp(&(&b.pod, &b.uid)));
        crate::packing::improve(&mut self);
        let mut menus = claim::Menus::default();
        plan.claims = self.drafts.iter().map(|draft| claim::planned(&self, &mut menus, draft)).collect();
        plan
    }

    /// Places a pod or writes down why not; whether it is to be looked at again.
    fn take(&mut self, pod: &'a Pod, plan: &mut Plan) -> bool {
        match self.place(pod) {
            Ok(Placed::Claimed) => {}
            Ok(Placed::Nominated(node, tolerations)) => plan.nominated.push(Nomination {
                pod: pod.key.clone(),
                uid: pod.uid.clone(),
                node,
                tolerations,
            }),
            Err(Stuck::Refused(refusal)) => {
                plan.unplaced.push(Unplaced {
                    pod: pod.key.clone(),
                    uid: pod.uid.clone(),
                    refusal: *refusal,
                });
            }
            Err(Stuck::Left) => plan.deferred += 1,
            Err(Stuck::Waits) => return true,
        }
        false
    }

    /// Pods to place, in order: first those that were not refused lately, then by priority, then the largest first
    /// (SCH-10). Those that a place is promised to are settled already.
    fn waiting(&self) -> Vec<&'a Pod> {
        let open = self.input.nodes.iter().filter(|node| node.open);
        let promised: BTreeSet<&str> =
            open.flat_map(|node| node.promised.iter().map(String::as_str)).collect();
        let hopeless = &self.input.lessons.hopeless;
        let mut pods: Vec<&Pod> =
            self.input.pods.iter().filter(|pod| !promised.contains(pod.uid.as_str())).collect();
        let size = |pod: &Pod, name| Reverse(pod.requests.get(name));
        pods.sort_by_cached_key(|pod| {
            let late = hopeless.contains(&pod.uid);
            let order = (late, Reverse(pod.priority), size(pod, CPU), size(pod, "memory"), pod.created);
            (order, &pod.uid, &pod.key)
        });
        pods
    }

    /// Places one pod.
    fn place(&mut self, pod: &'a Pod) -> Result<Placed, Stuck> {
        if let Some(refusal) = refusal::unreadable(pod) {
            return Err(Stuck::Refused(Box::new(refusal)));
        }
        let (shape, demand) = self.asked(pod).map_err(|error| Stuck::Refused(Box::new(invalid(&error))))?;
        let reach = self.reach(&shape, demand.as_deref());
        let none = Reach::default();
        for attempt in attempts(&shape.wishes, demand.as_deref()) {
            let reach = if attempt.only_present { &none } else { &*reach };
            let asked = demand.as_deref().map(|demand| (demand, reach));
            if let Some(placed) = self.attempt(pod, &shape, asked, &attempt) {
                return Ok(placed);
            }
        }
        if demand.is_some_and(|demand| demand.waits_for_others()) {
            return Err(Stuck::Waits);
        }
        let Some(refusal) = self.refuse(pod) else { return Err(Stuck::Left) };
        // A machine that grows for another pod may have room for this one in the end.
        let bound = ["limits", "caps"].contains(&refusal.reason.as_str());
        Err(if bound { Stuck::Waits } else { Stuck::Refused(Box::new(refusal)) })
    }

    fn attempt(
        &mut self,
        pod: &Pod,
        shape: &Shape,
        asked: Option<(&Demand, &Reach)>,
        attempt: &Attempt,
    ) -> Option<Placed> {
        let demand = asked.map(|(demand, _)| demand);
        let judgement = asked.map(|(demand, reach)| self.topology.judge(demand, attempt.soft, reach));
        let admits = |site| judgement.as_ref().is_none_or(|judgement| self.topology.admits(judgement, site));
        let settled = places::settle(&mut self.spots, &shape.profile.fits, &shape.need, admits);
        if let Some((site, node, tolerations)) = settled {
            if let Some(demand) = demand {
                self.topology.settle(demand, site);
            }
            return Some(Placed::Nominated(node, tolerations.to_vec()));
        }
        let all = self.choices(shape, attempt, &[]);
        let narrowed = match asked {
            // Which daemons run there decides, too: each offering is judged by itself.
            Some(_) if self.topology.has_residents() => None,
            None => None,
            Some((demand, reach)) => match self.topology.narrow(demand, attempt.soft, reach) {
                Some(by) if by.is_empty() => None,
                Some(by) => Some(self.choices(shape, attempt, &by)),
                // No new machine will do; one of this pass may.
                None => Some(Vec::new()),
            },
        };
        let new = self.cheapest(narrowed.as_ref().unwrap_or(&all), shape, judgement.as_ref());
        if self.join(pod, shape, demand, judgement.as_ref(), &all, new.as_ref()) {
            return Some(Placed::Claimed);
        }
        let new = new?;
        self.open(pod, shape, demand, &new);
        Some(Placed::Claimed)
    }

    /// What each pool may buy, with labels narrowed by rules about other pods.
    fn choices<'o>(
        &self,
        shape: &'o Shape,
        attempt: &Attempt,
        by: &[(&'a str, scarpenter_core::requirements::ValueSet)],
    ) -> Vec<Choice<'o>> {
        let mut out = Vec::new();
        for ground in 0..self.grounds.len() {
            let offers = shape.wishes[attempt.wishes.clone()].iter();
            for offer in offers.filter_map(|wish| wish.offers[ground].as_ref()) {
                let offer = if by.is_empty() {
                    Some(Cow::Borrowed(offer))
                } else {
                    offer.narrowed(self.market.snapshot, by).map(Cow::Owned)
                };
                out.extend(offer.map(|offer| Choice { ground, offer }));
            }
        }
        out
    }

    /// The cheapest machine for the pod alone, of the heaviest pools that have any.
    fn cheapest<'o>(
        &self,
        choices: &'o [Choice<'o>],
        shape: &Shape,
        judgement: Option<&Judgement>,
    ) -> Option<New<'o>> {
        let weight = |choice: &Choice<'_>| self.grounds[choice.ground].pool.weight;
        for group in choices.chunk_by(|a, b| weight(a) == weight(b)) {
            let found = group.iter().filter_map(|choice| {
                let id = self.first(choice, shape, judgement)?;
                Some(New { choice, id })
            });
            // The first of equals stays, so equal offerings go to the pool that stands first.
            let price = |new: &New<'_>| self.grounds[new.choice.ground].price(self.market.snapshot, new.id);
            if let Some(new) = found.min_by_key(|new| (price(new), new.id, new.choice.ground)) {
                return Some(new);
            }
        }
        None
    }

    /// The cheapest offering in `offer` with room for `need`, in stock, and within limits and caps.
    fn first(&self, choice: &Choice<'_>, shape: &Shape, judgement: Option<&Judgement>) -> Option<OfferingId> {
        let (ground, offer): (_, &Offer) = (&self.grounds[choice.ground], &choice.offer);
        let (need, exact) = (&*shape.need, shape.profile.exact);
        if self.caps.machines == Some(0)
            || !offer.selection.types.iter().any(|index| ground.limits_allow_type(index))
            || !self.has_variety(ground, &offer.requirements, &offer.selection, need, exact)
        {
            return None;
        }
        let snapshot = self.market.snapshot;
        ground.first(snapshot, &offer.selection, |id| {
            ground.has_room(snapshot, id, need, exact)
                && self.market.in_stock(id)
                && self.caps.allow(ground.price(snapshot, id))
                && ground.limits_allow(snapshot, id)
                && judgement.is_none_or(|judgement| self.would_take(judgement, ground, offer, id))
        })
    }

    /// Whether a new machine takes the pod beside the daemons that run on it.
    fn would_take(
        &self,
        judgement: &Judgement,
        ground: &Ground<'a>,
        offer: &Offer,
        launch: OfferingId,
    ) -> bool {
        if !self.topology.has_residents() {
            return true;
        }
        let (snapshot, number) = (self.market.snapshot, self.drafts.len());
        let place = Planned { snapshot, ground, requirements: &offer.requirements, launch, number };
        self.topology.admits_new(judgement, &place, &self.residents(ground, launch))
    }

    /// Daemons that run on a machine and matter to rules.
    fn residents(&self, ground: &Ground<'_>, launch: OfferingId) -> Vec<usize> {
        if !self.topology.has_residents() {
            return Vec::new();
        }
        self.topology.counted(ground.daemons_there(self.market.snapshot, launch))
    }

    /// Makes a new claim.
    fn open(&mut self, pod: &Pod, shape: &Shape, demand: Option<&Demand>, new: &New<'_>) {
        let snapshot = self.market.snapshot;
        let (index, number) = (new.choice.ground, self.drafts.len());
        let offer: &Offer = &new.choice.offer;
        let counted = self.grounds[index].counted(snapshot, new.id);
        self.grounds[index].reserve(&counted);
        self.caps.reserve(self.grounds[index].price(snapshot, new.id));
        let ground = &self.grounds[index];
        let place = Planned { snapshot, ground, requirements: &offer.requirements, launch: new.id, number };
        let mut change = draft::Change {
            narrowed: Some((Rc::clone(&offer.requirements), offer.selection.clone(), offer.span)),
            need: shape.need.clone(),
            launch: new.id,
            exact: shape.profile.exact,
        };
        let site = self.topology.add(&place);
        let residents = self.residents(ground, new.id);
        let counted = demand.is_some() || !residents.is_empty();
        if counted {
            change.pin(snapshot, &place, self.topology.keys());
        }
        self.topology.count_residents(site, &residents);
        if let Some(demand) = demand {
            self.topology.settle(demand, site);
        }
        let (requirements, options, span) = change.narrowed.expect("a new claim says what it may be");
        let draft = Draft {
            ground: index,
            profile: shape.profile.id,
            pods: vec![draft::Passenger::new(pod, &shape.need, offer.tolerated.clone())],
            requirements,
            options,
            span,
            need: change.need,
            launch: new.id,
            exact: change.exact,
            counted,
            site,
        };
        if ground.class.tenancy == Tenancy::Shared {
            let room = self.room(&draft);
            self.shelf.know(&shape.profile);
            self.shelf.add(draft.profile, room, number);
        }
        self.drafts.push(draft);
    }
}

fn invalid(error: &BadRequirement) -> Refusal {
    refusal::plain("invalid", error.to_string())
}

fn used_by(pool: &Pool, input: &Input<'_>) -> Resources {
    let mut used = Resources::new();
    for node in input.nodes.iter().filter(|node| node.pool.as_ref() == Some(&pool.name)) {
        used.add(&node.counted);
    }
    used
}
