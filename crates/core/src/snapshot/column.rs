use std::collections::BTreeMap;

use crate::requirements::ValueSet;

use super::Bits;
use super::build::number;

/// A value that more than one in so many types have is kept as a set, too.
const MANY: usize = 32;

/// Columns by label key.
pub(super) type Columns = BTreeMap<String, Column>;

const NONE: u32 = u32::MAX;

/// One label of all types: a dictionary of its values, and which types have which.
#[derive(Debug)]
pub(super) struct Column {
    /// Values in text order.
    values: Vec<Value>,
    /// Types with the first value, then those with the second, and so on.
    types: Vec<u32>,
    /// For each type the number of its value.
    of: Vec<u32>,
}

#[derive(Debug)]
struct Value {
    text: Box<str>,
    number: Option<i64>,
    /// Its types as a set, kept where they are many.
    many: Option<Bits>,
    /// Where its types end in [`Column::types`].
    end: u32,
}

impl Column {
    pub(super) fn new(len: usize, mut cells: Vec<(String, u32)>) -> Self {
        cells.sort_unstable();
        let mut out =
            Self { values: Vec::new(), types: Vec::with_capacity(cells.len()), of: vec![NONE; len] };
        for (text, id) in cells {
            if out.values.last().is_none_or(|value| *value.text != *text) {
                let number = text.parse().ok();
                out.values.push(Value { text: text.into(), number, many: None, end: 0 });
            }
            out.types.push(id);
            out.of[id as usize] = number(out.values.len() - 1);
            if let Some(value) = out.values.last_mut() {
                value.end = number(out.types.len());
            }
        }
        out.values.shrink_to_fit();
        out.keep_large_sets(len);
        out
    }

    /// Types whose value, or lack of one, `set` allows.
    pub(super) fn select(&self, set: &ValueSet) -> Bits {
        let mut out = Bits::none(self.of.len());
        match set.listed() {
            Some(listed) => {
                for at in listed.iter().filter_map(|text| self.find(text)) {
                    self.insert(at, &mut out);
                }
            }
            None => {
                for at in (0..self.values.len()).filter(|at| self.values[*at].allowed(set)) {
                    self.insert(at, &mut out);
                }
            }
        }
        if set.allows(None) {
            for (id, _) in self.of.iter().enumerate().filter(|(_, at)| **at == NONE) {
                out.insert(id);
            }
        }
        out
    }

    fn find(&self, text: &str) -> Option<usize> {
        self.values.binary_search_by(|value| (*value.text).cmp(text)).ok()
    }

    fn keep_large_sets(&mut self, len: usize) {
        for at in 0..self.values.len() {
            if self.types_with(at).len() * MANY > len {
                let mut many = Bits::none(len);
                self.insert(at, &mut many);
                self.values[at].many = Some(many);
            }
        }
    }

    fn types_with(&self, at: usize) -> &[u32] {
        let start = at.checked_sub(1).map_or(0, |before| self.values[before].end);
        &self.types[start as usize..self.values[at].end as usize]
    }

    fn insert(&self, at: usize, out: &mut Bits) {
        if let Some(many) = &self.values[at].many {
            return out.or(many);
        }
        for id in self.types_with(at) {
            out.insert(*id as usize);
        }
    }

    pub(super) fn value(&self, id: usize) -> Option<&str> {
        self.values.get(self.of[id] as usize).map(|value| &*value.text)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| &*value.text)
    }
}

impl Value {
    fn allowed(&self, set: &ValueSet) -> bool {
        match (set.is_bounded(), self.number) {
            (true, None) => false,
            // The text of a stamped number is its plain decimal, so the number speaks for it.
            (true, Some(number)) => set.allows_integer(number),
            (false, _) => set.allows(Some(&self.text)),
        }
    }
}
