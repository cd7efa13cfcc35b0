//! What a catalog holds, how old it is, and what was left out and why.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scarpenter_core::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::Rates;

/// Why a row of the catalog is no offering.
///
/// A price is counted once, under the first reason in this order that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A type that its vendor no longer sells.
    InactiveType,
    /// A type of an architecture that Kubernetes has no node for, such as a Mac, or a 32-bit one.
    OtherArch,
    /// A type without a name, vCPUs or memory, or a second one of the same name.
    BadType,
    /// A zone of a region that the catalog does not have.
    NoRegion,
    /// A price of a type that its vendor no longer sells.
    OfInactiveType,
    /// A price of a type that was left out for another reason.
    OfOtherType,
    /// A price of a type that the catalog does not have.
    NoType,
    /// A price in a region or zone that the catalog does not have.
    NoPlace,
    /// A price in a region or zone that its vendor has closed.
    InactivePlace,
    /// A price that its vendor no longer asks.
    InactivePrice,
    /// A price with another system than Linux.
    OtherSystem,
    /// A price neither on demand nor spot.
    OtherAllocation,
    /// A price by another unit than the hour.
    NotHourly,
    /// A price that is null or no number.
    NullPrice,
    /// A price of zero.
    ZeroPrice,
    /// A price that is negative, not a number, infinite, or too small or large to be one.
    BadPrice,
    /// A price without the code of a currency.
    NoCurrency,
    /// A price in a currency whose rate was not given.
    NoRate,
    /// A price of what has another offering that is not dearer, as two datacenters of one location have.
    Dearer,
    /// A benchmark score that no longer counts.
    InactiveScore,
    /// A benchmark score that is null, negative or not a number.
    BadScore,
    /// A row of a Keeper's that cannot be read.
    Unreadable,
}

impl Reason {
    /// What the rows are that were left out for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InactiveType => "inactive types",
            Self::OtherArch => "types of another architecture",
            Self::BadType => "types without name or size",
            Self::NoRegion => "zones of unknown regions",
            Self::OfInactiveType => "prices of inactive types",
            Self::OfOtherType => "prices of types left out otherwise",
            Self::NoType => "prices of unknown types",
            Self::NoPlace => "prices in unknown places",
            Self::InactivePlace => "prices in closed places",
            Self::InactivePrice => "inactive prices",
            Self::OtherSystem => "prices of other systems",
            Self::OtherAllocation => "prices neither on demand nor spot",
            Self::NotHourly => "prices not by the hour",
            Self::NullPrice => "prices that are null",
            Self::ZeroPrice => "prices of zero",
            Self::BadPrice => "prices negative or absurd",
            Self::NoCurrency => "prices in no currency",
            Self::NoRate => "prices in a currency without a rate",
            Self::Dearer => "prices with a cheaper twin",
            Self::InactiveScore => "inactive scores",
            Self::BadScore => "bad scores",
            Self::Unreadable => "unreadable rows",
        }
    }
}

/// Whence a catalog's facts are, wherever they were read from last.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// What gave them in the first place, such as a Keeper's address; never a secret, never a whole path.
    pub source: String,
    /// When that was, where it is known.
    pub fetched: Option<Timestamp>,
    /// What tells one state of the source from another: Keeper's database hash, or the SHA-256 of a file.
    pub hash: Option<String>,
    /// What prices in other currencies were turned into USD by.
    pub rates: Rates,
    /// Whose data it is and under which licence; goes where the data goes.
    pub notice: String,
}

impl Provenance {
    /// Facts of Spare Cores from `source`.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }
}

impl Default for Provenance {
    fn default() -> Self {
        Self {
            source: String::new(),
            fetched: None,
            hash: None,
            rates: Rates::default(),
            notice: "Spare Cores data (sparecores.com), CC BY-SA 4.0; keep this notice where the data goes"
                .to_owned(),
        }
    }
}

