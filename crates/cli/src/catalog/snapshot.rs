//! `catalog snapshot`: the catalog as one compact file.

use std::path::PathBuf;

use crate::catalog_source::SourceArgs;
use crate::print::print;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// The file to write, by custom ending in .scc; one that is there is replaced.
    #[arg(short = 'o', long = "to", value_name = "FILE")]
    to: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let catalog = args.source.open()?;
    scarpenter_catalog::file::write(&args.to, &catalog)?;
    let bytes = std::fs::metadata(&args.to).map_or(0, |metadata| metadata.len());
    let offerings = catalog.snapshot.len();
    print(&format!("{}: {offerings} offerings in {} KiB\n", args.to.display(), bytes.div_ceil(1024)))
}
