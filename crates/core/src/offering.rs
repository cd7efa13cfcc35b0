//! A thing that can be bought: instance type × place × capacity type, with its price.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::Vendor;
use crate::resources::{self, Resources};

mod hardware;
mod terms;

pub use hardware::{CpuFlags, Hardware};
pub use terms::{Currency, Money, Terms};

/// How long the vendor promises the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityType {
    /// Until given back.
    OnDemand,
    /// Until the vendor wants it back.
    Spot,
}

impl CapacityType {
    /// Value of label `karpenter.sh/capacity-type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }

    /// The capacity type that a label value names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::OnDemand, Self::Spot].into_iter().find(|capacity| capacity.as_str() == text)
    }
}

/// Processor architectures that Kubernetes has a name for and vendors sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64.
    Amd64,
    /// 64-bit Arm.
    Arm64,
}

impl Arch {
    /// Value of label `kubernetes.io/arch`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// Money per hour in integer micro-USD. Never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Price(u64);

impl Price {
    /// So many micro-USD an hour.
    #[must_use]
    pub fn from_micro_usd(micro_usd: u64) -> Self {
        Self(micro_usd)
    }

    /// A catalog's price per hour in USD, rounded half up; `None` for zero, negative, NaN and infinite (no offering).
    #[must_use]
    pub fn from_usd(usd: f64) -> Option<Self> {
        let micro = (usd * 1e6).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a positive, small integer"
        )]
        let price = (1.0..1e15).contains(&micro).then_some(Self(micro as u64));
        price
    }

    /// Micro-USD an hour.
    #[must_use]
    pub fn micro_usd(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}/h", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// What a vendor sells under one name, wherever it sells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// Whose it is.
    pub vendor: Vendor,
    /// The vendor's name for it (`api_reference`), such as `ccx33`.
    pub name: String,
    /// Architecture.
    pub arch: Arch,
    /// Family, such as `c8a`; empty when the catalog has none.
    pub family: String,
    /// vCPUs.
    pub cpu: u32,
    /// Memory in MiB as the catalog has it (a Hetzner "32 GB" is 32000).
    pub memory_mib: u64,
    /// Local disk in GB, 0 when it has none.
    pub storage_gb: u64,
    /// Whole GPUs; fractions count as none.
    pub gpu_count: u32,
    /// GPU maker as the catalog has it, empty when none.
    pub gpu_manufacturer: String,
    /// GPU model, empty when none.
    pub gpu_model: String,
    /// CPU maker as the catalog has it, empty when unknown.
    pub cpu_manufacturer: String,
    /// `Shared`, `Burstable` or `Dedicated` in lower case, empty when unknown.
    pub cpu_allocation: String,
    /// Scores by benchmark name of [`crate::label::BENCHMARKS`], rounded half up; absent when not measured.
    pub benchmarks: BTreeMap<&'static str, u64>,
    /// What no label says.
    pub hardware: Box<Hardware>,
}

impl InstanceType {
    /// Labels that every machine of this type carries, whatever its place. Absent facts give no label.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        use crate::label::{self, label_value};
        let mut out = BTreeMap::new();
        let mut put = |key: &str, value: String| {
            if !value.is_empty() {
                out.insert(key.to_owned(), value);
            }
        };
        put(label::VENDOR, label_value(self.vendor.as_str()));
        put(label::INSTANCE_TYPE, label_value(&self.name));
        put(label::ARCH, self.arch.as_str().to_owned());
        put(label::OS, "linux".to_owned());
        put(label::INSTANCE_FAMILY, label_value(&self.family));
        put(label::INSTANCE_CPU, self.cpu.to_string());
        put(label::INSTANCE_MEMORY, self.memory_mib.to_string());
        put(label::CPU_MANUFACTURER, label_value(&self.cpu_manufacturer));
        put(label::CPU_ALLOCATION, label_value(&self.cpu_allocation));
        if self.gpu_count > 0 {
            put(label::INSTANCE_GPU_COUNT, self.gpu_count.to_string());
            put(label::INSTANCE_GPU_MODEL, label_value(&self.gpu_model));
        }
        for (name, score) in &self.benchmarks {
            put(&format!("{}{name}", label::BENCHMARK_PREFIX), score.to_string());
        }
        out
    }

    /// What the machine has, before anything is taken off. The disk is `boot_disk_gib` where the type has none.
    #[must_use]
    pub fn capacity(&self, boot_disk_gib: u64, max_pods: u32) -> Resources {
        let disk = if self.storage_gb > 0 {
            self.storage_gb.saturating_mul(1_000_000_000)
        } else {
            boot_disk_gib.saturating_mul(1 << 30)
        };
        let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut out = Resources::new()
            .with(resources::CPU, i64::from(self.cpu) * 1000)
            .with(resources::MEMORY, int(self.memory_mib.saturating_mul(1 << 20)))
            .with(resources::EPHEMERAL_STORAGE, int(disk))
            .with(resources::PODS, i64::from(max_pods));
        if self.gpu_count > 0 {
            let name = match self.gpu_manufacturer.to_ascii_lowercase().as_str() {
                "nvidia" => "nvidia.com/gpu",
                "amd" => "amd.com/gpu",
                _ => return out,
            };
            out.set(name, i64::from(self.gpu_count));
        }
        out
    }
}

