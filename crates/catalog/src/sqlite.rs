//! Reads a Spare Cores database: the SQLite file that sparecores-crawler writes and the Keeper serves from.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use sha2::{Digest, Sha256};

use crate::assemble::Assembly;
use crate::look::{self, Look};
use crate::report::Provenance;
use crate::rows::{Cells, PriceRow, RegionRow, ScoreRow, ServerRow, Table, ZoneRow};
use crate::{Catalog, Error, Rates};

const TABLES: [&Table; 5] =
    [&RegionRow::TABLE, &ZoneRow::TABLE, &ServerRow::TABLE, &ScoreRow::TABLE, &PriceRow::TABLE];

const MAGIC: &[u8] = b"SQLite format 3\0";
/// How long a writer is waited for.
const BUSY: Duration = Duration::from_millis(500);

/// Reads the catalog at `path`; nothing is written, and rows are read one at a time.
///
/// A price in a currency that `rates` does not know is no offering; the report counts it.
///
/// # Errors
/// [`Error`] when the file is missing, empty, cut off, no SQLite database, of another schema, or without types or prices.
pub fn open_sqlite(path: &Path, rates: &Rates) -> Result<Catalog, Error> {
    check_file(path)?;
    // Hashing needs nothing of the reading, and beside it costs no time.
    let (catalog, hash) = thread::scope(|scope| {
        let hash = scope.spawn(|| sha256(path));
        (read(path, rates), hash.join().expect("hashing does not panic"))
    });
    let mut catalog = catalog?;
    catalog.report.provenance.hash =
        hash.map_err(|source| Error::ReadFile { path: path.to_owned(), source })?;
    Ok(catalog)
}

fn read(path: &Path, rates: &Rates) -> Result<Catalog, Error> {
    let database = Database::open(path)?;
    for table in TABLES {
        database.check(table)?;
    }
    let mut assembly = Assembly::new(rates);
    database.each(&RegionRow::TABLE, |row| assembly.region(&RegionRow::read(row)))?;
    database.each(&ZoneRow::TABLE, |row| assembly.zone(&ZoneRow::read(row)))?;
    let servers = database.each(&ServerRow::TABLE, |row| assembly.server(&ServerRow::read(row)))?;
    database.each(&ScoreRow::TABLE, |row| assembly.score(&ScoreRow::read(row)))?;
    let prices = database.each(&PriceRow::TABLE, |row| assembly.price(&PriceRow::read(row)))?;
    for (count, table) in [(servers, &ServerRow::TABLE), (prices, &PriceRow::TABLE)] {
        if count == 0 {
            return Err(Error::NoRows { path: path.to_owned(), table: table.name });
        }
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    let provenance = Provenance::new(format!("SQLite database {name}"));
    let mut catalog = assembly.finish(provenance);
    catalog.report.source = path.display().to_string();
    Ok(catalog)
}

struct Database {
    path: PathBuf,
    connection: Connection,
}

impl Database {
    fn open(path: &Path) -> Result<Self, Error> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri(path), flags)
            .map_err(|source| failure(path, "sqlite_schema", source))?;
        let database = Self { path: path.to_owned(), connection };
        database.connection.busy_timeout(BUSY).map_err(|source| database.failure("sqlite_schema", source))?;
        // One transaction over all tables, so that a writer beside us cannot show half of its work.
        database
            .connection
            .execute_batch("BEGIN")
            .map_err(|source| database.failure("sqlite_schema", source))?;
        Ok(database)
    }

    /// Whether the table and all columns of it that we read are there.
    fn check(&self, table: &Table) -> Result<(), Error> {
        let failure = |source| self.failure(table.name, source);
        let mut statement =
            self.connection.prepare("SELECT name FROM pragma_table_info(?1)").map_err(failure)?;
        let names = statement.query_map([table.name], |row| row.get(0)).map_err(failure)?;
        let names: Vec<String> = names.collect::<Result<_, _>>().map_err(failure)?;
        let missing = |column| Error::Schema { path: self.path.clone(), table: table.name, column };
        if names.is_empty() {
            return Err(missing(""));
        }
        match table.columns.iter().find(|column| !names.iter().any(|name| name == *column)) {
            Some(column) => Err(missing(column)),
            None => Ok(()),
        }
    }

    /// Calls `take` with each row and returns how many there were.
    fn each(&self, table: &Table, mut take: impl FnMut(&Row<'_>)) -> Result<usize, Error> {
        let failure = |source| self.failure(table.name, source);
        let sql = format!("SELECT {} FROM {}", table.columns.join(", "), table.name);
        let mut statement = self.connection.prepare(&sql).map_err(failure)?;
        let mut rows = statement.query([]).map_err(failure)?;
        let mut count = 0;
        while let Some(row) = rows.next().map_err(failure)? {
            take(row);
            count += 1;
        }
        Ok(count)
    }

    fn failure(&self, table: &'static str, source: rusqlite::Error) -> Error {
        failure(&self.path, table, source)
    }
}

impl Cells for Row<'_> {
    fn text(&self, column: usize) -> &str {
        match self.get_ref(column) {
            Ok(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).unwrap_or_default(),
            _ => "",
        }
    }

    fn number(&self, column: usize) -> Option<f64> {
        match self.get_ref(column) {
            Ok(ValueRef::Real(number)) => Some(number),
            #[expect(clippy::cast_precision_loss, reason = "no number of a catalog is that large")]
            Ok(ValueRef::Integer(number)) => Some(number as f64),
            _ => None,
        }
    }
}

fn failure(path: &Path, table: &'static str, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged { path, source },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Locked { path, source },
        _ => Error::ReadTable { path, table, source },
    }
}

/// What the file is, judged from its size and header, since SQLite's own words ("disk I/O error") tell a person little.
fn check_file(path: &Path) -> Result<(), Error> {
    let Look { len, start } = look::look(path)?;
    if !is_sqlite(&start) {
        return Err(Error::NotSqlite { path: path.to_owned() });
    }
    match expected_size(&start) {
        Some(expected) if len < expected => {
            Err(Error::Truncated { path: path.to_owned(), bytes: len, expected })
        }
        _ => Ok(()),
    }
}

/// Whether a file that begins like this is a database, or was one before it was cut off.
pub(crate) fn is_sqlite(start: &[u8]) -> bool {
    !start.is_empty() && MAGIC.starts_with(&start[..start.len().min(MAGIC.len())])
}

/// Size of the database by its header; `None` where the header does not vouch for it.
fn expected_size(header: &[u8]) -> Option<u64> {
    if header.len() < 100 {
        return Some(512);
    }
    let word = |at: usize| header[at..at + 4].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let page_size = match word(14) & 0xffff {
        1 => 65536,
        size => size,
    };
    let changed = (word(24), word(92));
    (changed.0 == changed.1).then(|| word(28) * page_size)
}

/// The SHA-256 of a file; `None` while part of its rows stand in another.
fn sha256(path: &Path) -> io::Result<Option<String>> {
    if is_written(path) {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(Some(format!("{:x}", hash.finalize())))
}

/// Whether another program is writing to the database, or was when it died.
fn is_written(path: &Path) -> bool {
    ["-wal", "-journal"].into_iter().any(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        fs::metadata(name).is_ok_and(|metadata| metadata.len() > 0)
    })
}

/// A file that nothing is being written to is opened as immutable, which needs neither locks nor a folder to write in.
fn uri(path: &Path) -> String {
    let mut out = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out + if is_written(path) { "?mode=ro" } else { "?mode=ro&immutable=1" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
