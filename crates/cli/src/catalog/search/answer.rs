//! What `catalog search` answers: version 1 of its JSON, its columns, its table.
//!
//! ```json
//! {"version": 1, "catalog": {"source": "…", "fetched": null, "date": "2026-08-22T03:50:12Z"},
//!  "where": "arch=arm64,capacity=on-demand", "sort": "price", "rows": "region", "benchmark": null,
//!  "found": 812, "offerings": [{"vendor": "aws", "instanceType": "t4g.nano", "region": "us-east-1",
//!  "zone": "us-east-1a", "capacityType": "on-demand", "arch": "arm64", "cpu": 2, "memoryMib": 512, "gpuCount": 0,
//!  "gpuModel": null, "pricePerHourMicroUsd": 4200, "price": "0.004200", "currency": "USD", "score": null,
//!  "scorePerUsd": null}]}
//! ```
//!
//! `found` counts all rows, `offerings` holds those that `--limit` leaves. `price` is an hour in `currency`, a decimal
//! with six digits behind the point. `scorePerUsd` is the score for a dollar an hour.

use clap::ValueEnum;
use scarpenter_core::offering::{Arch, CapacityType, Price};
use scarpenter_core::requirements::parse;
use scarpenter_core::snapshot::Offering;
use serde::Serialize;

use super::super::grid::{Grid, numbers, words};
use super::super::view::VERSION;
use super::super::words::{CatalogDocument, count, decimal, usd};
use super::{Answer, Query};

#[derive(Debug, Serialize)]
pub(super) struct SearchDocument {
    version: u32,
    catalog: CatalogDocument,
    /// The requirements as they were understood.
    r#where: String,
    sort: String,
    rows: String,
    benchmark: Option<&'static str>,
    found: usize,
    offerings: Vec<FoundDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundDocument {
    vendor: String,
    instance_type: String,
    region: String,
    zone: Option<String>,
    capacity_type: CapacityType,
    arch: Arch,
    cpu: u32,
    memory_mib: u64,
    gpu_count: u32,
    gpu_model: Option<String>,
    price_per_hour_micro_usd: Price,
    price: String,
    currency: String,
    score: Option<u64>,
    score_per_usd: Option<f64>,
}

impl SearchDocument {
    pub(super) fn new(answer: &Answer<'_>) -> Self {
        let Query { requirements, sort, benchmark, rows } = answer.query;
        Self {
            version: VERSION,
            catalog: CatalogDocument::new(&answer.catalog.report),
            r#where: parse::write(&requirements.to_list()),
            sort: name(sort),
            rows: name(rows),
            benchmark: *benchmark,
            found: answer.found.len(),
            offerings: answer.shown().map(|offering| FoundDocument::new(answer.query, &offering)).collect(),
        }
    }
}

/// A choice as it is written on the command line.
fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl FoundDocument {
    fn new(query: &Query, offering: &Offering<'_>) -> Self {
        let key = offering.key();
        let instance_type = offering.instance_type();
        let native = offering.native_price();
        Self {
            vendor: key.vendor.to_string(),
            instance_type: key.instance_type,
            region: key.region,
            zone: key.zone,
            capacity_type: key.capacity_type,
            arch: instance_type.arch,
            cpu: instance_type.cpu,
            memory_mib: instance_type.memory_mib,
            gpu_count: instance_type.gpu_count,
            gpu_model: (!instance_type.gpu_model.is_empty()).then(|| instance_type.gpu_model.clone()),
            price_per_hour_micro_usd: offering.price(),
            price: decimal(native.micro),
            currency: native.currency.to_string(),
            score: query.score(offering),
            score_per_usd: query.score_per_usd(offering),
        }
    }
}

/// The rows that are shown; score columns only where a benchmark is asked for.
pub(super) fn grid(answer: &Answer<'_>) -> Grid {
    let mut columns = vec![
        words("VENDOR", "vendor"),
        words("TYPE", "instance_type"),
        words("REGION", "region"),
        words("ZONE", "zone"),
        words("CAPACITY", "capacity_type"),
        words("ARCH", "arch"),
        numbers("CPU", "cpu"),
        numbers("MIB", "memory_mib"),
        numbers("GPU", "gpu_count"),
        numbers("USD/HOUR", "usd_per_hour"),
    ];
    if let Some(benchmark) = answer.query.benchmark {
        columns.push(numbers(benchmark.to_uppercase(), benchmark.replace('-', "_")));
        columns.push(numbers("PER USD", "score_per_usd"));
    }
    let mut grid = Grid::new(columns);
    for offering in answer.shown() {
        let instance_type = offering.instance_type();
        let place = offering.place();
        let mut row = vec![
            instance_type.vendor.to_string(),
            instance_type.name.clone(),
            place.region.clone(),
            place.zone.clone().unwrap_or_default(),
            offering.capacity_type().as_str().to_owned(),
            instance_type.arch.as_str().to_owned(),
            instance_type.cpu.to_string(),
            instance_type.memory_mib.to_string(),
            if instance_type.gpu_count > 0 { instance_type.gpu_count.to_string() } else { String::new() },
            usd(offering.price()),
        ];
        if answer.query.benchmark.is_some() {
            let score = answer.query.score(&offering).map(|score| score.to_string());
            let per_usd = answer.query.score_per_usd(&offering).map(|score| format!("{score:.0}"));
            row.extend([score.unwrap_or_default(), per_usd.unwrap_or_default()]);
        }
        grid.push(row);
    }
    grid
}

/// The rows, and how many there are in all.
pub(super) fn table(answer: &Answer<'_>) -> String {
    let (shown, found) = (answer.shown().count(), answer.found.len());
    match (shown, found) {
        (_, 0) => "nothing in the catalog matches\n".to_owned(),
        (shown, found) if shown < found => {
            let table = grid(answer).table();
            format!("{table}\n{shown} of {}; --limit 0 shows all\n", count(found, "row"))
        }
        _ => format!("{}\n{}\n", grid(answer).table(), count(found, "row")),
    }
}
