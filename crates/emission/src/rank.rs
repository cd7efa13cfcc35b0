//! Families by the median of their sizes, and which of them are kept.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::benchmark::Wanted;
use crate::facts::Row;
use crate::filter::dollars;
use crate::spec::{Normalize, Objective, Ranking};

/// A family in the order of ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Median over its sizes; `None` where none was measured.
    pub value: Option<f64>,
    /// Whether its sizes are listed.
    pub kept: bool,
    /// By how much it missed, in percent; `None` where that is no number. Of kept ones 0.
    pub margin: Option<f64>,
    median_price: u64,
}

/// All families, and how far the ranking went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// The best first.
    pub families: Vec<Family>,
    /// Families from outside the band were needed to reach the least number.
    pub widened: bool,
    /// Families within the band were cut.
    pub trimmed: bool,
}

impl Ranked {
    /// The family of that name.
    #[must_use]
    pub fn family(&self, name: &str) -> Option<&Family> {
        self.families.iter().find(|family| family.name == name)
    }
}

/// Ranks the families of `scored`; those of `unscored` that have no scored size come last.
pub(crate) fn rank(
    ranking: &Ranking,
    wanted: &Wanted<'_>,
    scored: &[Row<'_>],
    unscored: &[Row<'_>],
) -> Ranked {
    let ascending = ranking.objective == Objective::Price || wanted.rank.is_some_and(|(_, higher)| !higher);
    let mut families = measured(ranking, wanted, scored);
    families.sort_by(|a, b| {
        let by_value = compare(a.value, b.value);
        let by_value = if ascending { by_value } else { by_value.reverse() };
        by_value.then_with(|| (a.median_price, &a.name).cmp(&(b.median_price, &b.name)))
    });
    let in_band =
        families.iter().take_while(|family| in_band(ranking, ascending, &families[0], family)).count();
    let known = families.len();
    families.extend(unmeasured(&families, unscored));
    let bounds = ranking.families.unwrap_or_default();
    let least = bounds.min.min(families.len());
    let kept = in_band.max(least).min(bounds.max.unwrap_or(usize::MAX));
    let out = Ranked { widened: kept > in_band, trimmed: kept < in_band, families };
    out.settle(kept, known, |families| edge(ranking, ascending, families), ascending)
}

impl Ranked {
    /// Says of each family whether it is kept, and by how much the others miss.
    fn settle(
        mut self,
        kept: usize,
        known: usize,
        edge: impl Fn(&[Family]) -> Option<f64>,
        ascending: bool,
    ) -> Self {
        // Of a trimmed ranking the last that is kept is the edge, else that of the band.
        let last = kept.checked_sub(1).and_then(|at| self.families.get(at)).and_then(|family| family.value);
        let edge = if self.trimmed { last } else { edge(&self.families[..known]) };
        for (at, family) in self.families.iter_mut().enumerate() {
            family.kept = at < kept;
            let miss = edge.zip(family.value).map(|(edge, value)| {
                let miss = if ascending { value - edge } else { edge - value };
                100.0 * miss / edge
            });
            family.margin = if family.kept { Some(0.0) } else { miss.filter(|miss| miss.is_finite()) };
        }
        self
    }
}

fn in_band(ranking: &Ranking, ascending: bool, best: &Family, family: &Family) -> bool {
    let (Some(band), Some(best), Some(value)) = (ranking.band, best.value, family.value) else { return true };
    let percent = f64::from(band.within_percent);
    match ascending {
        true => value * 100.0 <= best * (100.0 + percent),
        false => value * 100.0 >= best * (100.0 - percent),
    }
}

fn edge(ranking: &Ranking, ascending: bool, families: &[Family]) -> Option<f64> {
    let best = families.first()?.value?;
    let percent = f64::from(ranking.band?.within_percent);
    let sign = if ascending { 1.0 } else { -1.0 };
    Some(best * (100.0 + sign * percent) / 100.0)
}

fn measured(ranking: &Ranking, wanted: &Wanted<'_>, scored: &[Row<'_>]) -> Vec<Family> {
    let mut values: BTreeMap<&str, (Vec<f64>, Vec<u64>)> = BTreeMap::new();
    for row in scored {
        let Some(value) = objective(ranking, wanted, row) else { continue };
        let entry = values.entry(row.family()).or_default();
        entry.0.push(value);
        entry.1.push(row.price.unwrap_or(u64::MAX));
    }
    let family = |(name, (values, prices)): (&str, (Vec<f64>, Vec<u64>))| Family {
        name: name.to_owned(),
        value: median(values),
        kept: false,
        margin: None,
        median_price: median_price(prices),
    };
    values.into_iter().map(family).collect()
}

/// Families of which no size was measured, the cheapest first.
fn unmeasured(known: &[Family], unscored: &[Row<'_>]) -> Vec<Family> {
    let mut prices: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in unscored.iter().filter(|row| known.iter().all(|family| family.name != row.family())) {
        prices.entry(row.family()).or_default().push(row.price.unwrap_or(u64::MAX));
    }
    let family = |(name, prices): (&str, Vec<u64>)| Family {
        name: name.to_owned(),
        value: None,
        kept: false,
        margin: None,
        median_price: median_price(prices),
    };
    let mut out: Vec<Family> = prices.into_iter().map(family).collect();
    out.sort_by(|a, b| (a.median_price, &a.name).cmp(&(b.median_price, &b.name)));
    out
}

/// What a type is ranked by.
pub(crate) fn objective(ranking: &Ranking, wanted: &Wanted<'_>, row: &Row<'_>) -> Option<f64> {
    let vcpus = if ranking.normalize == Normalize::PerVcpu { f64::from(row.of.cpu) } else { 1.0 };
    let price = dollars(row.price?);
    if ranking.objective == Objective::Price {
        return Some(price / vcpus);
    }
    let (measured, _) = wanted.rank?;
    let score = measured.of(row.index)? / vcpus;
    Some(if ranking.objective == Objective::ScorePerPrice { score / price } else { score })
}

fn compare(a: Option<f64>, b: Option<f64>) -> Ordering {
    a.unwrap_or(f64::NAN).total_cmp(&b.unwrap_or(f64::NAN))
}

/// The middle one, of an even count the mean of the middle two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

fn median_price(mut prices: Vec<u64>) -> u64 {
    prices.sort_unstable();
    let at = |index: usize| prices.get(index).copied().unwrap_or(u64::MAX) / 2;
    at((prices.len().max(1) - 1) / 2) + at(prices.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![5.0, 1.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median_price(vec![100, 300]), 200);
        assert_eq!(median_price(vec![100, 300, 500]), 300);
    }
}
