use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args) -> anyhow::Result<ExitCode> {
    crate::logging::start();
    anyhow::bail!("not built yet")
}
