//! The state file: one JSON line for each machine made, going and gone. Beside it a folder with the machines' disks.
//!
//! Lines are only appended, so that five hundred machines do not cost five hundred times the whole file.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use scarpenter_core::name::MachineId;
use serde::{Deserialize, Serialize};

use crate::sold::Sold;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    Made(Box<Sold>),
    Going(MachineId),
    Gone(MachineId),
}

#[derive(Debug)]
pub(crate) struct Store {
    file: File,
    disks: PathBuf,
}

impl Store {
    /// Reads what is left of earlier runs and writes it anew.
    ///
    /// A last line that was cut by a kill is a machine whose making was never answered: it is dropped.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<Sold>)> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let sold: Vec<Sold> = replay(&text).into_values().collect();
        let fresh = path.with_added_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        for machine in &sold {
            write(&mut file, &Line::Made(Box::new(machine.clone())))?;
        }
        std::fs::rename(&fresh, path)?;
        let disks = path.with_added_extension("disks");
        DirBuilder::new().recursive(true).mode(0o700).create(&disks)?;
        let store = Self { file, disks };
        store.forget_disks(&sold)?;
        Ok((store, sold))
    }

    /// Disks of machines that went while nobody looked.
    fn forget_disks(&self, sold: &[Sold]) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.disks)? {
            let path = entry?.path();
            if !sold.iter().any(|sold| !sold.going && self.disk(&sold.id) == path) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Where a machine's disk is.
    pub(crate) fn disk(&self, id: &MachineId) -> PathBuf {
        self.disks.join(id.as_str())
    }

    pub(crate) fn made(&mut self, machine: &Sold) -> io::Result<()> {
        write(&mut self.file, &Line::Made(Box::new(machine.clone())))
    }

    pub(crate) fn going(&mut self, id: &MachineId) -> io::Result<()> {
        write(&mut self.file, &Line::Going(id.clone()))
    }

    pub(crate) fn gone(&mut self, id: &MachineId) -> io::Result<()> {
        write(&mut self.file, &Line::Gone(id.clone()))
    }

    /// Removes the disk of a machine that was switched off for good.
    pub(crate) fn wipe(&self, id: &MachineId) -> io::Result<()> {
        match std::fs::remove_file(self.disk(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn write(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

fn replay(text: &str) -> BTreeMap<MachineId, Sold> {
    let mut machines = BTreeMap::new();
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            Line::Made(sold) => drop(machines.insert(sold.id.clone(), *sold)),
            Line::Going(id) => {
                if let Some(sold) = machines.get_mut(&id) {
                    sold.going = true;
                }
            }
            Line::Gone(id) => drop(machines.remove(&id)),
        }
    }
    machines
}
