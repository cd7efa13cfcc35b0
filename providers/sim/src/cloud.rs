//! The vendors' side: one stateful cloud that all played vendors share, each seeing its own machines.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, Vendor};
use scarpenter_core::offering::CapacityType;
use scarpenter_provider::error::Call;
use scarpenter_provider::failure::Cause;
use scarpenter_provider::{
    Coverage, CreateMachine, DeleteMachine, Deleted, Failure, FindMachine, Machine, MachineList,
};
use serde_json::json;
use tokio::time::Instant;

use crate::faults::{Fault, Faults, MachineFault, Subject};
use crate::journal::Journal;
use crate::market::Market;
use crate::metal::{Metal, Order, Paper};
use crate::sold::Sold;
use crate::store::Store;

use record::Record;

/// How quick the cloud is.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Settle time that is declared.
    pub settle: Duration,
    /// How long a machine takes to boot.
    pub boot_delay: Duration,
    /// How long a deleted machine is still to be seen.
    pub delete_takes: Duration,
}

/// All machines of all played vendors.
pub struct Cloud {
    pub(crate) habits: Habits,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) market: Market,
    metal: Box<dyn Metal>,
    inner: Mutex<Inner>,
}

struct Inner {
    machines: BTreeMap<MachineId, Record>,
    store: Option<Store>,
    next_id: u64,
}

impl Cloud {
    pub(crate) fn new(
        habits: Habits,
        metal: Box<dyn Metal>,
        faults: Faults,
        journal: Journal,
        market: Market,
        store: Option<Store>,
    ) -> Arc<Self> {
        // Ids begin with the time, so that a restart without a state file reuses none.
        let next_id = u64::try_from(since_1970().as_micros()).unwrap_or_default();
        let inner = Inner { machines: BTreeMap::new(), store, next_id };
        Arc::new(Self { habits, faults, journal, market, metal, inner: Mutex::new(inner) })
    }

    /// A cloud without files, for tests in this process.
    #[must_use]
    pub fn in_memory(habits: Habits, metal: Box<dyn Metal>, faults: Faults) -> Arc<Self> {
        Self::in_memory_selling(habits, metal, faults, Market::none())
    }

    /// The same whose vendors tell what they sell now.
    #[must_use]
    pub fn in_memory_selling(
        habits: Habits,
        metal: Box<dyn Metal>,
        faults: Faults,
        market: Market,
    ) -> Arc<Self> {
        Self::new(habits, metal, faults, Journal::none(), market, None)
    }

    /// Switches on again what an earlier run has sold; each finds its disk.
    pub(crate) fn restore(&self, sold: Vec<Sold>) {
        let mut inner = self.inner();
        for sold in sold {
            let record = self.switch_on(sold, inner.store.as_ref());
            inner.machines.insert(record.sold.id.clone(), record);
        }
        let kept: BTreeMap<&MachineId, Option<&ClaimUid>> = inner
            .machines
            .iter()
            .map(|(id, record)| (id, record.sold.tags.as_ref().map(|tags| &tags.claim)))
            .collect();
        self.journal.note("kept", json!({"kept": kept}));
    }

    /// Puts a machine there that carries no tags of ours.
    pub fn add_foreign(&self, vendor: &Vendor, region: &str) -> MachineId {
        let mut inner = self.inner();
        let id = inner.fresh_id(vendor);
        let sold = Sold {
            id: id.clone(),
            vendor: vendor.clone(),
            tags: None,
            name: "somebody-elses".to_owned(),
            region: region.to_owned(),
            zone: region.to_owned(),
            instance_type: "cx22".to_owned(),
            capacity_type: CapacityType::OnDemand,
            created: since_1970().as_secs(),
            user_data: Vec::new(),
            capacity: BTreeMap::new(),
            faults: MachineFault { never_joins: true, ..MachineFault::default() },
            going: false,
        };
        inner.machines.insert(id.clone(), self.switch_on(sold, None));
        id
    }

    /// Whether a machine exists and is not on its way out, whoever it belongs to.
    #[must_use]
    pub fn is_alive(&self, id: &MachineId) -> bool {
        self.inner().machines.get(id).is_some_and(|record| record.ends.is_none())
    }

