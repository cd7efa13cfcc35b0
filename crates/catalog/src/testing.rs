//! For tests: a small database whose rows are right until a test spoils one, and a catalog as plain lines.
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use scarpenter_core::snapshot::Offering;
use tempfile::TempDir;

use crate::rows::{PriceRow, RegionRow, ScoreRow, ServerRow, Table, ZoneRow};
use crate::{Catalog, Error, Rates, Report, open_sqlite};

/// Table `server` with the columns that a test fills; the others are null.
pub(crate) const SERVER: &str = "server (vendor_id, server_id, api_reference, family, vcpus, cpu_architecture, \
    cpu_allocation, cpu_manufacturer, memory_amount, storage_size, storage_type, gpu_count, gpu_manufacturer, gpu_model, status)";
/// Table `server_price` likewise.
pub(crate) const PRICE: &str = "server_price (vendor_id, region_id, zone_id, server_id, operating_system, allocation, \
    unit, price, currency, status, observed_at)";

/// A database in a temporary folder, with the columns that are read and no constraints.
pub(crate) struct TestDatabase {
    folder: TempDir,
    connection: Connection,
}

impl TestDatabase {
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("catalog.sqlite")).unwrap();
        let out = Self { folder, connection };
        out.run("PRAGMA synchronous = OFF");
        for Table { name, columns } in
            [RegionRow::TABLE, ZoneRow::TABLE, ServerRow::TABLE, ScoreRow::TABLE, PriceRow::TABLE]
        {
            out.run(&format!("CREATE TABLE {name} ({})", columns.join(", ")));
        }
        out
    }

    /// One type of each of three vendors, one price each, in the ids of the real catalog.
    pub(crate) fn small() -> Self {
        let out = Self::empty();
        for (vendor, region, zone, server, price) in [
            (
                "aws",
                ("us-east-1", "us-east-1", "[]"),
                ("use1-az2", "us-east-1c"),
                ("c8a.large", "c8a.large", 2, 4096),
                0.1078,
            ),
            (
                "gcp",
                ("1000", "us-central1", "[]"),
                ("2000", "us-central1-a"),
                ("335004", "e2-standard-4", 4, 16384),
                0.134,
            ),
            (
                "hcloud",
                ("4", "fsn1-dc14", "[\"fsn1\"]"),
                ("4", "fsn1-dc14"),
                ("98", "ccx33", 8, 32000),
                0.2219,
            ),
        ] {
            let currency = if vendor == "hcloud" { "EUR" } else { "USD" };
            out.run(&format!(
                "INSERT INTO region VALUES ('{vendor}', '{}', '{}', '{}', 'ACTIVE')",
                region.0, region.1, region.2
            ));
            out.run(&format!(
                "INSERT INTO zone VALUES ('{vendor}', '{}', '{}', '{}', 'ACTIVE')",
                region.0, zone.0, zone.1
            ));
            out.run(&format!(
                "INSERT INTO {SERVER} VALUES ('{vendor}', '{}', '{}', 'family', {}, 'X86_64', 'DEDICATED', 'AMD', {}, 0, NULL, 0.0, \
                 NULL, NULL, 'ACTIVE')",
                server.0, server.1, server.2, server.3
            ));
            out.run(&format!(
                "INSERT INTO {PRICE} VALUES ('{vendor}', '{}', '{}', '{}', 'Linux', 'ONDEMAND', 'HOUR', {price}, \
                 '{currency}', 'ACTIVE', '2026-08-22 03:50:12.000000')",
                region.0, zone.0, server.0
            ));
        }
        out
    }

    pub(crate) fn run(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }

    /// The same with statements run over it.
    pub(crate) fn with(self, sql: &str) -> Self {
        self.run(sql);
        self
    }

    pub(crate) fn score(self, benchmark: &str, config: &str, score: &str) -> Self {
        self.with(&format!("INSERT INTO benchmark_score VALUES ('aws', 'c8a.large', '{benchmark}', '{config}', {score}, 'ACTIVE')"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("catalog.sqlite")
    }

    pub(crate) fn open(&self) -> Result<Catalog, Error> {
        open_sqlite(&self.path(), &rates())
    }

    pub(crate) fn read(&self) -> Catalog {
        self.open().unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.read())
    }
}

/// `vendor region/zone type capacity micro-USD`, one an offering, in text order.
pub(crate) fn lines(catalog: &Catalog) -> Vec<String> {
    let line = |offering: Offering<'_>| {
        let key = offering.key();
        let zone = key.zone.as_deref().unwrap_or("none");
        let capacity = key.capacity_type.as_str();
        format!(
            "{} {}/{zone} {} {capacity} {}",
            key.vendor,
            key.region,
            key.instance_type,
            offering.price().micro_usd()
        )
    };
    let mut lines: Vec<String> = catalog.snapshot.offerings().map(line).collect();
    lines.sort();
    lines
}

/// Fails where two catalogs differ in any type, offering or fact about them, whatever they were read from.
pub(crate) fn assert_same(have: &Catalog, want: &Catalog) {
    assert_eq!(have.snapshot.types(), want.snapshot.types());
    let want_all = &want.snapshot;
    assert_eq!(have.snapshot.len(), want_all.len());
    for (have, want) in have.snapshot.offerings().zip(want.snapshot.offerings()) {
        assert_eq!((have.key(), have.price(), have.terms()), (want.key(), want.price(), want.terms()));
        assert_eq!(have.place(), want.place());
        // Labels are of the type, the place and the price alone, and take long to make.
        if want_all.offerings_of(want.type_index()).next() == Some(want.id()) {
            assert_eq!(have.labels(), want.labels());
        }
    }
    assert_eq!(have.scores, want.scores);
    let without_source = |catalog: &Catalog| Report { source: String::new(), ..catalog.report.clone() };
    assert_eq!(without_source(have), without_source(want));
}

/// The rates that tests use: round figures.
pub(crate) fn rates() -> Rates {
    ["EUR=2", "CNY=0.5"].into_iter().map(|rate| rate.parse::<crate::Rate>().unwrap()).collect()
}

/// The real catalog, or `None` after a line on stderr where it is not at hand.
pub(crate) fn real_catalog(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SCARPENTER_SHARED").map_or(beside, PathBuf::from);
    let path = shared.join("keeper/catalog.sqlite");
    if !path.is_file() {
        // Not `eprintln`, which the test harness keeps to itself.
        let line = format!(
            "not run: {test} needs keeper/catalog.sqlite in the folder that SCARPENTER_SHARED names\n"
        );
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    }
    Some(path)
}
