//! The worked cases of the design, by their numbers; 11 and 14 are passes without data, which change nothing.

use proptest::prelude::*;

use super::*;
use crate::testing::types;

const RULES: Churn = Churn {
    remove_margin_percent: 5,
    remove_after_refreshes: 2,
    max_removals_per_refresh: 3,
    step_interval: String::new(),
};

fn misses(name: &str, percent: f64) -> (String, Verdict) {
    (name.to_owned(), Verdict::Fails("price".to_owned(), Some(percent)))
}

fn gone(name: &str) -> (String, Verdict) {
    (name.to_owned(), Verdict::Gone("gone".to_owned()))
}

fn filtered(name: &str) -> (String, Verdict) {
    (name.to_owned(), Verdict::Fails("family".to_owned(), None))
}

/// A list with what is pending, that passes are made over.
struct Pool {
    current: BTreeSet<String>,
    pending: Vec<Pending>,
    rules: Churn,
    hours: i64,
    last: Outcome,
}

impl Pool {
    fn of(names: &[&str]) -> Self {
        let rules = RULES.clone();
        Self { current: types(names), pending: Vec::new(), rules, hours: 0, last: Outcome::default() }
    }

    /// Makes a pass in which these are unwanted, the rest of the list and `more` wanted; returns the list and what is
    /// pending with its count, and `!` where it is due.
    fn pass(&mut self, pass: Pass, unwanted: Vec<(String, Verdict)>, more: &[&str]) -> (String, String) {
        let mut desired: BTreeSet<String> = self.current.union(&types(more)).cloned().collect();
        let unwanted: Vec<_> = unwanted.into_iter().filter(|(name, _)| self.current.contains(name)).collect();
        unwanted.iter().for_each(|(name, _)| {
            desired.remove(name);
        });
        self.hours += 1;
        let now = Time::from_millis(self.hours * 3_600_000);
        let out = settle(pass, &desired, &self.current, unwanted, &self.pending, &self.rules, now);
        self.current = out.emitted.clone();
        self.pending = out.pending.clone();
        self.last = out;
        let pending = self
            .pending
            .iter()
            .map(|entry| format!("{}:{}{}", entry.name, entry.refreshes, if entry.due { "!" } else { "" }));
        let list: Vec<&str> = self.current.iter().map(String::as_str).collect();
        (list.join(" "), pending.collect::<Vec<_>>().join(" "))
    }

    fn refresh(&mut self, unwanted: Vec<(String, Verdict)>) -> (String, String) {
        self.pass(Pass::Scheduled, unwanted, &[])
    }
}

fn is(list: &str, pending: &str) -> (String, String) {
    (list.to_owned(), pending.to_owned())
}

#[test]
fn case_1_what_is_new_is_added_at_once() {
    assert_eq!(Pool::of(&["a", "b"]).pass(Pass::Scheduled, vec![], &["c"]), is("a b c", ""));
}

#[test]
fn cases_2_to_4_a_wide_miss_takes_two_refreshes_in_a_row() {
    let mut pool = Pool::of(&["a", "b"]);
    assert_eq!(pool.refresh(vec![misses("b", 20.0)]), is("a b", "b:1"));
    assert_eq!(pool.refresh(vec![]), is("a b", ""));
    assert_eq!(pool.refresh(vec![misses("b", 20.0)]), is("a b", "b:1"));
    assert_eq!(pool.refresh(vec![misses("b", 20.0)]), is("a", ""));
}

#[test]
fn cases_5_and_6_a_near_miss_stays_for_ever_and_ends_a_count() {
    let mut pool = Pool::of(&["a", "b"]);
    for _ in 0..10 {
        assert_eq!(pool.refresh(vec![misses("b", 2.0)]), is("a b", ""));
    }
    assert_eq!(pool.refresh(vec![misses("b", 9.0)]), is("a b", "b:1"));
    assert_eq!(pool.refresh(vec![misses("b", 3.0)]), is("a b", ""));
    assert_eq!(pool.refresh(vec![misses("b", 9.0)]), is("a b", "b:1"));
    assert_eq!(pool.refresh(vec![misses("b", 5.0)]), is("a b", ""), "the margin itself is near");
}

#[test]
fn case_7_what_is_no_longer_sold_goes_together() {
    let mut pool = Pool::of(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]);
    let lost = || ["a", "b", "c", "d", "e"].map(gone).to_vec();
    assert_eq!(pool.refresh(lost()).1, "a:1 b:1 c:1 d:1 e:1");
    assert_eq!(pool.current.len(), 12);
    assert_eq!(pool.refresh(lost()), is("f g h i j k l", ""));
    assert!(!pool.last.mass_disappearance);
}

