//! Whether a new catalog may take the place of the kept one. Pure: every fact and the time are arguments.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use scarpenter_core::name::Vendor;
use serde::{Deserialize, Serialize};

use super::refusal::{Kept, Loss, Refusal};
use crate::Catalog;

/// A vendor that loses more than this share of its offerings has shrunk.
const MOST_LOST_PERCENT: u128 = 20;
/// So many equal answers make a shrink believable,
const EQUAL_ANSWERS: u32 = 3;
/// over at least this time.
pub(super) const EQUAL_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Two answers are equal when no vendor's offerings differ by more than this: a living catalog is never the same twice.
const EQUAL_WITHIN_PERCENT: u128 = 1;

/// What is looked at of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// How many offerings of each vendor; a vendor without any is absent.
    pub offerings: BTreeMap<Vendor, usize>,
    /// When its newest price was seen.
    pub date: Option<Timestamp>,
    /// When it was fetched.
    pub fetched: Option<Timestamp>,
}

impl Facts {
    /// Counts a catalog.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Self {
        let snapshot = &catalog.snapshot;
        let mut offerings = BTreeMap::new();
        for (index, each) in snapshot.types().iter().enumerate() {
            let sold = snapshot.offerings_of(index).count();
            if sold > 0 {
                *offerings.entry(each.vendor.clone()).or_default() += sold;
            }
        }
        Self { offerings, date: catalog.report.date, fetched: catalog.report.provenance.fetched }
    }

    /// How many offerings there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.offerings.values().sum()
    }

    fn kept(&self) -> Kept {
        Kept { offerings: self.total(), date: self.date, fetched: self.fetched }
    }

    /// Vendors that have lost too much in `new`.
    fn losses(&self, new: &Self) -> Vec<Loss> {
        let loss = |(vendor, from): (&Vendor, &usize)| {
            let to = new.offerings.get(vendor).copied().unwrap_or_default();
            let lost = from.saturating_sub(to) as u128;
            let too_much = lost * 100 > *from as u128 * MOST_LOST_PERCENT;
            too_much.then(|| Loss { vendor: vendor.clone(), from: *from, to })
        };
        self.offerings.iter().filter_map(loss).collect()
    }
}

/// A shrunken answer that has been seen and not been believed yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// What the first of the equal answers had.
    pub offerings: BTreeMap<Vendor, usize>,
    /// When that was.
    pub first: Timestamp,
    /// How many there have been.
    pub answers: u32,
}

impl Pending {
    /// Counts an answer: one more of the same, or the first of another kind.
    fn count(known: Option<&Self>, new: &Facts, now: Timestamp) -> Self {
        match known.filter(|known| known.first <= now && equal(&known.offerings, &new.offerings)) {
            Some(known) => Self { answers: known.answers.saturating_add(1), ..known.clone() },
            None => Self { offerings: new.offerings.clone(), first: now, answers: 1 },
        }
    }

    fn is_believable(&self, now: Timestamp) -> bool {
        self.answers >= EQUAL_ANSWERS && now.duration_since(self.first) >= EQUAL_FOR
    }
}

fn equal(a: &BTreeMap<Vendor, usize>, b: &BTreeMap<Vendor, usize>) -> bool {
    let close = |(vendor, a): (&Vendor, &usize)| {
        b.get(vendor).is_some_and(|b| a.abs_diff(*b) as u128 * 100 <= *a as u128 * EQUAL_WITHIN_PERCENT)
    };
    a.len() == b.len() && a.iter().all(close)
}

/// What is to be done with a new catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It takes the place of the kept one.
    Take,
    /// The kept one stays; what has been seen is remembered.
    Keep(Refusal, Option<Pending>),
}

