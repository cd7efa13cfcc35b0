//! A child process that cannot be forgotten: it ends with its owner, however the owner ends.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Its log file could not be made.
    #[error("make log file {}", path.display())]
    MakeLog {
        /// Where it was to be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to start it.
    #[error("start {name}")]
    Start {
        /// The process.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

/// When a process ends if nobody stops it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// With its [`Process`], and with this process even when that is killed with SIGKILL.
    ///
    /// The latter needs `setpriv` of util-linux (any Linux has it); elsewhere only a normal end is covered.
    #[default]
    Tied,
    /// With its [`Process`], unless [`Process::leave`] lets go of it.
    Loose,
}

/// A running child process in a process group of its own, both its outputs in one log file.
///
/// A Ctrl-C on the terminal therefore reaches only this process, which then stops its children in order.
/// Dropping it kills the whole group at once and waits for the child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    keeper: Option<mpsc::Sender<Infallible>>,
    left: bool,
}

impl Process {
    /// Starts the command; its standard input is empty and its outputs go to the file `log`.
    ///
    /// # Errors
    /// When the log file cannot be made or the program cannot be started.
    /// With [`Lifetime::Tied`] a missing program shows as an early exit instead, with the reason in the log.
    pub fn spawn(
        name: impl Into<String>,
        command: &Command,
        log: &Path,
        lifetime: Lifetime,
    ) -> Result<Self, ProcessError> {
        let name = name.into();
        let made = || -> io::Result<(File, File)> {
            let file = File::options().create(true).append(true).open(log)?;
            Ok((file.try_clone()?, file))
        };
        let (out, err) = made().map_err(|source| ProcessError::MakeLog { path: log.to_owned(), source })?;
        let mut command = match lifetime {
            Lifetime::Tied if can_tie() => tied(command),
            Lifetime::Tied | Lifetime::Loose => copy(command.get_program(), command),
        };
        command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let (child, keeper) = spawn_on_own_thread(command)
            .map_err(|source| ProcessError::Start { name: name.clone(), source })?;
        Ok(Self { name, child, log: log.to_owned(), keeper: Some(keeper), left: false })
    }

    /// What it was called at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, which is also that of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where its outputs go.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log, lines)
    }

    /// How it ended, if it has.
    ///
    /// It is only looked at, and reaped when dropped: until then its id, and its group's, cannot become another's.
    #[must_use]
    pub fn exited(&self) -> Option<ExitStatus> {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid()), peek).ok().flatten()?;
        match status.exit_status() {
            Some(code) => Some(ExitStatus::from_raw(code << 8)),
            None => Some(ExitStatus::from_raw(status.terminating_signal().unwrap_or_default())),
        }
    }

    /// Asks it to end (SIGTERM), waits up to `grace`, then kills its group.
    pub async fn stop(self, grace: Duration) {
        self.ask_to_end();
        self.wait_until(Instant::now() + grace).await;
    }

    /// Kills it with SIGKILL, as a crash would, and waits for its end.
    pub fn kill(self) {
        drop(self);
    }

    /// Lets it run on when this process ends; only one of [`Lifetime::Loose`] survives that.
    pub fn leave(mut self) {
        self.left = true;
    }

    pub(crate) fn ask_to_end(&self) {
        kill_process(self.pid(), Signal::TERM).ok();
    }

    pub(crate) fn interrupt_group(&self) {
        kill_process_group(self.pid(), Signal::INT).ok();
    }

    /// Blocks for at most `grace` until it has ended.
    pub(crate) fn wait_blocking(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        while self.exited().is_none() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(crate) async fn wait_until(&self, deadline: Instant) {
        while self.exited().is_none() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        kill_process_group(self.pid(), Signal::KILL).ok();
        self.child.wait().ok();
        self.keeper.take();
    }
}

/// Spawns on a thread that lives as long as the child.
///
/// The kernel's "kill me when my parent dies" means the parent *thread*: from a worker of an async runtime or from
/// a test's own thread the child would die early.
fn spawn_on_own_thread(mut command: Command) -> io::Result<(Child, mpsc::Sender<Infallible>)> {
    let (give, take) = mpsc::sync_channel(1);
    let (keeper, end) = mpsc::channel::<Infallible>();
    std::thread::Builder::new().name("child-keeper".to_owned()).spawn(move || {
        if give.send(command.spawn()).is_ok() {
            end.recv().ok();
        }
    })?;
    let child = take.recv().expect("the thread sends before it ends")?;
    Ok((child, keeper))
}

fn tied(command: &Command) -> Command {
    let mut wrapped = copy("setpriv".as_ref(), command);
    wrapped.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program());
    copy_args(&mut wrapped, command);
    wrapped
}

fn copy(program: &std::ffi::OsStr, command: &Command) -> Command {
    let mut copied = Command::new(program);
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => copied.env(key, value),
            None => copied.env_remove(key),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        copied.current_dir(folder);
    }
    if program == command.get_program() {
        copy_args(&mut copied, command);
    }
    copied
}

fn copy_args(to: &mut Command, from: &Command) {
    to.args(from.get_args());
}

/// Whether this machine has a `setpriv` that can tie a child to its parent (busybox's cannot).
fn can_tie() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// The last lines of a file, empty when it cannot be read.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let kept: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(lines).collect();
    kept.into_iter().rev().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn is_alive(pid: &str) -> bool {
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).unwrap();
        rustix::process::test_kill_process(pid).is_ok()
    }

    fn read_when_written(path: &Path) -> String {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let text = tail(path, 1);
            if !text.is_empty() || Instant::now() > deadline {
                return text;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn dropping_a_process_kills_its_children_too() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let process =
            Process::spawn("sh", &shell("sleep 1000 & echo $!; wait"), &log, Lifetime::Tied).unwrap();
        let grandchild = read_when_written(&log);
        assert!(is_alive(&grandchild));
        drop(process);
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_alive(&grandchild) {
            assert!(Instant::now() < deadline, "the grandchild still runs");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_child_outlives_the_thread_that_started_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let process = std::thread::scope(|scope| {
            scope
                .spawn(|| Process::spawn("sh", &shell("sleep 0.2; echo done"), &log, Lifetime::Tied).unwrap())
                .join()
                .unwrap()
        });
        process.wait_blocking(Duration::from_secs(10));
        assert!(process.exited().unwrap().success());
        assert_eq!(process.log_tail(5), "done");
    }

    #[tokio::test]
    async fn stopping_kills_a_process_that_ignores_the_request() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
        let process = Process::spawn("sh", &shell(script), &log, Lifetime::Loose).unwrap();
        let pid = process.id().to_string();
        assert_eq!(read_when_written(&log), "ready");
        process.stop(Duration::from_millis(200)).await;
        assert!(!is_alive(&pid));
    }
}
