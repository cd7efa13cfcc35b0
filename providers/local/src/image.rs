//! What machines boot: a disk image with a boot loader of its own, or a folder that also holds the kernel.

use std::io;
use std::path::{Path, PathBuf};

pub mod build;

const DISK: &str = "disk.raw";
const KERNEL: &str = "vmlinuz";
const INITRD: &str = "initrd";
const COMMAND_LINE: &str = "cmdline";

/// A usable image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Never written to: machines have overlays.
    pub disk: PathBuf,
    /// QEMU's name of its format.
    pub format: &'static str,
    /// What is booted instead of the disk's own boot loader.
    pub kernel: Option<Kernel>,
}

/// A kernel beside the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel.
    pub image: PathBuf,
    /// Its initramfs.
    pub initrd: PathBuf,
    /// Its command line.
    pub command_line: String,
}

/// Why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not there, or not to be read.
    #[error("no image at {}: name a Flatcar image for QEMU, or make the test image by `build-image`", path.display())]
    Missing {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A folder without one of the files of `build-image`.
    #[error("the image folder {} has no {file}: make it anew by `build-image`", folder.display())]
    NotWhole {
        /// Which folder.
        folder: PathBuf,
        /// What it lacks.
        file: &'static str,
    },
}

impl Image {
    /// Looks at an image file, qcow2 or raw, or at a folder that `build-image` made.
    ///
    /// # Errors
    /// When it is not there or not whole.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let missing = |source| Error::Missing { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(missing)?;
        if path.is_dir() { Self::of_folder(path) } else { Self::of_file(path).map_err(missing) }
    }

    fn of_folder(folder: PathBuf) -> Result<Self, Error> {
        let part = |file: &'static str| match folder.join(file) {
            path if path.is_file() => Ok(path),
            _ => Err(Error::NotWhole { folder: folder.clone(), file }),
        };
        let command_line = std::fs::read_to_string(part(COMMAND_LINE)?)
            .map_err(|source| Error::Missing { path: folder.join(COMMAND_LINE), source })?;
        let kernel = Kernel {
            image: part(KERNEL)?,
            initrd: part(INITRD)?,
            command_line: command_line.trim().to_owned(),
        };
        Ok(Self { disk: part(DISK)?, format: "raw", kernel: Some(kernel) })
    }

    fn of_file(disk: PathBuf) -> io::Result<Self> {
        let mut magic = [0; 4];
        let read = io::Read::read(&mut std::fs::File::open(&disk)?, &mut magic)?;
        let format = if read == 4 && magic == *b"QFI\xfb" { "qcow2" } else { "raw" };
        Ok(Self { disk, format, kernel: None })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_read_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flatcar.img");
        std::fs::write(&path, b"QFI\xfb and more").unwrap();
        assert_eq!(Image::open(&path).unwrap().format, "qcow2");
        std::fs::write(&path, b"\xeb\x3c").unwrap();
        let image = Image::open(&path).unwrap();
        assert_eq!((image.format, image.kernel), ("raw", None));
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Image::open(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none") && error.contains("build-image"), "{error}");
        for file in [COMMAND_LINE, KERNEL, INITRD] {
            let error = Image::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains(file), "{error}");
            std::fs::write(folder.path().join(file), "a b\n").unwrap();
        }
        assert!(Image::open(folder.path()).unwrap_err().to_string().contains(DISK));
        std::fs::write(folder.path().join(DISK), "").unwrap();
        let image = Image::open(folder.path()).unwrap();
        assert_eq!(image.kernel.unwrap().command_line, "a b");
    }
}
