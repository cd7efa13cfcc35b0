//! The two processes of ours: the simulated vendors and the controller, both this very program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use scarpenter_core::name::Vendor;
use scarpenter_playground::{Lifetime, Process};
use scarpenter_provider::{Client, Endpoint};

/// The vendors that are played.
pub(super) const VENDORS: [&str; 8] =
    ["alicloud", "aws", "azure", "gcp", "hcloud", "ovh", "upcloud", "vultr"];
/// A machine that is there at once could not be watched.
const BOOT_DELAY: &str = "2s";
const LOG_LINES: usize = 12;

/// Starts the plugin of all vendors, each on a socket in the folder.
pub(super) fn start_sim(folder: &Path, lifetime: Lifetime) -> anyhow::Result<Process> {
    let mut arguments: Vec<OsString> =
        ["provider", "sim", "--boot-delay", BOOT_DELAY].map(OsString::from).to_vec();
    for vendor in VENDORS {
        arguments.extend(["--play".into(), assignment(vendor, folder)]);
    }
    start("sim", &arguments, folder, lifetime)
}

/// Starts the controller with these vendors, each on its socket in the folder.
pub(super) fn start_controller(
    folder: &Path,
    kubeconfig: &Path,
    vendors: &[&str],
    lifetime: Lifetime,
) -> anyhow::Result<Process> {
    let mut arguments: Vec<OsString> = vec!["controller".into(), "--kubeconfig".into(), kubeconfig.into()];
    // Nothing else of ours runs in this cluster, and a lease would stay behind.
    arguments.push("--no-leader-election".into());
    arguments.extend(
        ["--bind-address", "127.0.0.1", "--metrics-port", "0", "--health-port", "0"].map(OsString::from),
    );
    for vendor in vendors {
        arguments.extend(["--provider".into(), assignment(vendor, folder)]);
    }
    start("controller", &arguments, folder, lifetime)
}

pub(super) fn start(
    name: &str,
    arguments: &[OsString],
    folder: &Path,
    lifetime: Lifetime,
) -> anyhow::Result<Process> {
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let log = folder.join(format!("{name}.log"));
    Process::spawn(name, &command, &log, lifetime).with_context(|| format!("start the {name} process"))
}

fn assignment(vendor: &str, folder: &Path) -> OsString {
    let mut text = OsString::from(format!("{vendor}=unix://"));
    text.push(socket(vendor, folder));
    text
}

pub(super) fn socket(vendor: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{vendor}.sock"))
}

/// Clients of all vendors, once each answers.
pub(super) async fn connect(folder: &Path, sim: &Process) -> anyhow::Result<Vec<Client>> {
    connect_to(&VENDORS, folder, sim).await
}

/// Clients of these vendors, once each answers.
pub(super) async fn connect_to(
    vendors: &[&str],
    folder: &Path,
    plugin: &Process,
) -> anyhow::Result<Vec<Client>> {
    let deadline = Instant::now() + super::STEP_LIMIT;
    let mut clients = Vec::new();
    for vendor in vendors {
        let client = Client::connect(Vendor::from(*vendor), &Endpoint::Unix(socket(vendor, folder)))?;
        while let Err(error) = client.capabilities().await {
            refuse_ended(plugin)?;
            if Instant::now() > deadline {
                return Err(error).with_context(|| format!("the plugin of {vendor} does not answer"));
            }
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
        clients.push(client);
    }
    Ok(clients)
}

/// An ended process, as an error with its last words.
pub(super) fn refuse_ended(process: &Process) -> anyhow::Result<()> {
    match process.exited() {
        Some(status) => {
            bail!("the {} process ended ({status}), its last words were:\n{}", process.name(), words(process))
        }
        None => Ok(()),
    }
}

/// The end of its log.
pub(super) fn words(process: &Process) -> String {
    process.log_tail(LOG_LINES)
}
