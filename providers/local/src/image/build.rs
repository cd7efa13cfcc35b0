//! The test image, and the system extension that brings its kubelet: made once, kept in the user's cache folder.
//!
//! A Debian with containerd, which the real Ignition sets up at its first boot as it sets up a Flatcar. The image of its
//! pods is in it, so machines need no internet.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

mod extension;
mod needs;
mod script;

pub use extension::Extension;
pub use needs::demand_packages;

/// Image of the pods that the machines can run.
pub const POD_IMAGE: &str = "scarpenter.local/busybox:1";

const FILES: [(&str, &str); 16] = [
    ("build.sh", include_str!("../../image/build.sh")),
    ("init", include_str!("../../image/init")),
    ("container-image.sh", include_str!("../../image/container-image.sh")),
    ("import.sh", include_str!("../../image/import.sh")),
    ("masked", include_str!("../../image/masked")),
    ("cmdline", include_str!("../../image/cmdline")),
    ("99-default.preset", include_str!("../../image/99-default.preset")),
    ("80-machine.preset", include_str!("../../image/80-machine.preset")),
    ("10-machine.network", include_str!("../../image/10-machine.network")),
    ("10-machine.conflist", include_str!("../../image/10-machine.conflist")),
    ("resolv.tmpfiles", include_str!("../../image/resolv.tmpfiles")),
    ("system.conf", include_str!("../../image/system.conf")),
    ("journald.conf", include_str!("../../image/journald.conf")),
    ("time-wait-sync.service", include_str!("../../image/time-wait-sync.service")),
    ("containerd.toml", include_str!("../../image/containerd.toml")),
    ("containerd.conf", include_str!("../../image/containerd.conf")),
];
const UNFINISHED: &str = ".build-";
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Programs of this machine are missing.
    #[error(
        "the test image is made with programs that are missing here: `apt-get install --no-install-recommends {packages}`"
    )]
    Packages {
        /// Debian packages that bring them.
        packages: String,
    },
    /// A tree that belongs to root can be made by root only.
    #[error(
        "the test image must be made by root, once: run `scarpenter provider local build-image` as root and name what \
         it prints by --image"
    )]
    NotRoot,
    /// Neither `XDG_CACHE_HOME` nor `HOME` says where to keep it.
    #[error("no cache folder: neither XDG_CACHE_HOME nor HOME is set")]
    NoCacheFolder,
    /// The cache folder could not be written.
    #[error("write the cache folder {}", folder.display())]
    WriteCache {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A step failed.
    #[error("the test image could not be made: {step} failed ({status}), its last words were: {output}")]
    Failed {
        /// Which.
        step: String,
        /// How.
        status: String,
        /// The end of what it said.
        output: String,
    },
}

/// Where both are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The user's: `$XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// When neither variable is set.
    pub fn of_user() -> Result<Self, Error> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let cache = cache.or_else(|| Some(set("HOME")?.join(".cache"))).ok_or(Error::NoCacheFolder)?;
        Ok(Self { folder: cache.join("scarpenter") })
    }

    /// The image's folder: found, or made in one to three minutes. `progress` is told each step as it begins.
    ///
    /// Two processes at once make it once. Dropping the future ends what it started and removes what is unfinished.
    ///
    /// # Errors
    /// Each is one sentence for the user: packages that are missing, not root, a step that failed.
    pub async fn image(&self, mut progress: impl FnMut(&str)) -> Result<PathBuf, Error> {
        let kept = self.folder.join("machine").join(image_key());
        if super::Image::open(&kept).is_ok() {
            return Ok(kept);
        }
        demand_packages()?;
        if !geteuid().is_root() {
            return Err(Error::NotRoot);
        }
        let _lock = self.lock(&kept, &mut progress).await?;
        if super::Image::open(&kept).is_err() {
            let work = self.work(&kept)?;
            let write = |source| Error::WriteCache { folder: work.path().to_owned(), source };
            for folder in ["files", "work", "out"] {
                fs::create_dir(work.path().join(folder)).map_err(write)?;
            }
            for (name, text) in FILES {
                fs::write(work.path().join("files").join(name), text).map_err(write)?;
            }
            script::run(work.path(), &mut progress).await?;
            let out = work.path().join("out");
            fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).map_err(write)?;
            fs::remove_dir_all(&kept).ok();
            fs::rename(out, &kept).map_err(write)?;
        }
        Ok(kept)
    }

    /// Waits until no other process makes the same; the lock ends with the file, or with this process.
    async fn lock(&self, kept: &Path, progress: &mut impl FnMut(&str)) -> Result<File, Error> {
        let parent = kept.parent().unwrap_or(&self.folder);
        let write = |source| Error::WriteCache { folder: parent.to_owned(), source };
        fs::create_dir_all(parent).map_err(write)?;
        let file = File::create(parent.join(".lock")).map_err(write)?;
        let mut waits = false;
        while let Err(error) = file.try_lock() {
            if let fs::TryLockError::Error(source) = error {
                return Err(write(source));
            }
            if !std::mem::replace(&mut waits, true) {
                progress("waiting for another process that makes it");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(file)
    }

    /// A folder beside the finished one, so that the finished one only needs a rename; what a killed build left goes.
    fn work(&self, kept: &Path) -> Result<TempDir, Error> {
        let parent = kept.parent().unwrap_or(&self.folder);
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_dir_all(entry.path()).ok();
            }
        }
        let made = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(parent);
        made.map_err(|source| Error::WriteCache { folder: parent.to_owned(), source })
    }
}

/// What makes the image what it is, as far as it is ours to know.
fn image_key() -> String {
    let programs = [needs::IGNITION, needs::BUSYBOX]
        .map(|program| fs::metadata(program).map(|metadata| metadata.len()).unwrap_or_default());
    let programs = format!("{programs:?}");
    let texts = FILES.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
    key_of(texts.chain([programs.as_bytes()]))
}

fn key_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..6])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_script_names_is_there() {
        let named: Vec<&str> = FILES[0]
            .1
            .split("$FILES/")
            .skip(1)
            .map(|rest| {
                rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-._".contains(c)))
                    .next()
                    .unwrap_or_default()
            })
            .collect();
        assert!(named.len() > 10);
        for name in named {
            assert!(FILES.iter().any(|(file, _)| *file == name), "{name}");
        }
    }

    #[test]
    fn keys_differ_with_each_part() {
        let key = |parts: &[&str]| key_of(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab"]).len(), 12);
    }
}
