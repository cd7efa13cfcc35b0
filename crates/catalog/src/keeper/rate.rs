//! The rate at which a Keeper converts, found from prices that it gives in both currencies.
//!
//! The Keeper says of no rate what it is. It takes those of the European Central Bank, of the day it got them, and
//! rounds each converted price to four digits; so a dear price says more of the rate than a cheap one, and several say
//! more than one.

use std::collections::BTreeMap;

use crate::rows::PriceRow;

use super::list::Rows;

/// Half of the last digit that is left of a price.
const HALF: f64 = 0.000_050_1;

/// The currencies other than USD that prices come in, each with the vendor whose prices say most of its rate.
pub(crate) fn wanted<'r>(prices: impl Iterator<Item = &'r Rows>) -> Vec<(String, String)> {
    let mut dearest: BTreeMap<String, (f64, String)> = BTreeMap::new();
    for row in prices.flat_map(Rows::iter) {
        let row = PriceRow::read(&row);
        if row.currency.is_empty() || row.currency == "USD" {
            continue;
        }
        let price = row.price.unwrap_or_default();
        if dearest.get(row.currency).is_none_or(|(most, _)| price > *most) {
            dearest.insert(row.currency.to_owned(), (price, row.vendor.to_owned()));
        }
    }
    dearest.into_iter().map(|(currency, (_, vendor))| (currency, vendor)).collect()
}

/// USD for one unit of `currency`, from rows of which some are of the same prices in `dollars`.
pub(crate) fn rate<'r>(
    currency: &str,
    native: impl Iterator<Item = &'r Rows>,
    dollars: &Rows,
) -> Option<f64> {
    let mut pairs = Vec::new();
    for row in native.flat_map(Rows::iter) {
        let row = PriceRow::read(&row);
        let Some(price) = row.price.filter(|_| row.currency == currency) else { continue };
        for other in dollars.iter() {
            let other = PriceRow::read(&other);
            if other.currency == "USD" && key(&other) == key(&row) {
                pairs.extend(other.price.map(|dollars| (price, dollars)));
            }
        }
    }
    from_pairs(pairs)
}

fn key<'r>(row: &PriceRow<'r>) -> [&'r str; 6] {
    [row.vendor, row.region_id, row.zone_id, row.server_id, row.operating_system, row.allocation]
}

/// The shortest decimal that turns each price into its dollars, the dearest first; pairs that contradict are left out.
fn from_pairs(mut pairs: Vec<(f64, f64)>) -> Option<f64> {
    pairs.retain(|(native, dollars)| *native > 2.0 * HALF && *dollars > 2.0 * HALF);
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let between = |(native, dollars): (f64, f64)| {
        ((dollars - HALF) / (native + HALF), (dollars + HALF) / (native - HALF))
    };
    let (mut low, mut high) = between(*pairs.first()?);
    for pair in pairs.into_iter().skip(1) {
        let (lower, upper) = between(pair);
        if low.max(lower) <= high.min(upper) {
            (low, high) = (low.max(lower), high.min(upper));
        }
    }
    shortest(low, high)
}

/// The decimal with the fewest digits in a range.
fn shortest(low: f64, high: f64) -> Option<f64> {
    let middle = f64::midpoint(low, high);
    let rounded = (0..=12).filter_map(|digits| format!("{middle:.digits$}").parse().ok());
    rounded.into_iter().find(|rounded| low <= *rounded && *rounded <= high && *rounded > 0.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(price: f64) -> f64 {
        (price * 1e4).round() / 1e4
    }

    fn pairs(rate: f64, native: &[f64]) -> Vec<(f64, f64)> {
        native.iter().map(|price| (*price, round(price * rate))).collect()
    }

    #[test]
    fn the_central_banks_four_digits_come_out() {
        assert_eq!(from_pairs(pairs(1.1416, &[0.0088, 11.2, 9.0, 0.0104])), Some(1.1416));
        assert_eq!(from_pairs(pairs(1.1, &[9.0])), Some(1.1));
    }

    #[test]
    fn cheap_prices_alone_give_what_turns_them_into_their_dollars() {
        let native = [0.0088, 0.0098, 0.2219];
        let rate = from_pairs(pairs(1.1416, &native)).unwrap();
        assert!(native.iter().all(|price| (price * rate - price * 1.1416).abs() < 0.0001), "{rate}");
    }

    #[test]
    fn a_price_that_changed_between_the_questions_is_left_out() {
        let mut all = pairs(1.1416, &[11.2, 9.0, 8.0]);
        all.push((5.0, 1.0));
        assert_eq!(from_pairs(all), Some(1.1416));
    }

    #[test]
    fn nothing_in_both_currencies_gives_no_rate() {
        for pairs in [vec![], vec![(0.0, 0.0)], vec![(1.0, 0.0)], vec![(f64::NAN, 1.0)], vec![(-1.0, -1.0)]] {
            assert_eq!(from_pairs(pairs.clone()), None, "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn the_rate_turns_every_price_into_its_dollars(
            rate in 0.001f64..100.0, native in prop::collection::vec(1u32..1_000_000, 1..30)
        ) {
            let native: Vec<f64> = native.into_iter().map(|price| f64::from(price) / 1e4).collect();
            let dearest = native.iter().copied().fold(0.0, f64::max);
            let pairs = pairs(rate, &native);
            prop_assume!(pairs.iter().any(|(price, dollars)| *price > 0.01 && *dollars > 0.01));
            let found = from_pairs(pairs).unwrap();
            prop_assert!((found - rate).abs() <= 2.0 * HALF * (1.0 + rate) / dearest + 1e-9, "{found} for {rate}");
        }
    }
}
