//! The processes of a stage: started, killed and started again.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use scarpenter_core::name::Vendor;
use scarpenter_playground::{Lifetime, Process};
use scarpenter_provider::{Client, Endpoint};

use super::{LOG_LINES, LOOK_EVERY, STARTS_WITHIN, Stage};

/// What the plugin writes of creates, deletes and machines.
pub(super) const AUDIT: &str = "audit.jsonl";
/// Its machines, for a plugin that is started again.
const STATE: &str = "machines.jsonl";
const FAULTS: &str = "faults.yaml";
const VENDORS: [&str; 8] = ["alicloud", "aws", "azure", "gcp", "hcloud", "ovh", "upcloud", "vultr"];
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// A running controller.
pub(super) struct Controller {
    pub(super) process: Process,
    pub(super) name: String,
    pub(super) metrics_port: u16,
}

impl Stage {
    /// Starts the plugin of all vendors and waits until each answers. One that was killed has its machines again.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_sim(&mut self) -> anyhow::Result<()> {
        let file = |name: &str| self.folder.path().join(name).into_os_string();
        let mut arguments: Vec<OsString> = ["provider", "sim"].map(OsString::from).to_vec();
        if let Some(faults) = &self.setting.faults {
            std::fs::write(self.folder.path().join(FAULTS), faults).context("write the faults")?;
            arguments.extend(["--faults".into(), file(FAULTS)]);
        }
        arguments.extend(["--log".into(), file(AUDIT), "--state".into(), file(STATE)]);
        arguments.extend(self.setting.sim_flags.iter().map(OsString::from));
        for vendor in VENDORS {
            // A plugin that was killed could not remove its socket.
            std::fs::remove_file(self.socket(vendor)).ok();
            arguments.extend(["--play".into(), self.assignment(vendor)]);
        }
        self.sim = Some(self.spawn("sim", &arguments)?);
        let deadline = Instant::now() + STARTS_WITHIN;
        for client in self.providers()? {
            while let Err(error) = client.capabilities().await {
                self.refuse_ended()?;
                if Instant::now() > deadline {
                    return Err(error).with_context(|| format!("the plugin of {} answers", client.vendor()));
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// Kills the plugin, as a crash would.
    pub fn kill_sim(&mut self) {
        self.sim = None;
    }

    /// Starts a controller that need not be elected.
    ///
    /// # Errors
    /// When there is no such program or no free port.
    pub fn start_controller(&mut self) -> anyhow::Result<()> {
        self.start_controller_with("controller", &["--no-leader-election"])
    }

    /// Starts a controller of a name, which begins its identity in the lease, with more flags.
    ///
    /// # Errors
    /// When there is no such program or no free port.
    pub fn start_controller_with(&mut self, name: &str, flags: &[&str]) -> anyhow::Result<()> {
        let (metrics_port, health_port) = (free_port()?, free_port()?);
        let mut arguments: Vec<OsString> = vec!["controller".into(), "--kubeconfig".into()];
        arguments.push(self.kubeconfig.clone().into());
        arguments.extend(["--bind-address", "127.0.0.1"].map(OsString::from));
        arguments.extend(["--metrics-port".into(), metrics_port.to_string().into()]);
        arguments.extend(["--health-port".into(), health_port.to_string().into()]);
        for vendor in VENDORS {
            arguments.extend(["--provider".into(), self.assignment(vendor)]);
        }
        arguments.extend(self.setting.controller_flags.iter().map(OsString::from));
        arguments.extend(flags.iter().map(OsString::from));
        let process = self.spawn(name, &arguments)?;
        self.controllers.push(Controller { process, name: name.to_owned(), metrics_port });
        Ok(())
    }

    /// Kills all controllers of a name, as a crash would.
    pub fn kill_controller(&mut self, name: &str) {
        self.controllers.retain(|controller| controller.name != name);
    }

    /// Stops the controllers of a name in the middle of whatever they do, or lets them go on.
    ///
    /// # Errors
    /// When one has ended.
    pub fn pause_controller(&self, name: &str, paused: bool) -> anyhow::Result<()> {
        let signal = if paused { Signal::STOP } else { Signal::CONT };
        for controller in self.controllers.iter().filter(|controller| controller.name == name) {
            let pid = i32::try_from(controller.process.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.context("a process has an id")?, signal)?;
        }
        Ok(())
    }

    /// Waits until the controllers of a name have ended by themselves, and forgets them.
    ///
    /// # Errors
    /// When they go on.
    pub async fn until_controller_ended(&mut self, name: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + STARTS_WITHIN;
        let runs = |own: &Controller| own.name == name && own.process.exited().is_none();
        while self.controllers.iter().any(runs) {
            ensure!(Instant::now() < deadline, "controller {name} still runs");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.kill_controller(name);
        Ok(())
    }

    /// Process id and metrics port of the newest controller.
    ///
    /// # Errors
    /// When none runs.
    pub fn controller(&self) -> anyhow::Result<(u32, u16)> {
        let newest = self.controllers.last().context("no controller runs")?;
        Ok((newest.process.id(), newest.metrics_port))
    }

    /// Clients of all vendors of the plugin.
    pub(super) fn providers(&self) -> anyhow::Result<Vec<Client>> {
        let clients = VENDORS
            .iter()
            .map(|vendor| Client::connect(Vendor::from(*vendor), &Endpoint::Unix(self.socket(vendor))));
        Ok(clients.collect::<Result<_, _>>()?)
    }

    /// A process that ended although nobody killed it.
    pub(super) fn refuse_ended(&self) -> anyhow::Result<()> {
        let controllers = self.controllers.iter().map(|controller| &controller.process);
        for process in self.sim.iter().chain(controllers) {
            if let Some(status) = process.exited() {
                bail!("{} ended ({status}): {}", process.name(), process.log_tail(LOG_LINES));
            }
        }
        Ok(())
    }

    fn spawn(&self, name: &str, arguments: &[OsString]) -> anyhow::Result<Process> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("POD_NAME", name).env("LOG_LEVEL", &self.setting.log_level);
        let log = self.folder.path().join(format!("{name}.log"));
        Ok(Process::spawn(name, &command, &log, Lifetime::Tied)?)
    }

    /// The log of a process, of all its starts.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    fn assignment(&self, vendor: &str) -> OsString {
        let mut text = OsString::from(format!("{vendor}=unix://"));
        text.push(self.socket(vendor));
        text
    }

    fn socket(&self, vendor: &str) -> PathBuf {
        self.folder.path().join(format!("{vendor}.sock"))
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}
