//! Lengths of time as people write them: `250ms`, `2s`, `5m`, `1h`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A text that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no length of time, such as 250ms, 2s, 5m or 1h")]
pub struct BadSpan {
    /// What was written.
    pub text: String,
}

/// Reads a whole number and a unit.
///
/// # Errors
/// When it is something else.
pub fn parse_span(text: &str) -> Result<Duration, BadSpan> {
    let bad = || BadSpan { text: text.to_owned() };
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().map_err(|_| bad())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(bad()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(bad)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0.as_millis())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        parse_span(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_needs_a_number_and_a_unit() {
        assert_eq!(parse_span("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_span("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "2", "s", "2 s", "-1s", "1.5s", "99999999999999999h"] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }
}
