//! Durations as people write them (`72h3m`): the text is kept, so that it is written back unchanged (API-22).

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The word that switches a duration off.
pub const NEVER: &str = "Never";

/// A duration, or `Never`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NillableDuration(String);

impl NillableDuration {
    /// Keeps `text` as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// `Never`.
    #[must_use]
    pub fn never() -> Self {
        Self::new(NEVER)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The duration; `None` for `Never`, and for a text that is none, which [`Self::problem`] names.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        parse(&self.0)
    }

    /// What is wrong with the text, in words.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        (self.0 != NEVER && parse(&self.0).is_none()).then(|| unreadable(&self.0))
    }
}

/// A duration that cannot be off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(String);

impl GoDuration {
    /// Keeps `text` as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The duration; `None` for a text that is none, which [`Self::problem`] names.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        parse(&self.0)
    }

    /// What is wrong with the text, in words.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        parse(&self.0).is_none().then(|| unreadable(&self.0))
    }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for NillableDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NillableDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^(([0-9]+(s|m|h))+|Never)$"})
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^([0-9]+(s|m|h))+$"})
    }
}

fn unreadable(text: &str) -> String {
    format!("{text:?} is not a duration, such as 30s, 5m or 72h3m")
}

/// Reads a duration in Go's notation: numbers with a unit each, one after the other; nothing negative.
///
/// Go counts 64 bits of nanoseconds, so anything above some 292 years is none.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, tail) = rest.split_at(end);
        let (unit, tail) = UNITS.iter().find_map(|(name, unit)| Some((*unit, tail.strip_prefix(name)?)))?;
        nanos = nanos.checked_add(scaled(number, unit)?)?;
        rest = tail;
    }
    (nanos <= i64::MAX.unsigned_abs().into()).then(|| u64::try_from(nanos).ok().map(Duration::from_nanos))?
}

/// Longer names first, so that `ms` is not read as `m`.
const UNITS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 18 {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_mul(unit)?.checked_add(part.checked_mul(unit)? / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, millis) in [
            ("0s", 0),
            ("0", 0),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("720h", 2_592_000_000),
            ("1.5m", 90_000),
            ("250ms", 250),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5", "-1s", "1d", "1h-5m", "99999999999999h", "1..5s", "Never"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn never_is_no_duration_and_no_problem() {
        assert_eq!(NillableDuration::never().get(), None);
        assert_eq!(NillableDuration::never().problem(), None);
        assert!(NillableDuration::new("soon").problem().is_some());
        assert!(GoDuration::new(NEVER).problem().is_some());
    }

    #[test]
    fn the_text_is_written_back_unchanged() {
        let read: NillableDuration = serde_json::from_str("\"1800m\"").expect("text");
        assert_eq!(serde_json::to_string(&read).expect("text"), "\"1800m\"");
    }
}
