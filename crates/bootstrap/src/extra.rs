//! Ignition of the class's own: read, checked as Ignition would, and merged into the machine's document.
//!
//! Merged means that a unit of the same name gets both sides' drop-ins and that everything else stands side by side;
//! where both sides set the same thing, that is an error which names it. Sources elsewhere
//! (`ignition.config.merge` and `.replace`) are refused: what they bring could be neither checked nor measured here,
//! and `replace` would throw away what makes the machine a node.

use ignition_config::{Config, v3_3};
use serde_json::Value;

mod check;
mod devices;
mod merge;
mod nodes;

/// What is wrong with a class's Ignition; none shows contents.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not JSON, or not of Ignition's shape.
    #[error("it is not an Ignition document: line {line}, column {column} {what}")]
    Shape {
        /// Where.
        line: usize,
        /// Where in it.
        column: usize,
        /// What kind of mistake.
        what: &'static str,
    },
    /// A version that is not read.
    #[error(
        "its ignition.version is {0:?}: 3.0.0 to 3.3.0 are read (YAML for Butane is translated by butane first)"
    )]
    Version(String),
    /// A key that this version of Ignition does not know.
    #[error("Ignition {version} knows no {key}")]
    UnknownKey {
        /// Its place.
        key: String,
        /// The document's version.
        version: String,
    },
    /// It leads elsewhere.
    #[error("{0} is not allowed: write what it refers to into this document")]
    Remote(&'static str),
    /// Ignition would refuse it.
    #[error("{place}: {why}")]
    Invalid {
        /// Where.
        place: String,
        /// Why.
        why: &'static str,
    },
    /// Both sides set the same thing.
    #[error("{theirs} is in conflict with {ours} of scarpenter's own document: take it out")]
    Conflict {
        /// What the class sets.
        theirs: String,
        /// What scarpenter sets.
        ours: String,
    },
}

/// Checks a class's Ignition by itself, before there is a claim.
///
/// # Errors
/// [`Error`], but never [`Error::Conflict`]: with what it is in conflict depends on the claim.
pub fn check(extra: &str) -> Result<(), Error> {
    parse(extra).map(|_| ())
}

/// `ours` with the class's Ignition in it.
pub(crate) fn merge(ours: v3_3::Config, extra: &str) -> Result<v3_3::Config, Error> {
    merge::merge(ours, parse(extra)?)
}

fn parse(extra: &str) -> Result<v3_3::Config, Error> {
    let mut value: Value = serde_json::from_str(extra).map_err(|error| shape(&error))?;
    let version = value.pointer("/ignition/version").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !["3.0.0", "3.1.0", "3.2.0", "3.3.0"].contains(&version.as_str()) {
        return Err(Error::Version(version));
    }
    let unknown = match Config::parse_str(extra) {
        Ok((_, warnings)) => warnings.into_iter().next(),
        Err(ignition_config::Error::Serialization(error)) => return Err(shape(&error)),
        Err(_) => return Err(Error::Version(version)),
    };
    if let Some(ignition_config::Warning::UnusedKey(key)) = unknown {
        let key = key.trim_start_matches("$.").to_owned();
        return Err(Error::UnknownKey { key, version });
    }
    // Each version only adds to the one before, so the newest reads them all.
    value["ignition"]["version"] = "3.3.0".into();
    let config: v3_3::Config = serde_json::from_value(value).map_err(|error| shape(&error))?;
    if let Some(elsewhere) = &config.ignition.config {
        if elsewhere.replace.as_ref().is_some_and(|replace| replace.source.is_some()) {
            return Err(Error::Remote("ignition.config.replace"));
        }
        if elsewhere.merge.iter().flatten().next().is_some() {
            return Err(Error::Remote("ignition.config.merge"));
        }
    }
    check::check(&config)?;
    Ok(config)
}

/// The parser's own words may quote the document, and a document may hold passwords.
fn shape(error: &serde_json::Error) -> Error {
    let what = match error.classify() {
        serde_json::error::Category::Data => "has a value of the wrong type, or lacks one",
        serde_json::error::Category::Eof => "is where it ends too early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "is not JSON",
    };
    Error::Shape { line: error.line(), column: error.column(), what }
}

fn invalid(place: impl Into<String>, why: &'static str) -> Error {
    Error::Invalid { place: place.into(), why }
}

/// An error when two of `names` are equal.
fn unique<'a>(list: &str, names: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(invalid(format!("{list}: {name}"), "is there twice")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
