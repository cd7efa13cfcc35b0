//! Cron schedules of budgets: five fields in UTC, or one of the usual words.

use std::time::Duration;

use k8s_openapi::jiff::civil::{DateTime, Weekday};
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// When something starts, to the minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

/// The values that match, one bit each, and whether all do because a star says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    bits: u64,
    star: bool,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads a schedule; `None` when it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@annually" | "@yearly" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else { return None };
        Some(Self {
            minute: Field::parse(minute, 0, 59, &[])?,
            hour: Field::parse(hour, 0, 23, &[])?,
            day: Field::parse(day, 1, 31, &[])?,
            month: Field::parse(month, 1, 12, &MONTHS)?,
            weekday: Field::parse(weekday, 0, 7, &DAYS)?,
        })
    }

    /// Whether it started within the last `lasting`.
    pub(crate) fn fired_within(&self, lasting: Duration, now: Timestamp) -> bool {
        let Ok(lasting) = SignedDuration::try_from(lasting) else { return true };
        let Ok(start) = now.checked_sub(lasting) else { return true };
        let mut minute = now.as_second().div_euclid(60) * 60;
        while minute > start.as_second() {
            let Ok(at) = Timestamp::from_second(minute) else { return false };
            let at = at.to_zoned(TimeZone::UTC).datetime();
            if self.matches(at) {
                return true;
            }
            // A day without a match is left in one step, so that a long duration costs no more than its days.
            let back = if self.matches_day(at) {
                60
            } else {
                i64::from(at.hour()) * 3600 + i64::from(at.minute()) * 60 + 60
            };
            minute -= back;
        }
        false
    }

    fn matches(&self, at: DateTime) -> bool {
        self.matches_day(at) && self.hour.has(at.hour()) && self.minute.has(at.minute())
    }

    /// Day of month and weekday are alternatives when both are narrowed, as cron has it.
    fn matches_day(&self, at: DateTime) -> bool {
        let weekday = at.weekday().to_sunday_zero_offset();
        let day = self.day.has(at.day());
        let weekday = self.weekday.has(weekday) || at.weekday() == Weekday::Sunday && self.weekday.has(7);
        let either = if self.day.star || self.weekday.star { day && weekday } else { day || weekday };
        self.month.has(at.month()) && either
    }
}

impl Field {
    fn parse(text: &str, low: u32, high: u32, names: &[&str]) -> Option<Self> {
        let mut out = Self { bits: 0, star: false };
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|step| *step > 0)?)),
                None => (part, None),
            };
            let (from, to) = if range == "*" || range == "?" {
                out.star |= step.is_none_or(|step| step == 1);
                (low, high)
            } else if let Some((from, to)) = range.split_once('-') {
                (number(from, low, high, names)?, number(to, low, high, names)?)
            } else {
                let from = number(range, low, high, names)?;
                (from, if step.is_some() { high } else { from })
            };
            if from > to {
                return None;
            }
            let step = usize::try_from(step.unwrap_or(1)).ok()?;
            out.bits |= (from..=to).step_by(step).fold(0, |bits, value| bits | 1 << value);
        }
        Some(out)
    }

    fn has(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.bits & (1 << value) != 0)
    }
}

fn number(text: &str, low: u32, high: u32, names: &[&str]) -> Option<u32> {
    let word = text.to_ascii_lowercase();
    let named =
        names.iter().position(|name| *name == word).and_then(|at| u32::try_from(at).ok()).map(|at| at + low);
    named.or_else(|| text.parse().ok()).filter(|value| (low..=high).contains(value))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fired(schedule: &str, hours: u64, now: &str) -> bool {
        Schedule::parse(schedule)
            .unwrap()
            .fired_within(Duration::from_secs(hours * 3600), now.parse().unwrap())
    }

    #[test]
    fn a_start_counts_until_its_duration_is_over() {
        assert!(fired("30 9 * * *", 2, "2026-05-05T09:30:00Z"));
        assert!(fired("30 9 * * *", 2, "2026-05-05T11:29:59Z"));
        assert!(!fired("30 9 * * *", 2, "2026-05-05T11:30:00Z"));
        assert!(!fired("30 9 * * *", 2, "2026-05-05T09:29:59Z"));
    }

    #[test]
    fn words_names_steps_and_lists_are_read() {
        assert!(fired("@monthly", 24 * 31, "2026-05-31T00:00:00Z"));
        assert!(fired("@yearly", 24 * 100, "2026-04-01T00:00:00Z"));
        assert!(fired("*/15 * * * *", 1, "2026-05-05T00:59:00Z"));
        assert!(fired("0 0 * feb,may tue", 1, "2026-05-05T00:10:00Z"));
        assert!(fired("0 0 * * 7", 1, "2026-05-03T00:10:00Z"));
        assert!(!fired("0 0 * * sat", 1, "2026-05-03T00:10:00Z"));
    }

    #[test]
    fn day_and_weekday_are_alternatives_when_both_are_given() {
        assert!(fired("0 0 1 * sun", 1, "2026-05-03T00:10:00Z"));
        assert!(fired("0 0 1 * sun", 1, "2026-05-01T00:10:00Z"));
        assert!(!fired("0 0 1 * sun", 1, "2026-05-02T00:10:00Z"));
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "",
            "* * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "@often",
            "a b c d e",
        ] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }
}
