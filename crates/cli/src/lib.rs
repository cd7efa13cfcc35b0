//! The `scarpenter` command: arguments and wiring, no logic.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bootstrap;
mod catalog;
mod controller;
mod crds;
mod demo;
mod explain;
mod nodepool;
mod plan;
mod provider;
mod sweep;

mod catalog_source;
mod logging;
mod print;

/// Gives each pending pod of a Kubernetes cluster the cheapest machine that matches it, from any of eight clouds, and destroys
/// the machine when it is empty. Begin with `scarpenter demo`, or with `scarpenter plan -f PODS.yaml`.
#[derive(Debug, Parser)]
#[command(name = "scarpenter", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch pending pods and give each the cheapest machine that matches it.
    Controller(Box<controller::Args>),
    /// Delete, once, every machine of this cluster that no claim owns.
    Sweep(sweep::Args),
    /// Say, offline, what would be bought for the pods of a file.
    Plan(plan::Args),
    /// Say why a pod of a cluster gets the machine it gets, or none.
    Explain(explain::Args),
    /// Fetch, search and show the catalog of what can be bought.
    Catalog(catalog::Args),
    /// Show what a machine boots with.
    Bootstrap(bootstrap::Args),
    /// Turn SCNodePools into NodePools of Karpenter's, offline.
    Nodepool(nodepool::Args),
    /// Print the custom resource definitions.
    Crds(crds::Args),
    /// Show the main job on a throw-away control plane with simulated machines.
    Demo(demo::Args),
    /// Serve one of the built-in providers.
    Provider(provider::Args),
}

/// Parses the arguments and runs the command.
///
/// Exit code 0 is success, 2 bad input, 3 a plan that leaves pods over, 1 anything else; `nodepool` has codes of its own.
#[must_use]
pub fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("start the async runtime")),
    };
    let outcome = runtime.block_on(run(arguments.command));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    outcome.unwrap_or_else(|error| fail(&error))
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Controller(args) => controller::run(*args).await,
        Command::Sweep(args) => sweep::run(args).await,
        Command::Plan(args) => plan::run(args),
        Command::Explain(args) => explain::run(args).await,
        Command::Catalog(args) => catalog::run(args).await,
        Command::Bootstrap(args) => bootstrap::run(args),
        Command::Nodepool(args) => nodepool::run(args),
        Command::Crds(args) => crds::run(&args),
        Command::Demo(args) => demo::run(args).await,
        Command::Provider(args) => provider::run(args).await,
    }
}

/// Bad input of the user: exit code 2.
#[derive(Debug)]
pub(crate) struct BadInput;

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bad input")
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let bad_input = error.downcast_ref::<BadInput>().is_some();
    eprintln!("scarpenter: {}", words(error));
    if bad_input { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The error and its causes, each said once: some errors have the words of their cause in their own.
fn words(error: &anyhow::Error) -> String {
    // A context is not found by type in the chain, only by what it says.
    let mark = BadInput.to_string();
    let causes = error.chain().map(ToString::to_string).filter(|words| *words != mark);
    let add = |said: String, cause: String| match said.contains(&cause) {
        true => said,
        false => format!("{said}: {cause}"),
    };
    causes.reduce(add).unwrap_or(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_said_once() {
        let error = anyhow::anyhow!("no such file").context("read a: no such file").context("load");
        assert_eq!(words(&error.context(BadInput)), "load: read a: no such file");
        assert_eq!(words(&anyhow::anyhow!("b").context("a")), "a: b");
    }
}
