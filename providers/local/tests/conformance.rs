//! The conformance suite over a real unix socket, with a stand-in for QEMU.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Host, create};
use scarpenter_provider::conformance::{Setup, run};

#[tokio::test(flavor = "multi_thread")]
async fn machines_of_this_host_keep_the_contract() {
    let host = Host::new();
    let plugin = host.start(&["--cpus", "100", "--memory", "100000"]).await;
    let setup = Setup {
        create: create("template"),
        gone_within: Duration::from_secs(20),
        check_within: Duration::from_secs(120),
        foreign: None,
    };
    let report = run(&plugin.client, setup).await;
    assert!(report.passed(), "{report}\n{}", std::fs::read_to_string(host.path("log")).unwrap());
    assert!(report.checks.len() >= 19, "{report}");
    assert_eq!(host.processes(), Vec::<i32>::new());
    assert_eq!(std::fs::read_dir(host.machines()).unwrap().count(), 0);
}
