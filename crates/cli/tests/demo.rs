//! `scarpenter demo`, from outside: what it shows, and that it leaves nothing.
//!
//! Builds the control plane's programs if this user has none yet.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A running demo whose files for the time being are all in one folder.
struct Demo {
    child: Child,
    temporary: TempDir,
    lines: BufReader<ChildStdout>,
}

fn start(arguments: &[&str]) -> Demo {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_scarpenter"))
        .arg("demo")
        .args(arguments)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    Demo { child, temporary, lines }
}

impl Demo {
    fn read_until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before saying {text:?}: {}", self.errors());
        }
    }

    fn interrupt(&self) {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// How it ended, and the rest of what it said.
    fn wait(&mut self) -> (ExitStatus, String, String) {
        let mut output = String::new();
        self.lines.read_to_string(&mut output).unwrap();
        let errors = self.errors();
        (self.child.wait().unwrap(), output, errors)
    }

    /// The same; it must have left nothing.
    fn finish(mut self) -> (ExitStatus, String, String) {
        let told = self.wait();
        self.assert_that_nothing_is_left();
        told
    }

    fn assert_that_nothing_is_left(&self) {
        let left: Vec<_> =
            fs::read_dir(self.temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left: {left:?}");
        assert_eq!(processes_of(self.temporary.path()), Vec::<String>::new());
    }
}

/// Command lines of living processes that were started in the folder or name it.
fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let ours = processes.filter_map(|process| {
        let command = fs::read(process.join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let place = fs::read_link(process.join("cwd")).unwrap_or_default();
        (command.contains(name) || place.starts_with(folder)).then_some(command)
    });
    ours.collect()
}

#[test]
fn interrupted_while_it_starts_it_leaves_nothing() {
    let mut demo = start(&[]);
    demo.read_until("starting the control plane");
    demo.interrupt();
    let (status, output, _) = demo.finish();
    assert_eq!(status.code(), Some(130), "{output}");
}

#[test]
fn interrupted_once_the_controller_runs_it_leaves_nothing() {
    let mut demo = start(&[]);
    demo.read_until("waiting");
    assert!(processes_of(demo.temporary.path()).len() >= 6);
    demo.interrupt();
    let (status, output, _) = demo.finish();
    assert_eq!(status.code(), Some(130), "{output}");
}

#[test]
fn three_pods_run_on_three_machines_that_are_gone_at_the_end() {
    let (status, output, errors) = start(&[]).finish();
    assert!(status.success(), "{output}\n{errors}");
    for words in ["hcloud/fsn1/ccx33/on-demand", "/c7a.large/on-demand", "total"] {
        assert!(output.contains(words), "{words} is missing in: {output}");
    }
    let gone = output.lines().filter(|line| line.contains(" gone "));
    assert_eq!(gone.count(), 3, "{output}");
}

#[test]
fn kept_it_stays_out_of_its_own_cluster_and_runs_on_until_it_is_ended_as_it_says() {
    let mut demo = start(&["--keep"]);
    let (status, output, errors) = demo.wait();
    assert!(status.success(), "{output}\n{errors}");
    let kubeconfig = output.lines().find_map(|line| line.strip_prefix("export KUBECONFIG=")).unwrap();
    assert!(Path::new(kubeconfig).starts_with(demo.temporary.path()) && Path::new(kubeconfig).exists());
    assert!(processes_of(demo.temporary.path()).len() >= 6);

    let (status, second, errors) = start(&["--kubeconfig", kubeconfig]).finish();
    assert_eq!((status.code(), second.as_str()), (Some(1), ""), "{errors}");
    assert!(errors.contains("shows that scarpenter is used in this cluster"), "{errors}");

    let end = output.lines().last().unwrap();
    assert!(Command::new("sh").args(["-c", end]).status().unwrap().success(), "{end}");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !processes_of(demo.temporary.path()).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    demo.assert_that_nothing_is_left();
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let (status, _, errors) = start(&["--kubeconfig", "/nowhere/config"]).finish();
    assert_eq!(status.code(), Some(2));
    assert!(errors.contains("read /nowhere/config"), "{errors}");
}
