//! Command line, the same for `scarpenter-provider-local` and `scarpenter provider local`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use scarpenter_provider::{Endpoint, TlsFiles};

use crate::extensions::Extensions;
use crate::host::{Accel, Limits};
use crate::qemu::Programs;
use crate::rack::Settings;

/// Boot QEMU machines on this host.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    /// Something other than serving.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of serving.
    #[command(flatten)]
    pub serve: Option<ServeArgs>,
}

/// What else there is to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make the small Debian test image, once, and print where it is. Needs root and a few Debian packages.
    BuildImage(BuildArgs),
}

/// Arguments of making the image.
#[derive(Clone, Debug, clap::Args)]
pub struct BuildArgs {
    /// Also make the system extension that brings this kubelet, and print its folder and hash.
    #[arg(long, value_name = "FILE", requires = "kubernetes_version")]
    pub kubelet: Option<PathBuf>,
    /// Version of that kubelet, such as v1.37.2.
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<String>,
}

/// Arguments of serving.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// Where the controller finds this plugin: unix:///path or https://host:port.
    #[arg(long, value_name = "ENDPOINT", required = true)]
    pub listen: Endpoint,
    /// What machines boot: a Flatcar image for QEMU (qcow2 or raw), or the folder that build-image printed.
    #[arg(long, value_name = "PATH", required = true)]
    pub image: PathBuf,
    /// Folder of the machines: their disks, consoles and records. A restarted plugin finds its machines in it.
    #[arg(long, value_name = "FOLDER", required = true)]
    pub state: PathBuf,
    /// How machines run; auto is kvm where /dev/kvm can be opened, else tcg.
    #[arg(long, value_enum, default_value_t = Accel::Auto)]
    pub accel: Accel,
    /// Virtual CPUs of all machines together [default: those of this host].
    #[arg(long, value_name = "COUNT")]
    pub cpus: Option<u32>,
    /// Memory of all machines together, in MiB [default: what this host has free].
    #[arg(long, value_name = "MIB")]
    pub memory: Option<u64>,
    /// Folder of system extension images that is served to the machines over HTTP.
    #[arg(long, value_name = "FOLDER", requires = "extensions_at")]
    pub extensions: Option<PathBuf>,
    /// Loopback address at which it is served; machines find it at 10.0.2.2 and the same port.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "extensions")]
    pub extensions_at: Option<SocketAddr>,
    /// Settle time that is declared: how long a create in flight may hide a machine.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub settle: Duration,
    /// Remove all machines and end when asked to end, and when the process that started this one has ended.
    #[arg(long)]
    pub with_parent: bool,
    /// Program that runs a machine.
    #[arg(long, value_name = "PROGRAM", default_value = "qemu-system-x86_64")]
    pub qemu: PathBuf,
    /// Program that makes disks.
    #[arg(long, value_name = "PROGRAM", default_value = "qemu-img")]
    pub qemu_img: PathBuf,
    /// Certificate authority of the callers, for https.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Certificate, for https.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, for https.
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    pub tls_key: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("it must be above 0".to_owned()) } else { Ok(duration) }
}

impl ServeArgs {
    pub(crate) fn endpoint(&self) -> Endpoint {
        let tls = match (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            (Some(ca), Some(certificate), Some(key)) => {
                Some(TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() })
            }
            _ => None,
        };
        self.listen.clone().with_tls(tls)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            image: self.image.clone(),
            accel: self.accel,
            limits: Limits { cpus: self.cpus, memory_mib: self.memory },
            programs: Programs { qemu: self.qemu.clone(), qemu_img: self.qemu_img.clone() },
        }
    }

    pub(crate) fn extensions(&self) -> Option<Extensions> {
        let folder = self.extensions.clone()?;
        Some(Extensions { folder, at: self.extensions_at? })
    }
}

#[derive(Debug, Parser)]
#[command(name = "scarpenter-provider-local", version, about)]
struct CommandLine {
    #[command(flatten)]
    args: Args,
}

/// The whole process: arguments, log lines on stderr, serving.
#[must_use]
pub fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    let args = CommandLine::parse().args;
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG_LEVEL").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the async runtime");
    match runtime.and_then(|runtime| runtime.block_on(crate::run(args))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scarpenter-provider-local: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serving_needs_an_address_an_image_and_a_folder_and_building_needs_nothing() {
        let parse = |line: &str| CommandLine::try_parse_from(line.split_whitespace());
        let serve = parse("x --listen unix:///s --image i --state f --cpus 2").expect("all is there").args;
        assert!(serve.command.is_none() && serve.serve.is_some_and(|serve| serve.cpus == Some(2)));
        let build = parse("x build-image").expect("it needs nothing").args;
        assert!(matches!(build.command, Some(Command::BuildImage(_))));
        for line in [
            "x",
            "x --listen unix:///s",
            "x --listen unix:///s --image i --state f --extensions e",
            "x --listen unix:///s --image i --state f --settle 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
