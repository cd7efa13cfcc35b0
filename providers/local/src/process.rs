//! Machines as processes: found again after a restart, and never mistaken for another that got the same id.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process by its id and the moment it started, in clock ticks since the host's boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

impl Process {
    /// The process with that id, if it lives and one of its arguments names `folder`.
    pub(crate) fn of(pid: i32, folder: &Path) -> Option<Self> {
        names(pid, folder).then_some(())?;
        Some(Self { pid, started: started(pid)? })
    }

    /// Every living process whose arguments name `folder`.
    pub(crate) fn all_of(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(|pid| Self::of(pid, folder)).collect()
    }

    /// Whether it still runs: the same process, and not another that got its id since.
    pub(crate) fn is_alive(&self, folder: &Path) -> bool {
        started(self.pid) == Some(self.started) && names(self.pid, folder)
    }

    /// Memory that it has touched.
    pub(crate) fn resident_mib(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        kib.unwrap_or_default() / 1024
    }

    /// Ends it at once and waits until it is gone; whether it is.
    pub(crate) fn kill(&self, folder: &Path, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while self.is_alive(folder) {
            if Instant::now() > deadline {
                return false;
            }
            if let Some(pid) = Pid::from_raw(self.pid) {
                // Between the look and this the id could pass on only if the process ended and a whole round of ids went by.
                kill_process(pid, Signal::KILL).ok();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }
}

/// When a process started; `None` when there is none, or it has ended and waits to be reaped.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything; what follows is counted from its end.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

fn names(pid: i32, folder: &Path) -> bool {
    let Ok(arguments) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let pid_file = folder.join(crate::store::PID_FILE);
    arguments.split(|byte| *byte == 0).any(|argument| argument == pid_file.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that names the folder, as a machine does, and does nothing.
    fn machine(folder: &Path) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "read line", "-pidfile"]).arg(folder.join(crate::store::PID_FILE));
        command.stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_process_is_known_by_its_start_and_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = machine(folder.path());
        let pid = i32::try_from(child.id()).unwrap();
        let found = loop {
            // Until it has become `sh` it is this very test.
            match Process::all_of(folder.path()).pop() {
                Some(found) => break found,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(found.pid, pid);
        assert!(found.is_alive(folder.path()));
        let earlier = Process { started: found.started - 1, ..found };
        assert!(!earlier.is_alive(folder.path()), "another process had this id before");
        assert!(!found.is_alive(Path::new("/elsewhere")));
        assert!(earlier.kill(folder.path(), Duration::from_secs(5)), "nothing is left to kill");
        assert!(child.try_wait().unwrap().is_none(), "the process that got the id lives on");
        assert!(found.kill(folder.path(), Duration::from_secs(5)));
        child.wait().unwrap();
        assert!(!found.is_alive(folder.path()));
    }
}
