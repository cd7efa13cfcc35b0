//! The last good catalog, on disk, guarded against bad refreshes.
//!
//! A folder holds `catalog.scc`, the last good catalog, and `shrunken.json`, what has been seen of a shrunken one that is
//! not believed yet; both are replaced by renaming, under a lock that other processes wait for.
//!
//! # Guarantees
//! - A good catalog is never replaced by a failed, empty, older or shrunken one; [`decide`] says when a shrink is real.
//! - Whoever reads the folder sees the old catalog or the new one, whenever a writer dies.
//! - A file that is damaged is moved aside and told of; the folder works on.

mod folder;
mod guard;
mod refusal;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::{Catalog, Error, Rates};

use folder::{Folder, Stamp};

pub use guard::{Decision, Facts, Pending, decide};
pub use refusal::{Kept, Loss, Refusal};

/// Keeps the last good catalog, in a folder or in this process alone.
#[derive(Debug)]
pub struct Store {
    folder: Option<Folder>,
    rates: Rates,
    current: Option<Catalog>,
    pending: Option<Pending>,
    stamp: Option<Stamp>,
    moved_aside: Option<String>,
}

/// What became of a new catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is the current one now.
    Taken,
    /// The kept one stays, and why.
    Refused(Refusal),
}

/// The folder cannot be used. What the store holds in this process goes on being good.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system does not let us.
    #[error("cannot {doing} {}: check that this user may write there and that the disk is not full", path.display())]
    File {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: std::io::Error,
    },
    /// The kept catalog cannot be read, or a new one not be written.
    #[error("cannot {doing} the kept catalog {}", path.display())]
    Catalog {
        /// What we were doing.
        doing: &'static str,
        /// Where it is.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<Error>,
    },
}

/// Whether a folder holds a catalog, good or not.
#[must_use]
pub fn holds_one(folder: &Path) -> bool {
    Folder::holds_one(folder)
}

impl Store {
    /// Opens a folder, and makes it if it is not there. Prices that are kept in another currency are read at `rates`.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be made, read or written. A damaged file is no error:
    /// see [`Store::moved_aside`].
    pub fn open(folder: &Path, rates: Rates) -> Result<Self, StoreError> {
        let folder = Folder::open(folder)?;
        let _lock = folder.lock()?;
        folder.sweep();
        let mut out = Self { folder: None, ..Self::in_memory(rates) };
        out.load(&folder)?;
        out.folder = Some(folder);
        Ok(out)
    }

    /// A store without a folder: guarded all the same, and forgotten with the process.
    #[must_use]
    pub fn in_memory(rates: Rates) -> Self {
        Self { folder: None, rates, current: None, pending: None, stamp: None, moved_aside: None }
    }

    /// The last good catalog.
    #[must_use]
    pub fn current(&self) -> Option<Catalog> {
        self.current.clone()
    }

    /// What was damaged when it was read last, and where it is now.
    #[must_use]
    pub fn moved_aside(&self) -> Option<&str> {
        self.moved_aside.as_deref()
    }

    /// Whether another process has put a catalog into the folder since it was read.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let stamp = self.folder.as_ref().and_then(Folder::stamp);
        stamp.is_some() && stamp != self.stamp
    }

    /// Takes what another process has put into the folder.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be read.
    pub fn reload(&mut self) -> Result<(), StoreError> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let _lock = folder.lock()?;
        self.load(&folder)
    }

    /// Takes a new catalog in place of the kept one, unless it is a worse one.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be read or written. A catalog that was good and could only not be written
    /// is [`Store::current`] all the same, in this process.
    pub fn offer(&mut self, new: Catalog, now: Timestamp) -> Result<Verdict, StoreError> {
        self.settle(new, |kept, pending, new| decide(kept, pending, new, now))
    }

    /// Takes a new catalog in place of the kept one though it is older or smaller, since a person says so; an empty one
    /// is refused.
    ///
    /// # Errors
    /// As [`Store::offer`].
    pub fn accept(&mut self, new: Catalog) -> Result<Verdict, StoreError> {
        self.settle(new, |kept, pending, new| match new.total() {
            0 => decide(kept, pending, new, Timestamp::UNIX_EPOCH),
            _ => Decision::Take,
        })
    }

    /// Decides under the lock, on what the folder holds now: another process may have put a newer one there.
    fn settle(
        &mut self,
        new: Catalog,
        decide: impl FnOnce(Option<&Facts>, Option<&Pending>, &Facts) -> Decision,
    ) -> Result<Verdict, StoreError> {
        let folder = self.folder.clone();
        let _lock = folder.as_ref().map(Folder::lock).transpose()?;
        if let Some(folder) = &folder {
            self.load(folder)?;
        }
        let kept = self.current.as_ref().map(Facts::of);
        match decide(kept.as_ref(), self.pending.as_ref(), &Facts::of(&new)) {
            Decision::Take => {
                let written = folder.as_ref().map_or(Ok(None), |folder| folder.replace(&new));
                (self.current, self.pending) = (Some(new), None);
                self.stamp = written?;
                self.remember(folder.as_ref())?;
                Ok(Verdict::Taken)
            }
            Decision::Keep(refusal, pending) => {
                if self.pending != pending {
                    self.pending = pending;
                    self.remember(folder.as_ref())?;
                }
                Ok(Verdict::Refused(refusal))
            }
        }
    }

    /// Reads what has changed in the folder. What was read before stays when it cannot be read any more.
    fn load(&mut self, folder: &Folder) -> Result<(), StoreError> {
        let stamp = folder.stamp();
        self.pending = folder.pending();
        self.moved_aside = None;
        if stamp.is_none() || stamp == self.stamp {
            return Ok(());
        }
        // Whatever comes of it, the same file is not read again.
        self.stamp = stamp;
        match folder.read(&self.rates)? {
            Ok(catalog) => self.current = Some(catalog),
            Err(moved) => self.moved_aside = Some(moved),
        }
        Ok(())
    }

    fn remember(&self, folder: Option<&Folder>) -> Result<(), StoreError> {
        folder.map_or(Ok(()), |folder| folder.remember(self.pending.as_ref()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
