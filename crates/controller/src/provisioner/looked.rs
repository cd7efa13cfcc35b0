//! Which pods were looked at, and for which of them nothing was found.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

use scarpenter_core::pod::Pod;
use scarpenter_planner::Plan;

/// Refusals that end by waiting: their pods keep their place among the others.
const PASSING: [&str; 3] = ["stock-out", "limits", "caps"];

/// Pods that were looked at and still wait.
#[derive(Debug, Default)]
pub(super) struct Looked(HashMap<String, Look>);

#[derive(Debug)]
struct Look {
    /// Mark of all that it asks for.
    asks: u64,
    hopeless: bool,
}

impl Looked {
    /// Pods for which the latest look found nothing, and that ask for the same as then.
    pub(super) fn hopeless<'a>(&self, pods: impl Iterator<Item = &'a Pod>) -> BTreeSet<String> {
        let is_hopeless =
            |pod: &&Pod| self.0.get(&pod.uid).is_some_and(|look| look.hopeless && look.asks == asks(pod));
        pods.filter(is_hopeless).map(|pod| pod.uid.clone()).collect()
    }

    /// Takes in what a pass found for its pods; whether it left some that nobody has looked at yet.
    ///
    /// Pods that were left although they had been looked at come first in the next pass, and wait for it.
    pub(super) fn take_in<'a>(&mut self, pods: impl Iterator<Item = &'a Pod>, plan: &Plan) -> bool {
        let hopeless: HashSet<&str> = plan
            .unplaced
            .iter()
            .filter(|unplaced| !PASSING.contains(&unplaced.refusal.reason.as_str()))
            .map(|unplaced| unplaced.uid.as_str())
            .collect();
        let claimed = plan.claims.iter().flat_map(|claim| claim.pods.iter().map(|(_, uid)| uid));
        let placed = claimed.chain(plan.nominated.iter().map(|nomination| &nomination.uid));
        let refused = plan.unplaced.iter().map(|unplaced| &unplaced.uid);
        let looked: HashSet<&str> = placed.chain(refused).map(String::as_str).collect();
        let before = std::mem::take(&mut self.0);
        let mut unseen = false;
        for pod in pods {
            let uid = pod.uid.as_str();
            let known = before.get(uid);
            if looked.contains(uid) {
                let look = Look { asks: asks(pod), hopeless: hopeless.contains(uid) };
                self.0.insert(uid.to_owned(), look);
            } else if let Some(known) = known {
                self.0.insert(uid.to_owned(), Look { asks: known.asks, hopeless: false });
            } else {
                unseen = true;
            }
        }
        unseen && plan.deferred > 0
    }
}

/// Equal for pods that ask for the same; within one run of the program.
fn asks(pod: &Pod) -> u64 {
    let mut mark = Mark(DefaultHasher::new());
    // A hasher takes everything.
    let _ = write!(mark, "{pod:?}");
    mark.0.finish()
}

struct Mark(DefaultHasher);

impl Write for Mark {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use scarpenter_core::pod::PodKey;
    use scarpenter_planner::{Nomination, Refusal, Unplaced};

    use super::*;

    fn pod(uid: &str) -> Pod {
        Pod { uid: uid.to_owned(), key: PodKey::new("n", uid), ..Pod::default() }
    }

    fn refused(uid: &str, reason: &str) -> Unplaced {
        let refusal =
            Refusal { reason: reason.to_owned(), message: "no".to_owned(), removed: Vec::new(), until: None };
        Unplaced { pod: PodKey::new("n", uid), uid: uid.to_owned(), refusal }
    }

    fn nominated(uid: &str) -> Nomination {
        Nomination {
            pod: PodKey::new("n", uid),
            uid: uid.to_owned(),
            node: "m".to_owned(),
            tolerations: Vec::new(),
        }
    }

    #[test]
    fn a_pod_is_hopeless_while_it_asks_for_the_same() {
        let mut looked = Looked::default();
        let pods = [pod("a"), pod("b"), pod("c")];
        let unplaced = vec![refused("a", "capacity"), refused("c", "limits")];
        let plan = Plan { unplaced, nominated: vec![nominated("b")], ..Plan::default() };
        assert!(!looked.take_in(pods.iter(), &plan));
        assert_eq!(looked.hopeless(pods.iter()), BTreeSet::from(["a".to_owned()]), "a limit ends by waiting");
        let changed = Pod { labels: BTreeMap::from([("team".to_owned(), "x".to_owned())]), ..pod("a") };
        assert!(looked.hopeless([changed].iter()).is_empty());
    }

    #[test]
    fn only_pods_that_nobody_has_looked_at_make_the_next_pass_follow_at_once() {
        let mut looked = Looked::default();
        let pods = [pod("a"), pod("b")];
        let first = Plan { unplaced: vec![refused("a", "capacity")], deferred: 1, ..Plan::default() };
        assert!(looked.take_in(pods.iter(), &first));
        let second = Plan { unplaced: vec![refused("b", "capacity")], deferred: 1, ..Plan::default() };
        assert!(!looked.take_in(pods.iter(), &second), "the one that was left was looked at before");
        assert_eq!(
            looked.hopeless(pods.iter()),
            BTreeSet::from(["b".to_owned()]),
            "the other comes first now"
        );
    }

    #[test]
    fn pods_that_no_longer_wait_are_forgotten() {
        let mut looked = Looked::default();
        let plan = Plan { unplaced: vec![refused("a", "capacity")], ..Plan::default() };
        looked.take_in([pod("a")].iter(), &plan);
        looked.take_in([].iter(), &Plan::default());
        assert!(looked.0.is_empty());
    }
}
