//! The controller's thin side: one look, one decision of `next_step`, then its effects one by one.

use std::collections::VecDeque;
use std::time::Duration;

use rand::Rng;
use rand::seq::SliceRandom;
use scarpenter_core::lifecycle::{
    Claim, Limits, MachineSeen, NodeFacts, NodeSeen, Seen, Step, Time, WaitReason, may_send, next_step,
};
use scarpenter_core::name::MachineId;

use super::cloud::Power;
use super::knobs::{BIND, FLIGHT, LAG, SEND, SETTLE, SKEW, Variant};
use super::world::{Event, Life, Request, World};

/// One thing that a controller does to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Hold,
    MakeKey,
    WriteKey,
    NoteKey,
    MakeSecret,
    MakeToken,
    Attempt,
    SettleKey,
    Find,
    Send,
    RecordId(MachineId),
    RecordRefusal,
    SyncNode,
    DropSecret,
    DropToken,
    RecordRegistered,
    RecordInitialized,
    DeleteClaim,
    Taint,
    Evict,
    DeleteMachine,
    RecordTerminating,
    DeleteNode,
    LeaveMesh,
    Unhold,
}

impl Effect {
    /// How many kinds there are.
    pub(super) const KINDS: usize = 25;

    /// The number of its kind.
    pub(super) fn kind(&self) -> usize {
        match self {
            Self::Hold => 0,
            Self::MakeSecret => 1,
            Self::MakeToken => 2,
            Self::Attempt => 3,
            Self::Find => 4,
            Self::Send => 5,
            Self::RecordId(_) => 6,
            Self::RecordRefusal => 7,
            Self::SyncNode => 8,
            Self::DropSecret => 9,
            Self::DropToken => 10,
            Self::RecordRegistered => 11,
            Self::RecordInitialized => 12,
            Self::DeleteClaim => 13,
            Self::Taint => 14,
            Self::Evict => 15,
            Self::DeleteMachine => 16,
            Self::RecordTerminating => 17,
            Self::DeleteNode => 18,
            Self::Unhold => 19,
            Self::MakeKey => 20,
            Self::WriteKey => 21,
            Self::SettleKey => 22,
            Self::LeaveMesh => 23,
            Self::NoteKey => 24,
        }
    }
}

impl Effect {
    fn is_of_mesh(&self) -> bool {
        let mesh = [Self::MakeKey, Self::WriteKey, Self::NoteKey, Self::SettleKey, Self::LeaveMesh];
        mesh.contains(self)
    }
}

/// What the vendor said to a create.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Made(MachineId),
    Refused,
    /// Lost, or try later: nothing is known.
    Unknown,
}

/// A step being carried out.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) effects: VecDeque<Effect>,
    /// The claim's version that the step was decided on, or that its own last patch made.
    pub(super) version: u64,
    claim: Claim,
    attempt: Option<Time>,
    /// Which mesh key is on the claim, as far as this step knows.
    pub(super) mark: Option<usize>,
    /// The mesh key that it made, and later the one that is in the document.
    pub(super) key: Option<usize>,
}

/// How an effect ended.
pub(super) enum Then {
    Next,
    Stop,
    Wait,
}

impl World {
    /// Looks at a claim and begins what it needs.
    pub(super) fn reconcile(&mut self, replica: usize, claim: usize) {
        if !self.replicas[replica].alive || self.replicas[replica].tasks[claim].is_some() {
            return;
        }
        let Some(view) = self.replicas[replica].views[claim].clone() else { return };
        let seen = self.observe(replica, claim, &view.claim);
        let step = self.decide(replica, claim, &view.claim, seen);
        if let Step::Wait { until, reason } = step {
            let poll = if reason == WaitReason::Running { 60_000 } else { 15_000 };
            let at = self.now + self.within(2_000, poll);
            let until = until.map_or(i64::MAX, |until| until.millis() - self.replicas[replica].skew);
            self.wake(replica, claim, at.min(until.max(self.now + 1)));
            return;
        }
        self.note(|_| format!("controller {replica} on claim {claim} v{}: {step:?}", view.version));
        let effects = self.effects(&step, &view.claim);
        let life = Life { replica, epoch: self.replicas[replica].epoch };
        let (version, mark) = (view.version, view.mark);
        let task = Task { effects, version, claim: view.claim, attempt: None, mark, key: None };
        self.replicas[replica].tasks[claim] = Some(task);
        self.later(life, claim);
    }

