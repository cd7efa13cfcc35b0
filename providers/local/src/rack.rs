//! All machines of this host: made, found, and removed with everything that came with them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, Vendor};
use scarpenter_provider::failure::{Cause, Failure};
use scarpenter_provider::{CreateMachine, DeleteMachine, Deleted, FindMachine, Machine, MachineState};

use crate::host::{self, Accel, Limits, Taken};
use crate::image::Image;
use crate::kinds::{Kind, REGION, Room, VENDOR, ZONE};
use crate::process::Process;
use crate::qemu::{self, Programs, Start};
use crate::store::{Files, Phase, Record, Store};

/// Where the kubelets of machines are reached: each has a loopback address of its own from here on.
const FIRST_ADDRESS: u8 = 2;
const LAST_ADDRESS: u8 = 254;
const KUBELET_PORT: u16 = 10250;
/// Somebody else may take an address between the look and the start.
const ATTEMPTS: usize = 3;
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// A machine's disk is empty at first, and an image's worth of writes must fit.
pub(crate) const DISK_SPARE_BYTES: u64 = 1 << 30;
const CONSOLE_BYTES: u64 = 64 << 10;

/// With what machines are made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What they boot: an image file, or a folder that `build-image` made.
    pub image: PathBuf,
    /// How they run.
    pub accel: Accel,
    /// How much of the host they may take.
    pub limits: Limits,
    /// QEMU's programs.
    pub programs: Programs,
}

/// All machines of this host.
#[derive(Debug)]
pub struct Rack {
    pub(crate) settings: Settings,
    store: Store,
    records: Mutex<BTreeMap<ClaimUid, Record>>,
    /// One create or delete at a time: room and addresses are counted, then taken.
    turn: tokio::sync::Mutex<()>,
}

impl Rack {
    /// Opens the folder of an earlier run: machines that run are ours again, what was half made or half removed goes.
    ///
    /// # Errors
    /// When the folder cannot be written, or another plugin holds it.
    pub fn open(folder: &Path, settings: Settings) -> io::Result<Self> {
        let store = Store::open(folder)?;
        let mut records = BTreeMap::new();
        for (files, record) in store.all()? {
            match record {
                Some(record) if record.phase == Phase::Made => {
                    files.forget_user_data()?;
                    records.insert(record.claim.clone(), record);
                }
                _ => clear(&files)?,
            }
        }
        let rack =
            Self { settings, store, records: Mutex::new(records), turn: tokio::sync::Mutex::default() };
        tracing::info!(machines = rack.records().len(), "machines adopted");
        Ok(rack)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// What is left for further machines.
    pub(crate) fn free(&self) -> Room {
        let mut taken = Taken::default();
        for record in self.records().values() {
            let Some(kind) = Kind::named(&record.instance_type) else { continue };
            match (record.phase, self.living(record)) {
                (_, Some(process)) => taken.touched_mib += process.resident_mib(),
                (Phase::Making, None) => {}
                _ => continue,
            }
            taken.given = taken.given.and(kind.room());
        }
        host::free(self.settings.limits, host::cpus(), host::available_mib(), taken)
    }

    pub(crate) async fn create(&self, create: CreateMachine) -> Result<Machine, Failure> {
        let _turn = self.turn.lock().await;
        if let Some(existing) = self.records().get(&create.claim) {
            return self.answer_again(existing, &create);
        }
        let kind = self.check(&create)?;
        let image = Image::open(&self.settings.image)
            .map_err(|error| Failure::new(Cause::Unavailable, error.to_string()))?;
        if let Some(lacks) = self.lacks(kind) {
            return Err(Failure::new(
                Cause::SoldOut,
                format!("this host has no room for {}: {lacks}", kind.name),
            ));
        }
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.make(&create, kind, &image).await {
                Err(Refused::Address(failure)) => last = Some(failure),
                Err(Refused::Other(failure)) => return Err(failure),
                Ok(machine) => return Ok(machine),
            }
        }
        Err(last.expect("at least one attempt was made"))
    }

    fn answer_again(&self, existing: &Record, create: &CreateMachine) -> Result<Machine, Failure> {
        if existing.cluster != create.cluster || existing.params != create.params() {
            return Err(Failure::new(Cause::Conflict, "the claim has a machine with other parameters"));
        }
        match existing.phase {
            Phase::Made => Ok(self.machine(existing)),
            _ => Err(Failure::new(Cause::Unavailable, "the machine of this claim is on its way out")),
        }
    }

    fn check(&self, create: &CreateMachine) -> Result<Kind, Failure> {
        let invalid = |words: String| Failure::new(Cause::Invalid, words);
        let kind = Kind::named(&create.instance_type)
            .ok_or_else(|| invalid(format!("there is no type {:?} here", create.instance_type)))?;
        let place = &create.place;
        if place.region != REGION || place.zone.as_deref().is_some_and(|zone| zone != ZONE) {
            return Err(invalid(format!("the only region and zone here are {REGION}")));
        }
        match crate::provider::refused_image(&self.settings.image, &create.image) {
            Some(words) => Err(invalid(words)),
            None => Ok(kind),
        }
    }

