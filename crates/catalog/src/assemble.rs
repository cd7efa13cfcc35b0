//! Puts raw rows together into a catalog: ids become names, rows that are no offering are counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use scarpenter_core::offering::{Arch, CapacityType, InstanceType, Place, Price};
use scarpenter_core::snapshot::SnapshotBuilder;

use crate::rows::{PriceRow, RegionRow, ScoreRow, ServerRow, ZoneRow};
use crate::{Catalog, Rates, Reason, Report, benchmark, place};

/// A catalog in the making.
///
/// Rows are given in this order: regions, zones, servers, scores, prices.
/// A row that refers to one not yet given is left out.
pub(crate) struct Assembly<'r> {
    rates: &'r Rates,
    vendors: HashMap<String, Ids>,
    types: Vec<InstanceType>,
    places: Places,
    offerings: Vec<(u32, u32, CapacityType, Price)>,
    observed: Option<(String, String)>,
    report: Report,
}

/// What the ids of one vendor mean. Ids of two vendors may be equal.
#[derive(Default)]
struct Ids {
    regions: HashMap<String, (String, bool)>,
    zones: HashMap<String, HashMap<String, (u32, bool)>>,
    servers: HashMap<String, u32>,
    type_names: HashSet<String>,
}

impl<'r> Assembly<'r> {
    pub(crate) fn new(rates: &'r Rates) -> Self {
        Self {
            rates,
            vendors: HashMap::new(),
            types: Vec::new(),
            places: Places::default(),
            offerings: Vec::new(),
            observed: None,
            report: Report::default(),
        }
    }

    pub(crate) fn region(&mut self, row: &RegionRow<'_>) {
        let name = (place::region(row), row.active);
        self.ids(row.vendor).regions.insert(row.id.to_owned(), name);
    }

    pub(crate) fn zone(&mut self, row: &ZoneRow<'_>) {
        let Some((region, region_active)) = self.ids(row.vendor).regions.get(row.region_id).cloned() else {
            return;
        };
        let number = self.places.number(place::place(row, &region));
        let zones = self.ids(row.vendor).zones.entry(row.region_id.to_owned()).or_default();
        zones.insert(row.id.to_owned(), (number, row.active && region_active));
    }

    pub(crate) fn server(&mut self, row: &ServerRow<'_>) {
        let checked = if !row.active {
            Err(Reason::InactiveType)
        } else if let Some(arch) = arch(row) {
            instance_type(row, arch).ok_or(Reason::BadType)
        } else {
            Err(Reason::OtherArch)
        };
        let number = number(self.types.len());
        match checked {
            Err(reason) => self.report.drop(reason),
            Ok(known) if !self.ids(row.vendor).type_names.insert(known.name.clone()) => {
                self.report.drop(Reason::BadType)
            }
            Ok(new) => {
                self.ids(row.vendor).servers.insert(row.id.to_owned(), number);
                self.types.push(new);
            }
        }
    }

    pub(crate) fn score(&mut self, row: &ScoreRow<'_>) {
        let Some(name) = benchmark::name(row.benchmark_id, row.config).filter(|_| row.active) else { return };
        let Some(of) = self.vendors.get(row.vendor).and_then(|ids| ids.servers.get(row.server_id)) else {
            return;
        };
        match benchmark::score(row.score) {
            Some(score) => {
                self.types[*of as usize].benchmarks.insert(name, score);
            }
            None => self.report.drop(Reason::BadScore),
        }
    }

    pub(crate) fn price(&mut self, row: &PriceRow<'_>) {
        match self.offering(row) {
            Ok(offering) => {
                self.offerings.push(offering);
                self.observe(row.observed_at);
            }
            Err(Reason::NoRate) => self.report.drop_currency(row.currency),
            Err(reason) => self.report.drop(reason),
        }
    }

    pub(crate) fn finish(self, source: String) -> Catalog {
        let mut builder = SnapshotBuilder::default();
        let ids: Vec<_> = self.types.into_iter().map(|of| builder.instance_type(of)).collect();
        for (of, place, capacity, price) in self.offerings {
            builder.offering(ids[of as usize], self.places.list[place as usize].clone(), capacity, price);
        }
        let snapshot = builder.build();
        let bought = |of: &usize| snapshot.offerings_of(*of).next().is_some();
        let (oldest, date) =
            self.observed.map_or((None, None), |(oldest, newest)| (timestamp(&oldest), timestamp(&newest)));
        let report = Report {
            source,
            offerings: snapshot.len(),
            types: (0..snapshot.types().len()).filter(bought).count(),
            oldest,
            date,
            ..self.report
        };
        Catalog { snapshot: Arc::new(snapshot), report }
    }

