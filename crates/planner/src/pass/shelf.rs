use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use crate::shape::Profile;

/// So many claims of a profile are remembered as those that may still grow.
const YOUNG: usize = 4;
/// Of so many claims at most is asked whether a pod fits, from those with the least room on.
const TRIES: usize = 48;
/// And of so many of those with the most room.
const ROOMY: usize = 8;

/// Claims that may take further pods, by the profile of their first pod, in the order of how much CPU is left.
///
/// So a pod finds the tightest place without asking all claims.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    families: Vec<Family>,
}

#[derive(Debug, Default)]
struct Family {
    profile: Option<Rc<Profile>>,
    by_room: BTreeSet<(i64, usize)>,
    young: VecDeque<usize>,
    /// Families that pods of this profile can share a machine with, as far as they were compared.
    akin: Vec<usize>,
    compared: usize,
}

impl Shelf {
    /// Puts up a claim with so much CPU left.
    pub(crate) fn add(&mut self, profile: usize, room: i64, draft: usize) {
        let family = &mut self.families[profile];
        family.by_room.insert((room, draft));
        family.young.push_back(draft);
        if family.young.len() > YOUNG {
            family.young.pop_front();
        }
    }

    /// A claim has as much CPU left as it says now.
    pub(crate) fn moved(&mut self, profile: usize, before: i64, after: i64, draft: usize) {
        let family = &mut self.families[profile];
        family.by_room.remove(&(before, draft));
        family.by_room.insert((after, draft));
    }

    /// A claim is not asked again whether it should grow.
    pub(crate) fn age(&mut self, profile: usize, draft: usize) {
        self.families[profile].young.retain(|young| *young != draft);
    }

    /// Makes a profile known, and finds the others that it can share machines with.
    pub(crate) fn know(&mut self, profile: &Rc<Profile>) {
        if self.families.len() <= profile.id {
            self.families.resize_with(profile.id + 1, Family::default);
        }
        self.families[profile.id].profile.get_or_insert_with(|| Rc::clone(profile));
        let known = self.families.len();
        let compared = std::mem::replace(&mut self.families[profile.id].compared, known);
        for other in compared..self.families.len() {
            let theirs = self.families[other].profile.as_ref();
            if other != profile.id && theirs.is_some_and(|theirs| profile.meets(theirs)) {
                self.families[profile.id].akin.push(other);
            }
        }
    }

    fn families(&self, profile: usize) -> impl Iterator<Item = &Family> {
        let akin = self.families[profile].akin.iter().filter(|id| !self.families[**id].by_room.is_empty());
        std::iter::once(profile).chain(akin.copied()).map(|id| &self.families[id])
    }

    /// Claims that may have room for a pod that needs so much CPU, the tightest of its own profile first.
    pub(crate) fn with_room(&self, profile: usize, cpu: i64) -> impl Iterator<Item = usize> {
        let tries = move |family: &'_ Family| -> Vec<usize> {
            let tight = family.by_room.range((cpu, 0)..).take(TRIES);
            let mut found: Vec<usize> = tight.map(|(_, draft)| *draft).collect();
            if found.len() == TRIES {
                let roomy = family.by_room.iter().rev().take(ROOMY).map(|(_, draft)| *draft);
                found.extend(roomy);
            }
            found
        };
        self.families(profile).flat_map(tries)
    }

    /// Claims that might be worth a larger machine for one more pod, the youngest of its own profile first.
    pub(crate) fn young(&self, profile: usize) -> impl Iterator<Item = usize> {
        self.families(profile).flat_map(|family| family.young.iter().rev().copied())
    }
}