    fn lacks(&self, kind: Kind) -> Option<String> {
        let room = self.free().lacks(kind.room());
        room.or_else(|| match host::free_bytes(self.store.folder()) {
            Ok(free) if free < DISK_SPARE_BYTES => Some(format!("{} MiB of disk are free", free >> 20)),
            _ => None,
        })
    }

    /// Makes the machine, or leaves nothing of it.
    async fn make(&self, create: &CreateMachine, kind: Kind, image: &Image) -> Result<Machine, Refused> {
        let other = |cause, words: String| Refused::Other(Failure::new(cause, words));
        let address = self.free_address().ok_or_else(|| {
            let range = format!("127.0.0.{FIRST_ADDRESS} to 127.0.0.{LAST_ADDRESS}");
            other(Cause::SoldOut, format!("port {KUBELET_PORT} is taken on every address from {range}"))
        })?;
        let files = self.store.of(&create.claim).ok_or_else(|| {
            other(
                Cause::Invalid,
                format!("claim UID {:?} holds more than letters, digits and -", create.claim.as_str()),
            )
        })?;
        let mut record = record_of(create, address);
        self.records().insert(create.claim.clone(), record.clone());
        let outcome = self.build(create, kind, image, &files, &mut record).await;
        match outcome {
            Ok(()) => {
                self.records().insert(create.claim.clone(), record.clone());
                tracing::info!(claim = %create.claim, instance_type = kind.name, %address, "machine made");
                Ok(self.machine(&record))
            }
            Err(error) => {
                let cleared = tokio::task::spawn_blocking(move || clear(&files)).await;
                self.records().remove(&create.claim);
                let words = error.to_string();
                tracing::warn!(claim = %create.claim, error = words, "machine not made");
                if !matches!(cleared, Ok(Ok(()))) {
                    return Err(other(
                        Cause::Unknown,
                        format!("{words}; and what was made of it could not be removed"),
                    ));
                }
                let failure = Failure::new(Cause::Unavailable, words);
                let taken = matches!(&error, Unmade::Qemu(qemu::Error::Failed { words, .. }) if words.contains("forwarding"));
                Err(if taken { Refused::Address(failure) } else { Refused::Other(failure) })
            }
        }
    }

    async fn build(
        &self,
        create: &CreateMachine,
        kind: Kind,
        image: &Image,
        files: &Files,
        record: &mut Record,
    ) -> Result<(), Unmade> {
        files.make(record)?;
        files.write_user_data(&create.user_data)?;
        let Settings { programs, accel, .. } = &self.settings;
        let disk = create.boot_disk_gib.unwrap_or(kind.disk_gib);
        programs.make_overlay(image, &files.overlay(), disk).await?;
        let address = record.address;
        let start = Start { name: &create.name, kind, image, accel: accel.resolve(), address, files };
        programs.start(&start).await?;
        let process = files.pid().and_then(|pid| Process::of(pid, files.folder()));
        record.process = Some(process.ok_or(Unmade::Ended)?);
        record.phase = Phase::Made;
        files.write(record)?;
        Ok(files.forget_user_data()?)
    }

    fn free_address(&self) -> Option<Ipv4Addr> {
        let records = self.records();
        let mut all = (FIRST_ADDRESS..=LAST_ADDRESS).map(|last| Ipv4Addr::new(127, 0, 0, last));
        all.find(|address| {
            records.values().all(|record| record.address != *address)
                && TcpListener::bind((*address, KUBELET_PORT)).is_ok()
        })
    }

    pub(crate) fn get(&self, find: &FindMachine) -> Option<Machine> {
        self.found(&find.cluster, &find.claim).map(|record| self.machine(&record))
    }

    pub(crate) fn list(&self, cluster: &ClusterId) -> Vec<Machine> {
        let records: Vec<Record> = self.records().values().cloned().collect();
        records
            .iter()
            .filter(|record| record.cluster == *cluster)
            .map(|record| self.machine(record))
            .collect()
    }

    pub(crate) fn console(&self, find: &FindMachine) -> Result<Option<String>, Failure> {
        let Some(files) =
            self.found(&find.cluster, &find.claim).and_then(|record| self.store.of(&record.claim))
        else {
            return Ok(None);
        };
        files
            .console_end(CONSOLE_BYTES)
            .map_err(|error| Failure::new(Cause::Unavailable, format!("read the console: {error}")))
    }

