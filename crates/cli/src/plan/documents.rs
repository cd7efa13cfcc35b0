//! Kubernetes objects of a file, one after another.

use std::convert::Infallible;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A file, or the standard input.
#[derive(Clone, Debug)]
pub(super) enum Source {
    StandardInput,
    File(PathBuf),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::StandardInput } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("standard input"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Source {
    /// Its objects; the items of a list stand for themselves.
    pub(super) fn objects(&self) -> anyhow::Result<Vec<Object>> {
        let text = self.text().with_context(|| format!("read {self}"))?;
        let objects = objects(&text).with_context(|| self.to_string())?;
        if objects.is_empty() {
            anyhow::bail!("{self} holds no object");
        }
        Ok(objects)
    }

    fn text(&self) -> std::io::Result<String> {
        match self {
            Self::File(path) => std::fs::read_to_string(path),
            Self::StandardInput => {
                let mut text = String::new();
                std::io::stdin().lock().read_to_string(&mut text)?;
                Ok(text)
            }
        }
    }
}

/// One object, its kind known, the rest not looked at yet.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) api_version: String,
    pub(super) kind: String,
    name: String,
    value: Value,
}

impl Object {
    /// The object as what its kind says it is.
    pub(super) fn parse<T: DeserializeOwned>(self) -> anyhow::Result<T> {
        let what = self.to_string();
        serde_json::from_value(self.value).with_context(|| what)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, if self.name.is_empty() { "without a name" } else { &self.name })
    }
}

/// Objects of a text of YAML or JSON documents.
pub(super) fn objects(text: &str) -> anyhow::Result<Vec<Object>> {
    // The user's own file may be larger than what a stranger's may be by default.
    let budget = serde_saphyr::budget! {
        max_documents: 1_000_000,
        max_nodes: 50_000_000,
        max_events: 200_000_000,
    };
    let options = serde_saphyr::options! { budget: budget };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)?;
    let mut out = Vec::new();
    for document in documents {
        unfold(document, &mut out)?;
    }
    Ok(out)
}

fn unfold(document: Value, out: &mut Vec<Object>) -> anyhow::Result<()> {
    let text =
        |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    if kind.is_empty() || api_version.is_empty() {
        anyhow::bail!("a document has no apiVersion and kind, so it is no Kubernetes object");
    }
    match document {
        Value::Object(mut fields) if kind.ends_with("List") => {
            let items = fields.remove("items").unwrap_or_default();
            let items = items.as_array().cloned().unwrap_or_default();
            items.into_iter().try_for_each(|item| unfold(item, out))
        }
        value => {
            out.push(Object { api_version, kind, name, value });
            Ok(())
        }
    }
}
