//! From a price's row to what its vendor asks and since when.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::offering::{Currency, Money, Terms};
use serde::Deserialize;

use crate::Reason;
use crate::rows::PriceRow;

/// The terms of a price by the hour, or why it is none.
pub(super) fn terms(row: &PriceRow<'_>, times: &mut Times) -> Result<Terms, Reason> {
    let price = row.price.ok_or(Reason::NullPrice)?;
    if price == 0.0 {
        return Err(Reason::ZeroPrice);
    }
    if !(price > 0.0 && price.is_finite()) {
        return Err(Reason::BadPrice);
    }
    let currency = Currency::parse(row.currency).ok_or(Reason::NoCurrency)?;
    let native = Money::from_units(price, currency).ok_or(Reason::BadPrice)?;
    let cap = monthly_cap(row.price_tiered).and_then(|cap| Money::from_units(cap, currency));
    let observed = times.read(row.observed_at);
    Ok(Terms { native, monthly_cap_micro: cap.map(|cap| cap.micro), observed })
}

/// One step of a price that depends on how many hours of a month are used.
#[derive(Deserialize)]
struct Tier {
    upper: Bound,
    price: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bound {
    Hours(f64),
    /// `"Infinity"`, since JSON has no number for it.
    Text(String),
}

impl Bound {
    fn hours(&self) -> f64 {
        match self {
            Self::Hours(hours) => *hours,
            Self::Text(text) => text.parse().unwrap_or(f64::NAN),
        }
    }
}

/// What all hours cost up to the first that is free, where there is one.
fn monthly_cap(tiers: &str) -> Option<f64> {
    if matches!(tiers, "" | "[]" | "null") {
        return None;
    }
    let tiers: Vec<Tier> = serde_json::from_str(tiers).ok()?;
    let (mut cost, mut until) = (0.0, 0.0);
    for tier in tiers {
        if tier.price == 0.0 {
            return Some(cost);
        }
        let upper = tier.upper.hours();
        // The lower bound of the next tier is an hour later; whether that hour is free is not what a cap is about.
        if !(upper > until && upper.is_finite() && tier.price > 0.0) {
            return None;
        }
        cost += (upper - until) * tier.price;
        until = upper;
    }
    None
}

/// Reads times; those of one source are often alike.
#[derive(Default)]
pub(super) struct Times {
    last: Option<(String, Option<Time>)>,
}

impl Times {
    fn read(&mut self, text: &str) -> Option<Time> {
        match &self.last {
            Some((last, time)) if last == text => *time,
            _ => {
                let time = timestamp(text).map(|time| Time::from_millis(time.as_second() * 1000));
                self.last = Some((text.to_owned(), time));
                time
            }
        }
    }
}

/// A time of the catalog's: it names no zone and means UTC.
fn timestamp(text: &str) -> Option<Timestamp> {
    text.parse()
        .ok()
        .or_else(|| Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_month_costs_at_most_what_its_paid_hours_cost() {
        for (tiers, cap) in [
            (
                r#"[{"lower": 0.0, "upper": 672.0, "price": 0.0112}, {"lower": 673.0, "upper": "Infinity", "price": 0.0}]"#,
                Some(7.5264),
            ),
            (
                r#"[{"lower":0,"upper":10,"price":2},{"lower":11,"upper":20,"price":1},{"lower":21,"upper":"Infinity","price":0}]"#,
                Some(30.0),
            ),
            (r#"[{"lower": 0, "upper": "Infinity", "price": 0.5}]"#, None),
            (
                r#"[{"lower": 0, "upper": 100, "price": 0.5}, {"lower": 101, "upper": "Infinity", "price": 0.25}]"#,
                None,
            ),
            (
                r#"[{"lower": 0, "upper": 100, "price": -1}, {"lower": 101, "upper": "Infinity", "price": 0}]"#,
                None,
            ),
            (
                r#"[{"lower": 0, "upper": "soon", "price": 1}, {"lower": 101, "upper": "Infinity", "price": 0}]"#,
                None,
            ),
            ("[]", None),
            ("", None),
            ("null", None),
            ("{", None),
        ] {
            let found = monthly_cap(tiers);
            assert_eq!(found.is_some(), cap.is_some(), "{tiers}");
            assert!((found.unwrap_or(0.0) - cap.unwrap_or(0.0)).abs() < 1e-9, "{tiers}: {found:?}");
        }
    }

    #[test]
    fn a_time_is_utc_however_it_is_written() {
        let mut times = Times::default();
        for text in [
            "2026-08-22 03:50:12.000000",
            "2026-08-22T03:50:12",
            "2026-08-22T03:50:12Z",
            "2026-08-22T05:50:12+02:00",
        ] {
            assert_eq!(times.read(text), Some(Time::from_millis(1_787_370_612_000)), "{text}");
        }
        for text in ["", "yesterday", "2026-13-01 00:00:00", "1787370612"] {
            assert_eq!(times.read(text), None, "{text}");
        }
    }
}
