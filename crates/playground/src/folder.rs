//! A temporary folder with an owner, and the removal of those whose owner was killed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "scarpenter-playground-";
const OWNER: &str = "owner";
const KEPT: &str = "kept";
/// A unix socket's path may have 107 bytes, and ours end in up to 40 of their own.
const LONGEST_PARENT: usize = 48;

/// A temporary folder that only this user may read; it goes when dropped, unless kept.
///
/// After a SIGKILL of its owner the next one that is made, by any process of the user, removes it.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    _owner: File,
}

impl Folder {
    /// Makes the folder, and removes those of owners that no longer live.
    ///
    /// # Errors
    /// When the system's folder for temporary files cannot be written.
    pub fn make() -> io::Result<Self> {
        Self::make_in(&parent())
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let unlocked = folder.path().join("owner.new");
        let owner = File::create(&unlocked)?;
        owner.lock()?;
        // It takes its name only once locked: a sweep never meets it unlocked.
        fs::rename(&unlocked, folder.path().join(OWNER))?;
        sweep(parent, folder.path());
        Ok(Self { folder, _owner: owner })
    }

    /// Where it is; short enough for unix sockets in it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves the folder where it is.
    ///
    /// # Errors
    /// When it cannot be marked as kept; it goes then.
    pub fn keep(mut self) -> io::Result<PathBuf> {
        File::create(self.path().join(KEPT))?;
        self.folder.disable_cleanup(true);
        Ok(self.path().to_owned())
    }
}

fn parent() -> PathBuf {
    let usual = std::env::temp_dir();
    if usual.as_os_str().len() > LONGEST_PARENT { PathBuf::from("/tmp") } else { usual }
}

fn sweep(parent: &Path, own: &Path) {
    let Ok(user) = fs::metadata(own).map(|metadata| metadata.uid()) else { return };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let ours = entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        if ours && is_abandoned(&entry.path()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let Ok(owner) = File::open(folder.join(OWNER)) else { return false };
    owner.try_lock().is_ok() && !folder.join(KEPT).exists()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_killed_owner_goes_and_a_living_and_a_kept_one_stay() {
        let parent = tempfile::tempdir().unwrap();
        let living = Folder::make_in(parent.path()).unwrap();
        let kept = Folder::make_in(parent.path()).unwrap().keep().unwrap();
        let killed = parent.path().join("scarpenter-playground-killed");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(OWNER), "").unwrap();
        let foreign = parent.path().join("scarpenter-playground-foreign");
        fs::create_dir(&foreign).unwrap();

        let newest = Folder::make_in(parent.path()).unwrap();
        assert!(!killed.exists());
        for path in [living.path(), &kept, &foreign, newest.path()] {
            assert!(path.exists(), "{}", path.display());
        }
        let gone = newest.path().to_owned();
        drop(newest);
        assert!(!gone.exists());
    }
}
