//! Which empty nodes go, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::ClaimUid;

/// A node that turned out to be in use is left alone for this long.
const SPARED: Duration = Duration::from_secs(10);

/// A node that is empty now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyNode {
    /// Its claim.
    pub claim: ClaimUid,
    /// Its pool.
    pub pool: String,
    /// The pool's `consolidateAfter`; `None` is never.
    pub consolidate_after: Option<Duration>,
    /// Whether it was told to go already, and only waits for that: the budgets count it as going.
    pub going: bool,
}

/// What one look says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Empty for long enough, whatever the budgets allow (LIF-15).
    pub consolidatable: BTreeSet<ClaimUid>,
    /// To be disrupted now.
    pub disrupt: Vec<ClaimUid>,
}

/// Since when nodes have been empty, and since when each has been chosen. It may be lost: the clocks start again.
#[derive(Clone, Debug, Default)]
pub struct Empties {
    since: BTreeMap<ClaimUid, Time>,
    chosen: BTreeMap<ClaimUid, Time>,
}

impl Empties {
    /// Looks at all nodes that are empty now.
    ///
    /// `budgets` says per pool how many more may go. A node is chosen when it has been empty for its pool's
    /// `consolidateAfter` and a budget takes it, and goes when it has stayed chosen for `validation` (DIS-10).
    pub fn look(
        &mut self,
        nodes: &[EmptyNode],
        budgets: &BTreeMap<String, u32>,
        validation: Duration,
        now: Time,
    ) -> Verdict {
        let empty: BTreeSet<&ClaimUid> = nodes.iter().map(|node| &node.claim).collect();
        self.since.retain(|claim, _| empty.contains(claim));
        let mut out = Verdict::default();
        let mut left = budgets.clone();
        let mut chosen = BTreeMap::new();
        for node in nodes {
            let since = *self.since.entry(node.claim.clone()).or_insert(now);
            if node.consolidate_after.is_none_or(|after| now < since.after(after)) {
                continue;
            }
            out.consolidatable.insert(node.claim.clone());
            if node.going {
                continue;
            }
            let Some(room) = left.get_mut(&node.pool).filter(|room| **room > 0) else { continue };
            *room -= 1;
            let first = self.chosen.get(&node.claim).copied().unwrap_or(now);
            chosen.insert(node.claim.clone(), first);
            if now >= first.after(validation) {
                out.disrupt.push(node.claim.clone());
            }
        }
        self.chosen = chosen;
        out
    }

    /// A node that was to go is in use after all.
    pub fn spared(&mut self, claim: &ClaimUid, now: Time) {
        self.chosen.insert(claim.clone(), now.after(SPARED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(5);
    const VALIDATION: Duration = Duration::from_secs(15);

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn node(name: &str) -> EmptyNode {
        EmptyNode { claim: name.into(), pool: "p".to_owned(), consolidate_after: Some(AFTER), going: false }
    }

    fn room(nodes: u32) -> BTreeMap<String, u32> {
        BTreeMap::from([("p".to_owned(), nodes)])
    }

    #[test]
    fn a_node_goes_when_it_was_empty_for_long_enough_and_still_is_after_a_second_look() {
        let mut empties = Empties::default();
        let mut look = |seconds| empties.look(&[node("a")], &room(9), VALIDATION, at(seconds));
        assert!(look(0).consolidatable.is_empty());
        assert!(look(5).disrupt.is_empty());
        assert!(look(19).disrupt.is_empty());
        assert_eq!(look(20).disrupt, [ClaimUid::from("a")]);
    }

    #[test]
    fn a_pod_that_came_and_went_starts_both_clocks_again() {
        let mut empties = Empties::default();
        empties.look(&[node("a")], &room(9), VALIDATION, at(0));
        empties.look(&[node("a")], &room(9), VALIDATION, at(5));
        empties.look(&[], &room(9), VALIDATION, at(6));
        empties.look(&[node("a")], &room(9), VALIDATION, at(7));
        assert!(empties.look(&[node("a")], &room(9), VALIDATION, at(11)).consolidatable.is_empty());
        assert!(empties.look(&[node("a")], &room(9), VALIDATION, at(20)).disrupt.is_empty());
    }

    #[test]
    fn a_budget_holds_a_node_that_is_called_consolidatable_all_the_same() {
        let mut empties = Empties::default();
        let nodes = [node("a"), node("b")];
        empties.look(&nodes, &room(1), Duration::ZERO, at(0));
        let verdict = empties.look(&nodes, &room(1), Duration::ZERO, at(5));
        assert_eq!((verdict.consolidatable.len(), verdict.disrupt.len()), (2, 1));
        assert!(empties.look(&nodes, &room(0), Duration::ZERO, at(6)).disrupt.is_empty());
    }

    #[test]
    fn a_node_that_is_going_already_takes_no_room_from_the_next() {
        let mut empties = Empties::default();
        let mut nodes = [node("a"), node("b")];
        empties.look(&nodes, &room(1), Duration::ZERO, at(0));
        assert_eq!(empties.look(&nodes, &room(1), Duration::ZERO, at(5)).disrupt, [ClaimUid::from("a")]);
        nodes[0].going = true;
        let verdict = empties.look(&nodes, &room(1), Duration::ZERO, at(6));
        assert_eq!(verdict.disrupt, [ClaimUid::from("b")], "the budget counted the first as gone");
        assert_eq!(verdict.consolidatable.len(), 2);
    }

    #[test]
    fn never_means_never() {
        let mut empties = Empties::default();
        let nodes = [EmptyNode { consolidate_after: None, ..node("a") }];
        empties.look(&nodes, &room(9), Duration::ZERO, at(0));
        assert_eq!(empties.look(&nodes, &room(9), Duration::ZERO, at(99_999)), Verdict::default());
    }

    #[test]
    fn a_node_that_was_in_use_after_all_is_left_alone_for_a_while() {
        let mut empties = Empties::default();
        let mut nodes = [node("a")];
        nodes[0].consolidate_after = Some(Duration::ZERO);
        assert_eq!(empties.look(&nodes, &room(9), Duration::ZERO, at(0)).disrupt.len(), 1);
        empties.spared(&"a".into(), at(0));
        assert!(empties.look(&nodes, &room(9), Duration::ZERO, at(9)).disrupt.is_empty());
        assert_eq!(empties.look(&nodes, &room(9), Duration::ZERO, at(10)).disrupt.len(), 1);
    }
}
