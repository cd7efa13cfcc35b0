//! How many machines of a pool may be going at once (DIS-6, DIS-7).

use k8s_openapi::jiff::Timestamp;

use super::{Budget, DisruptionReason, NodePool};
use crate::cron::Schedule;
use crate::duration;

impl NodePool {
    /// How many of its `nodes` may be going at once for `reason`; with no active budget all of them.
    ///
    /// `nodes` is the base number of DIS-6; the caller takes off those that are already going or not ready.
    #[must_use]
    pub fn allowed_disruptions(&self, reason: DisruptionReason, nodes: u32, now: Timestamp) -> u32 {
        let budgets = self.spec.disruption.budgets.iter();
        let counting = budgets.filter(|budget| budget.names(reason));
        counting.filter_map(|budget| budget.allowed(nodes, now)).min().unwrap_or(nodes)
    }
}

impl Budget {
    /// Whether it holds for `reason`.
    #[must_use]
    pub fn names(&self, reason: DisruptionReason) -> bool {
        self.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason))
    }

    /// How many it allows of `nodes`; `None` while it does not hold. What cannot be read allows none.
    #[must_use]
    pub fn allowed(&self, nodes: u32, now: Timestamp) -> Option<u32> {
        match self.is_active(now) {
            Some(true) => Some(share(&self.nodes, nodes).unwrap_or(0)),
            Some(false) => None,
            None => Some(0),
        }
    }

    /// Whether it holds now; `None` when schedule or duration cannot be read.
    fn is_active(&self, now: Timestamp) -> Option<bool> {
        let Some(schedule) = &self.schedule else {
            return self.duration.is_none().then_some(true);
        };
        let lasting = duration::parse(self.duration.as_ref()?)?;
        Some(Schedule::parse(schedule)?.fired_within(lasting, now))
    }
}

/// A number, or a percentage of `nodes`, rounded up; never more than there are.
fn share(text: &str, nodes: u32) -> Option<u32> {
    let count = match text.strip_suffix('%') {
        Some(percent) => {
            (u64::from(nodes) * percent.parse::<u64>().ok().filter(|percent| *percent <= 100)?).div_ceil(100)
        }
        None => text.parse().ok()?,
    };
    Some(u32::try_from(count).map_or(nodes, |count| count.min(nodes)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pool(budgets: &str) -> NodePool {
        let text = format!(
            "metadata: {{name: p}}\nspec: {{disruption: {{budgets: {budgets}}}, template: {{spec: {{nodeClassRef: {{group: g, kind: k, name: n}}, requirements: []}}}}}}"
        );
        serde_saphyr::from_str(&text).unwrap()
    }

    fn empty(budgets: &str, nodes: u32, now: &str) -> u32 {
        pool(budgets).allowed_disruptions(DisruptionReason::Empty, nodes, now.parse().unwrap())
    }

    const NOON: &str = "2026-03-02T12:00:00Z";

    #[test]
    fn percentages_round_up_and_the_strictest_counts() {
        assert_eq!(empty("[{nodes: 10%}]", 2, NOON), 1);
        assert_eq!(empty("[{nodes: 100%}, {nodes: '3'}]", 10, NOON), 3);
        assert_eq!(empty("[{nodes: '30'}]", 10, NOON), 10);
        assert_eq!(empty("[{nodes: 50%}]", 0, NOON), 0);
    }

    #[test]
    fn a_budget_of_other_reasons_does_not_count() {
        assert_eq!(empty("[{nodes: '0', reasons: [Drifted]}]", 4, NOON), 4);
        assert_eq!(empty("[{nodes: '0', reasons: [Drifted, Empty]}]", 4, NOON), 0);
    }

    #[test]
    fn a_scheduled_budget_holds_for_its_duration() {
        let nine_to_five = "[{nodes: '0', schedule: '0 9 * * mon-fri', duration: 8h}]";
        assert_eq!(empty(nine_to_five, 4, NOON), 0);
        assert_eq!(empty(nine_to_five, 4, "2026-03-02T18:00:00Z"), 4);
        assert_eq!(empty(nine_to_five, 4, "2026-03-01T12:00:00Z"), 4);
    }

    #[test]
    fn what_cannot_be_read_allows_none() {
        assert_eq!(empty("[{nodes: 10%, schedule: 'a b c d e', duration: 1h}]", 10, NOON), 0);
        assert_eq!(empty("[{nodes: many}]", 10, NOON), 0);
        assert_eq!(empty("[{nodes: '5', schedule: '@daily'}]", 10, NOON), 0);
    }
}