    /// How many machines there are, whoever they belong to.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.inner().machines.len()
    }

    pub(crate) fn create(&self, vendor: &Vendor, create: CreateMachine) -> Result<Machine, Failure> {
        let subject = subject_of(vendor, &create);
        let count =
            1 + self.strike(&subject, Call::CreateMachine, |fault| matches!(fault, Fault::Double)).min(1);
        let inside = self.faults.strike(&subject, Call::CreateMachine, |fault| match fault {
            Fault::Machine(inside) => Some(inside.clone()),
            _ => None,
        });
        let inside = inside.into_iter().fold(MachineFault::default(), MachineFault::and);
        let mut inner = self.inner();
        if let Some(existing) =
            inner.owned(vendor, |sold| sold.serves(&create.cluster, &create.claim)).first()
        {
            return existing.answer_again(&create);
        }
        if self.market.is_sold_out(vendor, &create) {
            return Err(Failure::new(Cause::SoldOut, "none left, as the list says"));
        }
        let mut made = None;
        for _ in 0..count {
            let id = inner.fresh_id(vendor);
            let mut sold = Sold::new(vendor, create.clone(), id.clone(), since_1970().as_secs());
            sold.faults = inside.clone();
            inner.remember(|store| store.made(&sold))?;
            let record = self.switch_on(sold, inner.store.as_ref());
            made = made.or_else(|| record.machine());
            inner.machines.insert(id.clone(), record);
            let machines = inner.machines.len();
            self.journal.note(
                "made",
                json!({"vendor": vendor, "machine": id, "claim": create.claim, "machines": machines}),
            );
        }
        made.ok_or_else(|| Failure::new(Cause::Unknown, "the machine has no tags"))
    }

    pub(crate) fn get(&self, vendor: &Vendor, find: &FindMachine) -> Option<Machine> {
        self.found(vendor, find, Call::GetMachine, |record| record.machine())
    }

    pub(crate) fn console(&self, vendor: &Vendor, find: &FindMachine) -> Option<String> {
        self.found(vendor, find, Call::GetConsoleOutput, |record| Some(record.powered.console()))
    }

    /// The machine with the id, else the oldest of the claim, if the vendor shows it.
    fn found<T>(
        &self,
        vendor: &Vendor,
        find: &FindMachine,
        call: Call,
        read: impl Fn(&Record) -> Option<T>,
    ) -> Option<T> {
        let inner = self.inner();
        let mut records = inner.owned(vendor, |sold| sold.serves(&find.cluster, &find.claim));
        records.retain(|record| self.shows(record, call));
        let by_id = records.iter().find(|record| Some(&record.sold.id) == find.machine.as_ref());
        read(by_id.or(records.first())?)
    }

    /// Whether a lagging or lying vendor shows a machine to this call.
    fn shows(&self, record: &Record, call: Call) -> bool {
        let subject = record.sold.subject();
        let age = record.made.elapsed();
        let lags = self.faults.strike(&subject, call, |fault| match fault {
            Fault::ListLag(lag) => Some(lag.0),
            _ => None,
        });
        lags.into_iter().all(|lag| age >= lag)
            && (call != Call::GetMachine
                || self.strike(&subject, call, |fault| matches!(fault, Fault::Hide)) == 0)
    }

    pub(crate) fn list(&self, vendor: &Vendor, cluster: &ClusterId) -> MachineList {
        let call = Call::ListMachines;
        let inner = self.inner();
        let records = inner.owned(vendor, |sold| sold.belongs_to(cluster));
        let regions: BTreeSet<&str> = records.iter().map(|record| record.sold.region.as_str()).collect();
        let uncovered: BTreeSet<&str> = regions
            .iter()
            .copied()
            .filter(|region| {
                let subject = Subject {
                    vendor: vendor.to_string(),
                    region: Some((*region).to_owned()),
                    ..Subject::default()
                };
                self.strike(&subject, call, |fault| matches!(fault, Fault::Uncovered)) > 0
            })
            .collect();
        let shown = records.iter().filter(|record| {
            !uncovered.contains(record.sold.region.as_str())
                && self.shows(record, call)
                && self.strike(&record.sold.subject(), call, |fault| matches!(fault, Fault::Omit)) == 0
        });
        let machines = shown.filter_map(|record| record.machine()).collect();
        let covered = if uncovered.is_empty() {
            Coverage::All
        } else {
            Coverage::Regions(regions.difference(&uncovered).map(ToString::to_string).collect())
        };
        MachineList { machines, covered }
    }

    pub(crate) fn delete(
        self: &Arc<Self>,
        vendor: &Vendor,
        delete: &DeleteMachine,
    ) -> Result<Deleted, Failure> {
        let call = Call::DeleteMachine;
        let mut inner = self.inner();
        let mut targets = inner.owned(vendor, |sold| sold.serves(&delete.cluster, &delete.claim));
        targets.retain(|record| {
            let named = Some(&record.sold.id) == delete.machine.as_ref();
            // Who knows the id needs no list, so no lag hides the machine from it.
            named || (!delete.only_this_machine && self.shows(record, call))
        });
        let targets: Vec<_> =
            targets.into_iter().map(|record| (record.sold.id.clone(), record.sold.subject())).collect();
        let mut outcome = Deleted::Gone;
        for (id, subject) in targets {
            if self.strike(&subject, call, |fault| matches!(fault, Fault::DeleteSaysGone)) > 0 {
                continue;
            }
            outcome = Deleted::Asked;
            if self.strike(&subject, call, |fault| matches!(fault, Fault::DeleteIgnored)) == 0 {
                inner.remember(|store| store.going(&id))?;
                let takes = self.delete_takes(&subject);
                if let Some(record) = inner.machines.get_mut(&id) {
                    self.end(record, takes);
                }
            }
        }
        Ok(outcome)
    }

    fn delete_takes(&self, subject: &Subject) -> Duration {
        let takes = self.faults.strike(subject, Call::DeleteMachine, |fault| match fault {
            Fault::DeleteTakes(span) => Some(span.0),
            _ => None,
        });
        takes.into_iter().max().unwrap_or(self.habits.delete_takes)
    }

    /// Switches a machine off now; it is to be seen for `takes` more.
    fn end(self: &Arc<Self>, record: &mut Record, takes: Duration) {
        if record.ends.is_some() {
            return;
        }
        record.ends = Some(Instant::now() + takes);
        let (cloud, powered, id) = (self.clone(), record.powered.clone(), record.sold.id.clone());
        tokio::spawn(async move {
            let off = async {
                powered.power_off().await;
                cloud.wipe(&id);
            };
            tokio::join!(off, tokio::time::sleep(takes));
            drop(cloud.inner());
        });
    }

    /// What a call is about that names a claim, for the rules.
    pub(crate) fn subject_of_claim(&self, vendor: &Vendor, cluster: &ClusterId, claim: &ClaimUid) -> Subject {
        let inner = self.inner();
        let found = inner.owned(vendor, |sold| sold.serves(cluster, claim));
        let anything = || Subject { vendor: vendor.to_string(), ..Subject::default() };
        found.first().map_or_else(anything, |record| record.sold.subject())
    }

    fn strike(&self, subject: &Subject, call: Call, is: impl Fn(&Fault) -> bool) -> usize {
        self.faults.strike(subject, call, |fault| is(fault).then_some(())).len()
    }

    /// After it is off, so that it does not write its disk anew.
    fn wipe(&self, id: &MachineId) {
        if let Some(Err(error)) = self.inner().store.as_ref().map(|store| store.wipe(id)) {
            tracing::warn!(%error, machine = %id, "disk not removed");
        }
    }

    fn switch_on(&self, sold: Sold, store: Option<&Store>) -> Record {
        let now = Instant::now();
        let age = since_1970().saturating_sub(Duration::from_secs(sold.created));
        // Of a machine made in this run the age is below a second and counts from now.
        let age = if age.as_secs() < 2 { Duration::ZERO } else { age };
        let boot_delay = sold.faults.boot_delay.map_or(self.habits.boot_delay, |span| span.0);
        let boot_delay = boot_delay.saturating_sub(age);
        let order = Order {
            user_data: sold.user_data.clone(),
            capacity: sold.capacity.clone().into_iter().collect(),
            boot_delay,
            address: sold.address(),
            disk: store.map(|store| store.disk(&sold.id)),
            faults: sold.faults.clone(),
        };
        // What was asked to go in an earlier run was switched off then.
        let powered = if sold.going { Paper.power_on(order) } else { self.metal.power_on(order) };
        let ends = sold.going.then(|| now + self.habits.delete_takes);
        let made = now.checked_sub(age).unwrap_or(now);
        Record { sold, powered: powered.into(), made, boots: now + boot_delay, ends }
    }

    /// The machines that are still there.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let ended = inner.machines.values().filter(|record| record.ends.is_some_and(|ends| ends <= now));
        for id in ended.map(|record| record.sold.id.clone()).collect::<Vec<_>>() {
            inner.machines.remove(&id);
            if let Err(failure) = inner.remember(|store| store.gone(&id)) {
                tracing::error!(%failure, machine = %id, "state line lost");
            }
            self.journal.note("gone", json!({"machine": id, "machines": inner.machines.len()}));
        }
        inner
    }
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").field("habits", &self.habits).finish_non_exhaustive()
    }
}

