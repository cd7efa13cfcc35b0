use crate::lifecycle::Time;
use crate::offering::{Currency, Money, Terms};

use super::build::number;

/// Terms of all offerings, in columns, since each alone would be three times a row.
#[derive(Debug, Default)]
pub(super) struct TermsTable {
    native: Vec<u64>,
    currency: Vec<Currency>,
    /// Seconds since 1970, 0 where unknown.
    observed: Vec<u32>,
    /// Number and cap of those that have one, in order.
    caps: Vec<(u32, u64)>,
}

impl TermsTable {
    pub(super) fn push(&mut self, terms: Terms) -> u32 {
        let id = number(self.native.len());
        self.native.push(terms.native.micro);
        self.currency.push(terms.native.currency);
        let seconds = terms.observed.map(|time| time.millis() / 1000);
        self.observed.push(seconds.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(0));
        self.caps.extend(terms.monthly_cap_micro.map(|cap| (id, cap)));
        id
    }

    pub(super) fn shrink(&mut self) {
        self.native.shrink_to_fit();
        self.currency.shrink_to_fit();
        self.observed.shrink_to_fit();
        self.caps.shrink_to_fit();
    }

    pub(super) fn get(&self, id: u32) -> Terms {
        let at = id as usize;
        let cap = self.caps.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| self.caps[at].1);
        Terms {
            native: Money { micro: self.native[at], currency: self.currency[at] },
            monthly_cap_micro: cap,
            observed: self.observed(id),
        }
    }

    pub(super) fn observed(&self, id: u32) -> Option<Time> {
        let seconds = self.observed[id as usize];
        (seconds > 0).then(|| Time::from_millis(i64::from(seconds) * 1000))
    }
}
