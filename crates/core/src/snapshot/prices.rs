use std::collections::BTreeSet;

use crate::requirements::ValueSet;

/// Prices that a set allows, as integers: asking a set about its text would write every price out.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    set: ValueSet,
    least: u64,
    most: u64,
    /// The only ones, where the set lists them; in order.
    only: Option<Vec<u64>>,
    /// Left out; in order.
    but: Vec<u64>,
}

impl Prices {
    pub(super) fn of(set: ValueSet) -> Self {
        let only = set.listed().map(integers);
        let but = set.excluded().map(integers).unwrap_or_default();
        let (least, most) = match (&only, set.bounds()) {
            (Some(only), _) => (only.first().copied().unwrap_or(1), only.last().copied().unwrap_or(0)),
            (None, (least, most)) => (bound(least.unwrap_or(0)), bound(most.unwrap_or(i64::MAX))),
        };
        Self { set, least, most, only, but }
    }

    /// Prices that both allow.
    pub(super) fn and(&self, other: &ValueSet) -> Self {
        Self::of(self.set.intersect(other))
    }

    pub(super) fn set(&self) -> &ValueSet {
        &self.set
    }

    /// All of them, in order, where the set lists them.
    pub(super) fn only(&self) -> Option<&[u64]> {
        self.only.as_deref()
    }

    pub(super) fn allows(&self, price: u64) -> bool {
        (self.least..=self.most).contains(&price)
            && self.only.as_ref().is_none_or(|only| only.binary_search(&price).is_ok())
            && self.but.binary_search(&price).is_err()
    }

    /// The least and the greatest price that may be allowed; they cross where none is.
    pub(super) fn span(&self) -> (u64, u64) {
        (self.least, self.most)
    }
}

/// A bound is never negative but where it allows nothing, and then the set is a list without values.
fn bound(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Those that are the text of an integer, as prices are written.
fn integers(texts: &BTreeSet<String>) -> Vec<u64> {
    let integer = |text: &String| text.parse::<i64>().ok().filter(|number| number.to_string() == *text);
    let mut out: Vec<u64> = texts.iter().filter_map(|text| u64::try_from(integer(text)?).ok()).collect();
    out.sort_unstable();
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::requirements::{Operator, Requirement};

    fn line() -> impl Strategy<Value = Requirement> {
        let texts =
            proptest::sample::subsequence(vec!["0", "3", "007", "12", "x", "9223372036854775807"], 1..4);
        (0..6u8, texts, 0..15i64).prop_map(|(operator, texts, number)| {
            let number = number.to_string();
            let bound = |operator| Requirement::new("price", operator, &[&number]);
            match operator {
                0 => Requirement::new("price", Operator::In, &texts),
                1 => Requirement::new("price", Operator::NotIn, &texts),
                2 => Requirement::new("price", Operator::Exists, &[]),
                3 => Requirement::new("price", Operator::DoesNotExist, &[]),
                4 => bound(Operator::Gt),
                _ => bound(Operator::Lte),
            }
        })
    }

    proptest! {
        #[test]
        fn a_price_is_allowed_as_its_text_is(lines in proptest::collection::vec(line(), 1..4)) {
            let sets: Vec<ValueSet> = lines.iter().map(|line| ValueSet::of(line).unwrap()).collect();
            let prices = sets[1..].iter().fold(Prices::of(sets[0].clone()), |prices, set| prices.and(set));
            let (least, most) = prices.span();
            for price in (0..16).chain([i64::MAX as u64]) {
                let allowed = sets.iter().all(|set| set.allows(Some(&price.to_string())));
                prop_assert_eq!(prices.allows(price), allowed, "{} {:?}", price, prices);
                prop_assert!(!allowed || (least..=most).contains(&price), "{} {:?}", price, prices);
            }
        }
    }
}
