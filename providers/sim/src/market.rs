//! What the played vendors sell now, by a YAML file, read again whenever it changes.
//!
//! ```yaml
//! offerings:
//!   - {vendor: hcloud, instanceType: ccx33, region: fsn1, zone: fsn1, microUsdPerHour: 190000}   # another price
//!   - {vendor: hcloud, instanceType: cx22, region: nbg1, available: false}                        # cannot be had
//!   - {vendor: local, instanceType: bench, region: rack, microUsdPerHour: 0}                       # not in the catalog
//! instanceTypes:
//!   - {vendor: local, name: bench, arch: amd64, cpu: 8, memoryMib: 16384, storageGb: 100}
//! ```
//!
//! `capacityType` is `on-demand` unless said otherwise, `available` true; a price that is absent is the catalog's, a zone
//! that is absent is every zone. A machine that cannot be had is refused as sold out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{Arch, CapacityType, InstanceType, Place, Price};
use scarpenter_provider::CreateMachine;
use scarpenter_provider::request::{LiveOffering, LiveOfferings};
use serde::Deserialize;

/// A file of what is sold; without one the vendors do not tell.
#[derive(Debug, Default)]
pub struct Market {
    path: Option<PathBuf>,
    state: Mutex<Option<(String, Listed)>>,
}

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Listed {
    offerings: Vec<Row>,
    instance_types: Vec<TypeRow>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    vendor: Vendor,
    instance_type: String,
    region: String,
    zone: Option<String>,
    #[serde(default = "on_demand")]
    capacity_type: CapacityType,
    micro_usd_per_hour: Option<u64>,
    #[serde(default = "yes")]
    available: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TypeRow {
    vendor: Vendor,
    name: String,
    arch: Arch,
    cpu: u32,
    memory_mib: u64,
    #[serde(default)]
    storage_gb: u64,
}

fn on_demand() -> CapacityType {
    CapacityType::OnDemand
}

fn yes() -> bool {
    true
}

/// Why a file of what is sold cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    /// It cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It says what is not understood.
    #[error("understand what is sold: {why}")]
    Parse {
        /// What.
        why: String,
    },
}

impl Market {
    /// The vendors do not tell.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// What a text says; for tests.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn from_text(text: &str) -> Result<Self, MarketError> {
        Ok(Self { path: None, state: Mutex::new(Some((text.to_owned(), parse(text)?))) })
    }

    /// What a file says.
    ///
    /// # Errors
    /// When it cannot be read or is not understood.
    pub fn from_file(path: &Path) -> Result<Self, MarketError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| MarketError::Read { path: path.to_owned(), source })?;
        Ok(Self { path: Some(path.to_owned()), ..Self::from_text(&text)? })
    }

    /// Whether the vendors tell.
    pub(crate) fn tells(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What one vendor sells now, in these regions; no region is all of them.
    pub(crate) fn of(&self, vendor: &Vendor, regions: &[String]) -> LiveOfferings {
        let listed = self.listed();
        let wanted =
            |row: &&Row| row.vendor == *vendor && (regions.is_empty() || regions.contains(&row.region));
        let types = listed.instance_types.iter().filter(|row| row.vendor == *vendor);
        LiveOfferings {
            offerings: listed.offerings.iter().filter(wanted).map(Row::live).collect(),
            instance_types: types.map(TypeRow::instance_type).collect(),
        }
    }

    /// Whether a machine cannot be had: its zone is named as such, or its region where its zone is not named.
    pub(crate) fn is_sold_out(&self, vendor: &Vendor, create: &CreateMachine) -> bool {
        let listed = self.listed();
        let rows = listed.offerings.iter().filter(|row| {
            row.vendor == *vendor
                && row.instance_type == create.instance_type
                && row.region == create.place.region
                && row.capacity_type == create.capacity_type
        });
        let rows: Vec<&Row> = rows.collect();
        let of = |zone: &Option<String>| rows.iter().find(|row| row.zone == *zone);
        of(&create.place.zone).or_else(|| of(&None)).is_some_and(|row| !row.available)
    }

    /// Takes a changed file first. One that is gone or not understood changes nothing.
    fn listed(&self) -> Listed {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let text = self.path.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let changed = text.filter(|text| state.as_ref().is_none_or(|(known, _)| known != text));
        if let Some(text) = changed {
            match parse(&text) {
                Ok(listed) => *state = Some((text, listed)),
                Err(error) => tracing::warn!(%error, "what is sold has changed and is not understood"),
            }
        }
        state.as_ref().map(|(_, listed)| listed.clone()).unwrap_or_default()
    }
}

fn parse(text: &str) -> Result<Listed, MarketError> {
    if text.trim().is_empty() {
        return Ok(Listed::default());
    }
    serde_saphyr::from_str(text).map_err(|error| MarketError::Parse { why: error.to_string() })
}

impl Row {
    fn live(&self) -> LiveOffering {
        LiveOffering {
            instance_type: self.instance_type.clone(),
            place: Place { region: self.region.clone(), zone: self.zone.clone(), zone_id: None },
            capacity_type: self.capacity_type,
            price: self.micro_usd_per_hour.map(Price::from_micro_usd),
            available: self.available,
        }
    }
}

impl TypeRow {
    fn instance_type(&self) -> InstanceType {
        InstanceType {
            vendor: self.vendor.clone(),
            name: self.name.clone(),
            arch: self.arch,
            family: String::new(),
            cpu: self.cpu,
            memory_mib: self.memory_mib,
            storage_gb: self.storage_gb,
            gpu_count: 0,
            gpu_manufacturer: String::new(),
            gpu_model: String::new(),
            cpu_manufacturer: String::new(),
            cpu_allocation: String::new(),
            benchmarks: BTreeMap::new(),
            hardware: Box::default(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn example() -> String {
        let lines = include_str!("market.rs").lines().skip_while(|line| !line.contains("```yaml")).skip(1);
        let lines = lines.take_while(|line| !line.contains("```"));
        lines.map(|line| format!("{}\n", line.trim_start_matches("//!"))).collect()
    }

    #[test]
    fn the_example_in_the_documentation_is_understood() {
        let market = Market::from_text(&example()).unwrap();
        let hcloud = market.of(&"hcloud".into(), &[]);
        let told: Vec<_> =
            hcloud.offerings.iter().map(|row| (row.price.map(Price::micro_usd), row.available)).collect();
        assert_eq!(told, [(Some(190_000), true), (None, false)]);
        assert_eq!(market.of(&"hcloud".into(), &["fsn1".to_owned()]).offerings.len(), 1);
        let local = market.of(&"local".into(), &[]);
        assert_eq!((local.offerings[0].price.unwrap().micro_usd(), local.instance_types[0].cpu), (0, 8));
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        for text in ["offering: []", "offerings: [{vendor: v}]", "offerings: [{vendr: v}]", "offerings: x"] {
            assert!(Market::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_changed_file_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("market.yaml");
        std::fs::write(&path, "").unwrap();
        let market = Market::from_file(&path).unwrap();
        let sold = || market.of(&"v".into(), &[]).offerings.len();
        assert!(market.tells() && !Market::none().tells());
        assert_eq!(sold(), 0);
        std::fs::write(&path, "offerings: [{vendor: v, instanceType: t, region: r}]").unwrap();
        assert_eq!(sold(), 1);
        std::fs::write(&path, "offerings: [").unwrap();
        assert_eq!(sold(), 1);
    }
}
