//! One token bucket for all calls of an account, kept in step with what the vendor's headers say.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What the vendor allows a project unless its headers say otherwise: calls an hour, refilled evenly.
/// Source: the vendor's API documentation, "Rate Limiting".
pub(crate) const CALLS_AN_HOUR: u32 = 3600;
const HOUR_SECONDS: f64 = 3600.0;
/// A call waits so long for its turn; when it would take longer, the caller is told to come again.
const PATIENCE: Duration = Duration::from_secs(3);
/// Part of the limit that only creates and deletes may use: looking must not keep a machine from going.
const KEPT_BACK: f64 = 0.1;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Looking.
    Read,
    /// Making or deleting.
    Write,
}

/// What an answer's headers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) limit: Option<u32>,
    pub(crate) remaining: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    limit: f64,
    tokens: f64,
    at: Instant,
    closed_until: Option<Instant>,
}

impl Bucket {
    pub(crate) fn new() -> Self {
        Self { level: Mutex::new(Level::full(Instant::now())) }
    }

    /// Waits for a call's turn.
    ///
    /// # Errors
    /// When to come again, if that is not soon.
    pub(crate) async fn turn(&self, urgency: Urgency) -> Result<(), Duration> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Err(wait) = self.level().take(urgency, Instant::now()) else { return Ok(()) };
            if Instant::now() + wait > deadline {
                return Err(wait);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes over what the vendor says; other users of the account show in it.
    pub(crate) fn told(&self, told: Told) {
        self.level().told(told, Instant::now());
    }

    /// The vendor refused a call for being too many: nobody calls until `wait` is over.
    pub(crate) fn close_for(&self, wait: Duration) {
        self.level().close_until(Instant::now() + wait);
    }

    fn level(&self) -> MutexGuard<'_, Level> {
        self.level.lock().expect("nobody panics while holding the level")
    }
}

impl Level {
    fn full(now: Instant) -> Self {
        let limit = f64::from(CALLS_AN_HOUR);
        Self { limit, tokens: limit, at: now, closed_until: None }
    }

    fn told(&mut self, told: Told, now: Instant) {
        self.refill(now);
        let limit = told.limit.filter(|limit| *limit > 0).map_or(self.limit, f64::from);
        if limit != self.limit {
            // Of another limit, only the vendor knows what is left.
            (self.limit, self.tokens) = (limit, limit);
        }
        let remaining = told.remaining.map_or(self.limit, f64::from);
        self.tokens = self.tokens.min(remaining);
    }

    fn close_until(&mut self, until: Instant) {
        self.closed_until = Some(self.closed_until.map_or(until, |before| before.max(until)));
    }

    fn rate(&self) -> f64 {
        self.limit / HOUR_SECONDS
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate()).min(self.limit);
        self.at = now;
    }

    fn take(&mut self, urgency: Urgency, now: Instant) -> Result<(), Duration> {
        if let Some(until) = self.closed_until.filter(|until| *until > now) {
            return Err(until - now);
        }
        self.closed_until = None;
        self.refill(now);
        let kept_back = if urgency == Urgency::Read { self.limit * KEPT_BACK } else { 0.0 };
        let missing = kept_back + 1.0 - self.tokens;
        if missing > 0.0 {
            return Err(Duration::from_secs_f64(missing / self.rate()).max(Duration::from_millis(1)));
        }
        self.tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(limit: u32, remaining: u32) -> (Level, Instant) {
        let now = Instant::now();
        let mut level = Level::full(now);
        level.told(Told { limit: Some(limit), remaining: Some(remaining) }, now);
        (level, now)
    }

    fn seconds(wait: Result<(), Duration>) -> f64 {
        (wait.unwrap_err().as_secs_f64() * 10.0).round() / 10.0
    }

    #[test]
    fn what_the_vendor_says_remains_is_all_there_is_and_comes_back_evenly() {
        let (mut level, now) = level(3600, 2);
        assert_eq!(level.take(Urgency::Write, now), Ok(()));
        assert_eq!(level.take(Urgency::Write, now), Ok(()));
        assert_eq!(seconds(level.take(Urgency::Write, now)), 1.0);
        let later = now + Duration::from_millis(1001);
        assert_eq!(level.take(Urgency::Write, later), Ok(()));
        assert!(level.take(Urgency::Write, later).is_err());
    }

    #[test]
    fn looking_leaves_a_tenth_to_making_and_deleting() {
        let (mut level, now) = level(3600, 300);
        assert_eq!(seconds(level.take(Urgency::Read, now)), 61.0);
        assert_eq!(level.take(Urgency::Write, now), Ok(()));
    }

    #[test]
    fn after_a_429_nobody_calls_until_the_time_is_over() {
        let (mut level, now) = level(3600, 3600);
        level.close_until(now + Duration::from_secs(40));
        level.close_until(now + Duration::from_secs(5));
        assert_eq!(level.take(Urgency::Write, now), Err(Duration::from_secs(40)));
        assert_eq!(level.take(Urgency::Write, now + Duration::from_secs(40)), Ok(()));
    }

    #[test]
    fn another_limit_is_taken_over() {
        let (mut empty, now) = level(36_000, 0);
        assert_eq!(seconds(empty.take(Urgency::Write, now)), 0.1);
        let (mut large, now) = level(36_000, 36_000);
        assert_eq!(large.take(Urgency::Read, now), Ok(()), "no waiting until it has filled up");
    }

    #[test]
    fn a_day_of_nothing_saves_up_no_more_than_the_limit() {
        let (mut level, now) = level(3600, 0);
        level.refill(now + Duration::from_secs(86_400));
        assert_eq!(level.tokens, 3600.0);
    }
}