/// What a catalog holds and what not. Prints as one line, or two when something was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Path of the file, or what else it was read from just now.
    pub source: String,
    /// What it was first fetched from, when, and at which rates.
    pub provenance: Provenance,
    /// How many offerings there are.
    pub offerings: usize,
    /// How many types can be bought somewhere. The snapshot also holds those that cannot.
    pub types: usize,
    /// How many rows were left out, by reason.
    pub dropped: BTreeMap<Reason, usize>,
    /// How many of them for want of a rate, by currency.
    pub without_rate: BTreeMap<String, usize>,
    /// When the oldest price was seen.
    pub oldest: Option<Timestamp>,
    /// When the newest price was seen: the date of the catalog.
    pub date: Option<Timestamp>,
}

impl Report {
    /// Counts a row that was left out.
    pub(crate) fn drop(&mut self, reason: Reason) {
        self.drop_many(reason, 1);
    }

    /// Counts rows that were left out.
    pub(crate) fn drop_many(&mut self, reason: Reason, count: usize) {
        if count > 0 {
            *self.dropped.entry(reason).or_default() += count;
        }
    }

    /// Says of `snapshot` how much it holds and how old its prices are.
    pub(crate) fn describe(&mut self, snapshot: &Snapshot) {
        let bought = |of: &usize| snapshot.offerings_of(*of).next().is_some();
        self.offerings = snapshot.len();
        self.types = (0..snapshot.types().len()).filter(bought).count();
        let (oldest, newest) = snapshot.observed().unzip();
        [self.oldest, self.date] =
            [oldest, newest].map(|time| Timestamp::from_millisecond(time?.millis()).ok());
    }

    /// Counts a price in a currency without a rate.
    pub(crate) fn drop_currency(&mut self, currency: &str) {
        self.drop(Reason::NoRate);
        match self.without_rate.get_mut(currency) {
            Some(count) => *count += 1,
            None => {
                self.without_rate.insert(currency.to_owned(), 1);
            }
        }
    }

    /// The sentence that says how to have the prices in other currencies, if there are any.
    #[must_use]
    pub fn rate_hint(&self) -> Option<String> {
        let counts: Vec<String> =
            self.without_rate.iter().map(|(currency, count)| format!("{currency} ({count})")).collect();
        let flags: Vec<String> =
            self.without_rate.keys().map(|currency| format!("--rate {currency}=…")).collect();
        (!counts.is_empty()).then(|| {
            format!(
                "prices in {} are no offerings until their rate in USD is given: {}",
                counts.join(", "),
                flags.join(" ")
            )
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "catalog {}: {} offerings of {} types", self.source, self.offerings, self.types)?;
        if let (Some(oldest), Some(date)) = (self.oldest, self.date) {
            let [oldest, date] = [oldest, date].map(|time| time.to_zoned(TimeZone::UTC).date());
            if oldest == date {
                write!(f, ", prices of {date}")?;
            } else {
                write!(f, ", prices of {oldest} to {date}")?;
            }
        }
        let mut parts: Vec<String> = self.rate_hint().into_iter().collect();
        let others = self.dropped.iter().filter(|(reason, _)| **reason != Reason::NoRate);
        let others: Vec<String> =
            others.map(|(reason, count)| format!("{} ({count})", reason.as_str())).collect();
        if !others.is_empty() {
            parts.push(format!("left out: {}", others.join(", ")));
        }
        if !parts.is_empty() {
            write!(f, "\n{}", parts.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_in_two_lines_what_is_there_and_what_is_not() {
        let mut report = Report { source: "c.sqlite".into(), offerings: 3, types: 2, ..Report::default() };
        assert_eq!(report.to_string(), "catalog c.sqlite: 3 offerings of 2 types");
        report.drop_currency("EUR");
        report.drop_currency("EUR");
        report.drop(Reason::OtherArch);
        report.date = Some(Timestamp::UNIX_EPOCH);
        report.oldest = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(
            report.to_string(),
            "catalog c.sqlite: 3 offerings of 2 types, prices of 1970-01-01\n\
             prices in EUR (2) are no offerings until their rate in USD is given: --rate EUR=…; \
             left out: types of another architecture (1)"
        );
    }
}
