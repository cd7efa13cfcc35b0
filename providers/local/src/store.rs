//! What is kept of each machine: a folder of its own, named by the claim's UID, with one JSON file written in one step.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use scarpenter_core::name::{ClaimUid, ClusterId};
use scarpenter_core::offering::CapacityType;
use serde::{Deserialize, Serialize};

use crate::process::Process;

pub(crate) const PID_FILE: &str = "pid";
const RECORD: &str = "machine.json";
const OVERLAY: &str = "disk.qcow2";
const USER_DATA: &str = "user-data.ign";
const CONSOLE: &str = "console.log";
/// More of a console than this is cut down to its end.
const LONGEST_CONSOLE: u64 = 1 << 20;
const KEPT_CONSOLE: u64 = 256 << 10;

/// How far a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Phase {
    /// Being made: after a crash nothing of it is kept.
    Making,
    /// Made.
    Made,
    /// To be removed: after a crash the removal goes on.
    Going,
}

/// All that is known of one machine, without its user data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) phase: Phase,
    pub(crate) claim: ClaimUid,
    pub(crate) cluster: ClusterId,
    pub(crate) name: String,
    pub(crate) pool: String,
    pub(crate) instance_type: String,
    pub(crate) capacity_type: CapacityType,
    pub(crate) params: String,
    pub(crate) address: Ipv4Addr,
    /// Seconds since 1970.
    pub(crate) created: u64,
    pub(crate) process: Option<Process>,
}

/// The folder of all machines; one plugin at a time holds it.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    _lock: File,
}

impl Store {
    /// Opens or makes the folder, which only this user may read.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder.join("machines"))?;
        // Processes are found by this path in their arguments, so it has one spelling.
        let folder = folder.canonicalize()?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|_| {
            io::Error::new(io::ErrorKind::ResourceBusy, "another plugin holds it: one state folder for each")
        })?;
        Ok(Self { folder, _lock: lock })
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a machine's files are. A UID with a path in it names no folder.
    pub(crate) fn of(&self, claim: &ClaimUid) -> Option<Files> {
        let name = claim.as_str();
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        plain.then(|| Files(self.folder.join("machines").join(name)))
    }

    /// Every machine's files, with its record where that is whole.
    pub(crate) fn all(&self) -> io::Result<Vec<(Files, Option<Record>)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.folder.join("machines"))? {
            let files = Files(entry?.path());
            let record =
                fs::read(files.0.join(RECORD)).ok().and_then(|text| serde_json::from_slice(&text).ok());
            all.push((files, record));
        }
        Ok(all)
    }
}

/// The files of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files(PathBuf);

impl Files {
    /// For arguments that are worked out without a machine.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn overlay(&self) -> PathBuf {
        self.0.join(OVERLAY)
    }

    pub(crate) fn user_data(&self) -> PathBuf {
        self.0.join(USER_DATA)
    }

    pub(crate) fn console(&self) -> PathBuf {
        self.0.join(CONSOLE)
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        self.0.join(PID_FILE)
    }

    /// Makes the folder with its record.
    pub(crate) fn make(&self, record: &Record) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.0)?;
        self.write(record)
    }

    /// Writes the record in one step.
    pub(crate) fn write(&self, record: &Record) -> io::Result<()> {
        let unfinished = self.0.join("machine.new");
        let mut file = private(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.sync_all()?;
        fs::rename(unfinished, self.0.join(RECORD))
    }

    /// Writes the user data for QEMU to read; it holds a join token.
    pub(crate) fn write_user_data(&self, bytes: &[u8]) -> io::Result<()> {
        private(&self.user_data())?.write_all(bytes)
    }

    /// QEMU has read it.
    pub(crate) fn forget_user_data(&self) -> io::Result<()> {
        absent_is_fine(fs::remove_file(self.user_data()))
    }

    /// The id that QEMU wrote.
    pub(crate) fn pid(&self) -> Option<i32> {
        fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()
    }

    /// Removes everything, the record last, so that a crash in between is carried on with.
    pub(crate) fn remove(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name() != RECORD {
                absent_is_fine(fs::remove_file(entry.path()))?;
            }
        }
        absent_is_fine(fs::remove_dir_all(&self.0))
    }

    /// The end of what the machine printed; `None` when that is nothing.
    pub(crate) fn console_end(&self, bytes: u64) -> io::Result<Option<String>> {
        let mut file = match File::open(self.console()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let end = end_of(&mut file, bytes)?;
        Ok((!end.is_empty()).then(|| String::from_utf8_lossy(&end).into_owned()))
    }

    /// Cuts a console that has grown too long down to its end. QEMU appends, so it goes on behind that.
    pub(crate) fn trim_console(&self) -> io::Result<()> {
        let mut file = match OpenOptions::new().read(true).write(true).open(self.console()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        if file.metadata()?.len() > LONGEST_CONSOLE {
            let end = end_of(&mut file, KEPT_CONSOLE)?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&end)?;
        }
        Ok(())
    }
}

fn end_of(file: &mut File, bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut end = Vec::new();
    file.take(bytes).read_to_end(&mut end)?;
    Ok(end)
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn record(claim: &str) -> Record {
        Record {
            phase: Phase::Making,
            claim: ClaimUid::from(claim),
            cluster: ClusterId::from("c"),
            name: "n".to_owned(),
            pool: "p".to_owned(),
            instance_type: "local.small".to_owned(),
            capacity_type: CapacityType::OnDemand,
            params: "0".to_owned(),
            address: Ipv4Addr::new(127, 0, 0, 2),
            created: 1,
            process: None,
        }
    }

    #[test]
    fn a_record_is_found_again_and_a_removed_machine_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        let files = store.of(&"u-1".into()).unwrap();
        files.make(&record("u-1")).unwrap();
        files.write(&Record { phase: Phase::Made, ..record("u-1") }).unwrap();
        files.write_user_data(b"secret").unwrap();
        let all = store.all().unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].1.as_ref().unwrap().phase, Phase::Made);
        files.remove().unwrap();
        files.remove().unwrap();
        assert!(store.all().unwrap().is_empty() && !files.folder().exists());
    }

    #[test]
    fn one_plugin_at_a_time_holds_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let held = Store::open(folder.path()).unwrap();
        assert!(Store::open(folder.path()).unwrap_err().to_string().contains("another plugin"));
        drop(held);
        Store::open(folder.path()).unwrap();
    }

    #[test]
    fn a_uid_that_is_a_path_names_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        for uid in ["..", "a/b", "", "a b", "."] {
            assert_eq!(store.of(&uid.into()), None, "{uid}");
        }
    }

    #[test]
    fn a_long_console_is_cut_to_its_end_and_grows_on() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files(folder.path().to_owned());
        assert_eq!(files.console_end(9).unwrap(), None);
        files.trim_console().unwrap();
        let mut console = OpenOptions::new().create(true).append(true).open(files.console()).unwrap();
        assert_eq!(files.console_end(9).unwrap(), None);
        let long = vec![b'x'; usize::try_from(LONGEST_CONSOLE).unwrap() + 1];
        console.write_all(&long).unwrap();
        files.trim_console().unwrap();
        console.write_all(b"the end").unwrap();
        assert_eq!(fs::metadata(files.console()).unwrap().len(), KEPT_CONSOLE + 7);
        assert_eq!(files.console_end(9).unwrap().as_deref(), Some("xxthe end"));
    }
}
