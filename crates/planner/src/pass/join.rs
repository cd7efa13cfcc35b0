//! Whether a pod goes into a claim that this pass makes already.

use std::collections::BTreeSet;

use scarpenter_core::pod::{Pod, Toleration};

use super::draft::{Change, Draft, Passenger, Planned};
use super::{Choice, New, Pass};
use crate::shape::{Offer, Shape};
use crate::table;
use crate::topology::{Demand, Judgement};

/// So many claims are asked whether a larger machine for one more pod would be cheaper than a machine of its own.
const GROWTH_TRIES: usize = 4;

impl Pass<'_> {
    /// Puts the pod into a claim of this pass, if one has room or is cheaper to enlarge than a new one is to make.
    pub(super) fn join(
        &mut self,
        pod: &Pod,
        shape: &Shape,
        demand: Option<&Demand>,
        judgement: Option<&Judgement>,
        choices: &[Choice<'_>],
        new: Option<&New<'_>>,
    ) -> bool {
        self.shelf.know(&shape.profile);
        let taken = self.roomy(shape, judgement, choices);
        let Some((index, change, tolerated)) =
            taken.or_else(|| self.enlarged(shape, demand, judgement, choices, new))
        else {
            return false;
        };
        self.board(pod, shape, demand, index, change, tolerated);
        true
    }

    /// A claim whose machine has room.
    fn roomy(
        &self,
        shape: &Shape,
        judgement: Option<&Judgement>,
        choices: &[Choice<'_>],
    ) -> Option<(usize, Change, Vec<Toleration>)> {
        let cpu = self.cpu.map_or(0, |at| shape.need[at]);
        for index in self.shelf.with_room(shape.profile.id, cpu) {
            let draft = &self.drafts[index];
            if !self.admits(judgement, draft) {
                continue;
            }
            for offer in self.offers(choices, draft) {
                if let Some(change) = self.squeeze(draft, offer, shape, judgement.is_some()) {
                    return Some((index, change, offer.tolerated.clone()));
                }
            }
        }
        None
    }

    fn admits(&self, judgement: Option<&Judgement>, draft: &Draft) -> bool {
        judgement.is_none_or(|judgement| self.topology.admits(judgement, draft.site))
    }

    fn offers<'o>(&self, choices: &'o [Choice<'_>], draft: &'o Draft) -> impl Iterator<Item = &'o Offer> {
        let of_ground = choices.iter().filter(|choice| choice.ground == draft.ground);
        of_ground.map(|choice| &*choice.offer).filter(|offer| draft.meets(offer))
    }

    /// The claim with the pod, when the machine that it already has is large enough; `counted` when a rule counts the pod.
    fn squeeze(&self, draft: &Draft, offer: &Offer, shape: &Shape, counted: bool) -> Option<Change> {
        let snapshot = self.market.snapshot;
        let total = table::sum(&draft.need, &shape.need);
        let ground = &self.grounds[draft.ground];
        let exact = draft.exact && shape.profile.exact;
        if !snapshot.contains(&offer.selection, draft.launch)
            || !ground.has_room(snapshot, draft.launch, &total, exact)
        {
            return None;
        }
        let change = self.pinned(draft, draft.with(offer, total, exact)?, counted)?;
        self.varied(draft, change)
    }

    /// The change, with the domains kept that the machine is in, if a rule counts the pod and none was counted there before.
    fn pinned(&self, draft: &Draft, mut change: Change, counted: bool) -> Option<Change> {
        let keeps = !counted
            || draft.counted
            || change.pin_in(draft, self.market.snapshot, &self.planned(draft), self.topology.keys());
        keeps.then_some(change)
    }

    /// A claim that is cheaper to enlarge than a new one is to make.
    fn enlarged(
        &mut self,
        shape: &Shape,
        demand: Option<&Demand>,
        judgement: Option<&Judgement>,
        choices: &[Choice<'_>],
        new: Option<&New<'_>>,
    ) -> Option<(usize, Change, Vec<Toleration>)> {
        let mut best: Option<(u64, usize, Change, Vec<Toleration>)> = None;
        let mut asked = BTreeSet::new();
        for index in self.shelf.young(shape.profile.id) {
            let draft = &self.drafts[index];
            if !self.admits(judgement, draft) {
                continue;
            }
            for offer in self.offers(choices, draft) {
                asked.insert(index);
                let grown = self.grow(draft, offer, shape, demand.is_some());
                if let Some((cost, change)) = grown
                    && best.as_ref().is_none_or(|(least, ..)| cost < *least)
                {
                    best = Some((cost, index, change, offer.tolerated.clone()));
                }
            }
            if asked.len() >= GROWTH_TRIES {
                break;
            }
        }
        let alone = new.map(|new| self.grounds[new.choice.ground].price(self.market.snapshot, new.id));
        let best = best.filter(|(cost, ..)| alone.is_none_or(|alone| *cost <= alone));
        if best.is_none() && judgement.is_none() {
            // Pods come from large to small: what is too dear to enlarge now hardly gets cheaper.
            asked.iter().for_each(|index| self.shelf.age(self.drafts[*index].profile, *index));
        }
        best.map(|(_, index, change, tolerated)| (index, change, tolerated))
    }

    /// The claim with the pod on the cheapest machine that is large enough, and what that costs more.
    fn grow(&self, draft: &Draft, offer: &Offer, shape: &Shape, counted: bool) -> Option<(u64, Change)> {
        let snapshot = self.market.snapshot;
        let ground = &self.grounds[draft.ground];
        let exact = draft.exact && shape.profile.exact;
        let change = draft.with(offer, table::sum(&draft.need, &shape.need), exact)?;
        let mut change = self.pinned(draft, change, counted)?;
        let options = change.options(draft);
        let before = ground.counted(snapshot, draft.launch);
        let price = |id| ground.price(snapshot, id);
        let old = price(draft.launch);
        let within = |id| {
            let more = ground.counted(snapshot, id);
            let mut rows = ground.left.iter().zip(&before).zip(&more);
            rows.all(|((left, before), more)| *left == i64::MAX || *more <= left.saturating_add(*before))
        };
        let beside = self.topology.has_residents().then(|| self.residents(ground, draft.launch));
        let launch = ground.first(snapshot, options, |id| {
            ground.has_room(snapshot, id, &change.need, exact)
                && self.market.in_stock(id)
                && self.caps.micro_usd.is_none_or(|left| price(id) <= left.saturating_add(old))
                && within(id)
                && beside.as_ref().is_none_or(|beside| self.residents(ground, id) == *beside)
        })?;
        change.launch = launch;
        let change = self.varied(draft, change)?;
        Some((price(launch).saturating_sub(old), change))
    }

    /// The change, if as many values stay possible as the pool wants.
    fn varied(&self, draft: &Draft, change: Change) -> Option<Change> {
        let ground = &self.grounds[draft.ground];
        let requirements = change.requirements(draft);
        let varied =
            self.has_variety(ground, requirements, change.options(draft), &change.need, change.exact);
        varied.then_some(change)
    }

    fn planned<'p>(&'p self, draft: &'p Draft) -> Planned<'p, 'p> {
        Planned {
            snapshot: self.market.snapshot,
            ground: &self.grounds[draft.ground],
            requirements: &draft.requirements,
            launch: draft.launch,
            number: draft.site,
        }
    }

    /// How much CPU a claim's machine has left.
    pub(super) fn room(&self, draft: &Draft) -> i64 {
        let Some(cpu) = self.cpu else { return 0 };
        let room = self.grounds[draft.ground].room(self.market.snapshot, draft.launch, draft.exact);
        room[cpu].saturating_sub(draft.need[cpu])
    }

    /// Puts the pod into a claim; reservations and counts follow.
    fn board(
        &mut self,
        pod: &Pod,
        shape: &Shape,
        demand: Option<&Demand>,
        index: usize,
        change: Change,
        tolerated: Vec<Toleration>,
    ) {
        let before = self.room(&self.drafts[index]);
        self.relaunch(index, change.launch);
        let draft = &mut self.drafts[index];
        change.apply(draft);
        draft.counted |= demand.is_some();
        draft.pods.push(Passenger::new(pod, &shape.need, tolerated));
        let site = draft.site;
        let after = self.room(&self.drafts[index]);
        self.shelf.moved(self.drafts[index].profile, before, after, index);
        match demand {
            Some(demand) => self.topology.settle(demand, site),
            None if !self.drafts[index].counted => self.moved(index),
            None => {}
        }
    }

    /// Tells where the site of a claim is now.
    fn moved(&mut self, index: usize) {
        if self.topology.is_empty() {
            return;
        }
        let draft = &self.drafts[index];
        let place = Planned {
            snapshot: self.market.snapshot,
            ground: &self.grounds[draft.ground],
            requirements: &draft.requirements,
            launch: draft.launch,
            number: draft.site,
        };
        self.topology.change(draft.site, &place);
    }

    /// Exchanges what is reserved for a claim's machine.
    pub(crate) fn relaunch(&mut self, index: usize, after: scarpenter_core::snapshot::OfferingId) {
        let draft = &self.drafts[index];
        let before = draft.launch;
        if before == after {
            return;
        }
        let snapshot = self.market.snapshot;
        let ground = &mut self.grounds[draft.ground];
        let counted = [before, after].map(|id| ground.counted(snapshot, id));
        ground.give_back(&counted[0]);
        ground.reserve(&counted[1]);
        self.caps.give_back(ground.price(snapshot, before));
        self.caps.reserve(ground.price(snapshot, after));
    }

    /// Gives back what is reserved for a claim's machine.
    pub(crate) fn give_back(&mut self, index: usize) {
        let draft = &self.drafts[index];
        let (snapshot, launch) = (self.market.snapshot, draft.launch);
        let ground = &mut self.grounds[draft.ground];
        let counted = ground.counted(snapshot, launch);
        ground.give_back(&counted);
        self.caps.give_back(ground.price(snapshot, launch));
    }
}