    pub(crate) async fn delete(&self, delete: &DeleteMachine) -> Result<Deleted, Failure> {
        let _turn = self.turn.lock().await;
        let Some(mut record) = self.found(&delete.cluster, &delete.claim) else { return Ok(Deleted::Gone) };
        let named = delete.machine.as_ref() == Some(&id_of(&record.claim));
        if delete.only_this_machine && !named {
            return Ok(Deleted::Gone);
        }
        let Some(files) = self.store.of(&record.claim) else { return Ok(Deleted::Gone) };
        record.phase = Phase::Going;
        self.records().insert(record.claim.clone(), record.clone());
        let cleared = {
            let record = record.clone();
            tokio::task::spawn_blocking(move || end(&files, &record)).await
        };
        match cleared.map_err(io::Error::other).flatten() {
            Ok(()) => {
                self.records().remove(&record.claim);
                tracing::info!(claim = %record.claim, "machine removed");
                Ok(Deleted::Asked)
            }
            Err(error) => Err(Failure::new(Cause::Unknown, format!("remove the machine: {error}"))),
        }
    }

    /// Removes every machine, whoever it belongs to.
    ///
    /// # Errors
    /// Why the last of those that stayed could not be removed.
    pub async fn remove_all(&self) -> Result<(), Failure> {
        let all: Vec<Record> = self.records().values().cloned().collect();
        let mut outcome = Ok(());
        for Record { cluster, claim, .. } in all {
            let delete =
                DeleteMachine { cluster, claim, machine: None, place: None, only_this_machine: false };
            if let Err(failure) = self.delete(&delete).await {
                outcome = Err(failure);
            }
        }
        outcome
    }

    /// Cuts consoles that have grown too long.
    pub(crate) fn trim_consoles(&self) {
        let claims: Vec<ClaimUid> = self.records().keys().cloned().collect();
        for files in claims.iter().filter_map(|claim| self.store.of(claim)) {
            if let Err(error) = files.trim_console() {
                tracing::warn!(%error, folder = %files.folder().display(), "console not cut");
            }
        }
    }

    fn found(&self, cluster: &ClusterId, claim: &ClaimUid) -> Option<Record> {
        self.records().get(claim).filter(|record| record.cluster == *cluster).cloned()
    }

    /// The process of a machine, if it runs.
    fn living(&self, record: &Record) -> Option<Process> {
        let files = self.store.of(&record.claim)?;
        record.process.filter(|process| process.is_alive(files.folder()))
    }

    fn machine(&self, record: &Record) -> Machine {
        let state = match record.phase {
            Phase::Making => MachineState::Pending,
            Phase::Made if self.living(record).is_some() => MachineState::Running,
            Phase::Made => MachineState::Stopped,
            Phase::Going => MachineState::Stopping,
        };
        Machine {
            id: id_of(&record.claim),
            claim: record.claim.clone(),
            cluster: record.cluster.clone(),
            name: record.name.clone(),
            pool: record.pool.clone(),
            vendor: Vendor::from(VENDOR),
            region: REGION.to_owned(),
            zone: Some(ZONE.to_owned()),
            instance_type: record.instance_type.clone(),
            capacity_type: record.capacity_type,
            state,
            addresses: vec![record.address.to_string()],
            created: record.created,
            params: record.params.clone(),
        }
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<ClaimUid, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a create was given up.
enum Refused {
    /// Its address was taken meanwhile: another may do.
    Address(Failure),
    Other(Failure),
}

/// Why a machine was not made.
#[derive(Debug, thiserror::Error)]
enum Unmade {
    #[error("write the machine's folder: {0}")]
    Folder(#[from] io::Error),
    #[error("{0}")]
    Qemu(#[from] qemu::Error),
    #[error("QEMU ended as soon as it had started")]
    Ended,
}

fn record_of(create: &CreateMachine, address: Ipv4Addr) -> Record {
    Record {
        phase: Phase::Making,
        claim: create.claim.clone(),
        cluster: create.cluster.clone(),
        name: create.name.clone(),
        pool: create.pool.clone(),
        instance_type: create.instance_type.clone(),
        capacity_type: create.capacity_type,
        params: create.params(),
        address,
        created: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        process: None,
    }
}

/// One claim, one machine: the id says whose.
fn id_of(claim: &ClaimUid) -> MachineId {
    MachineId::new(format!("{VENDOR}-{claim}"))
}

/// Marks a machine as going, so that a crash is carried on with, and clears it.
fn end(files: &Files, record: &Record) -> io::Result<()> {
    match files.write(record) {
        // Somebody removed the folder: what runs of it must end all the same.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => clear(files),
    }
}

/// Ends whatever runs in the folder, and removes it.
fn clear(files: &Files) -> io::Result<()> {
    for process in Process::all_of(files.folder()) {
        if !process.kill(files.folder(), ENDS_WITHIN) {
            let words = format!("process {} did not end within {} s", process.pid, ENDS_WITHIN.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
    }
    files.remove()
}
