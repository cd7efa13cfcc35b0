//! Runs the script that makes the image, in a mount namespace of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{Error, needs};

const LAST_LINES: usize = 6;

/// Runs it on the folders `files`, `work` and `out`, and tells each step.
pub(super) async fn run(folder: &Path, progress: &mut impl FnMut(&str)) -> Result<(), Error> {
    let log = folder.join("log");
    let mut step = "the start".to_owned();
    let stderr =
        File::create(&log).map_err(|source| Error::WriteCache { folder: folder.to_owned(), source })?;
    let mut command = command(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).process_group(0);
    let mut script = match command.spawn() {
        Ok(child) => Script(child),
        Err(error) => return Err(failed(&step, error.to_string(), &log)),
    };
    let out = script.0.stdout.take().expect("its output is piped");
    let mut lines = BufReader::new(out).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(next) = line.strip_prefix("step: ") {
            next.clone_into(&mut step);
            progress(&step);
        }
    }
    match script.0.wait().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(&step, status.to_string(), &log)),
        Err(error) => Err(failed(&step, error.to_string(), &log)),
    }
}

fn command(folder: &Path) -> Command {
    // What it mounts is seen by nobody else and goes with it.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh"]).arg(folder.join("files/build.sh"));
    for (name, value) in [("FILES", "files"), ("WORK", "work"), ("OUT", "out")] {
        command.env(name, folder.join(value));
    }
    command.env("BUSYBOX", needs::BUSYBOX).env("IGNITION", needs::IGNITION);
    command.env("LC_ALL", "C").env("PATH", needs::path());
    command
}

fn failed(step: &str, status: String, log: &Path) -> Error {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let output = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
    Error::Failed { step: step.to_owned(), status, output }
}

/// The running script; dropped, it goes with all that it started.
struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        // Reaped, it has no id any more.
        let pid = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}
