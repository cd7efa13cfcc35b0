//! `scarpenter sweep`: one pass, printed.

use std::process::ExitCode;
use std::time::Duration;

use scarpenter_controller::{Settings, Swept};
use scarpenter_provider::Endpoint;

use crate::controller::{ClusterArgs, duration};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only say what would be deleted.
    #[arg(long)]
    dry_run: bool,
    /// Machines younger than this are kept.
    #[arg(long, default_value = "2m", value_parser = duration)]
    grace: Duration,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.cluster.config().await?;
    let settings = Settings { sweep_grace: args.grace, ..args.cluster.settings()? };
    let providers = settings.providers.clone();
    let passes = scarpenter_controller::sweep(config, settings, args.dry_run).await?;
    let mut failed = false;
    for swept in &passes {
        let provider = providers.iter().find(|(vendor, _)| vendor.as_str() == swept.vendor);
        let (lines, wrong) = told(swept, provider.map(|(_, endpoint)| endpoint), args.dry_run);
        lines.iter().for_each(|line| println!("{line}"));
        failed |= wrong;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One vendor's pass in words, and whether something went wrong.
fn told(swept: &Swept, endpoint: Option<&Endpoint>, dry_run: bool) -> (Vec<String>, bool) {
    let vendor = &swept.vendor;
    if let Some(error) = &swept.error {
        let at = endpoint.map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        return (vec![format!("{vendor}{at}: not swept: {error}")], true);
    }
    let mut lines =
        vec![format!("{vendor}: {} machines, {} without a claim", swept.machines, swept.deleted.len())];
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
        lines.push(format!("{vendor}: machine {machine} (claim {claim}): {why}: {done}"));
    }
    for (machine, why) in &swept.kept {
        lines.push(format!("{vendor}: machine {machine} kept: {why}"));
    }
    if let Some(braked) = &swept.braked {
        lines.push(format!("{vendor}: {braked}"));
        failed = true;
    }
    (lines, failed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_does_not_answer_is_named_with_its_endpoint() {
        let swept = Swept {
            vendor: "hcloud".to_owned(),
            machines: 0,
            deleted: Vec::new(),
            kept: Vec::new(),
            braked: None,
            error: Some("ListMachines: unavailable".to_owned()),
        };
        let endpoint = "unix:///run/hcloud.sock".parse().unwrap();
        let words = "hcloud at unix:///run/hcloud.sock: not swept: ListMachines: unavailable";
        assert_eq!(told(&swept, Some(&endpoint), false), (vec![words.to_owned()], true));
    }
}
