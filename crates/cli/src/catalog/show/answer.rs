//! What `catalog show` answers: version 1 of its JSON, its columns, its table.
//!
//! ```json
//! {"version": 1, "catalog": {"source": "…", "fetched": null, "date": "2026-08-22T03:50:12Z"},
//!  "origin": "…", "hash": null, "notice": "…",
//!  "type": {"vendor": "hcloud", "name": "ccx33", "family": "ccx", "arch": "amd64", "cpu": 8, "memoryMib": 32000,
//!           "gpuCount": 0, "cpuAllocation": "dedicated", "cpuManufacturer": "AMD", "hardware": {…}},
//!  "benchmarks": [{"name": "geekbench-single", "id": "geekbench:score", "config": {"cores": "single"}, "score": 1712.0}],
//!  "offerings": [{"region": "fsn1", "zone": "fsn1", "zoneId": null, "capacityType": "on-demand",
//!  "pricePerHourMicroUsd": 244090, "price": "0.221900", "currency": "EUR", "monthlyCapMicroUsd": null,
//!  "seen": "2026-08-22T03:50:12Z"}]}
//! ```
//!
//! A benchmark without a label has no `name`; scores are as measured, labels round them half up.
//! Offerings are in price order; `price` is an hour in `currency`. The fields of `hardware` are those of
//! [`scarpenter_core::offering::Hardware`], null or empty where nothing is known.

use jiff::Timestamp;
use scarpenter_core::offering::{Arch, CapacityType, Hardware, InstanceType, Price};
use scarpenter_core::snapshot::Offering;
use serde::Serialize;
use serde_json::Value;

use super::super::grid::{Grid, numbers, words};
use super::super::view::VERSION;
use super::super::words::{CatalogDocument, config, config_words, count, decimal, label_name, time, usd};
use super::Shown;
use super::facts::facts;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShowDocument<'a> {
    version: u32,
    catalog: CatalogDocument,
    origin: &'a str,
    hash: Option<&'a str>,
    notice: &'a str,
    r#type: TypeDocument<'a>,
    benchmarks: Vec<ScoreDocument<'a>>,
    offerings: Vec<OfferingDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeDocument<'a> {
    vendor: &'a str,
    name: &'a str,
    family: &'a str,
    arch: Arch,
    cpu: u32,
    memory_mib: u64,
    gpu_count: u32,
    cpu_allocation: &'a str,
    cpu_manufacturer: &'a str,
    hardware: HardwareDocument<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HardwareDocument<'a> {
    cpu_cores: Option<u32>,
    cpu_mhz: Option<u32>,
    cpu_family: &'a str,
    cpu_model: &'a str,
    cpu_flags: Vec<&'a str>,
    l1d_kib: Option<u32>,
    l1i_kib: Option<u32>,
    l2_kib: Option<u32>,
    l3_kib: Option<u32>,
    l3_total_kib: Option<u32>,
    memory_actual_mib: Option<u64>,
    /// GPUs, of which a type may have a part of one.
    gpus: f64,
    gpu_memory_min_mib: Option<u64>,
    gpu_memory_total_mib: Option<u64>,
    gpu_manufacturer: &'a str,
    gpu_family: &'a str,
    gpu_model: &'a str,
    network_baseline_mbps: Option<u32>,
    network_peak_mbps: Option<u32>,
    local_storage_gb: u64,
    local_storages: u32,
    storage_type: &'a str,
    boot_disk_gb: u64,
    ipv4: u32,
    start_millis: Option<u32>,
    retiring: bool,
}

#[derive(Debug, Serialize)]
struct ScoreDocument<'a> {
    name: Option<&'static str>,
    id: &'a str,
    config: Value,
    score: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfferingDocument {
    region: String,
    zone: Option<String>,
    zone_id: Option<String>,
    capacity_type: CapacityType,
    price_per_hour_micro_usd: Price,
    price: String,
    currency: String,
    monthly_cap_micro_usd: Option<u64>,
    seen: Option<Timestamp>,
}

impl<'a> ShowDocument<'a> {
    pub(super) fn new(shown: &Shown<'a>) -> Self {
        let provenance = &shown.catalog.report.provenance;
        Self {
            version: VERSION,
            catalog: CatalogDocument::new(&shown.catalog.report),
            origin: &provenance.source,
            hash: provenance.hash.as_deref(),
            notice: &provenance.notice,
            r#type: TypeDocument::new(shown.instance_type),
            benchmarks: scores(shown),
            offerings: shown.offerings.iter().map(OfferingDocument::new).collect(),
        }
    }
}

impl<'a> TypeDocument<'a> {
    fn new(of: &'a InstanceType) -> Self {
        Self {
            vendor: of.vendor.as_str(),
            name: &of.name,
            family: &of.family,
            arch: of.arch,
            cpu: of.cpu,
            memory_mib: of.memory_mib,
            gpu_count: of.gpu_count,
            cpu_allocation: &of.cpu_allocation,
            cpu_manufacturer: &of.cpu_manufacturer,
            hardware: HardwareDocument::new(of),
        }
    }
}

