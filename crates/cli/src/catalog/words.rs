//! Parts that all answers share: where the catalog is from, money and times in words.

use jiff::Timestamp;
use scarpenter_catalog::{Measurement, Report, benchmarks};
use scarpenter_core::offering::Price;
use serde::Serialize;
use serde_json::Value;

/// Which catalog an answer is from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CatalogDocument {
    /// The file, the Keeper, or that it is the built-in sample.
    pub(super) source: String,
    /// When it was fetched, where that is known.
    pub(super) fetched: Option<Timestamp>,
    /// When its newest price was seen.
    pub(super) date: Option<Timestamp>,
}

impl CatalogDocument {
    pub(super) fn new(report: &Report) -> Self {
        Self { source: report.source.clone(), fetched: report.provenance.fetched, date: report.date }
    }
}

/// Millionths as a decimal with six digits behind the point.
pub(super) fn decimal(micro: u64) -> String {
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

/// Dollars an hour, without the sign.
pub(super) fn usd(price: Price) -> String {
    decimal(price.micro_usd())
}

/// `1 row`, `2 rows`.
pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// The label's name for what was measured, if a label holds it.
pub(super) fn label_name(measurement: &Measurement) -> Option<&'static str> {
    let config = config(measurement);
    let cores = config.get("cores").and_then(Value::as_str);
    let fields = config.as_object().map_or(0, serde_json::Map::len);
    let is_it = |id: &str, own: Option<&str>| {
        measurement.id() == id && cores == own && fields == usize::from(own.is_some())
    };
    benchmarks().find(|own| is_it(own.id, own.cores)).map(|own| own.name)
}

/// How it was measured, as JSON.
pub(super) fn config(measurement: &Measurement) -> Value {
    serde_json::from_str(measurement.config()).unwrap_or_default()
}

/// `key=value` for each part of a config.
pub(super) fn config_words(config: &Value) -> String {
    let words = config.as_object().into_iter().flatten().map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A time to the second, empty where there is none.
pub(super) fn time(at: Option<Timestamp>) -> String {
    let seconds = at.and_then(|at| Timestamp::from_second(at.as_second()).ok());
    seconds.map(|at| at.to_string()).unwrap_or_default()
}

/// How long ago that many seconds are, in the largest unit that fits.
pub(super) fn ago(seconds: i64) -> String {
    let (number, unit) = match seconds {
        ..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_said_in_the_largest_unit_that_fits() {
        for (seconds, words) in [
            (0, "0 seconds ago"),
            (1, "1 second ago"),
            (119, "1 minute ago"),
            (7200, "2 hours ago"),
            (172_800, "2 days ago"),
        ] {
            assert_eq!(ago(seconds), words);
        }
    }
}
