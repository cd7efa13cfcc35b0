//! The conformance suite over a real unix socket: what a vendor may do passes, what none may do is found out.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{conformance, stage, stage_selling};
use scarpenter_provider_sim::market::Market;
use scarpenter_provider_sim::metal::Paper;

const PATIENT: Duration = Duration::from_secs(60);
/// A broken promise is often one that is waited for in vain.
const HASTY: Duration = Duration::from_secs(3);

async fn passes(vendor: &str, rules: &str) {
    let report = conformance(&stage(vendor, rules).await, PATIENT).await;
    assert!(report.passed(), "{vendor}, {rules}:\n{report}");
    assert!(report.checks.len() >= 19, "{report}");
}

async fn fails(rules: &str, promise: &str) {
    let report = conformance(&stage("hcloud", rules).await, HASTY).await;
    assert!(
        report.failed().any(|failed| failed == promise),
        "{rules}: expected {promise:?} to fail:\n{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_played_vendor_keeps_the_contract() {
    let vendors = ["aws", "gcp", "azure", "alicloud", "hcloud", "ovh", "upcloud", "vultr", "another"];
    futures::future::join_all(vendors.map(|vendor| passes(vendor, ""))).await;
}

/// What hcloud sells now, one of the lines replaced.
fn market(last: &str) -> Market {
    let text = format!(
        "offerings:\n- {{vendor: hcloud, instanceType: cx22, region: fsn1, microUsdPerHour: 0}}\n{last}\n\
         instanceTypes: [{{vendor: hcloud, name: new, arch: arm64, cpu: 2, memoryMib: 4096}}]\n"
    );
    Market::from_text(&text).unwrap()
}

const SELLING: &str = "says what it sells now, or that it cannot";

#[tokio::test(flavor = "multi_thread")]
async fn a_vendor_that_tells_what_it_sells_now_keeps_the_contract() {
    let fine = "- {vendor: hcloud, instanceType: cx32, region: fsn1, zone: fsn1, available: false}";
    let report = conformance(&stage_selling("hcloud", "", Paper, market(fine)).await, PATIENT).await;
    assert!(report.passed(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_vendor_may_say_of_what_it_sells_is_found_out() {
    let spot = "- {vendor: hcloud, instanceType: cx32, region: fsn1, capacityType: spot}";
    let twice = "- {vendor: hcloud, instanceType: cx22, region: fsn1}";
    let cases = [
        (spot, ""),
        (twice, ""),
        ("", "rules: [{call: ListOfferings, fault: {nonsense: listedTwice}}]"),
        ("", "rules: [{call: ListOfferings, fault: {nonsense: wrongType}}]"),
        ("", "rules: [{call: ListOfferings, fault: {error: {code: UNIMPLEMENTED}}}]"),
    ];
    let checks = cases.map(|(last, rules)| async move {
        let report = conformance(&stage_selling("hcloud", rules, Paper, market(last)).await, HASTY).await;
        assert!(report.failed().any(|failed| failed == SELLING), "{last} {rules}:\n{report}");
    });
    futures::future::join_all(checks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_vendors_may_do_breaks_no_promise() {
    let rules = [
        "rules: [{fault: {delay: 20ms}}]",
        "rules: [{call: CreateMachine, fault: {delayAnswer: 50ms}}]",
        "rules: [{fault: twice}]",
        "rules: [{fault: {listLag: 150ms}}]",
        "rules: [{fault: {deleteTakes: 400ms}}]",
        "rules: [{call: CreateMachine, times: 6, probability: 0.5, fault: {loseAnswer: aborted}}]",
        "rules: [{call: DeleteMachine, times: 3, fault: {error: {reason: RATE_LIMIT, retryAfter: 20ms}}}]",
        "rules: [{call: ListMachines, times: 5, fault: {error: {code: UNAVAILABLE}}}]",
        "rules: [{call: GetMachine, times: 5, fault: {error: {code: INTERNAL}}}]",
        "rules: [{fault: {rateLimit: {calls: 40, per: 1s}}}]",
    ];
    futures::future::join_all(rules.map(|rules| passes("hcloud", rules))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_vendor_may_do_is_found_out() {
    let cases = [
        ("rules: [{fault: double}]", "makes one machine for one claim asked twice"),
        (
            "rules: [{call: CreateMachine, fault: {nonsense: wrongClaim}}]",
            "makes the machine that was asked for",
        ),
        (
            "rules: [{call: CreateMachine, fault: {nonsense: wrongType}}]",
            "makes the machine that was asked for",
        ),
        ("rules: [{call: GetMachine, fault: {nonsense: emptyId}}]", "finds a machine by its claim alone"),
        ("rules: [{call: GetMachine, fault: hide}]", "finds a machine by its claim alone"),
        ("rules: [{call: ListMachines, fault: omit}]", "lists every machine and where the list is complete"),
        ("rules: [{fault: uncovered}]", "lists every machine and where the list is complete"),
        ("rules: [{fault: {listLag: 5s}}]", "lists every machine and where the list is complete"),
        (
            "rules: [{call: ListMachines, fault: {nonsense: listedTwice}}]",
            "lists every machine and where the list is complete",
        ),
        ("rules: [{fault: deleteSaysGone}]", "deletes a machine and says so until it is gone"),
        ("rules: [{fault: deleteIgnored}]", "deletes a machine and says so until it is gone"),
        ("rules: [{fault: {nonsense: otherVendor}}]", "says who it is and what it can do"),
        (
            "rules: [{call: CreateMachine, fault: {error: {reason: SOLD_OUT}}}]",
            "makes the machine that was asked for",
        ),
    ];
    futures::future::join_all(cases.map(|(rules, promise)| fails(rules, promise))).await;
}