impl<'a> HardwareDocument<'a> {
    fn new(of: &'a InstanceType) -> Self {
        let Hardware {
            cpu_cores,
            cpu_mhz,
            ref cpu_family,
            ref cpu_model,
            ref cpu_flags,
            l1d_kib,
            l1i_kib,
            l2_kib,
            l3_kib,
            l3_total_kib,
            memory_actual_mib,
            gpu_ten_thousandths,
            gpu_memory_min_mib,
            gpu_memory_total_mib,
            ref gpu_manufacturer,
            ref gpu_family,
            ref gpu_model,
            network_baseline_mbps,
            network_peak_mbps,
            local_storage_gb,
            local_storages,
            ref storage_type,
            ipv4,
            start_millis,
            retiring,
        } = *of.hardware;
        Self {
            cpu_cores,
            cpu_mhz,
            cpu_family,
            cpu_model,
            cpu_flags: cpu_flags.iter().collect(),
            l1d_kib,
            l1i_kib,
            l2_kib,
            l3_kib,
            l3_total_kib,
            memory_actual_mib,
            gpus: f64::from(gpu_ten_thousandths) / 10_000.0,
            gpu_memory_min_mib,
            gpu_memory_total_mib,
            gpu_manufacturer,
            gpu_family,
            gpu_model,
            network_baseline_mbps,
            network_peak_mbps,
            local_storage_gb,
            local_storages,
            storage_type,
            boot_disk_gb: of.storage_gb,
            ipv4,
            start_millis,
            retiring,
        }
    }
}

/// Those that are labels first.
fn scores<'a>(shown: &Shown<'a>) -> Vec<ScoreDocument<'a>> {
    let scores = shown.catalog.scores.of(shown.index).map(|(measurement, score)| ScoreDocument {
        name: label_name(measurement),
        id: measurement.id(),
        config: config(measurement),
        score,
    });
    let mut out: Vec<_> = scores.collect();
    out.sort_by_key(|each| each.name.is_none());
    out
}

/// A score with two digits behind the point at most.
fn hundredths(score: f64) -> String {
    ((score * 100.0).round() / 100.0).to_string()
}

impl ScoreDocument<'_> {
    /// Id and config, and the label's name where there is one.
    fn words(&self) -> String {
        let measured = [self.id.to_owned(), config_words(&self.config)].join(" ");
        let label = self.name.map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}{label}", measured.trim_end())
    }
}

impl OfferingDocument {
    fn new(offering: &Offering<'_>) -> Self {
        let (place, native) = (offering.place(), offering.native_price());
        Self {
            region: place.region.clone(),
            zone: place.zone.clone(),
            zone_id: place.zone_id.clone(),
            capacity_type: offering.capacity_type(),
            price_per_hour_micro_usd: offering.price(),
            price: decimal(native.micro),
            currency: native.currency.to_string(),
            monthly_cap_micro_usd: offering.monthly_cap().map(|cap| cap.micro),
            seen: seen(offering),
        }
    }
}

fn seen(offering: &Offering<'_>) -> Option<Timestamp> {
    Timestamp::from_millisecond(offering.observed()?.millis()).ok()
}

/// Its offerings, in price order.
pub(super) fn grid(shown: &Shown<'_>) -> Grid {
    let mut grid = Grid::new(vec![
        words("REGION", "region"),
        words("ZONE", "zone"),
        words("ZONE ID", "zone_id"),
        words("CAPACITY", "capacity_type"),
        numbers("USD/HOUR", "usd_per_hour"),
        numbers("PRICE/HOUR", "price_per_hour"),
        words("CURRENCY", "currency"),
        numbers("USD/MONTH AT MOST", "monthly_cap_usd"),
        words("SEEN", "seen"),
    ]);
    for offering in &shown.offerings {
        let (place, native) = (offering.place(), offering.native_price());
        grid.push(vec![
            place.region.clone(),
            place.zone.clone().unwrap_or_default(),
            place.zone_id.clone().unwrap_or_default(),
            offering.capacity_type().as_str().to_owned(),
            usd(offering.price()),
            decimal(native.micro),
            native.currency.to_string(),
            offering.monthly_cap().map(|cap| decimal(cap.micro)).unwrap_or_default(),
            time(seen(offering)),
        ]);
    }
    grid
}

/// Facts, scores, offerings, and where all of it is from.
pub(super) fn table(shown: &Shown<'_>) -> String {
    let of = shown.instance_type;
    let mut out = format!("{}/{}\n{}", of.vendor, of.name, block(&facts(of)));
    let scores: Vec<_> = scores(shown).iter().map(|each| (each.words(), hundredths(each.score))).collect();
    out.push_str(&if scores.is_empty() {
        "\nnot measured by any benchmark\n".to_owned()
    } else {
        format!("\nbenchmarks\n{}", block(&scores))
    });
    out.push_str(&if shown.offerings.is_empty() {
        "\nnobody offers it at a known price\n".to_owned()
    } else {
        format!("\n{}\n{}", count(shown.offerings.len(), "offering"), grid(shown).table())
    });
    out.push_str(&format!("\n{}", block(&origin(shown))));
    out
}

fn origin(shown: &Shown<'_>) -> Vec<(&'static str, String)> {
    let CatalogDocument { source, fetched, date } = CatalogDocument::new(&shown.catalog.report);
    let provenance = &shown.catalog.report.provenance;
    let first = Some(provenance.source.clone()).filter(|first| *first != source).unwrap_or_default();
    let all = [
        ("source", source),
        ("first from", first),
        ("fetched", time(fetched)),
        ("newest price", time(date)),
        ("notice", provenance.notice.clone()),
    ];
    all.into_iter().filter(|(_, words)| !words.is_empty()).collect()
}

fn block<N: AsRef<str>>(lines: &[(N, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.as_ref().len()).max().unwrap_or(0);
    lines.iter().map(|(name, words)| format!("  {:width$}  {words}\n", name.as_ref())).collect()
}
