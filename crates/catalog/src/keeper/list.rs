//! An answer's rows, kept small: texts once each, numbers as numbers, and nothing of what we do not read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::rows::{Cells, Table};

use super::client::Sink;
use super::elements::{Broken, Elements};

/// What a column holds, as the row type that reads it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Text(usize),
    Number(usize),
}

/// The columns of an answer and what they hold.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    columns: &'static [&'static str],
    slots: Vec<Slot>,
    texts: usize,
    numbers: usize,
}

impl Shape {
    /// The shape of a table, found by letting its row type `read` read nothing.
    pub(crate) fn of<T>(table: &Table, read: impl FnOnce(&Probe) -> T) -> Self {
        Self::new(table.columns, read)
    }

    pub(crate) fn new<T>(columns: &'static [&'static str], read: impl FnOnce(&Probe) -> T) -> Self {
        let probe = Probe(RefCell::new(vec![false; columns.len()]));
        read(&probe);
        let (mut slots, mut texts, mut numbers) = (Vec::new(), 0, 0);
        for is_number in probe.0.into_inner() {
            let (count, slot): (_, fn(usize) -> Slot) =
                if is_number { (&mut numbers, Slot::Number) } else { (&mut texts, Slot::Text) };
            slots.push(slot(*count));
            *count += 1;
        }
        Self { columns, slots, texts, numbers }
    }
}

/// A row without cells that notes which of them are asked for as numbers.
pub(crate) struct Probe(RefCell<Vec<bool>>);

impl Cells for Probe {
    fn text(&self, _: usize) -> &str {
        ""
    }

    fn number(&self, column: usize) -> Option<f64> {
        self.0.borrow_mut()[column] = true;
        None
    }
}

/// Rows of one answer.
pub(crate) struct List {
    shape: Shape,
    elements: Elements,
    read: Rows,
}

/// The rows that were read, and how many could not be.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    slots: Vec<Slot>,
    strides: (usize, usize),
    names: Names,
    texts: Vec<u32>,
    numbers: Vec<f64>,
    /// How many rows there are.
    pub(crate) count: usize,
    /// How many more there would be if they could be read.
    pub(crate) bad: usize,
    /// What is wrong with the first of those.
    pub(crate) first_bad: String,
    /// How many the Keeper says there are.
    pub(crate) total: Option<usize>,
}

impl List {
    pub(crate) fn new(shape: &Shape) -> Self {
        let read =
            Rows { slots: shape.slots.clone(), strides: (shape.texts, shape.numbers), ..Rows::default() };
        Self { shape: shape.clone(), elements: Elements::default(), read }
    }
}

impl Sink for List {
    type Whole = Rows;

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (shape, read) = (&self.shape, &mut self.read);
        self.elements.feed(bytes, |element| read.take(shape, element))
    }

    fn end(self) -> Result<Rows, Broken> {
        self.elements.end().map(|()| self.read)
    }
}

impl Rows {
    /// Each row, in the order of the answer.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.count).map(|index| Row { of: self, index })
    }

    /// A row that does not parse is counted and nothing else.
    fn take(&mut self, shape: &Shape, element: &[u8]) {
        let start = (self.texts.len(), self.numbers.len());
        let mut json = serde_json::Deserializer::from_slice(element);
        let row = json.deserialize_map(RowVisitor { columns: shape.columns });
        match row.map_err(|error| error.to_string()).and_then(|row| self.put(shape, &row)) {
            Ok(()) => self.count += 1,
            Err(why) => {
                self.texts.truncate(start.0);
                self.numbers.truncate(start.1);
                if self.bad == 0 {
                    self.first_bad = why;
                }
                self.bad += 1;
            }
        }
    }

    fn put(&mut self, shape: &Shape, row: &[Option<&RawValue>]) -> Result<(), String> {
        for ((slot, name), cell) in shape.slots.iter().zip(shape.columns).zip(row) {
            let cell = cell.ok_or_else(|| format!("there is no field {name}"))?.get();
            match slot {
                Slot::Text(_) => {
                    let text = text(cell).ok_or_else(|| format!("{name} is not text"))?;
                    self.texts.push(self.names.number(&text));
                }
                Slot::Number(_) => {
                    self.numbers.push(number(cell).ok_or_else(|| format!("{name} is not a number"))?);
                }
            }
        }
        Ok(())
    }
}

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r> {
    of: &'r Rows,
    index: usize,
}

impl Cells for Row<'_> {
    fn text(&self, column: usize) -> &str {
        match self.of.slots.get(column) {
            Some(Slot::Text(at)) => self.of.names.text(self.of.texts[self.index * self.of.strides.0 + at]),
            _ => "",
        }
    }

    fn number(&self, column: usize) -> Option<f64> {
        match self.of.slots.get(column) {
            Some(Slot::Number(at)) => Some(self.of.numbers[self.index * self.of.strides.1 + at]),
            _ => None,
        }
        .filter(|number| !number.is_nan())
    }
}

