//! All that was measured, by what was measured: the id of a benchmark and its config.
//!
//! A few of them are labels too (see [`crate::benchmarks`]); nobody rounds these here.

use std::collections::HashMap;

use serde_json::{Number, Value};

/// Every score of every type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores(Vec<Measurement>);

/// One benchmark with one config, and what each type reached in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    id: Box<str>,
    config: Box<str>,
    /// By the type's place in [`scarpenter_core::snapshot::Snapshot::types`].
    scores: Vec<(u32, f64)>,
}

impl Scores {
    /// All measurements, by id and config.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Measurement> {
        self.0.iter()
    }

    /// The measurement of that id and config, JSON that is compared by what it means: an empty text is an empty object,
    /// the order of keys is free, and `8` is `8.0`.
    #[must_use]
    pub fn find(&self, id: &str, config: &str) -> Option<&Measurement> {
        let config = canonical(config)?;
        let at = self.0.binary_search_by(|own| (&*own.id, &*own.config).cmp(&(id, config.as_str()))).ok()?;
        Some(&self.0[at])
    }

    /// What a type reached, by the type's place in the snapshot, wherever it was measured.
    pub fn of(&self, type_index: usize) -> impl Iterator<Item = (&Measurement, f64)> {
        self.0.iter().filter_map(move |measured| Some((measured, measured.of(type_index)?)))
    }

    /// Puts measurements in order; `rank` says where each type of theirs stands in the snapshot.
    pub(crate) fn new(list: Vec<Measurement>, rank: impl Fn(u32) -> u32) -> Self {
        let mut list: Vec<Measurement> =
            list.into_iter().filter(|measured| !measured.scores.is_empty()).collect();
        for Measurement { scores, .. } in &mut list {
            scores.iter_mut().for_each(|(of, _)| *of = rank(*of));
            // Of two scores of one type the later counts, as it does among the labels.
            scores.reverse();
            scores.sort_by_key(|(of, _)| *of);
            scores.dedup_by_key(|(of, _)| *of);
            scores.shrink_to_fit();
        }
        list.sort_by(|a, b| (&a.id, &a.config).cmp(&(&b.id, &b.config)));
        Self(list)
    }
}

impl Measurement {
    /// The benchmark's id, such as `geekbench:score`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its config, a JSON object with its keys in order and no blanks.
    #[must_use]
    pub fn config(&self) -> &str {
        &self.config
    }

    /// What the type at that place of the snapshot reached.
    #[must_use]
    pub fn of(&self, type_index: usize) -> Option<f64> {
        let at = self.scores.binary_search_by(|(of, _)| (*of as usize).cmp(&type_index)).ok()?;
        Some(self.scores[at].1)
    }

    /// The types that were measured, by their place in the snapshot, and their scores.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (usize, f64)> {
        self.scores.iter().map(|(of, score)| (*of as usize, *score))
    }

    pub(crate) fn new(id: &str, config: &str, scores: Vec<(u32, f64)>) -> Self {
        Self { id: id.into(), config: config.into(), scores }
    }
}

/// Collects scores in any order.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    list: Vec<Measurement>,
    /// By id and by the config as it was written; `None` for what is no config.
    by_text: HashMap<String, HashMap<String, Option<usize>>>,
    by_meaning: HashMap<(String, String), usize>,
}

impl Collected {
    /// Adds the score of a type; false when its config is none.
    #[must_use]
    pub(crate) fn add(&mut self, instance_type: u32, id: &str, config: &str, score: f64) -> bool {
        let known = self.by_text.get(id).and_then(|configs| configs.get(config)).copied();
        let Some(at) = known.unwrap_or_else(|| self.number(id, config)) else { return false };
        self.list[at].scores.push((instance_type, score));
        true
    }

    pub(crate) fn into_list(self) -> Vec<Measurement> {
        self.list
    }

    fn number(&mut self, id: &str, text: &str) -> Option<usize> {
        let at = canonical(text).map(|config| {
            *self.by_meaning.entry((id.to_owned(), config)).or_insert_with_key(|(id, config)| {
                self.list.push(Measurement::new(id, config, Vec::new()));
                self.list.len() - 1
            })
        });
        self.by_text.entry(id.to_owned()).or_default().insert(text.to_owned(), at);
        at
    }
}

/// One text for all that mean the same config; `None` for what is no object.
fn canonical(config: &str) -> Option<String> {
    let value = match config.trim() {
        "" | "null" => Value::Object(serde_json::Map::new()),
        text => serde_json::from_str(text).ok()?,
    };
    value.is_object().then(|| plain(value).to_string())
}

fn plain(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(fields) => {
            // Sorted here, since another crate may have asked for maps that keep the order of the text.
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(fields.into_iter().map(|(key, value)| (key, plain(value))).collect())
        }
        Value::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
        other => other,
    }
}

/// A number that is whole however it was written.
fn whole(number: &Number) -> Option<Number> {
    let value = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e15)?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    let value = value as i64;
    Some(value.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn configs_that_mean_the_same_are_one_and_others_are_not() {
        let mut collected = Collected::default();
        for (of, config) in [
            r#"{"a": 8, "b": "x"}"#,
            r#"{"b":"x","a":8.0}"#,
            "{ \"a\":\n8, \"b\": \"x\" }",
            r#"{"a": "8", "b": "x"}"#,
            r#"{"a": 8.5, "b": "x"}"#,
            "{}",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(collected.add(u32::try_from(of).unwrap(), "id", config, 1.5), "{config}");
        }
        assert!(collected.add(9, "id", "", 2.5) && collected.add(9, "other", "null", 3.5));
        for config in ["{", "[]", "\"x\"", "7"] {
            assert!(!collected.add(0, "id", config, 1.0), "{config}");
        }
        let scores = Scores::new(collected.into_list(), |of| of);
        let told: Vec<_> = scores.iter().map(|own| (own.id(), own.config(), own.iter().count())).collect();
        assert_eq!(
            told,
            [
                ("id", r#"{"a":"8","b":"x"}"#, 1),
                ("id", r#"{"a":8,"b":"x"}"#, 3),
                ("id", r#"{"a":8.5,"b":"x"}"#, 1),
                ("id", "{}", 2),
                ("other", "{}", 1),
            ]
        );
        let found = scores.find("id", r#"{ "b": "x", "a": 8 }"#).unwrap();
        assert_eq!((found.of(1), found.of(3)), (Some(1.5), None));
        assert_eq!(scores.find("id", r#"{"a": 9}"#), None);
        assert_eq!(
            scores.of(9).map(|(own, score)| (own.id(), score)).collect::<Vec<_>>(),
            [("id", 2.5), ("other", 3.5)]
        );
    }

    #[test]
    fn of_two_scores_of_one_type_the_later_counts() {
        let mut collected = Collected::default();
        for score in [1.0, 3.0, 2.0] {
            assert!(collected.add(0, "id", "{}", score));
        }
        let scores = Scores::new(collected.into_list(), |of| of + 4);
        assert_eq!(scores.find("id", "").unwrap().iter().collect::<Vec<_>>(), [(4, 2.0)]);
    }
}
