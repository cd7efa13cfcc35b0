use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Prints NodePool, NodeClaim, ScarpenterNodeClass and SCNodePool as one YAML stream, for `kubectl apply -f -`.
pub(crate) fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    let text = scarpenter_api::crds::stream();
    std::io::stdout().lock().write_all(text.as_bytes()).context("print the definitions")?;
    Ok(ExitCode::SUCCESS)
}
