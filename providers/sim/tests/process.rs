//! The plugin as a process that is killed and started again.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{create, find};
use scarpenter_provider::endpoint::parse_assignment;
use scarpenter_provider::{Client, Created, Error};
use tokio::time::Instant;

struct Plugin(Child);

impl Drop for Plugin {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn command(folder: &Path) -> Command {
    command_of(folder, "paper")
}

fn command_of(folder: &Path, metal: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scarpenter-provider-sim"));
    command.arg("--play").arg(format!("hcloud=unix://{}/hcloud.sock", folder.display()));
    command.arg("--play").arg(format!("aws=unix://{}/aws.sock", folder.display()));
    command.args(["--metal", metal]).stdin(Stdio::null()).stderr(Stdio::piped());
    command.arg("--state").arg(folder.join("state")).arg("--log").arg(folder.join("log"));
    command
}

fn client(folder: &Path, vendor: &str) -> Client {
    let text = format!("{vendor}=unix://{}/{vendor}.sock", folder.display());
    let (vendor, endpoint) = parse_assignment(&text).unwrap();
    Client::connect(vendor, &endpoint).unwrap()
}

async fn answers(client: &Client) {
    let by = Instant::now() + Duration::from_secs(30);
    while let Err(error) = client.capabilities().await {
        assert!(Instant::now() < by, "{error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn machines_outlive_a_kill_of_the_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let (hcloud, aws) = (client(folder.path(), "hcloud"), client(folder.path(), "aws"));
    let first = Plugin(command(folder.path()).spawn().unwrap());
    answers(&hcloud).await;
    answers(&aws).await;
    let Created::Machine(machine) = hcloud.create_machine(create("a")).await.unwrap() else {
        panic!("refused")
    };
    hcloud.create_machine(create("b")).await.unwrap();
    hcloud.delete_machine(common::delete("b")).await.unwrap();
    aws.create_machine(create("a")).await.unwrap();
    drop(first);

    let _second = Plugin(command(folder.path()).spawn().unwrap());
    answers(&hcloud).await;
    assert_eq!(hcloud.get_machine(find("a")).await.unwrap(), Some(machine.clone()));
    let gone_by = Instant::now() + Duration::from_secs(30);
    while hcloud.list_machines(&"cluster".into()).await.unwrap().machines.len() != 1 {
        assert!(Instant::now() < gone_by, "a deletion that was asked for before the kill is not carried on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let Created::Machine(again) = hcloud.create_machine(create("a")).await.unwrap() else {
        panic!("refused")
    };
    assert_eq!(again.id, machine.id);
    assert_eq!(aws.list_machines(&"cluster".into()).await.unwrap().machines.len(), 1);
}

#[tokio::test]
async fn a_plugin_that_dies_with_the_answer_leaves_an_unknown_outcome_and_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let faults = folder.path().join("faults.yaml");
    std::fs::write(&faults, "rules: [{call: CreateMachine, fault: {loseAnswer: die}}]").unwrap();
    let hcloud = client(folder.path(), "hcloud");
    let mut first = Plugin(command(folder.path()).arg("--faults").arg(&faults).spawn().unwrap());
    answers(&hcloud).await;
    let error = hcloud.create_machine(create("a")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error:?}");
    assert!(!error.had_no_effect());
    assert_eq!(first.0.wait().unwrap().code(), Some(137));

    let _second = Plugin(command(folder.path()).spawn().unwrap());
    answers(&hcloud).await;
    assert!(hcloud.get_machine(find("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn the_log_says_what_was_received_made_and_gone_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let hcloud = client(folder.path(), "hcloud");
    let _plugin = Plugin(command(folder.path()).args(["--delete-takes", "0s"]).spawn().unwrap());
    answers(&hcloud).await;
    let secret = scarpenter_provider::CreateMachine { user_data: b"hunter2".to_vec(), ..create("a") };
    hcloud.create_machine(secret).await.unwrap();
    hcloud.delete_machine(common::delete("a")).await.unwrap();
    while hcloud.get_machine(find("a")).await.unwrap().is_some() {}
    let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert!(events.starts_with(&["kept", "received", "made", "answered", "received"]), "{events:?}");
    let gone = lines.iter().find(|line| line["event"] == "gone").unwrap();
    assert_eq!((lines[2]["machines"].as_u64(), gone["machines"].as_u64()), (Some(1), Some(0)));
    assert_eq!((&lines[1]["claim"], &lines[1]["instanceType"]), (&"a".into(), &"cx22".into()));
    let times: Vec<_> = lines.iter().map(|line| line["us"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 1_600_000_000_000_000, "{times:?}");
    assert!(!text.contains("hunter2"));
}

#[tokio::test]
async fn a_machine_of_hollow_metal_boots_what_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut hollow = Command::new(env!("CARGO_BIN_EXE_scarpenter-provider-sim"));
    hollow.arg("--play").arg(format!("hcloud=unix://{}/hcloud.sock", folder.path().display()));
    let _plugin = Plugin(hollow.stderr(Stdio::null()).spawn().unwrap());
    let hcloud = client(folder.path(), "hcloud");
    answers(&hcloud).await;
    hcloud.create_machine(create("a")).await.unwrap();
    let by = Instant::now() + Duration::from_secs(30);
    while !hcloud.console_output(find("a")).await.unwrap().unwrap_or_default().contains("Ignition failed") {
        assert!(Instant::now() < by, "{:?}", hcloud.console_output(find("a")).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_hollow_machine_keeps_its_disk_over_a_kill_and_loses_it_when_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Plugin(command_of(folder.path(), "hollow").spawn().unwrap());
    let disks = folder.path().join("state.disks");
    let texts = || -> Vec<String> {
        let files = std::fs::read_dir(&disks).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    };
    let hcloud = client(folder.path(), "hcloud");
    let first = start();
    answers(&hcloud).await;
    hcloud.create_machine(create("a")).await.unwrap();
    hcloud.create_machine(create("b")).await.unwrap();
    until("both have booted", || texts().len() == 2).await;
    let mut before = texts();
    drop(first);

    let _second = start();
    answers(&hcloud).await;
    let mut after = texts();
    before.sort();
    after.sort();
    assert_eq!(before, after, "they have booted anew");
    hcloud.delete_machine(common::delete("a")).await.unwrap();
    until("the disk of a is gone", || texts().len() == 1).await;
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_scarpenter-provider-sim");
    let script = format!("ulimit -Sn 64; exec {binary} --play hcloud=unix://{}/s", folder.path().display());
    let mut shell = Command::new("sh");
    let plugin = Plugin(shell.args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap());
    let limits = format!("/proc/{}/limits", plugin.0.id());
    let by = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        let text = std::fs::read_to_string(&limits).unwrap();
        let line = text.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let mut numbers = line.split_whitespace().skip(3);
        let (soft, hard) = (numbers.next().unwrap(), numbers.next().unwrap());
        if soft == hard {
            break;
        }
        assert!(std::time::Instant::now() < by, "{line}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn until(what: &str, is: impl Fn() -> bool) {
    let by = Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(Instant::now() < by, "waited for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn bad_arguments_end_in_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let said = |extra: &[&str]| {
        let output = command(folder.path()).args(extra).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["--faults", "/nonexistent"]).contains("read /nonexistent: No such file"));
    assert!(said(&["--play", "ovh=tcp://x"]).contains("unix:///path or https://host:port"));
    assert!(said(&["--play", "ovh=https://127.0.0.1:0"]).contains("certificate"));
    assert!(said(&["--settle", "2"]).contains("no length of time"));
}
