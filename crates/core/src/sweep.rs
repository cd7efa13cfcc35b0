//! The pass over all machines of one vendor: which of them no claim owns.
//!
//! # Assumptions
//! The caller lists machines first and reads the claims after that, uncached.
//! A machine is made only after its claim, so a claim that is missing from a list read later is really gone; the other
//! way round a machine made between the two reads would look like an orphan.
//!
//! # Guarantees
//! Nothing is deleted outside the regions that the list covered, nothing with another cluster's tag, nothing younger
//! than the grace, and nothing at all when a pass would delete too much at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::lifecycle::Time;
use crate::name::{ClaimUid, ClusterId, MachineId};

/// A machine as its vendor lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The vendor's id.
    pub id: MachineId,
    /// Tag `scarpenter-cluster`.
    pub cluster: ClusterId,
    /// Tag `scarpenter-claim`.
    pub claim: ClaimUid,
    /// The vendor's region name.
    pub region: String,
    /// When the vendor accepted it.
    pub created: Time,
}

/// What counts of a claim, whether it is being deleted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// UID.
    pub uid: ClaimUid,
    /// Fact `machine-id`.
    pub machine_id: Option<MachineId>,
    /// Fact `attempt`.
    pub attempt: Option<Time>,
}

/// What one pass may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Machines younger than this are kept.
    pub grace: Duration,
    /// See [`crate::lifecycle::Limits::settle`].
    pub settle: Duration,
    /// A pass that would delete more than this many …
    pub brake_machines: usize,
    /// … and more than this share of the vendor's machines deletes none.
    pub brake_percent: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(300),
            settle: Duration::from_secs(60),
            brake_machines: 5,
            brake_percent: 10,
        }
    }
}

/// Why a machine is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No claim owns it: delete it by UID and by id.
    Orphan,
    /// Its claim has another machine: delete it by id alone, for the UID would take both.
    Twin,
}

/// A machine to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// The vendor's id.
    pub id: MachineId,
    /// The claim that its tag names.
    pub claim: ClaimUid,
    /// The vendor's region name.
    pub region: String,
    /// Why.
    pub fault: Fault,
}

/// Why a machine is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// A claim owns it, and no other machine.
    Owned,
    /// It is the one of several that its claim recorded, or the oldest where the recorded one is not listed.
    Chosen,
    /// Its claim has another and has not recorded one, or the latest create may still be on its way.
    Unsettled,
    /// No claim owns it, or another serves its claim, but it is younger than the grace.
    Young,
    /// It carries the tag of another cluster.
    OtherCluster,
    /// The list does not cover its region.
    RegionNotCovered,
    /// The pass would delete too much.
    Braked,
}

impl Kept {
    /// The reason as a phrase for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Owned => "its claim owns it",
            Self::Chosen => "the one of several that its claim keeps",
            Self::Unsettled => "its claim has another, and which one it keeps is not settled",
            Self::Young => "younger than the grace",
            Self::OtherCluster => "another cluster's",
            Self::RegionNotCovered => "its region was not listed completely",
            Self::Braked => "the pass would delete too much at once",
        }
    }
}

/// What a pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What to delete, by claim and then by id.
    pub delete: Vec<Doomed>,
    /// What to keep, and why.
    pub kept: Vec<(MachineId, Kept)>,
    /// Why nothing is deleted although something should be.
    pub braked: Option<String>,
}

/// Sorts one vendor's machines into those to delete and those to keep.
#[must_use]
pub fn sweep(
    cluster: &ClusterId,
    machines: &[Machine],
    owners: &[Owner],
    covered: &BTreeSet<String>,
    now: Time,
    settings: &Settings,
) -> Outcome {
    let mut out = Outcome::default();
    let mut ours: BTreeMap<&ClaimUid, Vec<&Machine>> = BTreeMap::new();
    let mut count = 0;
    for machine in machines {
        if machine.cluster != *cluster {
            out.kept.push((machine.id.clone(), Kept::OtherCluster));
        } else if !covered.contains(&machine.region) {
            out.kept.push((machine.id.clone(), Kept::RegionNotCovered));
        } else {
            count += 1;
            ours.entry(&machine.claim).or_default().push(machine);
        }
    }
    let owners: BTreeMap<&ClaimUid, &Owner> = owners.iter().map(|owner| (&owner.uid, owner)).collect();
    for (uid, mut group) in ours {
        group.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        judge(&group, owners.get(uid).copied(), now, settings, &mut out);
    }
    brake(&mut out, count, settings);
    out
}

