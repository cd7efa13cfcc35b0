//! The first line.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Flaw;
use crate::report::Provenance;
use crate::{Catalog, Rate, Rates, Reason, Report};

/// How every snapshot file begins, of whatever version.
pub(super) const START: &str = r#"{"format":"scarpenter catalog","version":"#;
const FORMAT: &str = "scarpenter catalog";
const VERSION: u64 = 1;
/// The longest first line that is looked at.
const MOST_LINE: usize = 64 << 10;
/// What stands before the checksum.
const BEFORE: &str = ",\"sha256\":\"";
/// What stands after the checksum, which is the line's last value.
const END: &str = "\"}\n";
const HASH_LEN: usize = 64;

/// All of the first line but the checksum, in its order.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u64,
    created: Timestamp,
    source: String,
    fetched: Option<Timestamp>,
    hash: Option<String>,
    notice: String,
    rates: BTreeMap<String, RateLine>,
    types: usize,
    offerings: usize,
    left_out: BTreeMap<Reason, usize>,
    body_bytes: u64,
    pub(super) raw_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct RateLine {
    /// As text, so that what is read is to the last bit what was written.
    usd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date: Option<Date>,
}

/// What is read before anything else, since another version may have other fields.
#[derive(Deserialize)]
struct Start {
    format: String,
    version: u64,
}

impl Header {
    pub(super) fn new(catalog: &Catalog, created: Timestamp, raw: usize, body: usize) -> Self {
        let Report { provenance, dropped, types, offerings, .. } = &catalog.report;
        let Provenance { source, fetched, hash, rates, notice } = provenance.clone();
        let line = |rate: &Rate| {
            (rate.currency().to_owned(), RateLine { usd: rate.usd().to_string(), date: rate.date() })
        };
        // Prices without a rate are in the body and are counted anew with the rates of the day.
        let left_out = dropped.iter().filter(|(reason, _)| **reason != Reason::NoRate);
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            created,
            source,
            fetched,
            hash,
            notice,
            rates: rates.iter().filter(|rate| rate.currency() != "USD").map(line).collect(),
            types: *types,
            offerings: *offerings,
            left_out: left_out.map(|(reason, count)| (*reason, *count)).collect(),
            body_bytes: body as u64,
            raw_bytes: raw as u64,
        }
    }

    /// The whole file: this line with its checksum, and the body.
    pub(super) fn seal(&self, body: &[u8]) -> Vec<u8> {
        let line = serde_json::to_string(self).expect("a header has nothing that JSON cannot say");
        seal_line(line.strip_suffix('}').expect("an object ends with a brace"), body)
    }

    /// The header and the body of a file whose checksum is right.
    pub(super) fn open(bytes: &[u8]) -> Result<(Self, &[u8]), Flaw> {
        if !bytes.starts_with(START.as_bytes()) {
            return Err(Flaw::NotOurs);
        }
        let line_len = bytes.iter().take(MOST_LINE).position(|byte| *byte == b'\n').ok_or(Flaw::Header)? + 1;
        let (line, body) = bytes.split_at(line_len);
        let start: Start = serde_json::from_slice(line).map_err(|_| Flaw::Header)?;
        if start.format != FORMAT {
            return Err(Flaw::NotOurs);
        }
        if start.version != VERSION {
            return Err(Flaw::OtherVersion { version: start.version, known: VERSION });
        }
        let header: Self = serde_json::from_slice(line).map_err(|_| Flaw::Header)?;
        let (bytes, expected) = (bytes.len() as u64, header.body_bytes.saturating_add(line_len as u64));
        if bytes < expected {
            return Err(Flaw::CutOff { bytes, expected });
        }
        if bytes > expected {
            return Err(Flaw::TooLong { bytes, expected });
        }
        check(line, body)?;
        Ok((header, body))
    }

    /// What is to be said of the file, before its offers are counted. Rates that are given go before its own.
    pub(super) fn report(self, source: &str, rates: &Rates) -> Result<Report, Flaw> {
        let rate = |(currency, line): (String, RateLine)| {
            let rate = Rate::new(&currency, line.usd.parse().ok()?).ok()?;
            Some(match line.date {
                Some(date) => rate.of(date),
                None => rate,
            })
        };
        let own: Option<Rates> = self.rates.into_iter().map(rate).collect();
        let own = own.ok_or(Flaw::Content("one of its rates is none"))?;
        Ok(Report {
            source: source.to_owned(),
            provenance: Provenance {
                source: self.source,
                fetched: self.fetched,
                hash: self.hash,
                rates: own.overridden_by(rates),
                notice: self.notice,
            },
            dropped: self.left_out,
            ..Report::default()
        })
    }
}

/// A file whose first line begins with `open`, an object that is not closed yet.
pub(super) fn seal_line(open: &str, body: &[u8]) -> Vec<u8> {
    let line = format!("{open}{BEFORE}");
    let hash = checksum(line.as_bytes(), body);
    [line.as_bytes(), hash.as_bytes(), END.as_bytes(), body].concat()
}

/// Every byte of the file counts: those before the checksum and the body are hashed, those after it are known.
fn check(line: &[u8], body: &[u8]) -> Result<(), Flaw> {
    let at = line.len().checked_sub(HASH_LEN + END.len()).ok_or(Flaw::Header)?;
    let (open, rest) = line.split_at(at);
    let (hash, end) = rest.split_at(HASH_LEN);
    if end != END.as_bytes() || !open.ends_with(BEFORE.as_bytes()) {
        return Err(Flaw::Header);
    }
    if hash != checksum(open, body).as_bytes() {
        return Err(Flaw::Checksum);
    }
    Ok(())
}

fn checksum(line: &[u8], body: &[u8]) -> String {
    let digest = Sha256::new().chain_update(line).chain_update(body).finalize();
    format!("{digest:x}")
}
