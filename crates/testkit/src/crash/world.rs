//! Everything at once, driven by a queue of events in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scarpenter_core::lifecycle::{MachineSeen, Time};
use scarpenter_core::sweep::{Doomed, Machine, Owner};

use super::act::{Answer, Task};
use super::chaos::Hand;
use super::cloud::{Cloud, Power};
use super::knobs::{END, Knobs, TROUBLE, Variant};
use super::mesh::Key;
use super::store::{Fate, Object, Slot};
use super::{Run, Wrong};

/// Who asked: a controller's life. What comes for an earlier life is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) replica: usize,
    pub(super) epoch: u32,
}

/// A create on its way to the vendor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) claim: usize,
    pub(super) number: u64,
    /// The mesh key in the document.
    pub(super) key: Option<usize>,
    pub(super) refused: bool,
    pub(super) lost: bool,
    /// Who waits for the answer; nobody for the second of two.
    pub(super) from: Option<Life>,
}

#[derive(Debug)]
pub(super) enum Event {
    Appear(usize),
    Hand(usize, Hand),
    Deliver(usize, usize),
    Wake(usize, usize),
    Effect(Life, usize),
    Arrive(Request),
    Answer(Life, usize, Answer),
    Boot(usize),
    Dies(usize),
    Gone(usize),
    NotReady(usize),
    Bind(usize),
    Evicted(usize),
    Restart(usize),
    Sweep(Life),
    SweepJudge(Life, Vec<Machine>, Vec<Owner>),
    SweepDelete(Life, Doomed),
    Tidy(Life),
    Collect,
    Calm,
    End,
}

#[derive(Debug)]
struct Queued {
    key: Reverse<(i64, u64)>,
    event: Event,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A controller, as far as it forgets when it dies.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) alive: bool,
    pub(super) epoch: u32,
    pub(super) skew: i64,
    pub(super) views: Vec<Option<Object>>,
    pub(super) tasks: Vec<Option<Task>>,
    pub(super) looks: Vec<Option<MachineSeen>>,
    wake_at: Vec<i64>,
}

/// The whole world of a run.
pub(super) struct World {
    pub(super) rng: SmallRng,
    pub(super) now: i64,
    pub(super) knobs: Knobs,
    pub(super) variant: Variant,
    pub(super) cloud: Cloud,
    pub(super) slots: Vec<Slot>,
    /// All mesh keys ever made, by number.
    pub(super) keys: Vec<Key>,
    pub(super) replicas: Vec<Replica>,
    pub(super) out: Run,
    traced: bool,
    ending: bool,
    queue: BinaryHeap<Queued>,
    seq: u64,
}

