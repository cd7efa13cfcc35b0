//! `scarpenter provider`: the built-in providers, each as a process of its own.

use std::process::ExitCode;

use scarpenter_provider_local as local;
use scarpenter_provider_sim as sim;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    provider: Provider,
}

#[derive(Debug, clap::Subcommand)]
enum Provider {
    /// Play vendors with machines that are hollow nodes.
    Sim(Box<sim::Args>),
    /// Boot QEMU machines on this host.
    Local(Box<local::Args>),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    crate::logging::start();
    match args.provider {
        Provider::Sim(args) => sim::run(*args).await?,
        Provider::Local(args) => local::run(*args).await?,
    }
    Ok(ExitCode::SUCCESS)
}
