//! The system extension that brings a kubelet.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::{Cache, Error, demand_packages, hex, key_of, needs};

/// A system extension image: what machines fetch to have a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The folder to be served.
    pub folder: PathBuf,
    /// Its file name.
    pub name: String,
    /// Its hash as Ignition writes it.
    pub hash: String,
}

impl Cache {
    /// The extension that brings a kubelet and the plugins of a plain pod network: found, or made in seconds.
    ///
    /// # Errors
    /// As [`image`](Self::image), but root is not needed.
    pub async fn extension(&self, kubelet: &Path, version: &str) -> Result<Extension, Error> {
        let (key, made_of) = key(kubelet, version)
            .map_err(|source| Error::WriteCache { folder: kubelet.to_owned(), source })?;
        let kept = self.folder.join("extensions").join(key);
        let name = format!("kubernetes-{version}-x86-64.raw");
        // Written last: an image with a hash beside it is whole.
        let hash_file = kept.join(format!("{name}.sha256"));
        if !hash_file.is_file() {
            demand_packages()?;
            let _lock = self.lock(&kept, &mut |_| {}).await?;
            let work = self.work(&kept)?;
            let write = |source| Error::WriteCache { folder: work.path().to_owned(), source };
            let (tree, image) = (work.path().join("tree"), work.path().join(&name));
            lay_out(&tree, kubelet).map_err(write)?;
            squash(&tree, &image).await?;
            let hash = sha256_of(&image).await.map_err(write)?;
            fs::create_dir_all(&kept).map_err(write)?;
            fs::rename(&image, kept.join(&name)).map_err(write)?;
            let unfinished = work.path().join("hash");
            fs::write(&unfinished, format!("{hash}\n")).map_err(write)?;
            fs::rename(unfinished, &hash_file).map_err(write)?;
            tracing::debug!(made_of, "extension made");
        }
        let hash = fs::read_to_string(&hash_file);
        let hash = hash.map_err(|source| Error::WriteCache { folder: kept.clone(), source })?;
        Ok(Extension { folder: kept, name, hash: format!("sha256-{}", hash.trim()) })
    }
}

/// What makes the extension what it is.
fn key(kubelet: &Path, version: &str) -> io::Result<(String, String)> {
    let mut made_of = version.to_owned();
    for path in std::iter::once(kubelet).chain(needs::CNI.map(Path::new)) {
        let metadata = fs::metadata(path).ok();
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        made_of.push_str(&format!(" {:?} {:?}", metadata.map(|metadata| metadata.len()), modified));
    }
    fs::metadata(kubelet)?;
    Ok((key_of([made_of.as_bytes()]), made_of))
}

/// As systemd-sysext wants it: <https://www.freedesktop.org/software/systemd/man/latest/systemd-sysext.html>.
fn lay_out(tree: &Path, kubelet: &Path) -> io::Result<()> {
    let (programs, plugins) = (tree.join("usr/bin"), tree.join("usr/local/bin/cni"));
    let release = tree.join("usr/lib/extension-release.d");
    for folder in [&programs, &plugins, &release] {
        fs::create_dir_all(folder)?;
    }
    fs::copy(kubelet, programs.join("kubelet"))?;
    for plugin in needs::CNI.map(Path::new) {
        fs::copy(plugin, plugins.join(plugin.file_name().unwrap_or_default()))?;
    }
    fs::write(release.join("extension-release.kubernetes"), "ID=_any\n")
}

async fn squash(tree: &Path, image: &Path) -> Result<(), Error> {
    let mut command = Command::new("mksquashfs");
    // The quickest to unpack: machines may be emulated.
    command.arg(tree).arg(image).args(["-comp", "lz4", "-all-root", "-noappend", "-quiet", "-no-progress"]);
    command.stdin(Stdio::null()).env("PATH", needs::path()).kill_on_drop(true);
    let failed =
        |status: String, output: String| Error::Failed { step: "mksquashfs".to_owned(), status, output };
    let output = command.output().await.map_err(|error| failed(error.to_string(), String::new()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(output.status.to_string(), String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

async fn sha256_of(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    let hash = tokio::task::spawn_blocking(move || {
        let mut hash = Sha256::new();
        io::copy(&mut File::open(path)?, &mut hash)?;
        Ok(hex(&hash.finalize()))
    });
    hash.await.map_err(io::Error::other)?
}