impl World {
    pub(super) fn new(seed: u64, variant: Variant, traced: bool) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let knobs = Knobs::draw(&mut rng);
        let mut world = Self {
            rng,
            now: 0,
            variant,
            cloud: Cloud::default(),
            slots: Vec::new(),
            keys: Vec::new(),
            replicas: Vec::new(),
            out: Run::default(),
            traced,
            ending: false,
            queue: BinaryHeap::with_capacity(64),
            seq: 0,
            knobs,
        };
        world.note(|world| format!("{:?}", world.knobs));
        world.begin();
        world
    }

    fn begin(&mut self) {
        let count = self.knobs.claims;
        for index in 0..count {
            let drain = self.chance(300).then_some(60_000);
            self.slots.push(Slot::new(index, drain));
            let at = self.within(0, 20_000);
            self.push(at, Event::Appear(index));
        }
        for replica in 0..self.knobs.leaders {
            self.replicas.push(Replica {
                alive: false,
                epoch: 0,
                skew: 0,
                views: (0..count).map(|_| None).collect(),
                tasks: (0..count).map(|_| None).collect(),
                looks: vec![None; count],
                wake_at: vec![i64::MAX; count],
            });
            self.push(0, Event::Restart(replica));
        }
        self.push(TROUBLE, Event::Calm);
        if self.knobs.collector {
            self.push(20_000, Event::Collect);
        }
    }

    /// Goes on until all is at rest, or the time is up.
    pub(super) fn run(mut self) -> Run {
        while let Some(Queued { key: Reverse((at, _)), event }) = self.queue.pop() {
            self.now = at;
            self.out.events += 1;
            if at > END {
                self.not_at_rest();
                break;
            }
            self.happen(event);
            if self.ending && self.at_rest() {
                break;
            }
        }
        self.out
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Appear(claim) => self.appear(claim),
            Event::Hand(claim, hand) => self.hand(claim, hand),
            Event::Deliver(replica, claim) => self.deliver(replica, claim),
            Event::Wake(replica, claim) => {
                if self.replicas[replica].wake_at[claim] == self.now {
                    self.replicas[replica].wake_at[claim] = i64::MAX;
                    self.reconcile(replica, claim);
                }
            }
            Event::Effect(life, claim) => {
                if self.lives(life) {
                    self.effect(life, claim);
                }
            }
            Event::Arrive(request) => self.arrive(request),
            Event::Answer(life, claim, answer) => {
                if self.lives(life) {
                    self.answered(life, claim, answer);
                }
            }
            Event::Boot(number) => self.boot(number),
            Event::Dies(number) => self.dies(number),
            Event::Gone(number) => self.gone(number),
            Event::NotReady(claim) => self.not_ready(claim),
            Event::Bind(claim) => {
                if let Some(node) = &mut self.slots[claim].node {
                    node.pods += 1;
                }
                self.stir(claim);
            }
            Event::Evicted(claim) => {
                if let Some(node) = &mut self.slots[claim].node {
                    node.pods = 0;
                }
                self.stir(claim);
            }
            Event::Restart(replica) => self.restart(replica),
            Event::Sweep(life) => self.sweep_begins(life),
            Event::SweepJudge(life, machines, owners) => self.sweep_judges(life, machines, owners),
            Event::SweepDelete(life, doomed) => self.sweep_deletes(life, &doomed),
            Event::Tidy(life) => self.tidy(life),
            Event::Collect => self.collect(),
            Event::Calm => self.calm(),
            Event::End => self.end(),
        }
    }

    // Controllers.

    pub(super) fn lives(&self, life: Life) -> bool {
        let replica = &self.replicas[life.replica];
        replica.alive && replica.epoch == life.epoch
    }

    /// What the clock of a controller says.
    pub(super) fn clock(&self, replica: usize) -> Time {
        Time::from_millis(self.now + self.replicas[replica].skew)
    }

    fn restart(&mut self, replica: usize) {
        if replica >= self.knobs.leaders || self.replicas[replica].alive {
            return;
        }
        let skew = self.within(0, self.knobs.skew);
        let views: Vec<_> = self.slots.iter().map(|slot| slot.object.clone()).collect();
        let one = &mut self.replicas[replica];
        one.alive = true;
        one.epoch += 1;
        one.skew = skew;
        one.views = views;
        let life = Life { replica, epoch: one.epoch };
        self.note(|_| format!("controller {replica} starts, its clock is {skew} ms ahead"));
        for claim in 0..self.slots.len() {
            let at = self.now + self.within(1, 100);
            self.wake(replica, claim, at);
        }
        let at = self.now + self.within(1_000, 40_000);
        self.push(at, Event::Sweep(life));
        if self.knobs.mesh {
            let at = self.now + self.within(1_000, 40_000);
            self.push(at, Event::Tidy(life));
        }
    }

    /// All that a controller only remembers is lost, and it starts again some time later.
    pub(super) fn crash(&mut self, replica: usize) {
        self.note(|_| format!("controller {replica} dies"));
        self.out.crashes += 1;
        let one = &mut self.replicas[replica];
        one.alive = false;
        one.tasks.iter_mut().for_each(|task| *task = None);
        one.looks.iter_mut().for_each(|look| *look = None);
        one.wake_at.iter_mut().for_each(|at| *at = i64::MAX);
        let pause = if self.chance(200) { 40_000 } else { 2_000 };
        let at = self.now + self.within(50, pause);
        self.push(at, Event::Restart(replica));
    }

    pub(super) fn wake(&mut self, replica: usize, claim: usize, at: i64) {
        if at < self.replicas[replica].wake_at[claim] {
            self.replicas[replica].wake_at[claim] = at;
            self.push(at, Event::Wake(replica, claim));
        }
    }

    /// Something of a claim other than its object changed: controllers look at it again.
    pub(super) fn stir(&mut self, claim: usize) {
        for replica in 0..self.replicas.len() {
            let at = self.now + self.within(1, 500);
            self.wake(replica, claim, at);
        }
    }

    /// A claim's object changed: every watch tells it some time later.
    pub(super) fn changed(&mut self, claim: usize) {
        for replica in 0..self.replicas.len() {
            let at = self.now + self.within(1, self.knobs.stale);
            self.push(at, Event::Deliver(replica, claim));
        }
    }

    fn deliver(&mut self, replica: usize, claim: usize) {
        self.replicas[replica].views[claim].clone_from(&self.slots[claim].object);
        let at = self.now + self.within(1, 20);
        self.wake(replica, claim, at);
    }

    // Coming to rest.

    fn calm(&mut self) {
        self.note(|_| "the trouble is over".to_owned());
        self.knobs = self.knobs.at_rest();
        for one in &mut self.replicas {
            one.alive = false;
            one.epoch += 1;
            one.tasks.iter_mut().for_each(|task| *task = None);
            one.wake_at.iter_mut().for_each(|at| *at = i64::MAX);
        }
        self.push(self.now + 1, Event::Restart(0));
        let wait = if self.chance(500) { 1_000 } else { 700_000 };
        self.push(self.now + wait, Event::End);
    }

    /// Whoever is left by now lives as it should; then all are deleted.
    fn end(&mut self) {
        self.ending = true;
        for claim in 0..self.slots.len() {
            let rested = self.now > TROUBLE + 600_000;
            let machines = self.cloud.of(claim).count();
            if rested && machines != 1 && self.slots[claim].object.is_some() {
                let kind = if machines > 1 { Wrong::Doubled } else { Wrong::Stuck };
                self.fail(kind, || format!("claim {claim} rests with {machines} machines"));
            }
            let slot = &self.slots[claim];
            let registered = slot.object.as_ref().is_some_and(|object| object.claim.registered);
            if rested && registered && (slot.secret || slot.token) {
                self.out.exposed += 1;
            }
            self.hand(claim, Hand::DeleteClaim);
        }
    }

    fn at_rest(&self) -> bool {
        let clean = |slot: &Slot| slot.object.is_none() && !slot.secret && !slot.token && slot.node.is_none();
        self.slots.iter().all(clean)
            && self.mesh_at_rest()
            && self.cloud.flying.is_empty()
            && self.cloud.machines.iter().all(|machine| machine.power == Power::Gone)
    }

    fn not_at_rest(&mut self) {
        for claim in 0..self.slots.len() {
            let machines = self.cloud.of(claim).count();
            let slot = &self.slots[claim];
            if slot.object.is_some() {
                self.fail(Wrong::Stuck, || format!("claim {claim} was deleted and is still there"));
            } else if machines > 0 {
                self.fail(Wrong::Leaked, || format!("claim {claim} left {machines} machines"));
            } else if slot.secret || slot.token || slot.node.is_some() {
                self.fail(Wrong::Left, || format!("claim {claim} left join material or its node"));
            }
        }
        if !self.mesh_at_rest() {
            self.fail(Wrong::Left, || "a mesh node or an open key is left".to_owned());
        }
    }

    /// Checks what a release must have removed.
    pub(super) fn released(&mut self, claim: usize) {
        self.slots[claim].fate = Fate::Released;
        let machines = self.cloud.of(claim).count();
        if machines > 0 {
            self.fail(Wrong::Leaked, || format!("claim {claim} is released with {machines} machines"));
        }
        let slot = &self.slots[claim];
        if !self.knobs.collector && (slot.secret || slot.token || slot.node.is_some()) {
            self.fail(Wrong::Left, || format!("claim {claim} is released with join material or its node"));
        }
    }

    // Small things.

    pub(super) fn push(&mut self, at: i64, event: Event) {
        self.seq += 1;
        self.queue.push(Queued { key: Reverse((at, self.seq)), event });
    }

    /// True so many times in a thousand.
    pub(super) fn chance(&mut self, thousandth: u32) -> bool {
        thousandth > 0 && self.rng.random_ratio(thousandth.min(1000), 1000)
    }

    /// A number from both ends and between; the ends more often, for that is where bounds break.
    pub(super) fn within(&mut self, low: i64, high: i64) -> i64 {
        let ends = if self.knobs.brink { 2 } else { 8 };
        match self.rng.random_range(0..ends) {
            0 => low,
            1 => high.max(low),
            _ => self.rng.random_range(low..=high.max(low)),
        }
    }

    pub(super) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.traced {
            let line = format!("{:>9.3} s  {}", self.now as f64 / 1000.0, line(self));
            self.out.trace.push(line);
        }
    }

    pub(super) fn fail(&mut self, kind: Wrong, line: impl FnOnce() -> String) {
        self.note(|_| format!("WRONG, {kind:?}: {}", line()));
        if !self.out.wrong.contains(&kind) {
            self.out.wrong.push(kind);
        }
    }
}
