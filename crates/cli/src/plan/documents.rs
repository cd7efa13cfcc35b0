//! Kubernetes objects of a file, one after another.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

mod unknown;

/// How the name of a file in a folder ends if it is read.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// A file, a folder of them, or the standard input.
#[derive(Clone, Debug)]
pub(crate) enum Source {
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
    /// Its objects, in a folder those of its files by name; the items of a list stand for themselves.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<Object>> {
        let mut all = Vec::new();
        for file in self.files().with_context(|| format!("read {self}"))? {
            let text = file.text().with_context(|| format!("read {file}"))?;
            all.extend(objects(&text).with_context(|| file.to_string())?);
        }
        if all.is_empty() {
            let kinds = if self.is_folder() { " in a *.yaml, *.yml or *.json file" } else { "" };
            anyhow::bail!("{self} holds no object{kinds}");
        }
        Ok(all)
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::File(path) if path.is_dir())
    }

    fn files(&self) -> std::io::Result<Vec<Self>> {
        let Self::File(path) = self else { return Ok(vec![self.clone()]) };
        if !path.is_dir() {
            return Ok(vec![self.clone()]);
        }
        let mut files = Vec::new();
        for entry in path.read_dir()? {
            let path = entry?.path();
            let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            if EXTENSIONS.contains(&extension) && path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        Ok(files.into_iter().map(Self::File).collect())
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
pub(crate) struct Object {
    api_version: String,
    pub(crate) kind: String,
    name: String,
    value: Value,
}

impl Object {
    /// The object as what its kind says it is; fields that this kind does not have are told of in `notes`.
    pub(crate) fn parse<T: DeserializeOwned + Serialize>(self, notes: &mut Vec<String>) -> anyhow::Result<T> {
        let parsed = serde_json::from_value(self.value.clone()).with_context(|| self.to_string())?;
        let unknown = unknown::fields(&self.value, &parsed).with_context(|| self.to_string())?;
        // The types know these two of themselves, and some do not write them.
        let unknown = unknown.iter().filter(|field| !["apiVersion", "kind"].contains(&field.as_str()));
        notes.extend(unknown.map(|field| format!("unknown field {field} in {self}: ignored")));
        Ok(parsed)
    }

    pub(crate) fn version_and_kind(&self) -> (&str, &str) {
        (&self.api_version, &self.kind)
    }

    /// An error unless it is of this version.
    pub(crate) fn expect_version(&self, wanted: &str) -> anyhow::Result<()> {
        let version = &self.api_version;
        anyhow::ensure!(version == wanted, "{self} is of {version}: {wanted} is wanted");
        Ok(())
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, if self.name.is_empty() { "without a name" } else { &self.name })
    }
}

/// Objects of a text of YAML or JSON documents.
pub(crate) fn objects(text: &str) -> anyhow::Result<Vec<Object>> {
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
