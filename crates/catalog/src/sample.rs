//! The catalog that is part of the program.

use crate::assemble::Assembly;
use crate::rows::{Cells, PriceRow, RegionRow, ScoreRow, ServerRow, Table, ZoneRow};
use crate::{Catalog, Rate, Rates};

const TEXT: &str = include_str!("../data/sample.tsv");

/// The built-in sample: real prices and scores of all eight vendors, a hundred or so offerings, no file needed.
///
/// Its header says of which date, under which licence, and at which rates prices in EUR and CNY are read; these are
/// round figures fixed for the sample, and what `rates` says goes before them.
#[must_use]
pub fn sample(rates: &Rates) -> Catalog {
    read(TEXT, rates).expect("the sample is part of the program and a test reads it")
}

/// Reads the sample's format: tab-separated rows under `[table]` and a line of column names; `#` starts a comment.
///
/// The tables are those of the database, cell by cell, and one more, `rate`, of currency and USD.
fn read(text: &str, rates: &Rates) -> Result<Catalog, String> {
    let own: Rates = section(text, &RATE)?.map(|cells| rate(&cells)).collect::<Result<_, _>>()?;
    let rates = own.overridden_by(rates);
    let mut assembly = Assembly::new(&rates);
    section(text, &RegionRow::TABLE)?.for_each(|cells| assembly.region(&RegionRow::read(&cells)));
    section(text, &ZoneRow::TABLE)?.for_each(|cells| assembly.zone(&ZoneRow::read(&cells)));
    section(text, &ServerRow::TABLE)?.for_each(|cells| assembly.server(&ServerRow::read(&cells)));
    section(text, &ScoreRow::TABLE)?.for_each(|cells| assembly.score(&ScoreRow::read(&cells)));
    section(text, &PriceRow::TABLE)?.for_each(|cells| assembly.price(&PriceRow::read(&cells)));
    Ok(assembly.finish("built-in sample".to_owned()))
}

const RATE: Table = Table { name: "rate", columns: &["currency", "usd"] };

fn rate(cells: &TabSeparated<'_>) -> Result<Rate, String> {
    Rate::new(cells.text(0), cells.number(1).unwrap_or_default()).map_err(|bad| bad.to_string())
}

/// The rows of one table, which must be there with exactly its columns.
fn section<'t>(
    text: &'t str,
    table: &'static Table,
) -> Result<impl Iterator<Item = TabSeparated<'t>>, String> {
    let heading = format!("[{}]", table.name);
    let mut lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .skip_while(move |line| *line != heading);
    lines.next().ok_or_else(|| format!("there is no [{}]", table.name))?;
    let names = lines.next().unwrap_or_default();
    if !names.split('\t').eq(table.columns.iter().copied()) {
        return Err(format!("[{}] must have the columns {:?}", table.name, table.columns));
    }
    Ok(lines.take_while(|line| !line.starts_with('[')).map(|line| TabSeparated(line.split('\t').collect())))
}

struct TabSeparated<'t>(Vec<&'t str>);

impl Cells for TabSeparated<'_> {
    fn text(&self, column: usize) -> &str {
        self.0.get(column).copied().unwrap_or_default()
    }

    fn number(&self, column: usize) -> Option<f64> {
        self.text(column).parse().ok()
    }
}

#[cfg(test)]
mod tests;
