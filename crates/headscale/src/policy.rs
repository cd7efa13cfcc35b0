//! Which tags a policy knows. Policies are JSON with comments and commas at the end, as people write them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

/// What of a policy concerns machines that join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    tags: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default, rename = "tagOwners")]
    tag_owners: Option<BTreeMap<String, IgnoredAny>>,
}

impl Policy {
    /// Reads a policy's text.
    ///
    /// # Errors
    /// What is wrong with it, when it is no policy.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let text = plain(text);
        if !text.trim_start().starts_with('{') {
            return Err("it is no JSON object".to_owned());
        }
        let body: Body = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(Self { tags: body.tag_owners.unwrap_or_default().into_keys().collect() })
    }

    /// Whether `tagOwners` names it. Headscale makes keys with other tags too, whose nodes then may reach nothing.
    #[must_use]
    pub fn knows(&self, tag: &str) -> bool {
        self.tags.contains(tag)
    }
}

/// What Headscale has against a tag whatever its policy says, in words.
#[must_use]
pub fn tag_problem(tag: &str) -> Option<String> {
    let name = tag.strip_prefix("tag:").unwrap_or_default();
    let strange = |c: char| c.is_uppercase() || c.is_whitespace() || c.is_control();
    (name.is_empty() || name.contains(strange))
        .then(|| format!("{tag:?} is not a tag: write tag: and a name in lowercase"))
}

/// JSON without comments and without commas before a closing bracket.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            '}' | ']' => {
                let kept = out.trim_end().len();
                if out[..kept].ends_with(',') {
                    out.truncate(kept - 1);
                }
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// Bytes of the string that `text` begins with, both quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_people_write_it() {
        let policy = Policy::parse(
            "{\n // workers\n \"tagOwners\": {\"tag:worker\": [\"a@\"], /* old */ \"tag:cp\": [],},\n \
             \"acls\": [{\"src\": [\"x\\\"//,]\"], \"dst\": [\"*:*\",],},],\n}\n// end",
        )
        .unwrap();
        assert!(policy.knows("tag:worker") && policy.knows("tag:cp"));
        assert!(!policy.knows("tag:x") && !policy.knows("worker"));
    }

    #[test]
    fn a_policy_without_owners_knows_no_tag_and_garbage_is_no_policy() {
        for text in ["", " \n", "{}", "{\"acls\": [], \"tagOwners\": null}"] {
            assert!(!Policy::parse(text).unwrap().knows("tag:worker"), "{text}");
        }
        for bad in ["{", "[]", "{\"tagOwners\": 3}", "\"", "/* {}"] {
            assert!(Policy::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tag_is_lowercase_and_begins_with_the_word() {
        assert_eq!([tag_problem("tag:k8s-node"), tag_problem("tag:k8s_1")], [None, None]);
        for bad in ["k8s-node", "tag:", "tag:UPPER", "tag:a b", "tag:a\n", ""] {
            assert!(tag_problem(bad).is_some(), "{bad}");
        }
    }
}
