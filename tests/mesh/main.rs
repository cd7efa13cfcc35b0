//! The mesh of a machine, real in all but the machine: a rendered document is laid out in namespaces of its own, its
//! units are started in the order that they ask for, and a real tailscaled joins a control server that only it reaches.
//!
//! Needs root, `ip`, `nft`, `unshare` and `nsenter`; where they are missing the trials are told as ignored, and why.

#![allow(clippy::unwrap_used)]

mod boot;
mod disk;
mod exchange;
mod firewall;
mod joining;
mod machine;
mod mistakes;
mod namespace;
mod programs;
mod service;
mod site;
mod unit;

use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use programs::Programs;

type Act = fn(&Programs) -> anyhow::Result<()>;

fn main() -> ExitCode {
    let programs: Arc<OnceLock<Result<Programs, String>>> = Arc::default();
    let missing = missing();
    let real = |name: &str, act: Act| {
        let (programs, missing) = (programs.clone(), missing.clone());
        Trial::ignorable_test(name, move || {
            if let Some(missing) = missing {
                eprintln!("mesh: NOT TESTED: {missing}");
                return Ok(Completion::ignored_with(missing));
            }
            let programs = programs.get_or_init(|| Programs::ensure().map_err(|error| format!("{error:#}")));
            outcome(act(programs.as_ref()?)).map(|()| Completion::Completed)
        })
    };
    let trials = vec![
        Trial::test("units_are_read_as_systemd_reads_them", || outcome(unit::reading())),
        real("two_machines_without_a_way_to_each_other_meet_through_the_relay", joining::through_the_relay),
        real("a_machine_keeps_its_address_over_a_reboot_though_its_key_was_single_use", joining::reboot),
        real("a_machine_whose_key_is_refused_says_so_and_starts_no_kubelet", joining::refused),
        real("a_document_with_a_mistake_in_its_order_or_its_paths_does_not_pass", mistakes::are_noticed),
        real("a_state_that_does_not_last_does_not_pass_a_reboot", mistakes::state_in_memory),
        real("the_firewall_lets_in_the_mesh_answers_and_allowed_ranges_only", firewall::what_comes_in),
        real("pods_do_not_reach_the_metadata_of_the_machine", firewall::metadata),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn outcome(result: anyhow::Result<()>) -> Result<(), Failed> {
    result.map_err(|error| Failed::from(format!("{error:#}")))
}

/// What this machine lacks for namespaces.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    let tools = ["ip", "nft", "unshare", "nsenter"];
    let lacks = tools.into_iter().filter(|tool| Command::new(tool).arg("--version").output().is_err());
    let lacks: Vec<&str> = lacks.collect();
    (!lacks.is_empty()).then(|| format!("no {} on the PATH", lacks.join(", ")))
}