    fn observe(&mut self, replica: usize, index: usize, claim: &Claim) -> Seen {
        let provider_ready = !self.chance(self.knobs.down);
        let machine = if claim.attempt.is_none() && claim.machine_id.is_none() {
            MachineSeen::NotAsked
        } else {
            self.look(replica, index)
        };
        let slot = &self.slots[index];
        let node = slot.node.as_ref().map_or(NodeSeen::Absent, |node| {
            NodeSeen::One(NodeFacts {
                ready: node.ready,
                deleting: false,
                uninitialized: (!node.ready).then(|| ("NodeNotReady", String::new())),
                disrupted: node.disrupted,
                pods: node.pods,
            })
        });
        let unanswered = claim.attempt.is_some() && claim.machine_id.is_none();
        let join_material_lost = unanswered && !slot.secret;
        Seen { node, machine, join_material_lost, class_ready: true, provider_ready }
    }

    /// Asks the vendor for the claim's machines, or remembers what an earlier list said.
    fn look(&mut self, replica: usize, claim: usize) -> MachineSeen {
        if let Some(old) = &self.replicas[replica].looks[claim]
            && self.rng.random_ratio(3, 10)
        {
            return old.clone();
        }
        if self.chance(self.knobs.down) {
            return MachineSeen::Unknown(String::new());
        }
        let listed = self.cloud.list(claim, self.now, &mut self.rng);
        let seen = if listed.is_empty() {
            MachineSeen::Absent(self.clock(replica))
        } else {
            let power = |number: &usize| self.cloud.machines[*number].power;
            MachineSeen::Present { stopped: listed.iter().all(|number| power(number) == Power::Stopped) }
        };
        self.replicas[replica].looks[claim] = Some(seen.clone());
        seen
    }

    /// The real decision, for all but a broken variant.
    fn decide(&mut self, replica: usize, index: usize, claim: &Claim, mut seen: Seen) -> Step {
        let mut claim = claim.clone();
        let mut settle = SETTLE;
        let mut drain = BIND + SKEW;
        match self.variant {
            Variant::NoSettle => settle = 0,
            Variant::NoRest => drain = 0,
            Variant::SettleWithoutLag => settle -= LAG,
            Variant::SettleWithoutFlight => settle -= FLIGHT,
            Variant::ReleaseUnsettled if claim.deleted.is_some() => {
                claim.attempt = claim.attempt.map(|_| Time::from_millis(-1_000_000));
            }
            Variant::SettleFromFirst => claim.attempt = claim.attempt.and(self.slots[index].first),
            Variant::ReleaseWithoutList if claim.terminating.is_some() => {
                seen.machine = MachineSeen::Absent(self.clock(replica));
            }
            _ => {}
        }
        let limits = Limits {
            launch: Duration::from_secs(120),
            registration: Duration::from_secs(300),
            settle: Duration::from_millis(settle.unsigned_abs()),
            drain: Duration::from_millis(drain.unsigned_abs()),
        };
        next_step(&claim, &seen, &limits, self.clock(replica))
    }

    /// A step as the effects that the controller has, in its order.
    fn effects(&mut self, step: &Step, claim: &Claim) -> VecDeque<Effect> {
        let mut effects = match step {
            Step::Hold => vec![Effect::Hold],
            Step::Launch => {
                // These three are asked for at once.
                let mut at_once = [Effect::NoteKey, Effect::MakeSecret, Effect::MakeToken, Effect::Attempt];
                at_once.shuffle(&mut self.rng);
                let mut effects = vec![Effect::MakeKey, Effect::WriteKey];
                effects.extend(at_once);
                effects.extend([Effect::SettleKey, Effect::Send]);
                effects
            }
            Step::Create => vec![Effect::Attempt, Effect::Find, Effect::SettleKey, Effect::Send],
            // The Secret goes before the condition comes, for nobody looks for it after.
            Step::Register => {
                vec![Effect::SyncNode, Effect::DropSecret, Effect::DropToken, Effect::RecordRegistered]
            }
            Step::Initialize => vec![Effect::RecordInitialized],
            Step::Abandon(_) => vec![Effect::DropSecret, Effect::DropToken, Effect::DeleteClaim],
            Step::Drain => vec![Effect::Taint, Effect::Evict],
            Step::Destroy if claim.terminating.is_some() => vec![Effect::DeleteMachine],
            Step::Destroy => vec![Effect::DeleteMachine, Effect::RecordTerminating],
            Step::Release => {
                let mut effects = vec![Effect::DeleteNode, Effect::DropSecret, Effect::DropToken];
                effects.extend([Effect::LeaveMesh, Effect::Unhold]);
                effects
            }
            Step::Wait { .. } => vec![],
        };
        effects.retain(|effect| self.knobs.mesh || !effect.is_of_mesh());
        effects.retain(|effect| match self.variant {
            Variant::NoAttempt => *effect != Effect::Attempt,
            Variant::NoFind => *effect != Effect::Find,
            Variant::KeyIsNotNoted => *effect != Effect::NoteKey,
            Variant::ReleaseKeepsSecret if *step == Step::Release => *effect != Effect::DropSecret,
            _ => true,
        });
        effects.into()
    }

