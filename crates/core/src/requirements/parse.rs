//! Requirements as a person writes them on one line: `instance-cpu>=8,arch=arm64,vendor in (aws,gcp)`.
//!
//! | Written | Means |
//! |---|---|
//! | `key=value`, `key==value` | the value |
//! | `key!=value` | another value, or none |
//! | `key in (a,b)`, `key notin (a,b)` | one of them; none of them |
//! | `key>1`, `key>=1`, `key<1`, `key<=1` | an integer that is so |
//! | `key`, `!key` | any value; no value |
//!
//! All of them must hold. A key is a full label key or one of [`label::short_keys`].

use std::fmt::Write as _;

use crate::label;

use super::{Operator, Requirement};

/// Longest value, and longest name behind the `/` of a key.
const LONGEST: usize = 63;
const LONGEST_DOMAIN: usize = 253;
/// So much of what was found instead is repeated.
const SHOWN: usize = 20;

const A_KEY: &str = "a label key, such as arch, instance-cpu or kubernetes.io/arch";
const A_VALUE: &str = "a label value of letters, digits, `-`, `_` and `.`";
const AN_INTEGER: &str = "an integer of at least 0";
const AN_OPERATOR: &str = "`=`, `!=`, `>`, `>=`, `<`, `<=`, `in (…)`, `notin (…)`, a comma or the end";

/// A line of requirements that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("character {at} of `{text}`: {what}")]
pub struct BadExpression {
    text: String,
    at: usize,
    what: String,
}

impl BadExpression {
    /// Which character it is about, counted from 1.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }
}

/// Reads a line of requirements, with short keys turned into full ones. An empty line requires nothing.
///
/// # Errors
/// [`BadExpression`], one sentence that names the place, what may stand there and what stands there instead.
pub fn parse(text: &str) -> Result<Vec<Requirement>, BadExpression> {
    let mut reader = Reader { text, at: 0 };
    let mut out = Vec::new();
    reader.skip_blanks();
    if reader.rest().is_empty() {
        return Ok(out);
    }
    loop {
        out.push(reader.requirement()?);
        reader.skip_blanks();
        if reader.rest().is_empty() {
            return Ok(out);
        }
        reader.expect(',', AN_OPERATOR)?;
    }
}

/// Writes requirements so that [`parse`] reads the same; `minValues` has no place in it.
#[must_use]
pub fn write(lines: &[Requirement]) -> String {
    let mut out = String::new();
    for line in lines {
        if !out.is_empty() {
            out.push(',');
        }
        let key = label::short_key(&line.key);
        let values = line.values.join(",");
        let _ = match (line.operator, line.values.len()) {
            (Operator::In, 1) => write!(out, "{key}={values}"),
            (Operator::NotIn, 1) => write!(out, "{key}!={values}"),
            (Operator::In, _) => write!(out, "{key} in ({values})"),
            (Operator::NotIn, _) => write!(out, "{key} notin ({values})"),
            (Operator::Exists, _) => write!(out, "{key}"),
            (Operator::DoesNotExist, _) => write!(out, "!{key}"),
            (Operator::Gt, _) => write!(out, "{key}>{values}"),
            (Operator::Gte, _) => write!(out, "{key}>={values}"),
            (Operator::Lt, _) => write!(out, "{key}<{values}"),
            (Operator::Lte, _) => write!(out, "{key}<={values}"),
        };
    }
    out
}

struct Reader<'t> {
    text: &'t str,
    /// How many bytes are read.
    at: usize,
}

impl<'t> Reader<'t> {
    fn requirement(&mut self) -> Result<Requirement, BadExpression> {
        self.skip_blanks();
        if self.eat("!") {
            let key = self.key()?;
            return Ok(Requirement::new(&key, Operator::DoesNotExist, &[]));
        }
        let key = self.key()?;
        self.skip_blanks();
        let Some(operator) = self.operator() else {
            return Ok(Requirement::new(&key, Operator::Exists, &[]));
        };
        let number;
        let values = match operator {
            Written::One(_) => vec![self.value()?],
            Written::List(_) => self.list()?,
            Written::Bound(_) => {
                number = self.integer()?.to_string();
                vec![number.as_str()]
            }
        };
        let (Written::One(operator) | Written::List(operator) | Written::Bound(operator)) = operator;
        Ok(Requirement::new(&key, operator, &values))
    }

