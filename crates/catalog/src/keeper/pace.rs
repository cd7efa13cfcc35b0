//! How fast the Keeper may be asked: what a minute's credits allow, and how long to wait after a failure.
//! Pure: the time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// What of the Keeper's limit we use up at most, in percent: others may share our address.
const SHARE: u32 = 80;

/// Credits spent in the last minute, by ourselves and by others at the same address, and how many there are.
#[derive(Debug)]
pub(crate) struct Budget {
    window: Duration,
    limit: Option<u32>,
    spent: VecDeque<(Instant, u32)>,
    costs: BTreeMap<&'static str, u32>,
    closed: Option<Instant>,
}

/// What an answer's headers say of the limit; none of it where the Keeper has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) limit: Option<u32>,
    pub(crate) cost: Option<u32>,
    pub(crate) remaining: Option<u32>,
}

impl Budget {
    pub(crate) fn new(window: Duration) -> Self {
        Self { window, limit: None, spent: VecDeque::new(), costs: BTreeMap::new(), closed: None }
    }

    /// Spends the credits of a request for `path`, or says how long to wait before asking again.
    pub(crate) fn spend(&mut self, now: Instant, path: &'static str) -> Result<(), Duration> {
        if let Some(until) = self.closed.filter(|until| *until > now) {
            return Err(until - now);
        }
        self.closed = None;
        while self.spent.front().is_some_and(|(at, _)| *at + self.window <= now) {
            self.spent.pop_front();
        }
        let cost = self.cost(path);
        let sum = self.sum();
        let allowed = self.limit.is_none_or(|limit| sum == 0 || sum + cost <= limit * SHARE / 100);
        match self.spent.front() {
            Some((oldest, _)) if !allowed => Err(*oldest + self.window - now),
            _ => {
                self.spent.push_back((now, cost));
                Ok(())
            }
        }
    }

    /// Hears what an answer for `path` said of the limit.
    ///
    /// Credits that are gone and not spent by us were spent by others just now.
    pub(crate) fn hear(&mut self, now: Instant, path: &'static str, told: Told) {
        let Some(limit) = told.limit else { return };
        self.limit = Some(limit);
        let guessed = self.cost(path);
        if let Some(cost) = told.cost {
            self.costs.insert(path, cost);
            self.spent.push_back((now, cost.saturating_sub(guessed)));
        }
        if let Some(remaining) = told.remaining {
            let others = limit.saturating_sub(remaining).saturating_sub(self.sum());
            self.spent.push_back((now, others));
        }
        self.spent.retain(|(_, cost)| *cost > 0);
    }

    /// Lets nobody ask before `until`.
    pub(crate) fn close(&mut self, until: Instant) {
        self.closed = self.closed.max(Some(until));
    }

    fn sum(&self) -> u32 {
        self.spent.iter().fold(0, |sum: u32, (_, cost)| sum.saturating_add(*cost))
    }

    /// What a request costs: what the Keeper said last, else what version 0.3.6 asks.
    fn cost(&self, path: &'static str) -> u32 {
        self.costs.get(path).copied().unwrap_or(match path {
            "/servers" => 3,
            "/server_prices" => 5,
            "/table/server_prices" => 10,
            _ => 1,
        })
    }
}

/// How long to wait after failure number `failed`, from 0: between nothing and 1, 2, 4, 8, 16 steps, by `jitter` of
/// 0 to 1. Full jitter, so that many who failed together do not come back together.
pub(crate) fn back_off(step: Duration, failed: u32, jitter: f64) -> Duration {
    step.saturating_mul(1 << failed.min(4)).mul_f64(jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn told(limit: u32, cost: u32, remaining: u32) -> Told {
        Told { limit: Some(limit), cost: Some(cost), remaining: Some(remaining) }
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let (mut budget, now) = (Budget::new(MINUTE), Instant::now());
        budget.hear(now, "/stats", Told::default());
        assert!((0..1000).all(|_| budget.spend(now, "/server_prices").is_ok()));
    }

    #[test]
    fn four_fifths_of_a_minutes_credits_are_spent_and_then_the_oldest_must_be_a_minute_old() {
        let (mut budget, start) = (Budget::new(MINUTE), Instant::now());
        budget.spend(start, "/healthcheck").unwrap();
        budget.hear(start, "/healthcheck", told(60, 1, 59));
        let later = start + Duration::from_secs(10);
        let asked = (0..).take_while(|_| budget.spend(later, "/server_prices").is_ok()).count();
        assert_eq!(asked, 9, "1 + 9 x 5 = 46 of 48");
        assert_eq!(budget.spend(later, "/server_prices"), Err(Duration::from_secs(50)));
        assert_eq!(budget.spend(later, "/stats"), Ok(()), "there is room for small ones");
        assert_eq!(budget.spend(start + MINUTE, "/server_prices"), Err(Duration::from_secs(10)));
        assert_eq!(budget.spend(later + MINUTE, "/server_prices"), Ok(()));
    }

    #[test]
    fn the_keepers_own_word_of_what_a_request_costs_goes_before_ours() {
        let (mut budget, now) = (Budget::new(MINUTE), Instant::now());
        budget.spend(now, "/server_prices").unwrap();
        budget.hear(now, "/server_prices", told(60, 20, 40));
        budget.spend(now, "/server_prices").unwrap();
        assert!(budget.spend(now, "/server_prices").is_err(), "40 of 48 are spent");
    }

    #[test]
    fn what_others_at_our_address_spend_is_not_there_for_us() {
        let (mut budget, now) = (Budget::new(MINUTE), Instant::now());
        budget.spend(now, "/healthcheck").unwrap();
        budget.hear(now, "/healthcheck", told(60, 1, 10));
        assert!(budget.spend(now, "/stats").is_err());
        assert!(budget.spend(now + MINUTE, "/stats").is_ok());
    }

    #[test]
    fn a_request_dearer_than_the_whole_budget_is_asked_alone() {
        let (mut budget, now) = (Budget::new(MINUTE), Instant::now());
        budget.hear(now, "/stats", told(4, 1, 4));
        assert!(budget.spend(now, "/server_prices").is_ok());
        assert!(budget.spend(now, "/stats").is_err());
    }

    #[test]
    fn a_closed_budget_opens_at_its_time() {
        let (mut budget, now) = (Budget::new(MINUTE), Instant::now());
        budget.close(now + MINUTE);
        budget.close(now + Duration::from_secs(5));
        assert_eq!(budget.spend(now, "/stats"), Err(MINUTE));
        assert!(budget.spend(now + MINUTE, "/stats").is_ok());
    }

    #[test]
    fn waits_double_up_to_sixteen_and_lie_anywhere_below() {
        let step = Duration::from_secs(1);
        let most: Vec<u64> = (0..6).map(|failed| back_off(step, failed, 1.0).as_secs()).collect();
        assert_eq!(most, [1, 2, 4, 8, 16, 16]);
        assert_eq!(back_off(step, 3, 0.0), Duration::ZERO);
        assert_eq!(back_off(step, 3, 0.5), Duration::from_secs(4));
    }
}