/// Decides on a new catalog beside the kept one and what has been seen since.
#[must_use]
pub fn decide(kept: Option<&Facts>, pending: Option<&Pending>, new: &Facts, now: Timestamp) -> Decision {
    if new.total() == 0 {
        let refusal = Refusal::Empty { kept: kept.map(Facts::kept) };
        return Decision::Keep(refusal, pending.cloned());
    }
    let Some(kept) = kept.filter(|kept| kept.total() > 0) else { return Decision::Take };
    if let (Some(date), Some(kept_date)) = (new.date, kept.date)
        && date < kept_date
    {
        return Decision::Keep(Refusal::Older { date, kept: kept.kept() }, pending.cloned());
    }
    let losses = kept.losses(new);
    if losses.is_empty() {
        return Decision::Take;
    }
    let pending = Pending::count(pending, new, now);
    if pending.is_believable(now) {
        return Decision::Take;
    }
    let refusal = Refusal::Shrunken {
        losses,
        kept: kept.kept(),
        missing: EQUAL_ANSWERS.saturating_sub(pending.answers).max(1),
        not_before: pending.first.saturating_add(EQUAL_FOR).unwrap_or(Timestamp::MAX),
    };
    Decision::Keep(refusal, Some(pending))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn facts(offerings: &[(&str, usize)]) -> Facts {
        let offerings = offerings.iter().map(|(vendor, count)| (Vendor::new(*vendor), *count));
        Facts { offerings: offerings.collect(), date: None, fetched: Some(at(0)) }
    }

    fn dated(seconds: i64) -> Facts {
        Facts { date: Some(at(seconds)), ..facts(&[("aws", 100)]) }
    }

    /// Offers each at its hour, and says which was the first to be taken.
    fn first_taken(kept: &Facts, answers: &[(i64, Facts)]) -> Option<usize> {
        let mut pending = None;
        answers.iter().position(|(hour, new)| {
            match decide(Some(kept), pending.as_ref(), new, at(hour * HOUR)) {
                Decision::Take => true,
                Decision::Keep(_, seen) => {
                    pending = seen;
                    false
                }
            }
        })
    }

    #[test]
    fn the_first_catalog_is_taken_unless_it_is_empty() {
        assert_eq!(decide(None, None, &facts(&[("aws", 1)]), at(0)), Decision::Take);
        let empty = decide(None, None, &facts(&[]), at(0));
        assert_eq!(empty, Decision::Keep(Refusal::Empty { kept: None }, None));
    }

    #[test]
    fn a_fifth_may_go_and_no_more() {
        let kept = facts(&[("aws", 100), ("ovh", 5)]);
        assert_eq!(decide(Some(&kept), None, &facts(&[("aws", 80), ("ovh", 4)]), at(0)), Decision::Take);
        for less in
            [facts(&[("aws", 79), ("ovh", 5)]), facts(&[("aws", 500), ("ovh", 3)]), facts(&[("aws", 100)])]
        {
            assert!(matches!(
                decide(Some(&kept), None, &less, at(0)),
                Decision::Keep(Refusal::Shrunken { .. }, Some(_))
            ));
        }
    }

    #[test]
    fn an_older_one_is_refused_and_an_equally_old_one_is_not() {
        assert_eq!(decide(Some(&dated(5)), None, &dated(5), at(9)), Decision::Take);
        assert_eq!(decide(Some(&dated(5)), None, &dated(6), at(9)), Decision::Take);
        assert!(matches!(
            decide(Some(&dated(5)), None, &dated(4), at(9)),
            Decision::Keep(Refusal::Older { .. }, None)
        ));
    }

    #[test]
    fn a_real_shrink_is_taken_after_three_equal_answers_over_a_day() {
        let kept = facts(&[("aws", 1000), ("ovh", 172)]);
        let less = || facts(&[("aws", 1000)]);
        let hours = |hours: &[i64]| hours.iter().map(|hour| (*hour, less())).collect::<Vec<_>>();
        assert_eq!(first_taken(&kept, &hours(&[0, 12, 24])), Some(2));
        assert_eq!(first_taken(&kept, &hours(&[0, 24])), None);
        assert_eq!(first_taken(&kept, &hours(&[0, 1, 2, 23])), None);
        assert_eq!(first_taken(&kept, &hours(&[0, 1, 2, 23, 25])), Some(4));
        assert_eq!(first_taken(&kept, &hours(&[0, 30, 31])), Some(2));
    }

    #[test]
    fn another_answer_between_begins_the_count_anew_and_an_empty_one_does_not() {
        let kept = facts(&[("aws", 1000), ("ovh", 172)]);
        let (less, other) = (facts(&[("aws", 1000)]), facts(&[("aws", 700)]));
        let answers =
            [(0, less.clone()), (12, other), (24, less.clone()), (30, less.clone()), (49, less.clone())];
        assert_eq!(first_taken(&kept, &answers), Some(4));
        let answers = [(0, less.clone()), (6, facts(&[])), (12, less.clone()), (24, less)];
        assert_eq!(first_taken(&kept, &answers), Some(3));
    }

    #[test]
    fn answers_of_a_living_catalog_are_equal_though_not_the_same() {
        let kept = facts(&[("aws", 1000), ("ovh", 172)]);
        let answers =
            [(0, facts(&[("aws", 1000)])), (12, facts(&[("aws", 991)])), (24, facts(&[("aws", 1009)]))];
        assert_eq!(first_taken(&kept, &answers), Some(2));
    }

    #[test]
    fn a_clock_that_was_set_back_begins_the_count_anew() {
        let kept = facts(&[("aws", 1000), ("ovh", 172)]);
        let less = || facts(&[("aws", 1000)]);
        let answers = [(100, less()), (0, less()), (12, less()), (101, less())];
        assert_eq!(first_taken(&kept, &answers), Some(3));
    }

    fn counts() -> impl Strategy<Value = Facts> {
        let vendor = || proptest::option::of(0..200usize);
        (vendor(), vendor(), proptest::option::of(0..4i64)).prop_map(|(a, b, date)| {
            let some =
                |name, count: Option<usize>| count.filter(|count| *count > 0).map(|count| (name, count));
            let offerings: Vec<_> = some("a", a).into_iter().chain(some("b", b)).collect();
            Facts { date: date.map(at), ..facts(&offerings) }
        })
    }

    proptest! {
        /// Over any history: what is kept is only ever replaced by what the rules allow, told here in other words.
        #[test]
        fn a_good_catalog_is_never_lost_to_a_bad_one(
            answers in proptest::collection::vec((counts(), 0..30i64), 1..24)
        ) {
            let (mut kept, mut pending, mut now) = (None::<Facts>, None, 0);
            let mut since: Vec<(i64, Facts)> = Vec::new();
            for (new, hours) in answers {
                now += hours;
                let decision = decide(kept.as_ref(), pending.as_ref(), &new, at(now * HOUR));
                let Decision::Take = decision else {
                    let Decision::Keep(refusal, seen) = decision else { unreachable!() };
                    prop_assert!(!refusal.to_string().contains('\n'));
                    if matches!(refusal, Refusal::Shrunken { .. }) {
                        since.push((now, new));
                    }
                    pending = seen;
                    continue;
                };
                prop_assert!(new.total() > 0);
                if let Some(kept) = &kept {
                    if let (Some(old), Some(new)) = (kept.date, new.date) {
                        prop_assert!(new >= old);
                    }
                    let shrunken = kept.offerings.iter().any(|(vendor, from)| {
                        new.offerings.get(vendor).copied().unwrap_or(0) * 5 < *from * 4
                    });
                    if shrunken {
                        let run = since.iter().enumerate().find(|(begin, (_, first))| {
                            let rest = since[*begin..].iter().map(|(_, seen)| seen).chain([&new]);
                            rest.into_iter().all(|seen| equal(&first.offerings, &seen.offerings))
                        });
                        let (begin, (first, _)) = run.unwrap();
                        prop_assert!(since.len() - begin >= 2, "{since:?}");
                        prop_assert!(now - first >= 24);
                    }
                }
                kept = Some(new);
                (pending, since) = (None, Vec::new());
            }
        }
    }
}
