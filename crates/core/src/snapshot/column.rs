use std::collections::{BTreeMap, BTreeSet};

use crate::requirements::ValueSet;

use super::Bits;
use super::build::number;

/// A value that more than one in so many items have is kept as a set, too.
const MANY: usize = 32;
/// After so many numbers, those so far are kept as a set.
const STEP: usize = 256;

/// Columns by label key.
pub(super) type Columns = BTreeMap<String, Column>;

const NONE: u32 = u32::MAX;

/// One label of all types, or of all places: a dictionary of its values, and which items have which.
#[derive(Debug)]
pub(super) struct Column {
    /// Values in text order.
    values: Vec<Value>,
    /// Items with the first value, then those with the second, and so on.
    items: Vec<u32>,
    /// For each item the number of its value.
    of: Vec<u32>,
    /// Items without a value.
    absent: Bits,
    numbers: Numbers,
}

#[derive(Debug)]
struct Value {
    text: Box<str>,
    /// Its items as a set, kept where they are many.
    many: Option<Bits>,
    /// Where its items end in [`Column::items`].
    end: u32,
}

impl Column {
    /// Of `len` items; `cells` are their values, in any order.
    pub(super) fn new(len: usize, mut cells: Vec<(String, u32)>) -> Self {
        cells.sort_unstable();
        let numbers = Numbers::new(len, &cells);
        let mut out = Self {
            values: Vec::new(),
            items: Vec::with_capacity(cells.len()),
            of: vec![NONE; len],
            absent: Bits::all(len),
            numbers,
        };
        for (text, id) in cells {
            if out.values.last().is_none_or(|value| *value.text != *text) {
                out.values.push(Value { text: text.into(), many: None, end: 0 });
            }
            out.items.push(id);
            out.of[id as usize] = number(out.values.len() - 1);
            out.absent.remove(id as usize);
            if let Some(value) = out.values.last_mut() {
                value.end = number(out.items.len());
            }
        }
        out.values.shrink_to_fit();
        out.keep_large_sets(len);
        out
    }

    /// Keeps in `items` those whose value, or lack of one, `set` allows.
    pub(super) fn narrow(&self, items: &mut Bits, set: &ValueSet) {
        if let Some(listed) = set.listed() {
            return items.and(&self.any_of(listed, set.allows(None)));
        }
        if set.is_bounded() {
            let mut within = self.numbers.within(set.bounds());
            if set.allows(None) {
                within.or(&self.absent);
            }
            items.and(&within);
        } else if !set.allows(None) {
            items.and_not(&self.absent);
        }
        for at in set.excluded().into_iter().flatten().filter_map(|text| self.find(text)) {
            self.remove(at, items);
        }
    }

    fn any_of(&self, listed: &BTreeSet<String>, or_absent: bool) -> Bits {
        let mut out = if or_absent { self.absent.clone() } else { Bits::none(self.of.len()) };
        for at in listed.iter().filter_map(|text| self.find(text)) {
            self.insert(at, &mut out);
        }
        out
    }

    fn find(&self, text: &str) -> Option<usize> {
        self.values.binary_search_by(|value| (*value.text).cmp(text)).ok()
    }

    fn keep_large_sets(&mut self, len: usize) {
        for at in 0..self.values.len() {
            if self.items_with(at).len() * MANY > len {
                let mut many = Bits::none(len);
                self.insert(at, &mut many);
                self.values[at].many = Some(many);
            }
        }
    }

    fn items_with(&self, at: usize) -> &[u32] {
        let start = at.checked_sub(1).map_or(0, |before| self.values[before].end);
        &self.items[start as usize..self.values[at].end as usize]
    }

    fn insert(&self, at: usize, out: &mut Bits) {
        match &self.values[at].many {
            Some(many) => out.or(many),
            None => self.items_with(at).iter().for_each(|id| out.insert(*id as usize)),
        }
    }

    fn remove(&self, at: usize, out: &mut Bits) {
        match &self.values[at].many {
            Some(many) => out.and_not(many),
            None => self.items_with(at).iter().for_each(|id| out.remove(*id as usize)),
        }
    }

    pub(super) fn value(&self, id: usize) -> Option<&str> {
        self.values.get(self.of[id] as usize).map(|value| &*value.text)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| &*value.text)
    }
}

/// Items by the integer that their value is, so that a bound is the difference of two sets.
#[derive(Debug)]
struct Numbers {
    /// In ascending order.
    numbers: Vec<i64>,
    /// The item of each.
    items: Vec<u32>,
    /// The items before number 0, [`STEP`], twice that, and so on.
    before: Vec<Bits>,
}

impl Numbers {
    fn new(len: usize, cells: &[(String, u32)]) -> Self {
        let mut ranked: Vec<(i64, u32)> =
            cells.iter().filter_map(|(text, id)| Some((text.parse().ok()?, *id))).collect();
        ranked.sort_unstable();
        let (mut so_far, mut before) = (Bits::none(len), Vec::new());
        for (rank, (_, id)) in ranked.iter().enumerate() {
            if rank.is_multiple_of(STEP) {
                before.push(so_far.clone());
            }
            so_far.insert(*id as usize);
        }
        before.push(so_far);
        let (numbers, items) = ranked.into_iter().unzip();
        Self { numbers, items, before }
    }

    fn within(&self, (least, most): (Option<i64>, Option<i64>)) -> Bits {
        let start = least.map_or(0, |least| self.numbers.partition_point(|number| *number < least));
        let end =
            most.map_or(self.numbers.len(), |most| self.numbers.partition_point(|number| *number <= most));
        let mut out = self.first(end.max(start));
        if start > 0 {
            out.and_not(&self.first(start));
        }
        out
    }

    /// The items of the first `count` numbers.
    fn first(&self, count: usize) -> Bits {
        if count == self.numbers.len() {
            return self.before[self.before.len() - 1].clone();
        }
        let step = count / STEP;
        let mut out = self.before[step].clone();
        for id in &self.items[step * STEP..count] {
            out.insert(*id as usize);
        }
        out
    }
}
