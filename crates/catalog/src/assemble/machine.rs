//! From a server's row to an instance type.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use scarpenter_core::offering::{Arch, CpuFlags, Hardware, InstanceType};
use serde::de::IgnoredAny;

use crate::Reason;
use crate::rows::ServerRow;

/// Makes instance types, and keeps once what many of them share.
#[derive(Default)]
pub(super) struct Machines {
    texts: HashSet<Arc<str>>,
    flags: HashMap<String, CpuFlags>,
    /// Whether the network of ovh stands in Mbit/s.
    ovh_in_mbps: bool,
}

impl Machines {
    /// The type that a row is, or why it is none.
    pub(super) fn read(&mut self, row: &ServerRow<'_>) -> Result<InstanceType, Reason> {
        let fast = |speed: Option<f64>| speed.is_some_and(|speed| speed >= 1000.0);
        self.ovh_in_mbps |= row.vendor == OVH && (fast(row.network_baseline) || fast(row.network_peak));
        if !row.active {
            return Err(Reason::InactiveType);
        }
        let arch = arch(row).ok_or(Reason::OtherArch)?;
        let mut out = instance_type(row, arch).ok_or(Reason::BadType)?;
        *out.hardware = self.hardware(row);
        Ok(out)
    }

    /// Settles what only all rows together tell.
    pub(super) fn finish(self, types: &mut [InstanceType]) {
        for of in types.iter_mut().filter(|of| self.ovh_in_mbps && of.vendor.as_str() == OVH) {
            for speed in [&mut of.hardware.network_baseline_mbps, &mut of.hardware.network_peak_mbps] {
                *speed = speed.map(|speed| speed / 1000);
            }
        }
    }

    fn hardware(&mut self, row: &ServerRow<'_>) -> Hardware {
        let some = |number: Option<f64>| number.filter(|number| *number > 0.0 && *number < MOST);
        Hardware {
            cpu_cores: count(some(row.cpu_cores)),
            cpu_mhz: thousandths(some(row.cpu_ghz)),
            cpu_family: self.text(row.cpu_family),
            cpu_model: self.text(row.cpu_model),
            cpu_flags: self.flags(row.cpu_flags),
            l1d_kib: count(row.l1d_kib),
            l1i_kib: count(row.l1i_kib),
            l2_kib: count(row.l2_kib),
            l3_kib: count(row.l3_kib),
            l3_total_kib: count(row.l3_total_kib),
            memory_actual_mib: some(row.memory_actual_mib).map(whole),
            gpu_ten_thousandths: count(row.gpu_count.map(|gpus| (gpus * 1e4).round())).unwrap_or(0),
            gpu_memory_min_mib: some(row.gpu_memory_min_mib).map(whole),
            gpu_memory_total_mib: some(row.gpu_memory_total_mib).map(whole),
            gpu_manufacturer: self.text(row.gpu_manufacturer),
            gpu_family: self.text(row.gpu_family),
            gpu_model: self.text(row.gpu_model),
            network_baseline_mbps: thousandths(some(row.network_baseline)),
            network_peak_mbps: thousandths(some(row.network_peak)),
            local_storage_gb: row.storage_gb.map_or(0, whole),
            local_storages: list_length(row.storages),
            // The database writes `NVME_SSD`, the Keeper `nvme ssd`.
            storage_type: self.text(&row.storage_type.to_ascii_lowercase().replace('_', " ")),
            ipv4: count(row.ipv4).unwrap_or(0),
            start_millis: thousandths(some(row.time_to_start)),
            retiring: row.retiring,
        }
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        let text = text.trim();
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new = Arc::from(text);
        self.texts.insert(Arc::clone(&new));
        new
    }

    /// Flags of a JSON list; none of what is not one.
    fn flags(&mut self, json: &str) -> CpuFlags {
        if let Some(known) = self.flags.get(json) {
            return known.clone();
        }
        let words: Vec<String> = serde_json::from_str(json).unwrap_or_default();
        let flags: CpuFlags = words.iter().map(String::as_str).collect();
        self.flags.insert(json.to_owned(), flags.clone());
        flags
    }
}

const OVH: &str = "ovh";
/// More than anything that a machine has.
const MOST: f64 = 1e15;

/// Families of Google's that are Arm whatever the catalog says: a dump of January 2026 called c4a and n4a x86.
const GCP_ARM: [&str; 3] = ["c4a-", "n4a-", "t2a-"];

fn arch(row: &ServerRow<'_>) -> Option<Arch> {
    let listed = match row.cpu_architecture.to_ascii_lowercase().as_str() {
        "x86_64" => Arch::Amd64,
        "arm64" => Arch::Arm64,
        _ => return None,
    };
    let arm = row.vendor == "gcp" && GCP_ARM.iter().any(|family| row.api_reference.starts_with(family));
    Some(if arm { Arch::Arm64 } else { listed })
}

fn instance_type(row: &ServerRow<'_>, arch: Arch) -> Option<InstanceType> {
    let cpu = count(row.vcpus).filter(|cpu| *cpu > 0)?;
    let memory_mib = row.memory_mib.map(whole).filter(|memory| *memory > 0)?;
    let name = Some(row.api_reference).filter(|name| !name.is_empty() && !row.vendor.is_empty())?;
    let gpu_count = u32::try_from(row.gpu_count.map_or(0, whole)).ok()?;
    let gpu = |text: &str| if gpu_count > 0 { text.trim().to_owned() } else { String::new() };
    Some(InstanceType {
        vendor: row.vendor.into(),
        name: name.to_owned(),
        arch,
        family: row.family.trim().to_owned(),
        cpu,
        memory_mib,
        storage_gb: boot_disk_gb(row),
        gpu_count,
        gpu_manufacturer: gpu(row.gpu_manufacturer),
        gpu_model: gpu(row.gpu_model),
        cpu_manufacturer: row.cpu_manufacturer.trim().to_owned(),
        cpu_allocation: row.cpu_allocation.to_ascii_lowercase(),
        benchmarks: BTreeMap::new(),
        hardware: Box::default(),
    })
}

/// The disk that a machine starts from, where it comes with the type.
///
/// AWS, Azure, Google and Alibaba start from a disk that is sold apart; what the catalog lists there is a second,
/// empty one, of which kubelet sees nothing.
fn boot_disk_gb(row: &ServerRow<'_>) -> u64 {
    let apart = matches!(row.vendor, "aws" | "azure" | "gcp" | "alicloud")
        || row.storage_type.eq_ignore_ascii_case("network");
    if apart { 0 } else { row.storage_gb.map_or(0, whole) }
}

/// The whole part of a number, 0 for what is none: fractions of a GPU count as none.
fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and not negative"
    )]
    let whole = if (0.0..MOST).contains(&number) { number as u64 } else { 0 };
    whole
}

/// A number that counts something, whole; `None` for what does not.
fn count(number: Option<f64>) -> Option<u32> {
    u32::try_from(whole(number.filter(|number| (0.0..MOST).contains(number))?)).ok()
}

/// How many thousandths a number has: GHz in MHz, Gbit/s in Mbit/s, seconds in milliseconds.
fn thousandths(number: Option<f64>) -> Option<u32> {
    count(number.map(|number| (number * 1000.0).round()))
}

fn list_length(json: &str) -> u32 {
    let items: Vec<IgnoredAny> = serde_json::from_str(json).unwrap_or_default();
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
