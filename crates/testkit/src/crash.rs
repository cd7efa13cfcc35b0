//! The crash simulator: the real `next_step`, controllers that die before and after every effect, a cloud that lies.
//!
//! A run is one seed.
//! It draws a kind of world (how late lists are, how many answers are lost, one leader or two, what people do by hand),
//! lets a few claims live in it, then stops the trouble and waits for rest.
//! Equal seeds give equal runs, so a failure is a number and its trace is printed by running it again.
//!
//! **Architecture invariant:** nothing here decides a step or what a sweep deletes; that is `scarpenter_core`'s.
//! What is modelled is the thin code around it: each step as the single effects that the controller has, in its order.
//!
//! # What counts as wrong
//! - *doubled*: a claim has two machines at once (unless its vendor carried out one request twice, which the sweep must
//!   have healed at rest);
//! - *leaked*: a machine, or a request that still makes one, is left when its claim was released, or at rest;
//! - *wronged*: the sweep took a machine that a claim owns;
//! - *stuck*: at rest a claim is still there although it was deleted, or lives without its machine;
//! - *bereft*: a machine is deleted under a pod that draining had to wait for;
//! - *left*: a join Secret, a token or a node outlives its claim; or, at rest, a mesh node or a key that opens.

use std::fmt;

mod act;
mod chaos;
mod cloud;
mod knobs;
mod mesh;
mod pass;
mod store;
mod world;

pub use knobs::Variant;

use world::World;

/// What went wrong, by kind; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// Two machines for one claim.
    Doubled,
    /// A machine without a claim.
    Leaked,
    /// A machine with a claim, taken by the sweep.
    Wronged,
    /// A claim that never comes to rest.
    Stuck,
    /// A pod that lost its machine too early.
    Bereft,
    /// Join material or a node without a claim, in the cluster or in its mesh.
    Left,
}

/// What one run or many came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Claims made in them.
    pub claims: u64,
    /// Machines made in them.
    pub machines: u64,
    /// Times that a controller died.
    pub crashes: u64,
    /// Effects carried out.
    pub effects: u64,
    /// Machines that only a sweep found, after what people did by hand or a vendor did twice.
    pub swept: u64,
    /// Claims that rest with join material though they are registered: a leader that stood still in Launch made it anew
    /// after another had removed it. Its token runs out by itself.
    pub exposed: u64,
    /// Claims that a stale view gave up though they had a node.
    pub vain: u64,
    /// Deaths before and after each kind of effect, by its number.
    died: Died,
    /// Runs with two machines for one claim.
    pub doubled: u64,
    /// Runs with a machine that no claim owned.
    pub leaked: u64,
    /// Runs with an owned machine taken by the sweep.
    pub wronged: u64,
    /// Runs with a claim that never came to rest.
    pub stuck: u64,
    /// Runs with a pod that lost its machine too early.
    pub bereft: u64,
    /// Runs with join material or a node left over.
    pub left: u64,
}

impl Tally {
    /// Runs in which anything was wrong, a run with two faults counted twice.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.doubled + self.leaked + self.wronged + self.stuck + self.bereft + self.left
    }

    /// The fewest deaths right before, or right after, any kind of effect.
    #[must_use]
    pub fn rarest_death(&self) -> u64 {
        self.died.iter().map(|(before, after)| *before.min(after)).min().unwrap_or(0)
    }

    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.claims += run.claims;
        self.machines += run.machines;
        self.crashes += run.crashes;
        self.effects += run.effects;
        self.swept += run.swept;
        self.exposed += run.exposed;
        self.vain += run.vain;
        for (sum, one) in self.died.iter_mut().zip(run.died) {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
        let has = |kind| u64::from(run.wrong.contains(&kind));
        self.doubled += has(Wrong::Doubled);
        self.leaked += has(Wrong::Leaked);
        self.wronged += has(Wrong::Wronged);
        self.stuck += has(Wrong::Stuck);
        self.bereft += has(Wrong::Bereft);
        self.left += has(Wrong::Left);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs, {} claims, {} machines, {} effects, {} crashes, {} healed by the sweep, {} exposed, {} given up in vain: \
             {} doubled, {} leaked, {} wronged, {} stuck, {} bereft, {} left",
            self.runs,
            self.claims,
            self.machines,
            self.effects,
            self.crashes,
            self.swept,
            self.exposed,
            self.vain,
            self.doubled,
            self.leaked,
            self.wronged,
            self.stuck,
            self.bereft,
            self.left
        )
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// What was wrong, in the order it was seen.
    pub wrong: Vec<Wrong>,
    /// What happened, a line each; empty unless asked for.
    pub trace: Vec<String>,
    claims: u64,
    machines: u64,
    crashes: u64,
    effects: u64,
    swept: u64,
    exposed: u64,
    vain: u64,
    events: u64,
    died: Died,
}

/// Deaths before and after each kind of effect.
type Died = [(u64, u64); act::Effect::KINDS];

/// Runs `seed`, with a trace if asked for.
#[must_use]
pub fn run(seed: u64, variant: Variant, trace: bool) -> Run {
    World::new(seed, variant, trace).run()
}

/// Runs the seeds `first..first + runs`; also gives the seed of the shortest run that went wrong.
#[must_use]
pub fn run_many(first: u64, runs: u64, variant: Variant) -> (Tally, Option<u64>) {
    let mut tally = Tally::default();
    let mut shortest: Option<(u64, u64)> = None;
    for seed in first..first + runs {
        let run = run(seed, variant, false);
        tally.add(&run);
        if !run.wrong.is_empty() && shortest.is_none_or(|(events, _)| run.events < events) {
            shortest = Some((run.events, seed));
        }
    }
    (tally, shortest.map(|(_, seed)| seed))
}

/// The trace of a seed as one text, for the message of a failed test.
#[must_use]
pub fn explain(seed: u64, variant: Variant) -> String {
    let run = run(seed, variant, true);
    format!("seed {seed}: {:?}\n{}", run.wrong, run.trace.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_runs() {
        for seed in 0..50 {
            assert_eq!(run(seed, Variant::Real, true), run(seed, Variant::Real, true));
        }
    }

    #[test]
    fn a_trace_changes_nothing() {
        for seed in 0..50 {
            let traced = Run { trace: Vec::new(), ..run(seed, Variant::Real, true) };
            assert_eq!(traced, run(seed, Variant::Real, false));
        }
    }
}
