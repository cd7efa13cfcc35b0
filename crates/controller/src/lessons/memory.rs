//! What was learned. Pure: the caller says what it saw and when.

use std::collections::BTreeMap;

use scarpenter_core::resources::Resources;
use scarpenter_planner::Kind;

/// So many kinds of machines are remembered; the oldest go first.
const MOST_KINDS: usize = 2000;
/// Of so many pods it is remembered what did not do for them.
const MOST_PODS: usize = 2000;

/// Everything that was learned, of which all may be lost: then it is learned again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    machines: BTreeMap<Kind, Learned>,
    unfit: BTreeMap<String, BTreeMap<Kind, String>>,
}

/// What one kind of machine has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Learned {
    /// Mark of all of the class that decides what boots; another mark, another machine.
    pub(crate) boots: String,
    /// What pods can have of it.
    pub(crate) allocatable: Resources,
    /// When it was seen first, in seconds since 1970.
    pub(crate) at: i64,
}

impl Memory {
    /// Takes in what a node shows that was bought with `promised`; whether that is news.
    ///
    /// Only what was promised is learned, and only as far as the node shows it: what a device plugin has not announced
    /// yet teaches nothing. Of several nodes that were booted alike the smallest counts.
    pub(crate) fn learn(
        &mut self,
        kind: Kind,
        boots: &str,
        promised: &Resources,
        found: &Resources,
        now: i64,
    ) -> bool {
        let mut allocatable: Resources = promised
            .iter()
            .map(|(name, amount)| {
                (name.to_owned(), Some(found.get(name)).filter(|there| *there > 0).unwrap_or(amount))
            })
            .collect();
        let known = self.machines.get(&kind).filter(|known| known.boots == boots);
        if let Some(known) = known {
            let smallest = |(name, amount): (&str, i64)| {
                (name.to_owned(), known.allocatable.find(name).map_or(amount, |own| own.min(amount)))
            };
            allocatable = allocatable.iter().map(smallest).collect();
            if allocatable == known.allocatable {
                return false;
            }
        }
        let at = known.map_or(now, |known| known.at);
        self.machines.insert(kind, Learned { boots: boots.to_owned(), allocatable, at });
        forget_oldest(&mut self.machines);
        true
    }

    /// Remembers that a kind of machine did not take a pod; whether that is news.
    pub(crate) fn refuse(&mut self, pod: &str, kind: Kind, words: &str) -> bool {
        if self.unfit.len() >= MOST_PODS && !self.unfit.contains_key(pod) {
            return false;
        }
        self.unfit.entry(pod.to_owned()).or_default().insert(kind, words.to_owned()).is_none()
    }

    /// Kinds of machines that did not take a pod, each with the gap.
    pub(crate) fn unfit(&self, pod: &str) -> Option<&BTreeMap<Kind, String>> {
        self.unfit.get(pod)
    }

    /// Forgets pods that no longer wait.
    pub(crate) fn keep_pods(&mut self, is_waiting: impl Fn(&str) -> bool) {
        self.unfit.retain(|uid, _| is_waiting(uid));
    }

    /// What pods can have of each kind whose class still boots the same, by `boots` of the classes.
    pub(crate) fn allocatable(&self, boots: &BTreeMap<String, String>) -> BTreeMap<Kind, Resources> {
        let current = self.machines.iter().filter(|(kind, own)| boots.get(&kind.class) == Some(&own.boots));
        current.map(|(kind, own)| (kind.clone(), own.allocatable.clone())).collect()
    }

    /// All kinds that did not take some pod.
    pub(crate) fn all_unfit(&self) -> &BTreeMap<String, BTreeMap<Kind, String>> {
        &self.unfit
    }

    /// All kinds of machines that were seen.
    pub(crate) fn machines(&self) -> &BTreeMap<Kind, Learned> {
        &self.machines
    }

    /// Takes in what was written by another process; what was seen here stays.
    pub(crate) fn recall(&mut self, other: Self) {
        for (kind, learned) in other.machines {
            self.machines.entry(kind).or_insert(learned);
        }
        for (pod, kinds) in other.unfit {
            self.unfit.entry(pod).or_default().extend(kinds);
        }
        forget_oldest(&mut self.machines);
    }

    /// Puts back what was written, as it was.
    pub(crate) fn insert(&mut self, kind: Kind, learned: Learned) {
        self.machines.insert(kind, learned);
    }
}

