//! The finished document: a small outer config around the packed inner one.

use std::fmt;
use std::io::Write;

use flate2::{Compression, GzBuilder};
use ignition_config::v3_3;
use scarpenter_core::name::sha256_hex;
use serde::Serialize;
use serde_json::Value;

use crate::data_url;

/// An Ignition document as a vendor gets it. It holds the bootstrap token: its `Debug` shows only size and hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
    inner: String,
    sha256: String,
}

/// The document is larger than the vendor takes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Ignition document is {size} bytes, {over} more than the {limit} that the vendor takes: shorten the CA bundle, the labels or the extra Ignition"
)]
pub struct Error {
    /// Size of the document.
    pub size: usize,
    /// Bytes too many.
    pub over: usize,
    /// The vendor's limit.
    pub limit: usize,
}

/// Checks a document against a vendor's limit, before anything is bought.
///
/// # Errors
/// [`Error`] when it is larger.
pub fn check_size(bytes: &[u8], limit: usize) -> Result<(), Error> {
    let size = bytes.len();
    match size.checked_sub(limit) {
        None | Some(0) => Ok(()),
        Some(over) => Err(Error { size, over, limit }),
    }
}

impl Document {
    /// Packs `config`. Vendors differ in whether Ignition reads gzip there, so one form serves all: the outer
    /// document is plain and replaces itself with the packed one, unless that would be longer.
    pub(crate) fn pack(config: &v3_3::Config) -> Self {
        let inner = compact(config);
        let outer = compact(&around(inner.as_bytes()));
        let bytes = if outer.len() < inner.len() { outer.into_bytes() } else { inner.clone().into_bytes() };
        let sha256 = sha256_hex(&bytes);
        Self { bytes, inner, sha256 }
    }

    /// What the vendor gets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Lower-case hex of SHA-256 over [`bytes`](Self::bytes).
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The inner document, JSON, to be read by people; it holds the token.
    #[must_use]
    pub fn inner(&self) -> &str {
        &self.inner
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("size", &self.bytes.len()).field("sha256", &self.sha256).finish()
    }
}

fn around(inner: &[u8]) -> v3_3::Config {
    let resource = v3_3::Resource {
        source: Some(data_url::base64(&gzip(inner))),
        compression: Some("gzip".to_owned()),
        ..Default::default()
    };
    let mut outer = v3_3::Config::default();
    outer.ignition.config = Some(v3_3::IgnitionConfig { replace: Some(resource), merge: None });
    outer
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // Time and system of the packer are in the header: fixed, so that equal input gives equal bytes.
    let mut encoder = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("a Vec takes every write")
}

/// JSON without the nulls that the schema types print.
fn compact(config: &impl Serialize) -> String {
    let mut value = serde_json::to_value(config).expect("a document is plain data");
    strip_nulls(&mut value);
    value.to_string()
}

pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_how_much_is_too_much() {
        assert_eq!(check_size(&[0; 10], 10), Ok(()));
        let error = check_size(&[0; 17_000], 16_384).expect_err("too large");
        assert!(error.to_string().contains("17000 bytes, 616 more than the 16384"), "{error}");
    }

    #[test]
    fn a_document_that_packing_would_lengthen_is_sent_as_it_is() {
        let document = Document::pack(&v3_3::Config::default());
        assert_eq!(document.bytes(), br#"{"ignition":{"version":"3.3.0"}}"#);
    }
}