    fn ids(&mut self, vendor: &str) -> &mut Ids {
        if !self.vendors.contains_key(vendor) {
            self.vendors.insert(vendor.to_owned(), Ids::default());
        }
        self.vendors.get_mut(vendor).expect("it was just put there")
    }

    /// The checks are in the order of [`Reason`].
    fn offering(&self, row: &PriceRow<'_>) -> Result<(u32, u32, CapacityType, Price), Reason> {
        let ids = self.vendors.get(row.vendor).ok_or(Reason::NoType)?;
        let of = *ids.servers.get(row.server_id).ok_or(Reason::NoType)?;
        let zone = ids.zones.get(row.region_id).and_then(|zones| zones.get(row.zone_id));
        let (place, open) = *zone.ok_or(Reason::NoPlace)?;
        if !open {
            return Err(Reason::InactivePlace);
        }
        if !row.active {
            return Err(Reason::InactivePrice);
        }
        if !row.operating_system.eq_ignore_ascii_case("linux") {
            return Err(Reason::OtherSystem);
        }
        let capacity = capacity_type(row.allocation).ok_or(Reason::OtherAllocation)?;
        if !row.unit.eq_ignore_ascii_case("hour") {
            return Err(Reason::NotHourly);
        }
        let price = row.price.filter(|price| *price > 0.0).ok_or(Reason::NoPrice)?;
        let rate = self.rates.get(row.currency).ok_or(Reason::NoRate)?;
        let price = Price::from_usd(price * rate).ok_or(Reason::NoPrice)?;
        Ok((of, place, capacity, price))
    }

    /// Times of one source are written alike, so the texts sort as the times do.
    fn observe(&mut self, at: &str) {
        let (oldest, newest) = self.observed.get_or_insert_with(|| (at.to_owned(), at.to_owned()));
        if at < oldest.as_str() {
            at.clone_into(oldest);
        } else if at > newest.as_str() {
            at.clone_into(newest);
        }
    }
}

/// Each place once.
#[derive(Default)]
struct Places {
    list: Vec<Place>,
    numbers: HashMap<Place, u32>,
}

impl Places {
    fn number(&mut self, place: Place) -> u32 {
        let next = number(self.list.len());
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.list.push(place);
        }
        number
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a catalog has fewer than four thousand million rows")
}

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
    let cpu = u32::try_from(whole(row.vcpus)).ok().filter(|cpu| *cpu > 0)?;
    let memory_mib = Some(whole(row.memory_mib)).filter(|memory| *memory > 0)?;
    let name = Some(row.api_reference).filter(|name| !name.is_empty() && !row.vendor.is_empty())?;
    let gpu_count = u32::try_from(whole(row.gpu_count)).ok()?;
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
    })
}

/// The disk that a machine starts from, where it comes with the type.
///
/// AWS, Azure, Google and Alibaba start from a disk that is sold apart; what the catalog lists there is a second,
/// empty one, of which kubelet sees nothing.
fn boot_disk_gb(row: &ServerRow<'_>) -> u64 {
    let apart = matches!(row.vendor, "aws" | "azure" | "gcp" | "alicloud")
        || row.storage_type.eq_ignore_ascii_case("network");
    if apart { 0 } else { whole(row.storage_gb) }
}

/// The whole part of a number, 0 for what is none: fractions of a GPU count as none.
fn whole(number: Option<f64>) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and not negative"
    )]
    let whole = number.filter(|number| *number >= 0.0 && *number < 1e15).map_or(0, |number| number as u64);
    whole
}

/// The database writes `ONDEMAND`, the Keeper `ondemand`.
fn capacity_type(allocation: &str) -> Option<CapacityType> {
    match allocation.to_ascii_lowercase().as_str() {
        "ondemand" => Some(CapacityType::OnDemand),
        "spot" => Some(CapacityType::Spot),
        _ => None,
    }
}

/// A time of the catalog's: it names no zone and means UTC.
fn timestamp(text: &str) -> Option<Timestamp> {
    text.parse()
        .ok()
        .or_else(|| Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
