//! The machine's disk: what a kubelet finds again when its machine runs on and only the process that plays it ended.
//!
//! One file, written whole and renamed into place, readable by its owner alone: it holds the node's key.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use scarpenter_core::name::Secret;
use serde::{Deserialize, Serialize};

use crate::console::Console;

/// A disk, or none: then nothing is kept and nothing is found.
pub(crate) struct Disk {
    path: Option<PathBuf>,
    kept: Kept,
}

/// What is on it. Everything is written once, in this order.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    /// When power came.
    booted: Option<Timestamp>,
    /// Key of the client certificate, PEM; there before the certificate is asked for.
    key: Option<String>,
    /// The client certificate, PEM.
    certificate: Option<String>,
    /// UID of the Node that was registered.
    node_uid: Option<String>,
    /// The Node was said to be ready.
    ready: bool,
    /// A serving certificate was issued.
    serving: bool,
}

impl Disk {
    /// Reads what is there. A disk that cannot be read is as good as new.
    pub(crate) fn read(path: Option<PathBuf>, console: &Console) -> Self {
        let kept = match path.as_ref().map(std::fs::read) {
            Some(Ok(bytes)) => serde_json::from_slice(&bytes).unwrap_or_else(|_| {
                console.say("the disk holds nothing that can be read");
                Kept::default()
            }),
            _ => Kept::default(),
        };
        Self { path, kept }
    }

    /// How long ago power came: not at all, if this is the first time.
    pub(crate) fn boot(&mut self, console: &Console) -> Duration {
        if let Some(booted) = self.kept.booted {
            return Duration::try_from(Timestamp::now().duration_since(booted)).unwrap_or_default();
        }
        self.keep(console, |kept| kept.booted = Some(Timestamp::now()));
        Duration::ZERO
    }

    /// Whether this machine ran before.
    pub(crate) fn is_used(&self) -> bool {
        self.kept.booted.is_some()
    }

    pub(crate) fn key(&self) -> Option<Secret> {
        self.kept.key.clone().map(Secret::new)
    }

    pub(crate) fn keep_key(&mut self, console: &Console, pem: String) {
        self.keep(console, |kept| kept.key = Some(pem));
    }

    pub(crate) fn certificate(&self) -> Option<&str> {
        self.kept.certificate.as_deref()
    }

    pub(crate) fn keep_certificate(&mut self, console: &Console, pem: &[u8]) {
        self.keep(console, |kept| kept.certificate = Some(String::from_utf8_lossy(pem).into_owned()));
    }

    pub(crate) fn node_uid(&self) -> Option<&str> {
        self.kept.node_uid.as_deref()
    }

    pub(crate) fn keep_node_uid(&mut self, console: &Console, uid: &str) {
        self.keep(console, |kept| kept.node_uid = Some(uid.to_owned()));
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.kept.ready
    }

    pub(crate) fn keep_ready(&mut self, console: &Console) {
        self.keep(console, |kept| kept.ready = true);
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.kept.serving
    }

    pub(crate) fn keep_serving(&mut self, console: &Console) {
        self.keep(console, |kept| kept.serving = true);
    }

    fn keep(&mut self, console: &Console, change: impl FnOnce(&mut Kept)) {
        change(&mut self.kept);
        if let Err(error) = self.write() {
            console.failed("cannot write to the disk", &error);
        }
    }

    fn write(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let fresh = path.with_added_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec(&self.kept)?)?;
        std::fs::rename(&fresh, path)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_kept_is_found_again_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let console = Console::new();
        let mut disk = Disk::read(Some(path.clone()), &console);
        assert!(!disk.is_used() && disk.key().is_none());
        assert_eq!(disk.boot(&console), Duration::ZERO);
        disk.keep_key(&console, "key".to_owned());
        disk.keep_certificate(&console, b"certificate");
        disk.keep_node_uid(&console, "u-1");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let mut again = Disk::read(Some(path), &console);
        assert!(again.is_used() && again.boot(&console) > Duration::ZERO);
        assert_eq!(again.key().unwrap().reveal(), "key");
        assert_eq!((again.certificate(), again.node_uid()), (Some("certificate"), Some("u-1")));
        assert!(!again.is_ready() && !again.is_serving());
    }

    #[test]
    fn a_disk_that_cannot_be_read_is_as_good_as_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        std::fs::write(&path, "{\"booted\": 7").unwrap();
        let console = Console::new();
        assert!(!Disk::read(Some(path), &console).is_used());
        assert!(console.text().contains("nothing that can be read"));
    }

    #[test]
    fn without_a_disk_nothing_is_kept() {
        let console = Console::new();
        let mut disk = Disk::read(None, &console);
        disk.boot(&console);
        assert!(disk.is_used());
        assert!(console.text().is_empty());
    }
}
