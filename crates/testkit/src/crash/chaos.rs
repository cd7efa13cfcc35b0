//! What happens to claims and machines without the controller: people, the vendor, the kubelet.

use scarpenter_core::lifecycle::{Claim, Time};

use super::Wrong;
use super::act::Answer;
use super::cloud::Power;
use super::knobs::{BIND, TROUBLE};
use super::store::{Fate, Node};
use super::world::{Event, Request, World};

/// What people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    DeleteClaim,
    DeleteNode,
    DeleteSecret,
    DropFinalizer,
}

const HANDS: [Hand; 4] = [Hand::DeleteNode, Hand::DeleteSecret, Hand::DropFinalizer, Hand::DeleteClaim];

impl World {
    /// A claim is made, by the planner (held from its birth) or by a user.
    pub(super) fn appear(&mut self, claim: usize) {
        let held = self.chance(700);
        self.slots[claim].create(Time::from_millis(self.now), held);
        self.out.claims += 1;
        self.note(|_| format!("claim {claim} is made"));
        self.changed(claim);
        if self.chance(self.knobs.deletes) {
            self.plan_hand(claim, Hand::DeleteClaim);
        }
        for _ in 0..3 {
            if self.chance(self.knobs.hands) {
                let hand = HANDS[usize::try_from(self.within(0, 3)).unwrap_or(0)];
                self.plan_hand(claim, hand);
            }
        }
    }

    fn plan_hand(&mut self, claim: usize, hand: Hand) {
        let longest = [4_000, 40_000, TROUBLE - 21_000][usize::try_from(self.within(0, 2)).unwrap_or(0)];
        let at = self.now + self.within(1, longest);
        self.push(at, Event::Hand(claim, hand));
    }

    pub(super) fn hand(&mut self, claim: usize, hand: Hand) {
        let slot = &mut self.slots[claim];
        let done = match hand {
            Hand::DeleteClaim => slot.delete(None, Time::from_millis(self.now)),
            Hand::DeleteNode => slot.node.take().is_some(),
            Hand::DeleteSecret => std::mem::take(&mut slot.secret),
            Hand::DropFinalizer => slot.patch(None, |object| object.held = false).is_some(),
        };
        if done {
            self.note(|_| format!("somebody on claim {claim}: {hand:?}"));
            self.changed(claim);
        }
    }

    /// A create reaches the vendor.
    pub(super) fn arrive(&mut self, request: Request) {
        let Request { claim, refused, lost, from, .. } = request;
        if let Some(at) = self.cloud.flying.iter().position(|flying| *flying == claim) {
            self.cloud.flying.swap_remove(at);
        }
        let answer = if refused { Answer::Refused } else { self.create(&request) };
        self.note(|_| format!("the vendor has a create for claim {claim}: {answer:?}"));
        let Some(life) = from else { return };
        let answer = if lost { Answer::Unknown } else { answer };
        let longest = if self.chance(self.knobs.slow) { 60_000 } else { 500 };
        let at = self.now + self.within(1, longest);
        self.push(at, Event::Answer(life, claim, answer));
    }

    fn create(&mut self, request: &Request) -> Answer {
        let claim = request.claim;
        let same = self.cloud.machines.iter().find(|machine| {
            machine.claim == claim && (machine.alive() || self.knobs.remembers) && self.knobs.idempotent
        });
        if let Some(machine) = same {
            return Answer::Made(machine.id.clone());
        }
        if self.cloud.of(claim).any(|machine| machine.alive() && machine.request != request.number) {
            self.fail(Wrong::Doubled, || format!("claim {claim} gets a second machine"));
        }
        if self.slots[claim].fate == Fate::Released {
            self.fail(Wrong::Leaked, || format!("claim {claim} gets a machine after its release"));
        }
        let lag = self.within(0, self.knobs.lag);
        let number = self.cloud.make(request, self.now, lag);
        self.out.machines += 1;
        let at = self.now + self.within(3_000, 60_000);
        self.push(at, Event::Boot(number));
        if self.chance(self.knobs.dies) {
            let at = self.now + self.within(1, 100_000);
            self.push(at, Event::Dies(number));
        }
        Answer::Made(self.cloud.machines[number].id.clone())
    }

