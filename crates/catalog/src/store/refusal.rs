//! Why a new catalog was not taken, in one sentence that holds as long as the refusal does.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scarpenter_core::name::Vendor;

use crate::Catalog;

/// How the sentence ends: what a person can do.
const AT_ONCE: &str = "scarpenter catalog sync --accept takes it at once";

/// Why a new catalog was not taken. Prints as one sentence: what is wrong, what is kept, how it would be taken.
///
/// It names times, never how long ago they are, so that the words change only when the matter does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no offering at all.
    Empty {
        /// What stays, if there is any.
        kept: Option<Kept>,
    },
    /// Its prices are older than the kept ones.
    Older {
        /// When its newest price was seen.
        date: Timestamp,
        /// What stays.
        kept: Kept,
    },
    /// A vendor has lost too many offerings.
    Shrunken {
        /// Which, and how many.
        losses: Vec<Loss>,
        /// What stays.
        kept: Kept,
        /// How many more equal answers it takes, at least.
        missing: u32,
        /// The earliest that it is taken.
        not_before: Timestamp,
    },
}

/// A vendor that has fewer offerings than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Whose.
    pub vendor: Vendor,
    /// How many there were.
    pub from: usize,
    /// How many there are.
    pub to: usize,
}

/// The catalog that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// How many offerings it has.
    pub offerings: usize,
    /// When its newest price was seen.
    pub date: Option<Timestamp>,
    /// When it was fetched.
    pub fetched: Option<Timestamp>,
}

impl Kept {
    /// What is said of a catalog that is kept.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Self {
        let report = &catalog.report;
        Self { offerings: catalog.snapshot.len(), date: report.date, fetched: report.provenance.fetched }
    }
}

impl Refusal {
    /// What was wrong, as one word for metrics.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "empty",
            Self::Older { .. } => "older",
            Self::Shrunken { .. } => "shrunken",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { kept: None } => f.write_str("the new catalog has no offering, and none is kept"),
            Self::Empty { kept: Some(kept) } => write!(f, "the new catalog has no offering: kept is {kept}"),
            Self::Older { date, kept } => write!(
                f,
                "the newest price of the new catalog is of {}, older than that of the kept one: kept is {kept}; {AT_ONCE}",
                seconds(*date)
            ),
            Self::Shrunken { losses, kept, missing, not_before } => {
                let losses: Vec<String> = losses.iter().map(ToString::to_string).collect();
                let answers = if *missing == 1 { "answer" } else { "answers" };
                write!(
                    f,
                    "the new catalog has lost more than a fifth of a vendor's offerings ({}): kept is {kept}; it is taken \
                     after {missing} more equal {answers}, not before {}; {AT_ONCE}",
                    losses.join(", "),
                    seconds(*not_before)
                )
            }
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {}", self.vendor, self.from, self.to)
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the catalog of {} offerings", self.offerings)?;
        if let Some(date) = self.date {
            write!(f, " with prices of {}", date.to_zoned(TimeZone::UTC).date())?;
        }
        if let Some(fetched) = self.fetched {
            write!(f, " fetched at {}", seconds(fetched))?;
        }
        Ok(())
    }
}

/// A time without its fractions.
fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn kept() -> Kept {
        let (date, fetched) = (Some(at("2026-08-22T03:50:12Z")), Some(at("2026-11-30T18:00:00.123Z")));
        Kept { offerings: 52_340, date, fetched }
    }

    #[test]
    fn a_refusal_is_one_sentence_with_all_that_a_person_needs() {
        let losses = vec![
            Loss { vendor: "hcloud".into(), from: 70, to: 20 },
            Loss { vendor: "ovh".into(), from: 172, to: 0 },
        ];
        let not_before = at("2026-12-01T18:30:00Z");
        assert_eq!(
            Refusal::Shrunken { losses, kept: kept(), missing: 2, not_before }.to_string(),
            "the new catalog has lost more than a fifth of a vendor's offerings (hcloud from 70 to 20, ovh from 172 to 0): \
             kept is the catalog of 52340 offerings with prices of 2026-08-22 fetched at 2026-11-30T18:00:00Z; it is taken \
             after 2 more equal answers, not before 2026-12-01T18:30:00Z; scarpenter catalog sync --accept takes it at once"
        );
        assert_eq!(
            Refusal::Older { date: at("2026-08-01T00:00:00Z"), kept: kept() }.to_string(),
            "the newest price of the new catalog is of 2026-08-01T00:00:00Z, older than that of the kept one: kept is the \
             catalog of 52340 offerings with prices of 2026-08-22 fetched at 2026-11-30T18:00:00Z; scarpenter catalog \
             sync --accept takes it at once"
        );
        assert_eq!(
            Refusal::Empty { kept: None }.to_string(),
            "the new catalog has no offering, and none is kept"
        );
    }
}
