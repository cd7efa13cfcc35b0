//! The disk of a machine: what an image has, and what Ignition makes of the document.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use scarpenter_bootstrap::{Document, Opened, open};
use serde_json::Value;

/// Folder of the units.
pub(crate) const UNITS: &str = "etc/systemd/system";
/// Names of the units that start at boot, in the form of a systemd preset.
pub(crate) const PRESET: &str = "etc/systemd/system-preset/20-ignition.preset";
/// Where programs look for authorities that they trust.
const TRUSTED: &str = "etc/ssl/certs/ca-certificates.crt";

/// Makes the disk at `root`, of a machine that trusts `ca_pem`.
pub(crate) fn install(root: &Path, document: &Document, ca_pem: &str) -> anyhow::Result<()> {
    make_image(root, ca_pem).context("make the image")?;
    let opened = open(document.bytes())?;
    let config: Value = serde_json::from_str(document.inner())?;
    for file in list(&config["storage"]["files"]) {
        let path = word(file, "path")?;
        write_file(root, path, file, &opened).with_context(|| format!("write {path}"))?;
    }
    for link in list(&config["storage"]["links"]) {
        let path = inside(root, word(link, "path")?)?;
        fs::create_dir_all(path.parent().context("a link lies in a folder")?)?;
        symlink(word(link, "target")?, &path).with_context(|| format!("link {}", path.display()))?;
    }
    let mut preset = String::new();
    for unit in list(&config["systemd"]["units"]) {
        let name = word(unit, "name")?;
        write_unit(root, name, unit).with_context(|| format!("write {name}"))?;
        if unit["enabled"] == true {
            preset.push_str(&format!("enable {name}\n"));
        }
    }
    write(&root.join(PRESET), preset.as_bytes())
}

/// Names of the extensions that systemd would lay over `/usr`: those whose image the document fetched.
pub(crate) fn extensions(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(root.join("etc/extensions")).context("no extension is linked")? {
        let link = entry?.path();
        let target = fs::read_link(&link)?;
        let image = inside(root, &target.display().to_string())?;
        ensure!(image.is_file(), "{} leads to {}, which is not there", link.display(), target.display());
        out.push(link.file_stem().context("an image has a name")?.to_string_lossy().into_owned());
    }
    out.sort();
    Ok(out)
}

fn make_image(root: &Path, ca_pem: &str) -> anyhow::Result<()> {
    for folder in ["usr", "etc", "opt", "var/lib", "run", "tmp", "proc", "sys", "dev", "root"] {
        fs::create_dir_all(root.join(folder))?;
    }
    symlink("../run", root.join("var/run"))?;
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let host = Path::new("/").join(name);
        if let Ok(target) = fs::read_link(&host) {
            symlink(target, root.join(name))?;
        } else {
            ensure!(!host.exists(), "{} is not a link into /usr, as it is on Flatcar", host.display());
        }
    }
    write(&root.join(TRUSTED), ca_pem.as_bytes())
}

fn write_file(root: &Path, path: &str, file: &Value, opened: &Opened) -> anyhow::Result<()> {
    let source = word(&file["contents"], "source")?;
    let at = inside(root, path)?;
    if source.starts_with("data:") {
        write(&at, opened.file(path).context("its contents cannot be read")?)?;
    } else {
        // An image of an extension; what it holds is laid out beside.
        write(&at, source.as_bytes())?;
    }
    let mode = file["mode"].as_u64().context("it has no mode")?;
    fs::set_permissions(&at, fs::Permissions::from_mode(u32::try_from(mode)?))?;
    Ok(())
}

fn write_unit(root: &Path, name: &str, unit: &Value) -> anyhow::Result<()> {
    let at = root.join(UNITS).join(name);
    if unit["mask"] == true {
        fs::create_dir_all(root.join(UNITS))?;
        symlink("/dev/null", &at)?;
    } else if let Some(contents) = unit["contents"].as_str() {
        write(&at, contents.as_bytes())?;
    }
    for dropin in list(&unit["dropins"]) {
        let folder = root.join(UNITS).join(format!("{name}.d"));
        write(&folder.join(word(dropin, "name")?), word(dropin, "contents")?.as_bytes())?;
    }
    Ok(())
}

fn write(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
    fs::write(path, contents)?;
    Ok(())
}

fn inside(root: &Path, path: &str) -> anyhow::Result<PathBuf> {
    match path.strip_prefix('/') {
        Some(rest) if !rest.split('/').any(|part| part == "..") => Ok(root.join(rest)),
        _ => bail!("{path} is not an absolute path"),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value[key].as_str().with_context(|| format!("{key} is missing"))
}
