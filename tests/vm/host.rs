//! The plugin of this host as a process, its machines, and the proof that none of them is left.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use scarpenter_playground::{Binaries, Folder, KUBERNETES_VERSION, Lifetime, Process};
use scarpenter_provider::{Client, Endpoint};
use scarpenter_provider_local::image::build::{Cache, Extension};
use tokio::sync::Mutex;

const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Two cores have room for one trial at a time.
pub(crate) static TURN: Mutex<()> = Mutex::const_new(());

/// What machines boot and fetch: found, or made once for this user.
pub(crate) struct Metal {
    pub(crate) image: PathBuf,
    pub(crate) extension: Extension,
}

impl Metal {
    pub(crate) async fn ensure() -> anyhow::Result<Self> {
        let cache = Cache::of_user()?;
        let image = cache.image(|step| eprintln!("making the test image: {step}")).await?;
        let mut told = false;
        let kubelet = Binaries::kubelet(|_| {
            if !std::mem::replace(&mut told, true) {
                eprintln!("building the kubelet, once for this user; it takes minutes");
            }
        });
        let kubelet = kubelet.await?;
        let extension = cache.extension(&kubelet, &format!("v{KUBERNETES_VERSION}")).await?;
        Ok(Self { image, extension })
    }
}

/// A plugin, which may be killed and started again on the same folder.
pub(crate) struct Host {
    plugin: Option<Process>,
    arguments: Vec<OsString>,
    pub(crate) client: Client,
    pub(crate) folder: Folder,
}

impl Host {
    pub(crate) async fn start(metal: &Metal, extensions_port: u16, more: &[&str]) -> anyhow::Result<Self> {
        let folder = Folder::make().context("make a temporary folder")?;
        let socket = folder.path().join("local.sock");
        let mut listen = OsString::from("unix://");
        listen.push(&socket);
        let mut arguments: Vec<OsString> = ["provider", "local", "--accel", "tcg"].map(OsString::from).into();
        arguments.extend(["--listen".into(), listen, "--image".into(), metal.image.clone().into()]);
        arguments.extend(["--state".into(), folder.path().join("state").into()]);
        arguments.extend(["--extensions".into(), metal.extension.folder.clone().into()]);
        arguments.extend(["--extensions-at".into(), format!("127.0.0.1:{extensions_port}").into()]);
        arguments.extend(more.iter().map(OsString::from));
        let client = Client::connect("local".into(), &Endpoint::Unix(socket))?;
        let mut host = Self { plugin: None, arguments, client, folder };
        host.start_again().await?;
        Ok(host)
    }

    pub(crate) async fn start_again(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new(program());
        command.args(&self.arguments);
        let log = self.folder.path().join("local.log");
        self.plugin = Some(Process::spawn("local", &command, &log, Lifetime::Tied)?);
        let deadline = Instant::now() + STARTS_WITHIN;
        while let Err(error) = self.client.capabilities().await {
            let words = self.words();
            ensure!(Instant::now() < deadline, "the plugin does not answer: {error}: {words}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// As a crash would.
    pub(crate) fn kill(&mut self) {
        self.plugin = None;
    }

    pub(crate) fn words(&self) -> String {
        self.plugin.as_ref().map(|plugin| plugin.log_tail(8)).unwrap_or_default()
    }

    /// The end of what each machine printed.
    pub(crate) fn consoles(&self) -> String {
        let machines = std::fs::read_dir(self.machines()).into_iter().flatten().flatten();
        let ends = machines.map(|machine| {
            let text = std::fs::read(machine.path().join("console.log")).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(20)..].join("\n")
        });
        ends.collect::<Vec<_>>().join("\n\n")
    }

    fn machines(&self) -> PathBuf {
        self.folder.path().join("state/machines")
    }

    /// Processes of machines.
    pub(crate) fn processes(&self) -> Vec<i32> {
        processes(&self.machines())
    }

    /// Neither a process, nor a file, nor a port of a machine.
    pub(crate) fn demand_nothing_left(&self) -> anyhow::Result<()> {
        let processes = self.processes();
        ensure!(processes.is_empty(), "processes {processes:?} are left");
        let files: Vec<_> = std::fs::read_dir(self.machines())?.flatten().map(|entry| entry.path()).collect();
        ensure!(files.is_empty(), "{files:?} are left");
        for last in 2..6 {
            let at = std::net::Ipv4Addr::new(127, 0, 0, last);
            std::net::TcpListener::bind((at, 10250)).with_context(|| format!("a port is left on {at}"))?;
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
        // Machines outlive their plugin; those of a trial that failed must not outlive it.
        for pid in self.processes() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
        }
    }
}

fn processes(folder: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let folder = folder.to_string_lossy();
    ids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(folder.as_ref())
    })
    .collect()
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_scarpenter-on-trial"))
}

pub(crate) fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(listener.local_addr()?.port())
}
