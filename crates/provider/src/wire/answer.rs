//! Answers: the server scaffold writes, the client reads and never trusts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{InstanceType, Price};

use super::{Wrong, arch, capacity_type, optional, place, require};
use crate::capabilities::{CONTRACT_VERSION, Capabilities, Encoding, RateBudget, UserDataLimit};
use crate::machine::{Coverage, Machine, MachineList, MachineState};
use crate::pb;
use crate::request::{LiveOffering, LiveOfferings, Problem, Severity};

impl From<Machine> for pb::Machine {
    fn from(machine: Machine) -> Self {
        let place = pb::Place {
            region: machine.region,
            zone: machine.zone.unwrap_or_default(),
            zone_id: String::new(),
        };
        let seconds = i64::try_from(machine.created).unwrap_or(i64::MAX);
        Self {
            id: machine.id.to_string(),
            claim_uid: machine.claim.to_string(),
            cluster_id: machine.cluster.to_string(),
            name: machine.name,
            pool: machine.pool,
            place: Some(place),
            instance_type: machine.instance_type,
            capacity_type: pb::CapacityType::from(machine.capacity_type).into(),
            state: pb::MachineState::from(machine.state).into(),
            addresses: machine.addresses,
            created: Some(prost_types::Timestamp { seconds, nanos: 0 }),
            params: machine.params,
        }
    }
}

impl From<MachineState> for pb::MachineState {
    fn from(state: MachineState) -> Self {
        match state {
            MachineState::Pending => Self::Pending,
            MachineState::Running => Self::Running,
            MachineState::Stopping => Self::Stopping,
            MachineState::Stopped => Self::Stopped,
            MachineState::Unknown => Self::Unknown,
        }
    }
}

fn state(number: i32) -> Result<MachineState, Wrong> {
    match pb::MachineState::try_from(number) {
        Ok(pb::MachineState::Pending) => Ok(MachineState::Pending),
        Ok(pb::MachineState::Running) => Ok(MachineState::Running),
        Ok(pb::MachineState::Stopping) => Ok(MachineState::Stopping),
        Ok(pb::MachineState::Stopped) => Ok(MachineState::Stopped),
        Ok(pb::MachineState::Unknown) => Ok(MachineState::Unknown),
        Ok(pb::MachineState::Unspecified) | Err(_) => Err(format!("machine state {number} is not known")),
    }
}

/// More than any vendor sells: some thousand types in a hundred zones.
const MOST_LIVE: usize = 200_000;

/// Reads a machine of `vendor`; every field that others decide by must be there.
pub(crate) fn machine(vendor: &Vendor, machine: Option<pb::Machine>) -> Result<Machine, Wrong> {
    let machine = machine.ok_or("machine is missing")?;
    let place = place(machine.place)?;
    let created = machine.created.ok_or("created is missing")?.seconds;
    Ok(Machine {
        id: require("machine id", machine.id)?.as_str().into(),
        claim: require("claim_uid", machine.claim_uid)?.as_str().into(),
        cluster: require("cluster_id", machine.cluster_id)?.as_str().into(),
        name: machine.name,
        pool: machine.pool,
        vendor: vendor.clone(),
        region: place.region,
        zone: place.zone,
        instance_type: require("instance_type", machine.instance_type)?,
        capacity_type: capacity_type(machine.capacity_type)?,
        state: state(machine.state)?,
        addresses: machine.addresses,
        created: u64::try_from(created).map_err(|_| format!("created is {created} seconds"))?,
        params: require("params", machine.params)?,
    })
}

impl From<MachineList> for pb::ListMachinesResponse {
    fn from(list: MachineList) -> Self {
        let (covers_all_regions, covered_regions) = match list.covered {
            Coverage::All => (true, Vec::new()),
            Coverage::Regions(regions) => (false, regions.into_iter().collect()),
        };
        let machines = list.machines.into_iter().map(Into::into).collect();
        Self { machines, covers_all_regions, covered_regions }
    }
}

