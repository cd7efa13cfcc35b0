//! Tailscale's daemon and the control server, built once by the machine's own Go and kept in the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use scarpenter_core::name::sha256_hex;
use scarpenter_playground::{Lifetime, Process};

/// The version in control/go.mod, as classes write it.
pub(crate) const TAILSCALE_VERSION: &str = "v1.102.5";
const FILES: [(&str, &str); 4] = [
    ("go.mod", include_str!("control/go.mod")),
    ("go.sum", include_str!("control/go.sum")),
    ("main.go", include_str!("control/main.go")),
    ("gate.go", include_str!("control/gate.go")),
];
/// The daemon holds the command line client, as in Tailscale's own small builds, and leaves out what no node needs:
/// most of the time that its build takes.
const TAGS: &str = "ts_include_cli,ts_omit_acme,ts_omit_aws,ts_omit_bird,ts_omit_capture,ts_omit_cloud,\
    ts_omit_completion,ts_omit_desktop_sessions,ts_omit_drive,ts_omit_kube,ts_omit_relayserver,ts_omit_serve,\
    ts_omit_ssh,ts_omit_systray,ts_omit_taildrop,ts_omit_tap,ts_omit_tpm,ts_omit_wakeonlan,ts_omit_webclient";
const PACKAGES: [(&str, &str); 2] = [("tailscaled", "tailscale.com/cmd/tailscaled"), ("control", ".")];
const UNFINISHED: &str = ".build-";
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A folder with both programs.
pub(crate) struct Programs(PathBuf);

impl Programs {
    /// Finds the programs or builds them, which takes minutes.
    pub(crate) fn ensure() -> anyhow::Result<Self> {
        let folder = cache()?.join("scarpenter/mesh").join(key());
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let lock = File::create(folder.join(".lock")).context("make the lock of the cache folder")?;
        lock.lock().context("wait for another build of the mesh's programs")?;
        remove_unfinished(&folder);
        for (name, package) in PACKAGES {
            if !folder.join(name).is_file() {
                eprintln!("building {name} of the mesh, once for this user; it takes minutes");
                build(&folder, name, package).with_context(|| format!("build {name}"))?;
            }
        }
        Ok(Self(folder))
    }

    pub(crate) fn tailscaled(&self) -> PathBuf {
        self.0.join("tailscaled")
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.0.join("control")
    }
}

fn build(folder: &Path, name: &str, package: &str) -> anyhow::Result<()> {
    let module = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(folder)?;
    for (file, text) in FILES {
        fs::write(module.path().join(file), text)?;
    }
    fs::create_dir(module.path().join("tmp"))?;
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-ldflags=-s -w", "-tags", TAGS, "-o", name, package]);
    go.current_dir(module.path()).env("PWD", module.path()).env("GOTMPDIR", module.path().join("tmp"));
    go.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "-mod=readonly -buildvcs=false");
    go.env_remove("GOOS").env_remove("GOARCH");
    ensure!(
        Command::new("go").arg("version").output().is_ok(),
        "Go is missing: put Go {} or newer on the PATH (a package of your system, or https://go.dev/dl)",
        minimum_go()
    );
    let go = Process::spawn("go build", &go, &module.path().join("go.log"), Lifetime::Tied)?;
    let status = loop {
        match go.exited() {
            Some(status) => break status,
            None => std::thread::sleep(LOOK_EVERY),
        }
    };
    if !status.success() {
        bail!("go build ended with {status}, its last words were: {}", go.log_tail(8));
    }
    fs::rename(module.path().join(name), folder.join(name))?;
    Ok(())
}

/// What a killed build left; nobody else builds while we hold the lock.
fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn key() -> String {
    let texts: Vec<&str> =
        FILES.iter().map(|(_, text)| *text).chain([TAGS, std::env::consts::ARCH]).collect();
    let digest = sha256_hex(texts.join("\0").as_bytes());
    format!("{TAILSCALE_VERSION}-{}", &digest[..12])
}

fn cache() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(set("HOME")?.join(".cache")));
    cache.context("no cache folder: neither XDG_CACHE_HOME nor HOME is set")
}

fn minimum_go() -> &'static str {
    let line = FILES[0].1.lines().find_map(|line| line.strip_prefix("go "));
    line.expect("our go.mod has a go line").trim()
}

#[test]
fn the_version_is_the_one_that_is_built() {
    let built = format!("tailscale.com {TAILSCALE_VERSION}");
    assert!(FILES[0].1.lines().any(|line| line.trim() == built));
}
