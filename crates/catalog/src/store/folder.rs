//! The files of a store and how they are replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::StoreError;
use super::guard::Pending;
use crate::{Catalog, Error, Rates, file};

const CATALOG: &str = "catalog.scc";
const PENDING: &str = "shrunken.json";
const LOCK: &str = "lock";
/// End of the names of files that are being written, here and by [`file::write`].
const UNFINISHED: &str = ".part";
/// End of the name of a file that was damaged; an earlier one is overwritten.
const DAMAGED: &str = ".damaged";

#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

/// Tells one file from the one that replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    node: u64,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(path).map_err(failed("make the folder", path))?;
        Ok(Self(path.to_owned()))
    }

    /// Waits until no other process is in the folder; it is held until the answer is dropped, or its process dies.
    pub(super) fn lock(&self) -> Result<File, StoreError> {
        let path = self.0.join(LOCK);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(failed("make", &path))?;
        match file.lock() {
            // Where the file system has no locks, renaming alone keeps the files whole.
            Err(error) if error.kind() != ErrorKind::Unsupported => Err(failed("lock", &path)(error)),
            _ => Ok(file),
        }
    }

    /// Removes what writers that died have left. Under the lock nobody is writing.
    pub(super) fn sweep(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(UNFINISHED)) {
            // One that stays is overwritten by the next writer.
            let _ = fs::remove_file(entry.path());
        }
    }

    pub(super) fn holds_one(path: &Path) -> bool {
        path.join(CATALOG).exists()
    }

    /// What identifies the kept catalog; `None` when there is none.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = fs::metadata(self.0.join(CATALOG)).ok()?;
        Some(Stamp { bytes: metadata.len(), modified: metadata.modified().ok(), node: metadata.ino() })
    }

    /// Reads the kept catalog. One that is damaged is moved aside; the inner error tells of it.
    pub(super) fn read(&self, rates: &Rates) -> Result<Result<Catalog, String>, StoreError> {
        let path = self.0.join(CATALOG);
        match file::read(&path, rates) {
            Ok(catalog) => Ok(Ok(catalog)),
            Err(source @ (Error::ReadFile { .. } | Error::NotAFile { .. })) => {
                Err(StoreError::Catalog { doing: "read", path, source: Box::new(source) })
            }
            Err(damage) => Ok(Err(self.move_aside(CATALOG, &damage)?)),
        }
    }

    /// What has been seen of a shrunken catalog; one that cannot be read has not been seen.
    pub(super) fn pending(&self) -> Option<Pending> {
        serde_json::from_slice(&fs::read(self.0.join(PENDING)).ok()?).ok()
    }

    /// Puts a catalog in the place of the kept one.
    pub(super) fn replace(&self, catalog: &Catalog) -> Result<Option<Stamp>, StoreError> {
        let path = self.0.join(CATALOG);
        file::write(&path, catalog).map_err(|source| {
            let source = Box::new(source);
            StoreError::Catalog { doing: "replace", path, source }
        })?;
        Ok(self.stamp())
    }

    pub(super) fn remember(&self, pending: Option<&Pending>) -> Result<(), StoreError> {
        let path = self.0.join(PENDING);
        let Some(pending) = pending else {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", &path)(error)),
                _ => Ok(()),
            };
        };
        let text = serde_json::to_vec_pretty(pending).expect("what was seen is plain data");
        let unfinished = self.0.join(format!("{PENDING}{UNFINISHED}"));
        let written = File::create(&unfinished)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
        written.map_err(failed("write", &unfinished))?;
        fs::rename(&unfinished, &path).map_err(failed("replace", &path))
    }

    fn move_aside(&self, name: &str, damage: &Error) -> Result<String, StoreError> {
        let (path, aside) = (self.0.join(name), self.0.join(format!("{name}{DAMAGED}")));
        fs::rename(&path, &aside).map_err(failed("move aside", &path))?;
        Ok(format!("{damage}; it is now {}", aside.display()))
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { doing, path, source }
}