    /// Asks the vendor to delete a machine: it goes some time later.
    pub(super) fn terminate(&mut self, number: usize) {
        if self.cloud.machines[number].alive() {
            self.cloud.machines[number].power = Power::Deleting;
            let at = self.now + self.within(1, 20_000);
            self.push(at, Event::Gone(number));
        }
    }

    /// A machine joins, if it is let in.
    pub(super) fn boot(&mut self, number: usize) {
        let claim = self.cloud.machines[number].claim;
        let running = self.cloud.machines[number].power == Power::Running;
        if running {
            self.join_mesh(number);
        }
        let pods = usize::try_from(self.within(0, 2)).unwrap_or(0);
        let slot = &mut self.slots[claim];
        let awaited = slot.object.as_ref().is_some_and(|object| object.claim.deleted.is_none());
        if running && awaited && slot.token && slot.node.is_none() {
            slot.node = Some(Node { ready: true, disrupted: None, pods });
            self.note(|_| format!("the node of claim {claim} joins"));
            self.stir(claim);
        }
    }

    /// A node gets the taint of a node that goes; a scheduler that has not seen it may still bind a pod.
    pub(super) fn taint(&mut self, claim: usize, now: Time) {
        let Some(node) = &mut self.slots[claim].node else { return };
        if node.disrupted.is_none() {
            node.disrupted = Some(now);
            if self.chance(500) {
                let at = self.now + self.within(0, BIND - 1);
                self.push(at, Event::Bind(claim));
            }
        }
    }

    /// Checks that no pod loses its machine before its time.
    pub(super) fn must_be_empty(&mut self, claim: usize, object: &Claim, now: Time) {
        let over = object.drain_deadline.is_some_and(|deadline| now >= deadline);
        let pods = self.slots[claim].node.as_ref().map_or(0, |node| node.pods);
        if pods > 0 && object.registered && object.terminating.is_none() && !over {
            self.fail(Wrong::Bereft, || format!("{pods} pods of claim {claim} lose their machine"));
        }
    }

    /// A machine stops, or its vendor takes it back.
    pub(super) fn dies(&mut self, number: usize) {
        if self.cloud.machines[number].power != Power::Running {
            return;
        }
        let taken = self.chance(500);
        self.note(|_| format!("machine {number} {}", if taken { "is taken back" } else { "stops" }));
        if taken {
            self.gone(number);
        } else {
            self.cloud.machines[number].power = Power::Stopped;
            self.silence(number);
        }
    }

    /// A machine is gone at its vendor.
    pub(super) fn gone(&mut self, number: usize) {
        self.cloud.machines[number].power = Power::Gone;
        self.note(|world| {
            let machine = &world.cloud.machines[number];
            format!("{} of claim {} is gone, {} ms old", machine.id, machine.claim, world.now - machine.made)
        });
        self.silence(number);
    }

    fn silence(&mut self, number: usize) {
        let claim = self.cloud.machines[number].claim;
        let at = self.now + self.within(1, 40_000);
        self.push(at, Event::NotReady(claim));
    }

    pub(super) fn not_ready(&mut self, claim: usize) {
        let running = self.cloud.of(claim).any(|machine| machine.power == Power::Running);
        if let Some(node) = &mut self.slots[claim].node
            && !running
        {
            node.ready = false;
            self.stir(claim);
        }
    }

    /// What Kubernetes removes by itself once the owner is gone.
    pub(super) fn collect(&mut self) {
        for slot in &mut self.slots {
            if slot.fate != Fate::There && slot.object.is_none() {
                slot.secret = false;
                slot.token = false;
                slot.node = None;
            }
        }
        self.push(self.now + 20_000, Event::Collect);
    }
}
