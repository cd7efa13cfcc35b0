//! `nodepool`: NodePools of Karpenter's from SCNodePools, without a cluster.

use std::process::ExitCode;

use clap::Subcommand;

mod diff;
mod explain;
mod facts;
mod input;
mod render;
mod report;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the NodePool that comes of each SCNodePool of a file, for clusters where Karpenter runs.
    Render(Box<render::Args>),
}

/// Exit code 0 when all was rendered, 2 for an SCNodePool that means nothing, 3 when no type is left, 4 when the data does
/// not tell, 5 when `--diff` found a difference.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Render(args) => render::run(&args),
    }
}