/// Where a machine can be: a region, and a zone where the vendor has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The vendor's own region name, such as `us-west-2` or `fsn1`.
    pub region: String,
    /// The vendor's own zone name; `None` when the catalog names none.
    pub zone: Option<String>,
    /// AWS zone id, where the zone has one apart from its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// Names one offering exactly; the key of the stock-out memory and of `launch`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferingKey {
    /// Whose it is.
    pub vendor: Vendor,
    /// Region name.
    pub region: String,
    /// Zone name, if any.
    pub zone: Option<String>,
    /// Instance type name.
    pub instance_type: String,
    /// On-demand or spot.
    pub capacity_type: CapacityType,
}

impl fmt::Display for OfferingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.zone.as_deref().unwrap_or(&self.region);
        write!(f, "{}/{}/{}/{}", self.vendor, place, self.instance_type, self.capacity_type.as_str())
    }
}

/// The committed binding of a claim to one offering, as annotation `launch` stores it.
///
/// It holds all that create and the node's labels need, so that neither asks the catalog again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// What is bought.
    #[serde(flatten)]
    pub offering: OfferingKey,
    /// AWS zone id, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// Architecture.
    pub arch: Arch,
    /// Price per hour when it was chosen.
    pub price_per_hour_micro_usd: Price,
    /// Everything that the machine has (see [`InstanceType::capacity`]).
    pub capacity: Resources,
    /// Capacity less what kubelet keeps back.
    pub allocatable: Resources,
    /// Labels of the machine: type, place, price, tenancy.
    pub labels: BTreeMap<String, String>,
}

/// Labels of an offering that its type does not have: place, capacity type, price.
#[must_use]
pub fn place_labels(
    vendor: &Vendor,
    place: &Place,
    capacity: CapacityType,
    price: Price,
) -> BTreeMap<String, String> {
    use crate::label::{self, label_value};
    let mut out = BTreeMap::from([
        (label::REGION.to_owned(), label_value(&place.region)),
        (label::UNIQUE_REGION.to_owned(), label_value(&format!("{vendor}.{}", place.region))),
        (label::CAPACITY_TYPE.to_owned(), capacity.as_str().to_owned()),
        (label::PRICE.to_owned(), price.micro_usd().to_string()),
    ]);
    if let Some(zone) = &place.zone {
        out.insert(label::ZONE.to_owned(), label_value(zone));
        out.insert(label::UNIQUE_ZONE.to_owned(), label_value(&format!("{vendor}.{zone}")));
    }
    if let Some(id) = &place.zone_id {
        out.insert(label::AWS_ZONE_ID.to_owned(), label_value(id));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_that_is_no_price_is_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            assert_eq!(Price::from_usd(bad), None, "{bad}");
        }
        assert_eq!(Price::from_usd(0.107_46), Some(Price::from_micro_usd(107_460)));
        assert_eq!(Price::from_micro_usd(107_460).to_string(), "$0.107460/h");
    }
}