    fn operator(&mut self) -> Option<Written> {
        const SIGNS: [(&str, Written); 7] = [
            ("==", Written::One(Operator::In)),
            ("=", Written::One(Operator::In)),
            ("!=", Written::One(Operator::NotIn)),
            (">=", Written::Bound(Operator::Gte)),
            ("<=", Written::Bound(Operator::Lte)),
            (">", Written::Bound(Operator::Gt)),
            ("<", Written::Bound(Operator::Lt)),
        ];
        if let Some((_, written)) = SIGNS.into_iter().find(|(sign, _)| self.eat(sign)) {
            return Some(written);
        }
        let start = self.at;
        match self.word() {
            "in" => Some(Written::List(Operator::In)),
            "notin" => Some(Written::List(Operator::NotIn)),
            _ => {
                self.at = start;
                None
            }
        }
    }

    fn key(&mut self) -> Result<String, BadExpression> {
        self.skip_blanks();
        let start = self.at;
        let word = self.take(|c| is_plain(c) || c == '/');
        let known = label::full_key(word).filter(|key| is_key(key));
        known.ok_or_else(|| {
            self.at = start;
            if word.is_empty() || word.contains('/') {
                return self.expected(A_KEY);
            }
            let near = label::nearest_key(word);
            self.error(format!("there is no label key {word}, the nearest is {near}"))
        })
    }

    fn list(&mut self) -> Result<Vec<&'t str>, BadExpression> {
        self.skip_blanks();
        self.expect('(', "a list in brackets, such as (a,b)")?;
        let mut out = Vec::new();
        loop {
            out.push(self.value()?);
            self.skip_blanks();
            if self.eat(")") {
                return Ok(out);
            }
            self.expect(',', "a comma or `)`")?;
        }
    }

    fn value(&mut self) -> Result<&'t str, BadExpression> {
        self.skip_blanks();
        let start = self.at;
        let word = self.word();
        if is_value(word) {
            return Ok(word);
        }
        self.at = start;
        Err(self.expected(A_VALUE))
    }

    fn integer(&mut self) -> Result<i64, BadExpression> {
        self.skip_blanks();
        let start = self.at;
        let word = self.word();
        let number = word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten();
        number.ok_or_else(|| {
            self.at = start;
            self.expected(AN_INTEGER)
        })
    }

    /// Letters, digits and what else may stand in a value; possibly nothing.
    fn word(&mut self) -> &'t str {
        self.take(is_plain)
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn skip_blanks(&mut self) {
        self.take(char::is_whitespace);
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn expect(&mut self, sign: char, what: &str) -> Result<(), BadExpression> {
        if self.eat(sign.encode_utf8(&mut [0; 4])) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> BadExpression {
        let found: String = self.rest().split(char::is_whitespace).next().unwrap_or_default().into();
        let found = match found.chars().count() {
            0 => "the end".to_owned(),
            n if n > SHOWN => format!("`{}…`", found.chars().take(SHOWN).collect::<String>()),
            _ => format!("`{found}`"),
        };
        self.error(format!("expected {what}, not {found}"))
    }

    fn error(&self, what: String) -> BadExpression {
        BadExpression { text: self.text.to_owned(), at: self.text[..self.at].chars().count() + 1, what }
    }
}

/// An operator, and what is written behind it.
#[derive(Clone, Copy)]
enum Written {
    One(Operator),
    List(Operator),
    Bound(Operator),
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Whether Kubernetes takes it as a label value that says something.
fn is_value(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.len() <= LONGEST && text.chars().all(is_plain) && ends(bytes.first()) && ends(bytes.last())
}

/// Whether Kubernetes takes it as a label key with a domain.
fn is_key(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else { return false };
    let part = |part: &str| {
        let ends = |end: Option<char>| end.is_some_and(|c| c.is_ascii_alphanumeric());
        part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && ends(part.chars().next())
            && ends(part.chars().last())
    };
    domain.len() <= LONGEST_DOMAIN && domain.split('.').all(part) && is_value(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