pub(crate) fn machine_list(vendor: &Vendor, list: pb::ListMachinesResponse) -> Result<MachineList, Wrong> {
    let machines: Vec<_> =
        list.machines.into_iter().map(|row| machine(vendor, Some(row))).collect::<Result<_, _>>()?;
    let mut ids = BTreeSet::new();
    if let Some(twice) = machines.iter().find(|machine| !ids.insert(&machine.id)) {
        return Err(format!("machine {} is listed twice", twice.id));
    }
    let covered = match list.covers_all_regions {
        true => Coverage::All,
        false => Coverage::Regions(list.covered_regions.into_iter().collect()),
    };
    Ok(MachineList { machines, covered })
}

impl From<Capabilities> for pb::GetCapabilitiesResponse {
    fn from(can: Capabilities) -> Self {
        let encoding = match can.user_data_limit.encoding {
            Encoding::Raw => pb::user_data_limit::Encoding::Raw,
            Encoding::Base64 => pb::user_data_limit::Encoding::Base64,
        };
        Self {
            vendor: can.vendor.to_string(),
            contract_version: CONTRACT_VERSION,
            user_data_limit: Some(pb::UserDataLimit {
                bytes: can.user_data_limit.bytes,
                encoding: encoding.into(),
            }),
            capacity_types: can
                .capacity_types
                .into_iter()
                .map(|c| pb::CapacityType::from(c).into())
                .collect(),
            architectures: can.archs.into_iter().map(|a| pb::Architecture::from(a).into()).collect(),
            settle_time: Some(to_duration(can.settle)),
            rate_budget: can
                .rate_budget
                .map(|budget| pb::RateBudget { calls: budget.calls, per: Some(to_duration(budget.per)) }),
            lists_offerings: can.lists_offerings,
            has_console: can.has_console,
        }
    }
}

pub(crate) fn capabilities(answer: pb::GetCapabilitiesResponse) -> Result<Capabilities, Wrong> {
    let limit = answer.user_data_limit.ok_or("user_data_limit is missing")?;
    let encoding = match pb::user_data_limit::Encoding::try_from(limit.encoding) {
        Ok(pb::user_data_limit::Encoding::Raw) => Encoding::Raw,
        Ok(pb::user_data_limit::Encoding::Base64) => Encoding::Base64,
        Ok(pb::user_data_limit::Encoding::Unspecified) | Err(_) => {
            return Err(format!("user data encoding {} is not known", limit.encoding));
        }
    };
    let rate_budget = match answer.rate_budget {
        Some(budget) => Some(RateBudget { calls: budget.calls, per: duration("rate_budget", budget.per)? }),
        None => None,
    };
    Ok(Capabilities {
        vendor: require("vendor", answer.vendor)?.as_str().into(),
        user_data_limit: UserDataLimit { bytes: limit.bytes, encoding },
        capacity_types: answer.capacity_types.into_iter().map(capacity_type).collect::<Result<_, _>>()?,
        archs: answer.architectures.into_iter().map(arch).collect::<Result<_, _>>()?,
        settle: duration("settle_time", answer.settle_time)?,
        rate_budget,
        lists_offerings: answer.lists_offerings,
        has_console: answer.has_console,
    })
}

fn to_duration(duration: Duration) -> prost_types::Duration {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    prost_types::Duration { seconds, nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default() }
}

fn duration(field: &str, duration: Option<prost_types::Duration>) -> Result<Duration, Wrong> {
    let duration = duration.ok_or_else(|| format!("{field} is missing"))?;
    Duration::try_from(duration).map_err(|_| format!("{field} is negative"))
}

impl From<Problem> for pb::Problem {
    fn from(problem: Problem) -> Self {
        let severity = match problem.severity {
            Severity::Warning => pb::problem::Severity::Warning,
            Severity::Error => pb::problem::Severity::Error,
        };
        Self {
            field: problem.field,
            region: problem.region.unwrap_or_default(),
            severity: severity.into(),
            message: problem.message,
        }
    }
}