impl Inner {
    /// Machines of a vendor that `belongs` takes, oldest first.
    fn owned(&self, vendor: &Vendor, belongs: impl Fn(&Sold) -> bool) -> Vec<&Record> {
        let mut records: Vec<_> = self
            .machines
            .values()
            .filter(|record| record.sold.vendor == *vendor && belongs(&record.sold))
            .collect();
        records.sort_by_key(|record| (record.sold.created, record.sold.id.clone()));
        records
    }

    fn fresh_id(&mut self, vendor: &Vendor) -> MachineId {
        self.next_id += 1;
        MachineId::new(format!("{vendor}-{:x}", self.next_id))
    }

    fn remember(&mut self, write: impl FnOnce(&mut Store) -> std::io::Result<()>) -> Result<(), Failure> {
        match &mut self.store {
            Some(store) => write(store)
                .map_err(|error| Failure::new(Cause::Unavailable, format!("write the state file: {error}"))),
            None => Ok(()),
        }
    }
}

pub(crate) fn subject_of(vendor: &Vendor, create: &CreateMachine) -> Subject {
    Subject {
        vendor: vendor.to_string(),
        region: Some(create.place.region.clone()),
        instance_type: Some(create.instance_type.clone()),
        capacity_type: Some(create.capacity_type.as_str().to_owned()),
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
