//! Rows and columns, for a person or as CSV.

use std::borrow::Cow;

/// One column: how it is headed for a person, and how for a program.
#[derive(Clone, Debug)]
pub(super) struct Column {
    title: Cow<'static, str>,
    name: Cow<'static, str>,
    number: bool,
}

/// A column of words.
pub(super) fn words(title: &'static str, name: &'static str) -> Column {
    Column { title: title.into(), name: name.into(), number: false }
}

/// A column of numbers, which stand to the right.
pub(super) fn numbers(title: impl Into<Cow<'static, str>>, name: impl Into<Cow<'static, str>>) -> Column {
    Column { title: title.into(), name: name.into(), number: true }
}

/// A table: an empty cell is a value that there is not.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns.
    pub(super) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row has a cell for every column");
        self.rows.push(row);
    }

    /// Aligned, with a line of titles.
    pub(super) fn table(&self) -> String {
        let titles: Vec<&str> = self.columns.iter().map(|column| &*column.title).collect();
        let shown = |cell: &'_ String| if cell.is_empty() { "-".to_owned() } else { cell.clone() };
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([titles[at].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = self.line(titles.into_iter(), &widths);
        for row in &rows {
            out.push_str(&self.line(row.iter().map(String::as_str), &widths));
        }
        out
    }

    fn line<'c>(&self, cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
        let padded = cells.zip(widths).zip(&self.columns).map(|((cell, width), column)| {
            if column.number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    }

    /// As RFC 4180 has it, with a line of names, and lines that end as they do on Unix.
    pub(super) fn csv(&self) -> String {
        let names = self.columns.iter().map(|column| &*column.name);
        let mut out = csv_line(names);
        for row in &self.rows {
            out.push_str(&csv_line(row.iter().map(String::as_str)));
        }
        out
    }
}

fn csv_line<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

/// A cell, in quotes where it would otherwise be read as something else.
fn quoted(cell: &str) -> Cow<'_, str> {
    if cell.contains(['"', ',', '\n', '\r']) || cell != cell.trim() {
        return format!("\"{}\"", cell.replace('"', "\"\"")).into();
    }
    cell.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(vec![words("NAME", "name"), numbers("PRICE", "price")]);
        grid.push(vec!["a,b \"c\"".to_owned(), "10".to_owned()]);
        grid.push(vec!["é\nf".to_owned(), String::new()]);
        grid
    }

    #[test]
    fn a_table_has_numbers_to_the_right_and_says_what_is_not_there() {
        let mut grid = Grid::new(vec![words("NAME", "name"), numbers("PRICE", "price"), words("X", "x")]);
        grid.push(vec!["é".to_owned(), "10".to_owned(), String::new()]);
        assert_eq!(grid.table(), "NAME  PRICE  X\né        10  -\n");
    }

    #[test]
    fn a_cell_that_csv_would_misread_is_quoted() {
        assert_eq!(grid().csv(), "name,price\n\"a,b \"\"c\"\"\",10\n\"é\nf\",\n");
    }

    #[test]
    fn csv_without_rows_still_names_its_columns() {
        assert_eq!(Grid::new(vec![words("A", "a")]).csv(), "a\n");
    }
}
