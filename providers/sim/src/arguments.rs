//! Command line, the same for `scarpenter-provider-sim` and `scarpenter provider sim`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use scarpenter_core::name::Vendor;
use scarpenter_provider::endpoint::parse_assignment;
use scarpenter_provider::{Endpoint, TlsFiles};

use crate::cloud::{Cloud, Habits};
use crate::faults::{Faults, parse_span};
use crate::journal::Journal;
use crate::market::Market;
use crate::metal::{Hollow, Metal, Paper};
use crate::store::Store;

/// Play vendors with machines that are hollow nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Play a vendor at an address; may be repeated.
    #[arg(long = "play", value_name = "VENDOR=ENDPOINT", required = true, value_parser = parse_assignment)]
    pub plays: Vec<(Vendor, Endpoint)>,
    /// YAML file of rules that say what goes wrong; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// YAML file of what the vendors sell now and at what price, beside the catalog; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub market: Option<PathBuf>,
    /// File that keeps the machines, so that a restarted plugin still has them. It holds join credentials.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// File to which JSON lines are appended: creates and deletes as they are received, machines as they come and go.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Settle time that is declared.
    #[arg(long, default_value = "2s", value_parser = parse_span)]
    pub settle: Duration,
    /// How long a machine takes to boot.
    #[arg(long, default_value = "0s", value_parser = parse_span)]
    pub boot_delay: Duration,
    /// How long a deleted machine is still to be seen.
    #[arg(long, default_value = "300ms", value_parser = parse_span)]
    pub delete_takes: Duration,
    /// What machines are.
    #[arg(long, value_enum, default_value_t = MetalKind::Hollow)]
    pub metal: MetalKind,
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

/// What machines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetalKind {
    /// Hollow nodes, which join a cluster.
    Hollow,
    /// Nothing: they exist on paper.
    Paper,
}

impl Args {
    /// Addresses with their certificates.
    pub(crate) fn endpoints(&self) -> Vec<(Vendor, Endpoint)> {
        let tls = match (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            (Some(ca), Some(certificate), Some(key)) => {
                Some(TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() })
            }
            _ => None,
        };
        let plays = self.plays.iter().cloned();
        plays.map(|(vendor, endpoint)| (vendor, endpoint.with_tls(tls.clone()))).collect()
    }

    /// The cloud, with the machines of the state file switched on again.
    pub(crate) fn cloud(&self) -> anyhow::Result<Arc<Cloud>> {
        let faults = match &self.faults {
            Some(path) => Faults::from_file(path)?,
            None => Faults::none(),
        };
        let journal = match &self.log {
            Some(path) => Journal::append_to(path).with_context(|| format!("open {}", path.display()))?,
            None => Journal::none(),
        };
        let metal: Box<dyn Metal> = match self.metal {
            MetalKind::Hollow => Box::new(Hollow),
            MetalKind::Paper => Box::new(Paper),
        };
        let habits =
            Habits { settle: self.settle, boot_delay: self.boot_delay, delete_takes: self.delete_takes };
        let (store, sold) = match &self.state {
            Some(path) => {
                let (store, sold) = Store::open(path).with_context(|| format!("open {}", path.display()))?;
                (Some(store), sold)
            }
            None => (None, Vec::new()),
        };
        let market = match &self.market {
            Some(path) => Market::from_file(path)?,
            None => Market::none(),
        };
        let cloud = Cloud::new(habits, metal, faults, journal, market, store);
        cloud.restore(sold);
        Ok(cloud)
    }
}

#[derive(Debug, Parser)]
#[command(name = "scarpenter-provider-sim", version, about)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// The whole process: arguments, log lines on stderr, serving.
#[must_use]
pub fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    let args = Command::parse().args;
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG_LEVEL").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(crate::run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("scarpenter-provider-sim: {error:#}");
    ExitCode::FAILURE
}