/// Each text once.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<str>, u32>,
    list: Vec<Box<str>>,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.list.len()).expect("an answer of 64 MiB has fewer texts than that");
        self.numbers.insert(text.into(), number);
        self.list.push(text.into());
        number
    }

    fn text(&self, number: u32) -> &str {
        &self.list[number as usize]
    }
}

struct RowVisitor {
    columns: &'static [&'static str],
}

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Vec<Option<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut row = vec![None; self.columns.len()];
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.columns.iter().position(|column| *column == key) {
                Some(column) => row[column] = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(row)
    }
}

/// Text of a cell: empty for null, and lists and objects as the JSON that they are, as the database has them.
fn text(cell: &str) -> Option<Cow<'_, str>> {
    match cell.as_bytes().first()? {
        b'"' => serde_json::from_str(cell).ok(),
        b'[' | b'{' => Some(cell.into()),
        b'n' => Some("".into()),
        _ => None,
    }
}

/// Number of a cell: not a number for null, and 0 or 1 for false or true, as the database has them.
fn number(cell: &str) -> Option<f64> {
    match cell.as_bytes().first()? {
        b'n' => Some(f64::NAN),
        b't' => Some(1.0),
        b'f' => Some(0.0),
        b'-' | b'0'..=b'9' => cell.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rows::{PriceRow, ServerRow};

    fn read(shape: &Shape, text: &str) -> Rows {
        let mut list = List::new(shape);
        for bytes in text.as_bytes().chunks(7) {
            list.feed(bytes).unwrap();
        }
        list.end().unwrap()
    }

    fn shape() -> Shape {
        Shape::new(&["id", "size", "more", "on"], |row| {
            (row.text(0).len(), row.number(1), row.text(2).len(), row.number(3))
        })
    }

    #[test]
    fn rows_hold_what_was_asked_for_in_any_order_of_fields() {
        let rows = read(
            &shape(),
            r#"[{"id":"a\u00e9","size":1.5,"more":["x"],"on":true,"else":{"id":"no"}},
                {"on":null,"more":null,"size":null,"id":"b"}]"#,
        );
        let cells: Vec<_> = rows
            .iter()
            .map(|row| (row.text(0).to_owned(), row.number(1), row.text(2).to_owned(), row.number(3)))
            .collect();
        assert_eq!(
            cells,
            [
                ("a\u{e9}".to_owned(), Some(1.5), "[\"x\"]".to_owned(), Some(1.0)),
                ("b".to_owned(), None, String::new(), None)
            ]
        );
        assert_eq!((rows.count, rows.bad), (2, 0));
    }

    #[test]
    fn a_row_that_does_not_parse_is_counted_and_spoils_no_other() {
        for (bad, why) in [
            (r#"{"id":"x","size":1,"more":null}"#, "there is no field on"),
            (r#"{"id":7,"size":1,"more":null,"on":true}"#, "id is not text"),
            (r#"{"id":"x","size":"1","more":null,"on":true}"#, "size is not a number"),
            (r#"{"id":"x","size":{},"more":null,"on":true}"#, "size is not a number"),
            ("7", "invalid type: integer `7`, expected an object at line 1 column 1"),
            (r#"{"id":"x","size":NaN,"more":null,"on":true}"#, "expected value at line 1 column 18"),
        ] {
            let good = r#"{"id":"a","size":1,"more":null,"on":false}"#;
            let rows = read(&shape(), &format!("[{good},{bad},{good}]"));
            assert_eq!((rows.count, rows.bad, rows.first_bad.as_str()), (2, 1, why), "{bad}");
            assert!(rows.iter().all(|row| row.text(0) == "a" && row.number(1) == Some(1.0)));
        }
    }

    #[test]
    fn a_row_type_says_by_itself_which_columns_are_numbers() {
        let numbers = |table: &Table, shape: &Shape| -> Vec<_> {
            let slots = table.columns.iter().zip(&shape.slots);
            slots.filter(|(_, slot)| matches!(slot, Slot::Number(_))).map(|(name, _)| *name).collect()
        };
        let price = Shape::of(&PriceRow::TABLE, |row| PriceRow::read(row).price);
        assert!(numbers(&PriceRow::TABLE, &price).contains(&"price"));
        assert!(!numbers(&PriceRow::TABLE, &price).contains(&"currency"));
        let server = Shape::of(&ServerRow::TABLE, |row| ServerRow::read(row).vcpus);
        assert!(
            ["vcpus", "memory_amount", "gpu_count"]
                .iter()
                .all(|name| numbers(&ServerRow::TABLE, &server).contains(name))
        );
    }
}
