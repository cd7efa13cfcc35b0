//! `catalog`: what can be bought, where, for how much, and how fast it is.
//!
//! Every command but `sync` and `snapshot` prints one answer three ways: a table for a person, JSON in version 1 of a
//! contract that the module of its command describes, and CSV. In JSON, times are RFC 3339 in UTC, whole prices are
//! integers in micro-USD an hour, and what is not known is null; in CSV it is an empty cell.

use std::process::ExitCode;

use clap::Subcommand;

mod benchmarks;
mod info;
mod regions;
mod search;
mod show;
mod snapshot;
mod sync;

mod grid;
mod progress;
mod view;
mod words;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch the catalog from a Keeper, and store it in place of the one before unless it is a worse one.
    Sync(sync::Args),
    /// Say where the catalog is from, how old it is, what it holds and what was left out.
    Info(info::Args),
    /// Find offerings by the labels that a pod may select, the cheapest or fastest first.
    Search(search::Args),
    /// Show all that is known of one type: where it is sold and for how much, what it is made of, how fast it is.
    Show(show::Args),
    /// List regions and zones as pods name them, and how much is sold there.
    Regions(regions::Args),
    /// List benchmarks, and how many types each has measured.
    Benchmarks(benchmarks::Args),
    /// Write the catalog into one compact file, which `--catalog` reads fast.
    Snapshot(snapshot::Args),
}

/// Exit code 0 is success, 2 bad input, 1 anything else; `sync` says with 1 that the stored catalog was kept.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Sync(args) => return sync::run(&args).await,
        Command::Info(args) => info::run(&args)?,
        Command::Search(args) => search::run(&args)?,
        Command::Show(args) => show::run(&args)?,
        Command::Regions(args) => regions::run(&args)?,
        Command::Benchmarks(args) => benchmarks::run(&args)?,
        Command::Snapshot(args) => snapshot::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
