//! The sweep as the controller runs it: list machines, read claims uncached, delete one by one.

use std::collections::BTreeSet;
use std::time::Duration;

use scarpenter_core::sweep::{self, Doomed, Fault, Machine, Owner, Settings};

use super::Wrong;
use super::cloud::Cloud;
use super::knobs::{SETTLE, Variant};
use super::world::{Event, Life, World};

const CLUSTER: &str = "cluster";
const REGION: &str = "region";

impl World {
    /// The first of the two reads.
    pub(super) fn sweep_begins(&mut self, life: Life) {
        if !self.lives(life) {
            return;
        }
        let next = self.now + self.within(15_000, 60_000);
        self.push(next, Event::Sweep(life));
        if !self.knobs.sweeps || self.chance(self.knobs.down) || self.cloud.machines.is_empty() {
            return;
        }
        let (machines, owners) = if self.variant == Variant::SweepBackwards {
            (Vec::new(), self.owners())
        } else {
            (self.listed(), Vec::new())
        };
        let at = self.now + self.within(1, 10_000);
        self.push(at, Event::SweepJudge(life, machines, owners));
    }

    /// The second read, and the verdict.
    pub(super) fn sweep_judges(&mut self, life: Life, machines: Vec<Machine>, owners: Vec<Owner>) {
        if !self.lives(life) {
            return;
        }
        let backwards = self.variant == Variant::SweepBackwards;
        let (machines, owners) = if backwards { (self.listed(), owners) } else { (machines, self.owners()) };
        let settings = Settings {
            grace: Duration::from_secs(if backwards { 0 } else { 60 }),
            settle: Duration::from_millis(SETTLE.unsigned_abs()),
            ..Settings::default()
        };
        let covered = BTreeSet::from([REGION.to_owned()]);
        let now = self.clock(life.replica);
        let outcome = sweep::sweep(&CLUSTER.into(), &machines, &owners, &covered, now, &settings);
        for doomed in outcome.delete {
            let at = self.now + self.within(1, 5_000);
            self.push(at, Event::SweepDelete(life, doomed));
        }
    }

    /// One deletion of a pass.
    pub(super) fn sweep_deletes(&mut self, life: Life, doomed: &Doomed) {
        if !self.lives(life) {
            return;
        }
        if self.chance(self.knobs.crash) {
            return self.crash(life.replica);
        }
        let Some(number) = self.cloud.number(&doomed.id) else { return };
        if !self.cloud.machines[number].alive() {
            return;
        }
        let claim = self.cloud.machines[number].claim;
        self.note(|_| format!("the sweep takes {} of claim {claim}: {:?}", doomed.id, doomed.fault));
        let others = self.cloud.of(claim).filter(|machine| machine.alive()).count() > 1;
        let owned = match doomed.fault {
            Fault::Orphan => self.slots[claim].object.is_some(),
            Fault::Twin => !others && !self.knobs.mortal && self.wanted(claim),
        };
        if owned {
            self.fail(Wrong::Wronged, || format!("claim {claim} owns {}", doomed.id));
        }
        self.out.swept += 1;
        self.terminate(number);
        if doomed.fault == Fault::Orphan {
            for number in self.cloud.list(claim, self.now, &mut self.rng) {
                self.terminate(number);
            }
        }
    }

    fn wanted(&self, claim: usize) -> bool {
        self.slots[claim].object.as_ref().is_some_and(|object| object.claim.deleted.is_none())
    }

    fn listed(&mut self) -> Vec<Machine> {
        let Self { cloud, slots, rng, now, .. } = self;
        let shown = cloud.machines.iter().filter(|machine| Cloud::shows(machine, *now, rng));
        let listed = shown.map(|machine| Machine {
            id: machine.id.clone(),
            cluster: CLUSTER.into(),
            claim: slots[machine.claim].uid.clone(),
            region: REGION.to_owned(),
            created: scarpenter_core::lifecycle::Time::from_millis(machine.made),
        });
        listed.collect()
    }

    fn owners(&self) -> Vec<Owner> {
        let objects = self.slots.iter().filter_map(|slot| slot.object.as_ref());
        let owners = objects.map(|object| Owner {
            uid: object.claim.uid.clone(),
            machine_id: object.claim.machine_id.clone(),
            attempt: object.claim.attempt,
        });
        owners.collect()
    }
}
