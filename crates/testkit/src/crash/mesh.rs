//! The mesh: keys, the nodes that join with them, and the pass that takes away what claims have left.

use super::Wrong;
use super::act::{Task, Then};
use super::cloud::Power;
use super::world::{Event, Life, World};

/// A key that is on no claim after this long was lost before it was written down.
const LOST: i64 = 600_000;
/// A key ends by itself after this long.
const LIFE: i64 = 1_200_000;

/// A pre-auth key, and the node that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    made: i64,
    expired: bool,
    used: bool,
    deleted: bool,
    /// Number of the machine that is the node.
    node: Option<usize>,
}

impl Key {
    /// Whether a machine could still join with it.
    fn is_open(&self, now: i64) -> bool {
        !self.expired && !self.used && !self.deleted && now < self.made + LIFE
    }
}

impl World {
    /// Makes a key, unless an earlier look has stored one in the Secret.
    pub(super) fn make_key(&mut self, index: usize, task: &mut Task) -> Then {
        if task.mark.is_some() && self.slots[index].secret {
            task.effects.pop_front();
            return Then::Next;
        }
        if self.chance(self.knobs.down) {
            return Then::Stop;
        }
        let made = self.now;
        self.keys.push(Key { made, expired: false, used: false, deleted: false, node: None });
        if self.chance(self.knobs.lost) {
            return Then::Stop;
        }
        task.key = Some(self.keys.len() - 1);
        Then::Next
    }

    /// Writes the key's id on the claim; the loser of a race deletes its key.
    pub(super) fn write_key(&mut self, index: usize, task: &mut Task) -> Then {
        let key = task.key;
        let then = self.patch_mark(index, task, key);
        if let (Then::Stop, Some(key)) = (&then, key)
            && !self.chance(self.knobs.down)
        {
            self.keys[key].deleted = true;
        }
        then
    }

    /// The stored document decides which key the machine has.
    pub(super) fn settle_key(&mut self, index: usize, task: &mut Task) -> Then {
        let stored = self.slots[index].secret_key;
        task.key = stored;
        if stored == task.mark {
            return Then::Next;
        }
        self.slots[index].noted = stored;
        self.patch_mark(index, task, stored)
    }

    fn patch_mark(&mut self, index: usize, task: &mut Task, key: Option<usize>) -> Then {
        let slot = &mut self.slots[index];
        let Some(version) = slot.patch(Some(task.version), |_| {}) else { return Then::Stop };
        if let Some(object) = &mut slot.object {
            object.mark = key;
        }
        task.version = version;
        task.mark = key;
        self.changed(index);
        Then::Next
    }

    /// A machine joins its mesh before it joins the cluster.
    pub(super) fn join_mesh(&mut self, number: usize) {
        let now = self.now;
        let Some(key) = self.cloud.machines[number].key.and_then(|key| self.keys.get_mut(key)) else {
            return;
        };
        if key.is_open(now) {
            key.used = true;
            key.node = Some(number);
        }
    }

    /// One pass over all that the mesh holds.
    pub(super) fn tidy(&mut self, life: Life) {
        if !self.lives(life) {
            return;
        }
        let next = self.now + self.within(5_000, 60_000);
        self.push(next, Event::Tidy(life));
        if self.chance(self.knobs.down) {
            return;
        }
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            let mut over = std::mem::take(&mut slot.left);
            match &slot.object {
                Some(_) => {}
                None => over.extend(slot.noted.take()),
            }
            for key in over {
                self.remove(index, key);
            }
            let registered = self.slots[index].object.as_ref().filter(|object| object.claim.registered);
            if let Some(key) = registered.and_then(|object| object.mark) {
                self.keys[key].expired = true;
            }
        }
        let known = |key: usize| {
            self.slots.iter().any(|slot| {
                let marked = slot.object.as_ref().is_some_and(|object| object.mark == Some(key));
                marked || slot.noted == Some(key) || slot.left.contains(&key)
            })
        };
        let lost: Vec<usize> = (0..self.keys.len())
            .filter(|key| self.keys[*key].is_open(self.now) && self.now > self.keys[*key].made + LOST)
            .filter(|key| !known(*key))
            .collect();
        for key in lost {
            self.keys[key].deleted = true;
        }
    }

    fn remove(&mut self, claim: usize, key: usize) {
        let lives = |number: usize| self.cloud.machines[number].power == Power::Running;
        let wanted = self.slots[claim].object.as_ref().is_some_and(|object| object.claim.deleted.is_none());
        if wanted && self.keys[key].node.is_some_and(lives) {
            self.fail(Wrong::Wronged, || format!("the mesh node of claim {claim} is taken from it"));
        }
        self.keys[key].node = None;
        self.keys[key].deleted = true;
    }

    /// Whether no node is left in the mesh, and no key that would let one in.
    pub(super) fn mesh_at_rest(&self) -> bool {
        self.keys.iter().all(|key| key.node.is_none() && !key.is_open(self.now))
    }
}