/// All machines of one UID, the oldest first.
fn judge(group: &[&Machine], owner: Option<&Owner>, now: Time, settings: &Settings, out: &mut Outcome) {
    let chosen = owner.map(|owner| choose(group, owner));
    let settled = owner.is_none_or(|owner| settled(owner, now, settings));
    for machine in group {
        let verdict = if chosen.is_some_and(|chosen| chosen == &machine.id) {
            Err(if group.len() == 1 { Kept::Owned } else { Kept::Chosen })
        } else if !settled {
            Err(Kept::Unsettled)
        } else if machine.created.after(settings.grace) > now {
            Err(Kept::Young)
        } else if owner.is_some() {
            Ok(Fault::Twin)
        } else {
            Ok(Fault::Orphan)
        };
        match verdict {
            Err(why) => out.kept.push((machine.id.clone(), why)),
            Ok(fault) => out.delete.push(Doomed {
                id: machine.id.clone(),
                claim: machine.claim.clone(),
                region: machine.region.clone(),
                fault,
            }),
        }
    }
}

/// Whether a claim's choice is final. Without a recorded id it is not, however old the create is: a late answer may
/// still record the one that a pass has just deleted, and the next pass would delete the other.
fn settled(owner: &Owner, now: Time, settings: &Settings) -> bool {
    owner.machine_id.is_some() && owner.attempt.is_none_or(|attempt| now >= attempt.after(settings.settle))
}

/// The recorded one where it is listed, else the oldest, which is also what a find by UID takes.
fn choose<'a>(group: &[&'a Machine], owner: &Owner) -> &'a MachineId {
    let recorded = group.iter().find(|machine| Some(&machine.id) == owner.machine_id.as_ref());
    &recorded.unwrap_or(&group[0]).id
}

