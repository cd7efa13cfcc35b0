//! What a path leads to, before anything is read of it, and the choice of who reads it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::{Catalog, Error, Rates, file, open_sqlite, sqlite};

/// Reads the catalog at `path`, a SQLite database or a snapshot file of ours, which its first bytes tell.
///
/// Rates that are given go before those that a snapshot file has.
///
/// # Errors
/// [`Error`], which names the file and says what to do.
pub fn open(path: &Path, rates: &Rates) -> Result<Catalog, Error> {
    let Look { start, .. } = look(path)?;
    if sqlite::is_sqlite(&start) {
        open_sqlite(path, rates)
    } else if file::is_ours(&start) {
        file::read(path, rates)
    } else {
        Err(Error::NotACatalog { path: path.to_owned() })
    }
}

/// A file's length and how it begins.
pub(crate) struct Look {
    pub(crate) len: u64,
    /// Its first hundred bytes, or all of a shorter one.
    pub(crate) start: Vec<u8>,
}

/// Looks at a file that is there, is one, may be read, and is not empty.
pub(crate) fn look(path: &Path) -> Result<Look, Error> {
    let unreadable = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => Error::Missing { path: path.to_owned() },
        _ => Error::ReadFile { path: path.to_owned(), source },
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    if metadata.len() == 0 {
        return Err(Error::EmptyFile { path: path.to_owned() });
    }
    let mut start = Vec::with_capacity(100);
    File::open(path).map_err(unreadable)?.take(100).read_to_end(&mut start).map_err(unreadable)?;
    Ok(Look { len: metadata.len(), start })
}
