//! What the commands that show something have in common: where the catalog is from, and how to print.

use serde::Serialize;

use crate::catalog_source::SourceArgs;
use crate::print::{json, print};

use super::grid::Grid;

/// Version of every JSON answer of `catalog`. Fields are only ever added to a version.
pub(super) const VERSION: u32 = 1;

#[derive(Debug, clap::Args)]
pub(super) struct View {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// How to print: for a person, or as JSON or CSV.
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Table,
    Json,
    Csv,
}

impl View {
    /// Prints the same three ways: `grid` is all of it as rows, `table` what a person reads.
    pub(super) fn print(
        &self,
        document: &impl Serialize,
        grid: &Grid,
        table: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        print(&match self.output {
            Output::Table => table(),
            Output::Json => json(document)?,
            Output::Csv => grid.csv(),
        })
    }
}
