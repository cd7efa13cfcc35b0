//! `scarpenter sweep`: one pass, printed.

use std::process::ExitCode;
use std::time::Duration;

use scarpenter_controller::{Settings, Swept};

use crate::controller::ClusterArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only say what would be deleted.
    #[arg(long)]
    dry_run: bool,
    /// Machines younger than this many seconds are kept.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    grace: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.cluster.config().await?;
    let settings = Settings { sweep_grace: Duration::from_secs(args.grace), ..args.cluster.settings()? };
    let passes = scarpenter_controller::sweep(config, settings, args.dry_run).await?;
    let mut failed = false;
    for swept in &passes {
        failed |= print(swept, args.dry_run);
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints one vendor's pass; whether something went wrong.
fn print(swept: &Swept, dry_run: bool) -> bool {
    let vendor = &swept.vendor;
    if let Some(error) = &swept.error {
        println!("{vendor}: not swept: {error}");
        return true;
    }
    println!("{vendor}: {} machines, {} without a claim", swept.machines, swept.deleted.len());
    let mut failed = false;
    for (machine, claim, why, outcome) in &swept.deleted {
        let done = match outcome {
            Ok(()) if dry_run => "would be deleted".to_owned(),
            Ok(()) => "deletion asked for".to_owned(),
            Err(error) => {
                failed = true;
                format!("not deleted: {error}")
            }
        };
        println!("{vendor}: machine {machine} (claim {claim}): {why}: {done}");
    }
    for (machine, why) in &swept.kept {
        println!("{vendor}: machine {machine} kept: {why}");
    }
    if let Some(braked) = &swept.braked {
        println!("{vendor}: {braked}");
        failed = true;
    }
    failed
}