fn forget_oldest(machines: &mut BTreeMap<Kind, Learned>) {
    while machines.len() > MOST_KINDS {
        let oldest = machines.iter().min_by_key(|(_, own)| own.at).map(|(kind, _)| kind.clone());
        oldest.and_then(|kind| machines.remove(&kind));
    }
}

#[cfg(test)]
mod tests {
    use scarpenter_core::resources::{CPU, MEMORY};

    use super::*;

    const GPU: &str = "nvidia.com/gpu";

    fn kind(instance_type: &str) -> Kind {
        Kind { class: "default".to_owned(), vendor: "hcloud".into(), instance_type: instance_type.to_owned() }
    }

    fn memory(amount: i64) -> Resources {
        Resources::new().with(CPU, 2000).with(MEMORY, amount)
    }

    fn known(learned: &Memory, boots: &str) -> Option<i64> {
        let boots = BTreeMap::from([("default".to_owned(), boots.to_owned())]);
        learned.allocatable(&boots).get(&kind("cx22")).map(|own| own.get(MEMORY))
    }

    #[test]
    fn the_first_node_of_a_kind_teaches_and_an_equal_one_is_no_news() {
        let mut learned = Memory::default();
        assert!(learned.learn(kind("cx22"), "a", &memory(100), &memory(94), 1));
        assert_eq!(known(&learned, "a"), Some(94));
        assert!(!learned.learn(kind("cx22"), "a", &memory(94), &memory(94), 2));
        assert!(!learned.learn(kind("cx22"), "a", &memory(94), &memory(96), 3), "the smallest counts");
        assert!(learned.learn(kind("cx22"), "a", &memory(94), &memory(90), 4));
        assert_eq!(known(&learned, "a"), Some(90));
    }

    #[test]
    fn more_than_promised_is_learned_too() {
        let mut learned = Memory::default();
        learned.learn(kind("cx22"), "a", &memory(100), &memory(103), 1);
        assert_eq!(known(&learned, "a"), Some(103));
    }

    #[test]
    fn a_class_that_boots_something_else_is_learned_anew() {
        let mut learned = Memory::default();
        learned.learn(kind("cx22"), "a", &memory(100), &memory(90), 1);
        assert_eq!(known(&learned, "b"), None);
        learned.learn(kind("cx22"), "b", &memory(100), &memory(95), 2);
        assert_eq!((known(&learned, "a"), known(&learned, "b")), (None, Some(95)));
    }

    #[test]
    fn a_device_that_is_not_announced_yet_teaches_nothing() {
        let mut learned = Memory::default();
        learned.learn(kind("g"), "a", &memory(100).with(GPU, 8), &memory(90).with("odd", 1), 1);
        let boots = BTreeMap::from([("default".to_owned(), "a".to_owned())]);
        assert_eq!(learned.allocatable(&boots)[&kind("g")], memory(90).with(GPU, 8));
    }

    #[test]
    fn what_did_not_do_for_a_pod_is_remembered_while_it_waits() {
        let mut learned = Memory::default();
        assert!(learned.refuse("u", kind("cx22"), "short"));
        assert!(!learned.refuse("u", kind("cx22"), "short"));
        assert_eq!(learned.unfit("u").map(BTreeMap::len), Some(1));
        learned.keep_pods(|uid| uid == "u");
        assert!(learned.unfit("u").is_some());
        learned.keep_pods(|_| false);
        assert!(learned.unfit("u").is_none());
    }

    #[test]
    fn what_was_seen_here_stays_when_older_lessons_are_recalled() {
        let mut learned = Memory::default();
        learned.learn(kind("cx22"), "b", &memory(100), &memory(95), 9);
        let mut older = Memory::default();
        older.learn(kind("cx22"), "a", &memory(100), &memory(90), 1);
        older.learn(kind("cx32"), "b", &memory(200), &memory(190), 2);
        learned.recall(older);
        assert_eq!(known(&learned, "b"), Some(95));
        assert_eq!(learned.machines().len(), 2);
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_the_oldest() {
        let mut learned = Memory::default();
        for number in 0..MOST_KINDS + 1 {
            let at = i64::try_from(number).unwrap_or_default();
            learned.learn(kind(&format!("t{number}")), "a", &memory(1), &memory(1), at);
        }
        assert_eq!(learned.machines().len(), MOST_KINDS);
        assert!(!learned.machines().contains_key(&kind("t0")));
    }
}
