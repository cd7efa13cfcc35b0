//! Namespaces of network, mounts, processes and host name that have no name and no file: when their first process
//! ends, and it ends with this test however that ends, the kernel ends all others and removes them.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use scarpenter_playground::{Lifetime, Process};

/// What the first process says when all is set up.
const READY: &str = "namespace is ready";
const READY_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What systemd gives its services.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

/// The namespaces of one machine, held open by their first process.
pub(crate) struct Namespace {
    pid: u32,
    _keeper: Process,
}

impl Namespace {
    /// Namespaces that see the files of this machine.
    pub(crate) fn bare(log: &Path) -> anyhow::Result<Self> {
        Self::start(log, &format!("ip link set lo up; echo {READY}; exec sleep infinity"), &[])
    }

    /// Namespaces whose root is `root`, with these folders laid over the `/usr` of this machine, the first on top.
    pub(crate) fn rooted(log: &Path, root: &Path, extensions: &[PathBuf]) -> anyhow::Result<Self> {
        let script = format!(
            "ip link set lo up
             mount -t overlay -o ro,lowerdir=\"$2\" overlay \"$1/usr\"
             mount --rbind /dev \"$1/dev\"
             mount -t proc proc \"$1/proc\"
             mount -t sysfs sysfs \"$1/sys\"
             mount -t tmpfs -o mode=0755 tmpfs \"$1/run\"
             hostname \"$(cat \"$1/etc/hostname\")\"
             exec chroot \"$1\" /usr/bin/env -i {PATH} sh -c 'echo {READY}; exec sleep infinity'"
        );
        let mut layers: Vec<String> =
            extensions.iter().map(|folder| folder.join("usr").display().to_string()).collect();
        layers.push("/usr".to_owned());
        Self::start(log, &script, &[&root.display().to_string(), &layers.join(":")])
    }

    fn start(log: &Path, script: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "sh", "-euc"]);
        unshare.arg(script).arg("sh").args(arguments);
        // What is read of an earlier boot is not ours.
        fs::write(log, "")?;
        let keeper = Process::spawn("namespace", &unshare, log, Lifetime::Tied)?;
        let deadline = Instant::now() + READY_WITHIN;
        while keeper.log_tail(1) != READY {
            if keeper.exited().is_some() || Instant::now() > deadline {
                bail!("no namespace could be made: {}", keeper.log_tail(4));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let id = keeper.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let pid = children.context("read the first process of a namespace")?.trim().parse()?;
        Ok(Self { pid, _keeper: keeper })
    }

    /// A command that runs in them, with an environment of nothing but a `PATH` and `environment`.
    pub(crate) fn command(&self, environment: &[(String, String)], line: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "--target",
            &self.pid.to_string(),
            "--net",
            "--mount",
            "--pid",
            "--uts",
            "--root",
            "--wd",
        ]);
        command.args(["--", "/usr/bin/env", "-i", PATH]);
        command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(line.iter().map(AsRef::as_ref));
        command
    }

    /// Runs a command in them to its end.
    pub(crate) fn output(&self, line: &[&str]) -> anyhow::Result<Output> {
        self.command(&[], line).output().with_context(|| format!("run {}", line.join(" ")))
    }

    /// Runs a command in them that has to succeed, and returns what it prints.
    pub(crate) fn run(&self, line: &str) -> anyhow::Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = self.output(&words)?;
        if !output.status.success() {
            bail!("{line}: {} {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs our own code in the network; sockets that it makes stay there.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        let network = File::open(format!("/proc/{}/ns/net", self.pid)).context("open a network namespace")?;
        let on_own_thread = || -> anyhow::Result<T> {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(act())
        };
        std::thread::scope(|scope| {
            scope.spawn(on_own_thread).join().expect("the trial's code does not panic")
        })
    }

    /// Moves a network interface into others.
    pub(crate) fn give(&self, interface: &str, to: &Self) -> anyhow::Result<()> {
        let pid = to.pid.to_string();
        // Not among the processes of these, where the others have no process id.
        let moved =
            self.inside(|| Command::new("ip").args(["link", "set", interface, "netns", &pid]).output())??;
        if !moved.status.success() {
            bail!("move {interface}: {}", String::from_utf8_lossy(&moved.stderr));
        }
        Ok(())
    }

    /// Where its files are, seen from outside.
    pub(crate) fn root(&self) -> PathBuf {
        format!("/proc/{}/root", self.pid).into()
    }
}