    fn later(&mut self, life: Life, claim: usize) {
        let longest = match self.rng.random_range(0..8) {
            0 => 2_000,
            // About as long as a create may wait, so that it is sent just in time or just not.
            1 if self.knobs.brink => SEND - 100,
            1 => SEND + 1_000,
            _ => 150,
        };
        let longest = if self.chance(self.knobs.freeze) { 60_000 } else { longest };
        let at = self.now + self.within(1, longest);
        self.push(at, Event::Effect(life, claim));
    }

    /// Carries out the next effect of a step, and may die before and after it.
    pub(super) fn effect(&mut self, life: Life, claim: usize) {
        let Some(mut task) = self.replicas[life.replica].tasks[claim].take() else { return };
        let Some(effect) = task.effects.pop_front() else { return };
        let kind = effect.kind();
        if self.chance(self.knobs.crash) {
            self.out.died[kind].0 += 1;
            return self.crash(life.replica);
        }
        self.out.effects += 1;
        let then = self.carry_out(life, claim, &mut task, &effect);
        self.note(|_| {
            let end = match then {
                Then::Next => "done",
                Then::Stop => "stop",
                Then::Wait => "sent",
            };
            format!("controller {} on claim {claim}: {effect:?}: {end}", life.replica)
        });
        let more = !task.effects.is_empty();
        self.replicas[life.replica].tasks[claim] = Some(task);
        if self.chance(self.knobs.crash) {
            self.out.died[kind].1 += 1;
            return self.crash(life.replica);
        }
        match then {
            Then::Next if more => self.later(life, claim),
            Then::Next | Then::Stop => self.finish(life.replica, claim),
            Then::Wait => {}
        }
    }

    fn finish(&mut self, replica: usize, claim: usize) {
        self.replicas[replica].tasks[claim] = None;
        let at = self.now + self.within(20, 2_000);
        self.wake(replica, claim, at);
    }

    fn carry_out(&mut self, life: Life, index: usize, task: &mut Task, effect: &Effect) -> Then {
        let now = self.clock(life.replica);
        let refusal_version = self.variant != Variant::RefusalAnyVersion;
        let attempt_version = self.variant != Variant::AttemptAnyVersion;
        match effect {
            Effect::Hold => self.patch(index, task, true, |claim| claim.held = true),
            Effect::MakeKey => self.make_key(index, task),
            Effect::WriteKey => self.write_key(index, task),
            Effect::SettleKey => self.settle_key(index, task),
            Effect::NoteKey => {
                self.slots[index].noted = task.mark;
                Then::Next
            }
            Effect::LeaveMesh => {
                self.slots[index].left.extend(task.mark);
                Then::Next
            }
            Effect::MakeSecret => {
                let slot = &mut self.slots[index];
                // What an earlier look has stored wins, and where that is gone its key is gone with it.
                if !slot.secret {
                    if self.knobs.mesh && task.key.is_none() {
                        return Then::Stop;
                    }
                    slot.secret = true;
                    slot.secret_key = task.key;
                }
                Then::Next
            }
            Effect::MakeToken => {
                self.slots[index].token = true;
                Then::Next
            }
            Effect::Attempt => {
                task.attempt = Some(now);
                self.slots[index].first.get_or_insert(now);
                self.patch(index, task, attempt_version, |claim| claim.attempt = Some(now))
            }
            Effect::Find => self.find(index, task),
            Effect::Send => self.send(life, index, task, now),
            Effect::RecordId(id) => {
                let id = id.clone();
                self.patch(index, task, true, |claim| claim.machine_id = Some(id))
            }
            Effect::RecordRefusal => self.patch(index, task, refusal_version, |claim| {
                claim.refused = Some("sold out".to_owned());
                claim.attempt = None;
            }),
            Effect::SyncNode => Then::Next,
            Effect::DropSecret => {
                self.slots[index].secret = false;
                Then::Next
            }
            Effect::DropToken => {
                self.slots[index].token = false;
                Then::Next
            }
            Effect::RecordRegistered => self.patch(index, task, true, |claim| claim.registered = true),
            Effect::RecordInitialized => self.patch(index, task, true, |claim| claim.initialized = true),
            Effect::DeleteClaim => self.delete_claim(index, task.version),
            Effect::Taint => {
                self.taint(index, now);
                Then::Next
            }
            Effect::Evict => {
                let at = self.now + self.within(0, 15_000);
                self.push(at, Event::Evicted(index));
                Then::Next
            }
            Effect::DeleteMachine => {
                self.must_be_empty(index, &task.claim, now);
                self.delete_machine(index, &task.claim)
            }
            Effect::RecordTerminating => self.patch(index, task, true, |claim| claim.terminating = Some(now)),
            Effect::DeleteNode => {
                self.slots[index].node = None;
                Then::Next
            }
            Effect::Unhold => {
                let then = self.patch(index, task, true, |claim| claim.held = false);
                if self.slots[index].object.is_none() && matches!(then, Then::Next) {
                    self.released(index);
                }
                then
            }
        }
    }