pub(crate) fn problem(problem: pb::Problem) -> Result<Problem, Wrong> {
    let severity = match pb::problem::Severity::try_from(problem.severity) {
        Ok(pb::problem::Severity::Warning) => Severity::Warning,
        Ok(pb::problem::Severity::Error) => Severity::Error,
        Ok(pb::problem::Severity::Unspecified) | Err(_) => {
            return Err(format!("severity {} is not known", problem.severity));
        }
    };
    let message = crate::failure::readable(&require("message", problem.message)?);
    Ok(Problem { field: problem.field, region: optional(problem.region), severity, message })
}

impl From<LiveOfferings> for pb::ListOfferingsResponse {
    fn from(live: LiveOfferings) -> Self {
        let offering = |offering: LiveOffering| pb::LiveOffering {
            instance_type: offering.instance_type,
            place: Some(offering.place.into()),
            capacity_type: pb::CapacityType::from(offering.capacity_type).into(),
            price_per_hour_micro_usd: offering.price.map(Price::micro_usd),
            available: offering.available,
        };
        Self {
            offerings: live.offerings.into_iter().map(offering).collect(),
            instance_types: live.instance_types.into_iter().map(to_instance_type).collect(),
        }
    }
}

pub(crate) fn live_offerings(
    vendor: &Vendor,
    live: pb::ListOfferingsResponse,
) -> Result<LiveOfferings, Wrong> {
    let offering = |offering: pb::LiveOffering| {
        Ok::<_, Wrong>(LiveOffering {
            instance_type: require("instance_type", offering.instance_type)?,
            place: place(offering.place)?,
            capacity_type: capacity_type(offering.capacity_type)?,
            price: offering.price_per_hour_micro_usd.map(Price::from_micro_usd),
            available: offering.available,
        })
    };
    let rows = live.offerings.len() + live.instance_types.len();
    if rows > MOST_LIVE {
        return Err(format!("{rows} rows are listed, at most {MOST_LIVE} are read"));
    }
    let types = live.instance_types.into_iter().map(|row| instance_type(vendor, row));
    let out = LiveOfferings {
        offerings: live.offerings.into_iter().map(offering).collect::<Result<_, _>>()?,
        instance_types: types.collect::<Result<_, _>>()?,
    };
    let key = |row: &LiveOffering| {
        (row.instance_type.clone(), row.place.region.clone(), row.place.zone.clone(), row.capacity_type)
    };
    let mut seen = BTreeSet::new();
    match out.offerings.iter().find(|row| !seen.insert(key(row))) {
        Some(twice) => Err(format!("{} in {} is listed twice", twice.instance_type, twice.place.region)),
        None => Ok(out),
    }
}

fn to_instance_type(row: InstanceType) -> pb::InstanceType {
    pb::InstanceType {
        name: row.name,
        architecture: pb::Architecture::from(row.arch).into(),
        family: row.family,
        cpu: row.cpu,
        memory_mib: row.memory_mib,
        storage_gb: row.storage_gb,
        gpu_count: row.gpu_count,
        gpu_manufacturer: row.gpu_manufacturer,
        gpu_model: row.gpu_model,
        cpu_manufacturer: row.cpu_manufacturer,
        cpu_allocation: row.cpu_allocation,
    }
}

fn instance_type(vendor: &Vendor, row: pb::InstanceType) -> Result<InstanceType, Wrong> {
    Ok(InstanceType {
        vendor: vendor.clone(),
        name: require("name", row.name)?,
        arch: arch(row.architecture)?,
        family: row.family,
        cpu: row.cpu,
        memory_mib: row.memory_mib,
        storage_gb: row.storage_gb,
        gpu_count: row.gpu_count,
        gpu_manufacturer: row.gpu_manufacturer,
        gpu_model: row.gpu_model,
        cpu_manufacturer: row.cpu_manufacturer,
        cpu_allocation: row.cpu_allocation,
        benchmarks: BTreeMap::new(),
        hardware: Box::default(),
    })
}
