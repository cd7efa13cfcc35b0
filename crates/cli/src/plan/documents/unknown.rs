//! Fields that a kind does not have: typing errors, mostly.
//!
//! They are found by writing the parsed object again and comparing, which costs a build far less time than a parser that
//! watches itself.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Paths such as `spec.containers[0].img` of all that `parsed`, which was read from `written`, does not know.
pub(super) fn fields<T: DeserializeOwned + Serialize>(
    written: &Value,
    parsed: &T,
) -> serde_json::Result<Vec<String>> {
    let mut missing = Vec::new();
    compare(written, &serde_json::to_value(parsed)?, &Path::default(), &mut missing);
    let unknown = missing.into_iter().filter(|path| !is_read::<T>(written, &path.pointer));
    Ok(unknown.map(|path| path.shown).collect())
}

/// A place in an object, for a person and as a JSON pointer.
#[derive(Default)]
struct Path {
    shown: String,
    pointer: String,
}

impl Path {
    fn field(&self, key: &str) -> Self {
        let dot = if self.shown.is_empty() { "" } else { "." };
        let escaped = key.replace('~', "~0").replace('/', "~1");
        Self { shown: format!("{}{dot}{key}", self.shown), pointer: format!("{}/{escaped}", self.pointer) }
    }

    fn item(&self, index: usize) -> Self {
        Self { shown: format!("{}[{index}]", self.shown), pointer: format!("{}/{index}", self.pointer) }
    }
}

/// Fields of `written` that `again` lacks.
fn compare(written: &Value, again: &Value, path: &Path, missing: &mut Vec<Path>) {
    match (written, again) {
        (Value::Object(written), Value::Object(again)) => {
            for (key, value) in written {
                let path = path.field(key);
                match again.get(key) {
                    Some(again) => compare(value, again, &path, missing),
                    None => missing.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(again)) if written.len() == again.len() => {
            for (index, (value, again)) in written.iter().zip(again).enumerate() {
                compare(value, again, &path.item(index), missing);
            }
        }
        _ => {}
    }
}

/// Whether the parser looks at a field that it does not write again, such as an empty list: then it trips over a value of
/// another type.
fn is_read<T: DeserializeOwned>(written: &Value, pointer: &str) -> bool {
    [json!(true), json!({"": null})].into_iter().any(|other_type| {
        let mut changed = written.clone();
        if let Some(field) = changed.pointer_mut(pointer) {
            *field = other_type;
        }
        serde_json::from_value::<T>(changed).is_err()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Outer {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        list: Vec<Inner>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        map: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing)]
        flag: bool,
    }

    #[derive(Serialize, Deserialize)]
    struct Inner {
        name: String,
    }

    fn unknown(written: Value) -> Vec<String> {
        let parsed: Outer = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(parsed.flag, written["flag"] == true);
        fields(&written, &parsed).unwrap()
    }

    #[test]
    fn what_is_not_known_is_named_where_it_stands() {
        assert_eq!(
            unknown(
                json!({"list": [{"name": "a"}, {"name": "b", "nmae": 1}], "mpa": {"x": {}}, "empty": [], "a/b~c": null})
            ),
            ["a/b~c", "empty", "list[1].nmae", "mpa"]
        );
    }

    #[test]
    fn what_is_known_but_not_written_again_is_not_named() {
        for written in [
            json!({"list": [], "map": {}, "text": null, "flag": false}),
            json!({"flag": true, "map": {"any": "key"}}),
        ] {
            assert_eq!(unknown(written.clone()), Vec::<String>::new(), "{written}");
        }
    }
}