    /// Patches the claim with the version that the step knows.
    fn patch(&mut self, index: usize, task: &mut Task, at: bool, change: impl FnOnce(&mut Claim)) -> Then {
        let Some(version) = self.slots[index].patch(at.then_some(task.version), change) else {
            return Then::Stop;
        };
        task.version = version;
        self.changed(index);
        Then::Next
    }

    /// Asks for the deletion with the UID alone as its precondition, so a stale view may give up a claim in vain.
    fn delete_claim(&mut self, index: usize, version: u64) -> Then {
        let object = self.slots[index].object.as_ref();
        let live = object.filter(|object| object.claim.registered && object.claim.deleted.is_none());
        self.out.vain += u64::from(live.is_some_and(|object| object.version != version));
        if !self.slots[index].delete(None, Time::from_millis(self.now)) {
            return Then::Stop;
        }
        self.changed(index);
        Then::Next
    }

    fn find(&mut self, index: usize, task: &mut Task) -> Then {
        if self.chance(self.knobs.down) {
            return Then::Stop;
        }
        if let Some(oldest) = self.cloud.list(index, self.now, &mut self.rng).first() {
            let id = self.cloud.machines[*oldest].id.clone();
            task.effects = VecDeque::from([Effect::RecordId(id)]);
        }
        Then::Next
    }

    /// Sends the create, unless this process stood still for too long since it wrote `attempt`.
    fn send(&mut self, life: Life, index: usize, task: &Task, now: Time) -> Then {
        let late = task.attempt.is_some_and(|attempt| !may_send(attempt, now));
        if (late && self.variant != Variant::SendLate) || !self.slots[index].secret {
            return Then::Stop;
        }
        let wait = self.now + self.within(10, 20_000);
        if self.chance(self.knobs.limited) || self.chance(self.knobs.unsent) {
            self.push(wait, Event::Answer(life, index, Answer::Unknown));
            return Then::Wait;
        }
        let refused = self.chance(self.knobs.refused);
        let lost = self.chance(self.knobs.lost);
        let (number, key) = (self.out.effects, task.key);
        let request = Request { claim: index, number, key, refused, lost, from: Some(life) };
        self.fly(request);
        if self.chance(self.knobs.twice) {
            self.fly(Request { from: None, ..request });
        }
        Then::Wait
    }

    fn fly(&mut self, request: Request) {
        let longest = if !self.knobs.brink && self.chance(700) {
            self.knobs.flight.min(300)
        } else {
            self.knobs.flight
        };
        let at = self.now + self.within(0, longest - 1).max(0);
        self.cloud.flying.push(request.claim);
        self.push(at, Event::Arrive(request));
    }

    /// The vendor has answered a create.
    pub(super) fn answered(&mut self, life: Life, claim: usize, answer: Answer) {
        self.note(|_| format!("controller {} hears of claim {claim}: {answer:?}", life.replica));
        let effect = match answer {
            Answer::Made(id) => Effect::RecordId(id),
            Answer::Refused => Effect::RecordRefusal,
            Answer::Unknown if self.variant == Variant::LostIsRefused => Effect::RecordRefusal,
            Answer::Unknown => return self.finish(life.replica, claim),
        };
        if let Some(task) = &mut self.replicas[life.replica].tasks[claim] {
            task.effects = VecDeque::from([effect]);
            self.later(life, claim);
        }
    }

    fn delete_machine(&mut self, index: usize, claim: &Claim) -> Then {
        if self.chance(self.knobs.limited) || self.chance(self.knobs.down) {
            return Then::Stop;
        }
        if self.chance(self.knobs.liar) {
            return Then::Next;
        }
        let known = claim.machine_id.as_ref().and_then(|id| self.cloud.number(id));
        if let Some(number) = known {
            self.terminate(number);
        }
        if self.variant != Variant::DeleteById {
            for number in self.cloud.list(index, self.now, &mut self.rng) {
                self.terminate(number);
            }
        }
        if self.chance(self.knobs.lost) { Then::Stop } else { Then::Next }
    }
}
