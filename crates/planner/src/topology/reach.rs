use std::collections::{BTreeMap, BTreeSet};

/// Values of topology keys that a machine for a pod could have: they are domains even while nothing is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    values: BTreeMap<String, BTreeSet<String>>,
}

impl Reach {
    /// Takes in a value that some machine could have.
    pub(crate) fn add(&mut self, key: &str, value: &str) {
        let values = match self.values.get_mut(key) {
            Some(values) => values,
            None => self.values.entry(key.to_owned()).or_default(),
        };
        if !values.contains(value) {
            values.insert(value.to_owned());
        }
    }

    pub(super) fn contains(&self, key: &str, value: &str) -> bool {
        self.values.get(key).is_some_and(|values| values.contains(value))
    }

    /// How many values of a key are so.
    pub(super) fn count(&self, key: &str, is: impl Fn(&str) -> bool) -> usize {
        self.values.get(key).map_or(0, |values| values.iter().filter(|value| is(value)).count())
    }
}
