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

    /// Whether nothing of it is left that could hold a port or a file. One that is killed loses its arguments first, and
    /// its first thread may end before others that share its files.
    fn is_over(&self, folder: &Path) -> bool {
        match stat(self.pid) {
            Some((ended, started)) if started == self.started => {
                let another = || !arguments(self.pid).is_empty() && !names(self.pid, folder);
                if ended { threads(self.pid) <= 1 } else { another() }
            }
            _ => true,
        }
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
        while !self.is_over(folder) {
            if Instant::now() > deadline {
                return false;
            }
            if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive(folder)) {
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
    let (ended, started) = stat(pid)?;
    (!ended).then_some(started)
}

/// Whether a process has ended and waits to be reaped, and when it started.
fn stat(pid: i32) -> Option<(bool, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything; what follows is counted from its end.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((matches!(fields.first(), Some(&"Z" | &"X")), fields.get(19)?.parse().ok()?))
}

fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

fn arguments(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

fn names(pid: i32, folder: &Path) -> bool {
    let pid_file = folder.join(crate::store::PID_FILE);
    arguments(pid)
        .split(|byte| *byte == 0)
        .any(|argument| argument == pid_file.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{BufRead, BufReader};
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

    /// Its memory goes first and takes a moment, and only then are its ports free.
    const LISTENER: &str = "import socket, sys; held = b'x' * (400 << 20); \
        own = socket.create_server(('127.0.0.1', 0)); print(own.getsockname()[1], flush=True); sys.stdin.read()";

    #[test]
    fn a_process_that_was_killed_holds_no_port_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("python3");
        command.args(["-c", LISTENER]).arg(folder.path().join(crate::store::PID_FILE));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        let found = Process::of(i32::try_from(child.id()).unwrap(), folder.path()).unwrap();
        assert!(found.kill(folder.path(), Duration::from_secs(10)));
        let port: u16 = port.trim().parse().unwrap();
        std::net::TcpListener::bind(("127.0.0.1", port)).expect("its port is free");
        child.wait().unwrap();
    }
}
