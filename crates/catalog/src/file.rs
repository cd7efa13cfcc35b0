//! Our own snapshot file, `.scc`: a whole catalog in a few hundred kilobytes, ready in milliseconds.
//!
//! The first line is JSON for people and `head -1`: what the file is, from where, of when, under which licence, and the
//! SHA-256 of everything but itself. The rest is one zlib stream of columns (see `body.rs`).
//! Prices are kept in the vendors' own currencies beside the rates of the day, so that other rates can be given when it
//! is read; those in a currency without a rate are kept too.
//!
//! **Architecture invariant:** a file is read whole or not at all. Nothing in it is believed before its checksum is
//! right, and no length in it makes us take more memory than the two constants below allow.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use jiff::Timestamp;

use crate::{Catalog, Error, Rates, look};

mod body;
mod flaw;
mod header;
mod pack;
mod unpack;

pub use flaw::Flaw;
use header::Header;

/// The longest file that is read: a hundred times the catalog of all vendors.
const MOST_BYTES: u64 = 32 << 20;
/// The longest body that is unpacked.
const MOST_RAW_BYTES: u64 = 64 << 20;

/// Writes `catalog` to `path`, in place of what is there, in one step: a reader sees the old file or the new one.
///
/// # Errors
/// [`Error::WriteFile`] when the folder cannot be written to; then the old file is as it was.
pub fn write(path: &Path, catalog: &Catalog) -> Result<(), Error> {
    let bytes = encode(catalog, Timestamp::now());
    replace(path, &bytes).map_err(|source| Error::WriteFile { path: path.to_owned(), source })
}

/// Reads the snapshot file at `path`. Rates that are given go before those of the file.
///
/// # Errors
/// [`Error`] when the file is missing, no snapshot file, of another version, cut off, or damaged in any byte.
pub fn read(path: &Path, rates: &Rates) -> Result<Catalog, Error> {
    let len = look::look(path)?.len;
    let flawed = |flaw| Error::Flawed { path: path.to_owned(), flaw };
    if len > MOST_BYTES {
        return Err(flawed(Flaw::TooLarge { bytes: len, most: MOST_BYTES }));
    }
    let unreadable = |source| Error::ReadFile { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).map_err(unreadable)?;
    decode(&bytes, &path.display().to_string(), rates).map_err(flawed)
}

/// Whether a file that begins like this is one of ours.
pub(crate) fn is_ours(start: &[u8]) -> bool {
    start.starts_with(header::START.as_bytes())
}

/// The file's bytes.
pub(crate) fn encode(catalog: &Catalog, created: Timestamp) -> Vec<u8> {
    let raw = pack::pack(catalog);
    let mut body = Vec::new();
    ZlibEncoder::new(raw.as_slice(), Compression::best())
        .read_to_end(&mut body)
        .expect("reading from memory does not fail");
    Header::new(catalog, created, raw.len(), body.len()).seal(&body)
}

/// The catalog that a file's bytes hold. `source` is what the report says it was read from.
pub(crate) fn decode(bytes: &[u8], source: &str, rates: &Rates) -> Result<Catalog, Flaw> {
    let (header, body) = Header::open(bytes)?;
    let raw = inflate(body, header.raw_bytes)?;
    let offers = unpack::unpack(&raw)?;
    Ok(offers.into_catalog(header.report(source, rates)?))
}

fn inflate(body: &[u8], expected: u64) -> Result<Vec<u8>, Flaw> {
    if expected > MOST_RAW_BYTES {
        return Err(Flaw::TooLarge { bytes: expected, most: MOST_RAW_BYTES });
    }
    let mut raw = Vec::new();
    let read = ZlibDecoder::new(body).take(expected + 1).read_to_end(&mut raw);
    match read {
        Ok(len) if len as u64 == expected => Ok(raw),
        _ => Err(Flaw::Content("its body does not unpack")),
    }
}

/// Writes beside `path`, and only when all is on the disk gives it that name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = part(path)?;
    let written = File::create_new(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // Best effort: the error that counts is the first one.
        let _ = fs::remove_file(&part);
        return written;
    }
    // The new name itself must survive a power cut, too.
    File::open(folder(path)).and_then(|folder| folder.sync_all())
}

/// A name beside `path` that no other writer uses, in this process or another.
fn part(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let own = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"))?;
    let mut name = OsString::from(".");
    name.push(own);
    name.push(format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(name))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