fn brake(out: &mut Outcome, machines: usize, settings: &Settings) {
    let doomed = out.delete.len();
    if doomed <= settings.brake_machines || doomed * 100 <= machines * settings.brake_percent {
        return;
    }
    out.kept.extend(out.delete.drain(..).map(|machine| (machine.id, Kept::Braked)));
    out.braked = Some(format!(
        "would delete {doomed} of {machines} machines; more than {} and more than {} % in one pass need a person",
        settings.brake_machines, settings.brake_percent
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(minutes: u32) -> Time {
        Time::from_millis(1_000_000).after(minutes * MINUTE)
    }

    fn machine(id: &str, claim: &str) -> Machine {
        Machine {
            id: id.into(),
            cluster: "ours".into(),
            claim: claim.into(),
            region: "fsn1".into(),
            created: at(0),
        }
    }

    fn owner(uid: &str) -> Owner {
        Owner { uid: uid.into(), machine_id: None, attempt: Some(at(0)) }
    }

    fn pass(machines: &[Machine], owners: &[Owner], minutes: u32) -> Outcome {
        let covered = BTreeSet::from(["fsn1".to_owned()]);
        sweep(&"ours".into(), machines, owners, &covered, at(minutes), &Settings::default())
    }

    fn deleted(outcome: &Outcome) -> Vec<(&str, Fault)> {
        outcome.delete.iter().map(|machine| (machine.id.as_str(), machine.fault)).collect()
    }

    #[test]
    fn a_machine_without_a_claim_goes_when_the_grace_is_over() {
        let machines = [machine("1", "a"), machine("2", "b")];
        let early = pass(&machines, &[owner("a")], 4);
        assert_eq!(deleted(&early), []);
        assert_eq!(early.kept, [("1".into(), Kept::Owned), ("2".into(), Kept::Young)]);
        assert_eq!(deleted(&pass(&machines, &[owner("a")], 5)), [("2", Fault::Orphan)]);
    }

    #[test]
    fn of_two_machines_the_recorded_stays() {
        let machines = [machine("1", "a"), machine("2", "a")];
        let recorded = Owner { machine_id: Some("2".into()), ..owner("a") };
        let outcome = pass(&machines, &[recorded], 10);
        assert_eq!(deleted(&outcome), [("1", Fault::Twin)]);
        assert_eq!(outcome.kept, [("2".into(), Kept::Chosen)]);
    }

    #[test]
    fn of_two_machines_the_oldest_stays_when_the_recorded_is_not_listed() {
        let machines = [Machine { created: at(1), ..machine("1", "a") }, machine("2", "a")];
        let lost = Owner { machine_id: Some("3".into()), ..owner("a") };
        assert_eq!(deleted(&pass(&machines, &[lost], 10)), [("1", Fault::Twin)]);
    }

    #[test]
    fn two_machines_are_left_alone_until_one_is_recorded_and_the_latest_create_has_settled() {
        let machines = [machine("1", "a"), machine("2", "a")];
        let unrecorded = pass(&machines, &[owner("a")], 99);
        assert_eq!(unrecorded.kept, [("1".into(), Kept::Chosen), ("2".into(), Kept::Unsettled)]);
        let busy = Owner { machine_id: Some("1".into()), attempt: Some(at(10)), ..owner("a") };
        let outcome = pass(&machines, std::slice::from_ref(&busy), 10);
        assert_eq!(outcome.kept, [("1".into(), Kept::Chosen), ("2".into(), Kept::Unsettled)]);
        assert_eq!(deleted(&pass(&machines, &[busy], 11)), [("2", Fault::Twin)]);
    }

    #[test]
    fn other_clusters_and_uncovered_regions_are_not_touched() {
        let foreign = Machine { cluster: "theirs".into(), ..machine("1", "a") };
        let elsewhere = Machine { region: "nbg1".into(), ..machine("2", "b") };
        let outcome = pass(&[foreign, elsewhere], &[], 100);
        assert_eq!(outcome.kept, [("1".into(), Kept::OtherCluster), ("2".into(), Kept::RegionNotCovered)]);
        assert_eq!(deleted(&outcome), []);
    }

    #[test]
    fn the_brake_needs_both_the_number_and_the_share() {
        let orphans = |n: usize| (0..n).map(|i| machine(&format!("{i:03}"), &format!("x{i}")));
        let five: Vec<_> = orphans(5).collect();
        assert_eq!(pass(&five, &[], 10).delete.len(), 5);
        let six: Vec<_> = orphans(6).collect();
        let braked = pass(&six, &[], 10);
        assert_eq!(braked.delete, []);
        assert!(braked.braked.is_some_and(|why| why.contains("6 of 6")));
        assert!(braked.kept.iter().all(|(_, why)| *why == Kept::Braked));
        let owners: Vec<_> = (0..54).map(|i| owner(&format!("o{i}"))).collect();
        let owned = (0..54).map(|i| machine(&format!("m{i}"), &format!("o{i}")));
        let many: Vec<_> = orphans(6).chain(owned).collect();
        assert_eq!(pass(&many, &owners, 10).delete.len(), 6, "a tenth is not more than a tenth");
        assert_eq!(pass(&many[..59], &owners, 10).delete.len(), 0);
    }

    #[test]
    fn foreign_machines_do_not_loosen_the_brake() {
        let mut machines: Vec<_> = (0..6).map(|i| machine(&format!("{i}"), &format!("x{i}"))).collect();
        machines
            .extend((0..100).map(|i| Machine { cluster: "theirs".into(), ..machine(&format!("f{i}"), "f") }));
        assert_eq!(pass(&machines, &[], 10).delete, []);
    }
}
