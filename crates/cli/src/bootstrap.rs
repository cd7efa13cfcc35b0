//! `bootstrap`: what a machine boots with, offline.

use std::process::ExitCode;

mod inputs;
mod render;
mod size;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the Ignition document of a claim, its secrets masked, or how large each vendor finds it.
    Render(render::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Render(args) => render::run(&args),
    }
}
