//! Label set algebra: what fits.
//!
//! A [`Requirement`] is one line as it was written, a [`ValueSet`] what one label may be,
//! and [`Requirements`] what all labels of a machine may be.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

mod value_set;

pub mod parse;

pub use value_set::ValueSet;

/// Operators of node selector terms and of pool requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values, or no value at all.
    NotIn,
    /// Any value.
    Exists,
    /// No value.
    DoesNotExist,
    /// An integer greater than the value.
    Gt,
    /// An integer less than the value.
    Lt,
    /// An integer of at least the value.
    Gte,
    /// An integer of at most the value.
    Lte,
}

impl Operator {
    /// The operator that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == text)
    }

    const ALL: [Self; 8] =
        [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist, Self::Gt, Self::Lt, Self::Gte, Self::Lte];

    /// The Kubernetes word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }
}

/// One line of a selector, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    /// Label key, with old spellings renamed.
    pub key: String,
    /// Operator.
    pub operator: Operator,
    /// Values: at least one for In and NotIn, one integer for Gt, Lt, Gte, Lte, none else.
    pub values: Vec<String>,
    /// Pools only: so many distinct values must stay possible.
    pub min_values: Option<u32>,
}

impl Requirement {
    /// `key operator values` without `minValues`.
    #[must_use]
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Self {
        Self {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            min_values: None,
        }
    }

    /// Whether the line is well formed, whatever it selects.
    ///
    /// # Errors
    /// [`BadRequirement`], one sentence that names the line.
    pub fn validate(&self) -> Result<(), BadRequirement> {
        let bad = |what: &'static str| Err(BadRequirement { line: self.to_string(), what });
        match self.operator {
            Operator::In if self.values.is_empty() => bad("In needs at least one value"),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => match self.bound() {
                Some(_) => Ok(()),
                None if self.values.len() == 1 => bad("its value must be an integer of at least 0"),
                None => bad("it needs exactly one value, an integer of at least 0"),
            },
            _ => Ok(()),
        }
    }

    /// The integer of `Gt`, `Lt`, `Gte`, `Lte`.
    fn bound(&self) -> Option<i64> {
        match self.values.as_slice() {
            [value] => value.parse().ok().filter(|number| *number >= 0),
            _ => None,
        }
    }
}

/// A line of a selector that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requirement `{line}`: {what}")]
pub struct BadRequirement {
    line: String,
    what: &'static str,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator.as_str())?;
        if self.values.is_empty() { Ok(()) } else { write!(f, " [{}]", self.values.join(", ")) }
    }
}

/// What all labels of a machine may be; a key that is not named may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requirements {
    by_key: BTreeMap<String, ValueSet>,
}

impl Requirements {
    /// No requirement at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All `lines` together.
    ///
    /// # Errors
    /// [`BadRequirement`] for the first malformed line.
    pub fn from_list(lines: &[Requirement]) -> Result<Self, BadRequirement> {
        let mut out = Self::new();
        for line in lines {
            out.add(line)?;
        }
        Ok(out)
    }

    /// Exactly these labels, as a `nodeSelector` says it.
    #[must_use]
    pub fn from_labels(labels: &BTreeMap<String, String>) -> Self {
        let mut out = Self::new();
        for (key, value) in labels {
            out.require(key, ValueSet::one_of([value.as_str()]));
        }
        out
    }

    /// Adds one line.
    ///
    /// # Errors
    /// [`BadRequirement`] when it is malformed; nothing is added then.
    pub fn add(&mut self, line: &Requirement) -> Result<(), BadRequirement> {
        self.require(&line.key, ValueSet::of(line)?);
        Ok(())
    }

    /// Allows for `key` only what `set` allows, too.
    pub fn require(&mut self, key: &str, set: ValueSet) {
        match self.by_key.get_mut(key) {
            Some(own) => *own = own.intersect(&set),
            None if set.is_any() => {}
            None => drop(self.by_key.insert(key.to_owned(), set)),
        }
    }

    /// Both together.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (key, set) in &other.by_key {
            out.require(key, set.clone());
        }
        out
    }

    /// Forgets what was required of `key`.
    pub fn remove(&mut self, key: &str) -> Option<ValueSet> {
        self.by_key.remove(key)
    }

    /// What is required of `key`, if anything.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ValueSet> {
        self.by_key.get(key)
    }

    /// Keys and sets in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ValueSet)> {
        self.by_key.iter().map(|(key, set)| (key.as_str(), set))
    }

    /// Whether nothing is required.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether `key` may have this value, or be missing.
    #[must_use]
    pub fn allows(&self, key: &str, value: Option<&str>) -> bool {
        self.by_key.get(key).is_none_or(|set| set.allows(value))
    }

    /// Whether a node with exactly these labels matches: a missing label matches only `NotIn` and `DoesNotExist`.
    #[must_use]
    pub fn match_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.unmatched(labels).is_none()
    }

    /// First key whose label, or lack of one, is not allowed.
    #[must_use]
    pub fn unmatched(&self, labels: &BTreeMap<String, String>) -> Option<&str> {
        self.iter().find(|(key, set)| !set.allows(labels.get(*key).map(String::as_str))).map(|(key, _)| key)
    }

    /// First key of which nothing is allowed any more, not even that it is missing.
    #[must_use]
    pub fn conflict(&self) -> Option<&str> {
        self.iter().find(|(_, set)| set.is_empty()).map(|(key, _)| key)
    }

    /// First key on which the two exclude each other, without building what they have in common.
    #[must_use]
    pub fn conflict_with<'a>(&'a self, other: &Self) -> Option<&'a str> {
        self.iter()
            .find(|(key, set)| other.get(key).is_some_and(|theirs| set.intersect(theirs).is_empty()))
            .map(|(key, _)| key)
    }

    /// Lines that say the same; bounds are written as `Gte` and `Lte`.
    #[must_use]
    pub fn to_list(&self) -> Vec<Requirement> {
        self.iter().flat_map(|(key, set)| set.to_requirements(key)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
