//! Real machines: QEMU, a real kernel, the real Ignition and a real kubelet, on a real control plane.
//!
//! Needs root and the Debian packages that `.ci/run` installs; without them it is skipped, and says so. The long ones
//! run with `SCARPENTER_FULL=1`.

#![allow(clippy::unwrap_used)]

mod bare;
mod host;
mod joins;
mod rack;
mod refuses;
mod scene;

use std::process::ExitCode;

use scarpenter_playground::Options;
use scarpenter_provider_local::Programs;
use scarpenter_provider_local::image::build::demand_packages;
use scarpenter_tests::harness::{Trials, run};

fn main() -> ExitCode {
    if let Some(why) = missing() {
        // A machine of CI can have them: there it is a failure.
        let in_ci = std::env::var_os("SCARPENTER_CI_RUN").is_some();
        eprintln!("\nSKIPPED: no real machine was booted: {why}\n");
        return if in_ci { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let mut trials = Trials::new(Options::default());
    trials.add("a_pod_runs_on_a_machine_that_boots_and_is_read_and_entered", joins::a_pod_runs);
    trials.add("three_machines_outlive_their_plugin_and_leave_nothing", rack::three_machines);
    if std::env::var_os("SCARPENTER_FULL").is_some() {
        trials.add("a_wrong_hash_of_the_extension_is_told_of_with_the_console", refuses::a_wrong_hash);
        trials
            .add("a_machine_is_a_node_as_quickly_as_one_that_was_set_up_by_hand", bare::as_quick_as_by_hand);
    }
    run(trials)
}

fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("the test image is made by root only".to_owned());
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let programs = runtime.block_on(Programs::default().demand()).err().map(|error| error.to_string());
    programs.or_else(|| demand_packages().err().map(|error| error.to_string()))
}
