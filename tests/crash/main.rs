//! Controllers that die before and after every effect, in clouds that lie: never two machines, never one left.
//!
//! `SCARPENTER_CRASH_RUNS=N` runs N seeds instead of 200,000.

use std::io::Write;
use std::time::Instant;

use scarpenter_testkit::crash::{self, Tally, Variant};

const RUNS: u64 = 200_000;

/// Straight to the terminal: the numbers are wanted from a test that passes, too.
fn say(line: &str) {
    writeln!(std::io::stderr(), "crash: {line}").ok();
}

/// How many runs were asked for; a wrong number is an error and not the default.
fn runs() -> u64 {
    std::env::var("SCARPENTER_CRASH_RUNS")
        .map_or(RUNS, |text| text.parse().expect("SCARPENTER_CRASH_RUNS is a number"))
}

#[test]
fn no_machine_is_doubled_or_leaked_wherever_a_controller_dies() {
    let (runs, begun) = (runs(), Instant::now());
    let (tally, shortest) = crash::run_many(0, runs, Variant::Real);
    let rate = runs as f64 / begun.elapsed().as_secs_f64();
    say(&format!("{tally} ({:.0} s, {rate:.0} runs/s)", begun.elapsed().as_secs_f64()));
    if let Some(seed) = shortest {
        panic!("{tally}\nthe shortest run that went wrong:\n{}", crash::explain(seed, Variant::Real));
    }
    assert!(tally.machines > runs / 2, "most runs buy something: {tally}");
    let rarest = tally.rarest_death();
    say(&format!("every effect had a controller die right before and right after it {rarest} times or more"));
    assert!(rarest > runs / 1000, "controllers die everywhere: {tally:?}");
    assert!(tally.swept > 0, "some machines are only for the sweep to find: {tally}");
}

/// Runs a controller that is broken in one place until the simulator sees what it must see.
fn found(variant: Variant, sees: impl Fn(&Tally) -> u64) {
    const ROUND: u64 = 500;
    for round in 0..80 {
        let (tally, _) = crash::run_many(round * ROUND, ROUND, variant);
        if sees(&tally) > 0 {
            say(&format!("{variant:?} found within {} runs: {tally}", (round + 1) * ROUND));
            return;
        }
    }
    panic!("{variant:?} was not found");
}

fn machines(tally: &Tally) -> u64 {
    tally.doubled + tally.leaked
}

#[test]
fn a_create_that_counts_as_settled_at_once_is_found() {
    found(Variant::NoSettle, |tally| tally.doubled);
    found(Variant::NoSettle, |tally| tally.leaked);
}

#[test]
fn a_settle_time_that_forgets_the_list_or_the_flight_is_found() {
    found(Variant::SettleWithoutLag, machines);
    found(Variant::SettleWithoutFlight, machines);
}

#[test]
fn a_release_before_the_latest_create_has_settled_is_found() {
    found(Variant::ReleaseUnsettled, |tally| tally.leaked);
}

#[test]
fn a_settle_time_from_the_first_create_is_found() {
    found(Variant::SettleFromFirst, machines);
}

#[test]
fn a_create_that_was_not_written_before_is_found() {
    found(Variant::NoAttempt, |tally| tally.doubled);
}

#[test]
fn an_attempt_that_ignores_conflicts_is_found() {
    found(Variant::AttemptAnyVersion, machines);
}

#[test]
fn a_create_that_is_sent_long_after_it_was_written_is_found() {
    found(Variant::SendLate, machines);
}

#[test]
fn a_second_create_that_does_not_look_first_is_found() {
    found(Variant::NoFind, |tally| tally.doubled);
}

#[test]
fn a_refusal_that_ignores_conflicts_is_found() {
    found(Variant::RefusalAnyVersion, |tally| tally.leaked);
}

#[test]
fn a_lost_answer_taken_for_a_refusal_is_found() {
    found(Variant::LostIsRefused, |tally| tally.leaked);
}

#[test]
fn a_delete_by_id_alone_is_found() {
    found(Variant::DeleteById, |tally| tally.leaked + tally.stuck);
}

#[test]
fn a_release_on_the_word_of_the_vendor_alone_is_found() {
    found(Variant::ReleaseWithoutList, |tally| tally.leaked);
}

#[test]
fn a_sweep_that_reads_claims_first_and_has_no_grace_is_found() {
    found(Variant::SweepBackwards, |tally| tally.wronged);
}

#[test]
fn a_machine_that_goes_while_a_pod_is_just_being_bound_is_found() {
    found(Variant::NoRest, |tally| tally.bereft);
}

#[test]
fn a_mesh_key_that_only_its_claim_knows_is_found() {
    found(Variant::KeyIsNotNoted, |tally| tally.left);
}

#[test]
fn a_release_that_leaves_the_join_secret_is_found() {
    found(Variant::ReleaseKeepsSecret, |tally| tally.left);
}