#[test]
fn case_8_the_widest_misses_go_first_and_a_step_takes_the_rest() {
    let mut pool = Pool::of(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let missing =
        || vec![misses("a", 8.0), misses("b", 10.0), misses("c", 20.0), misses("d", 30.0), misses("e", 40.0)];
    pool.refresh(missing());
    assert_eq!(pool.refresh(missing()), is("a b f g h i j", "a:2! b:2!"));
    assert!(pool.last.step_follows);
    assert_eq!(pool.pass(Pass::Step, missing(), &[]), is("f g h i j", ""));
    assert!(!pool.last.step_follows);
}

#[test]
fn case_9_a_new_spec_waits_for_no_refresh_and_keeps_to_the_cap() {
    let mut pool = Pool::of(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    let out = || ["a", "b", "c", "d", "e"].map(filtered).to_vec();
    assert_eq!(pool.pass(Pass::Spec, out(), &[]), is("d e f g h i", "d:0! e:0!"));
    assert_eq!(pool.pass(Pass::Step, out(), &[]), is("f g h i", ""));
}

#[test]
fn case_10_what_the_template_forbids_goes_at_once() {
    let mut pool = Pool::of(&["a", "b", "c", "d", "e", "f", "g", "h"]);
    let out = ["a", "b", "c", "d"].map(|name| (name.to_owned(), Verdict::Contradicted(String::new())));
    assert_eq!(pool.pass(Pass::Spec, out.to_vec(), &[]), is("e f g h", ""));
}

#[test]
fn case_12_when_most_rows_vanish_the_cap_holds_and_no_step_follows() {
    let mut pool = Pool::of(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let lost = || ["a", "b", "c", "d", "e", "f", "g", "h"].map(gone).to_vec();
    assert_eq!(pool.refresh(lost()).0, "a b c d e f g h i j");
    assert_eq!(pool.refresh(lost()), is("d e f g h i j", "d:2! e:2! f:2! g:2! h:2!"));
    assert!(pool.last.mass_disappearance && !pool.last.step_follows);
    assert_eq!(pool.pass(Pass::Step, lost(), &[]).0, "d e f g h i j");
    assert_eq!(pool.refresh(lost()).0, "g h i j");
}

#[test]
fn case_13_a_family_that_lost_its_place_by_little_is_held() {
    let mut pool = Pool::of(&["a", "b"]);
    assert_eq!(pool.pass(Pass::Scheduled, vec![misses("b", 1.0)], &["c"]), is("a b c", ""));
}

#[test]
fn case_15_a_cap_of_0_freezes_removals_until_it_is_raised() {
    let mut pool = Pool::of(&["a", "b"]);
    pool.rules.max_removals_per_refresh = 0;
    assert_eq!(pool.pass(Pass::Spec, vec![filtered("b")], &[]), is("a b", "b:0!"));
    assert!(!pool.last.step_follows);
    assert_eq!(pool.refresh(vec![filtered("b")]), is("a b", "b:1!"));
    pool.rules.max_removals_per_refresh = 1;
    assert_eq!(pool.pass(Pass::Step, vec![filtered("b")], &[]), is("a", ""));
}

proptest! {
    #[test]
    fn no_pass_takes_off_more_than_the_cap_of_what_still_exists(
        kinds in proptest::collection::vec(0..4_u8, 1..30),
        passes in proptest::collection::vec(0..4_u8, 1..8),
        cap in 0..5_usize,
    ) {
        let names: Vec<String> = (0..kinds.len()).map(|at| format!("t{at:02}")).collect();
        let mut pool = Pool::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        pool.rules.max_removals_per_refresh = cap;
        let unwanted = || {
            let of = names.iter().zip(&kinds).map(|(name, kind)| match kind {
                0 => None,
                1 => Some(gone(name)),
                2 => Some(filtered(name)),
                _ => Some(misses(name, 4.0)),
            });
            of.flatten().collect::<Vec<_>>()
        };
        for pass in passes {
            let pass = [Pass::Scheduled, Pass::Requested, Pass::Spec, Pass::Step][usize::from(pass)];
            let before = pool.current.clone();
            pool.pass(pass, unwanted(), &[]);
            let lost: Vec<&String> = before.difference(&pool.current).collect();
            let existing = lost.iter().filter(|name| {
                names.iter().position(|own| own == **name).is_some_and(|at| kinds[at] != 1)
            });
            prop_assert!(existing.count() <= cap);
            let wanted = names.iter().zip(&kinds).filter(|(_, kind)| **kind == 0);
            prop_assert!(wanted.into_iter().all(|(name, _)| pool.current.contains(name)));
            prop_assert!(pool.pending.iter().all(|entry| pool.current.contains(&entry.name)));
        }
    }
}
