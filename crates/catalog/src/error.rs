//! Why a catalog cannot be read at all, each with what to do about it.

use std::io;
use std::path::PathBuf;

use crate::file::Flaw;

/// A catalog that cannot be read. Single rows that are no offering are no error: [`crate::Report`] counts them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is there.
    #[error(
        "there is no catalog at {}: give the path of a Spare Cores SQLite database or of a snapshot file (.scc), or none at all \
         for the built-in sample",
        path.display()
    )]
    Missing {
        /// Where we looked.
        path: PathBuf,
    },
    /// The operating system does not let us read it.
    #[error("cannot read the catalog {}: check that it is a file and that this user may read it", path.display())]
    ReadFile {
        /// Where it is.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// A folder, a socket, a device.
    #[error("the catalog {} is not a file: give the path of the SQLite database or the snapshot file itself", path.display())]
    NotAFile {
        /// Where it is.
        path: PathBuf,
    },
    /// A file of no bytes, as a download that failed leaves.
    #[error("the catalog {} is an empty file: fetch it again", path.display())]
    EmptyFile {
        /// Where it is.
        path: PathBuf,
    },
    /// Neither of the two kinds of file that hold a catalog.
    #[error(
        "the catalog {} is neither a SQLite database nor a snapshot file of scarpenter's (.scc): unpack it if it is \
         compressed, else fetch it again",
        path.display()
    )]
    NotACatalog {
        /// Where it is.
        path: PathBuf,
    },
    /// A snapshot file of ours that cannot be read.
    #[error("the catalog {} {flaw}", path.display())]
    Flawed {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        flaw: Flaw,
    },
    /// The operating system does not let us write it.
    #[error(
        "cannot write the catalog {}: check that its folder is there, has room, and that this user may write to it",
        path.display()
    )]
    WriteFile {
        /// Where it should be.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// Something else than SQLite, such as a compressed database or a web page.
    #[error("the catalog {} is not a SQLite database: unpack it if it is compressed, else fetch it again", path.display())]
    NotSqlite {
        /// Where it is.
        path: PathBuf,
    },
    /// Shorter than its own header says.
    #[error("the catalog {} is cut off after {bytes} of {expected} bytes: fetch it again", path.display())]
    Truncated {
        /// Where it is.
        path: PathBuf,
        /// How long it is.
        bytes: u64,
        /// How long its header says it is.
        expected: u64,
    },
    /// SQLite finds it broken.
    #[error("the catalog {} is damaged: fetch it again", path.display())]
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// Another database, or another version of this one.
    #[error(
        "the catalog {} has no {}: it must have the tables of sparecores-crawler 0.8, so take another file or another \
         version of it",
        path.display(),
        if column.is_empty() { format!("table {table}") } else { format!("column {column} in table {table}") }
    )]
    Schema {
        /// Where it is.
        path: PathBuf,
        /// The table that is missing, or lacks the column.
        table: &'static str,
        /// The column that is missing, empty when it is the table.
        column: &'static str,
    },
    /// The right tables with nothing in them.
    #[error("the catalog {} has no rows in table {table}: fill it, or fetch it again", path.display())]
    NoRows {
        /// Where it is.
        path: PathBuf,
        /// The table that is empty.
        table: &'static str,
    },
    /// Another program writes to it and lets nobody else in.
    #[error(
        "the catalog {} is locked by another program: wait until that has finished writing, or give a copy of the file",
        path.display()
    )]
    Locked {
        /// Where it is.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// A Keeper does not give it.
    #[error(transparent)]
    Keeper(#[from] crate::keeper::Error),
    /// SQLite cannot read it for another reason.
    #[error("cannot read table {table} of the catalog {}", path.display())]
    ReadTable {
        /// Where it is.
        path: PathBuf,
        /// What was being read.
        table: &'static str,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
}
