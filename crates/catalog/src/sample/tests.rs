//! The sample is checked by itself, and, where the real catalog is at hand, written anew from it and compared.
//!
//! To accept a change: `SCARPENTER_UPDATE=1 cargo test -p scarpenter-catalog sample`, and read the diff.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use scarpenter_core::offering::Arch;

use super::*;
use crate::benchmark;
use crate::testing::{lines, real_catalog};

const HEADER: &str = "\
# Built-in sample of the Spare Cores catalog: list prices and benchmark scores as they were on 2026-08-22 and before
# (observed_at, UTC, says when each price was seen).
#
# Written by a test (src/sample/tests.rs) from a database in the tables of sparecores-crawler 0.8.5; not edited by hand.
# Sources and licences:
# - servers, regions, zones, benchmark scores, prices of hcloud, ovh, upcloud and vultr: Spare Cores data (sc-data-dumps,
#   sc-inspector-data, sc-navigator-descriptions; sparecores.com), CC BY-SA 4.0. This file is under the same licence.
#   Changed: a few rows and columns were taken out of many.
# - prices of aws in us-east-1, of azure, gcp and alicloud: generated price tables of karpenter-provider-aws,
#   karpenter-provider-azure, karpenter-provider-gcp and karpenter-provider-alibabacloud, Apache-2.0.
# - prices of aws elsewhere: AWS's own price lists of 2025-04-04, by way of ec2.shop (MIT).
# Where hcloud, ovh, upcloud and vultr sell at the same price in several places, a place is inferred in part.
#
# The two rates below are round figures, fixed on 2026-11-30 for this sample alone; they are no market rates.
# `--rate EUR=…` and `--rate CNY=…` go before them.
";

const RATES: [(&str, &str); 2] = [("CNY", "0.14"), ("EUR", "1.10")];

/// Vendor, region, number of zones, types.
const CHOSEN: [(&str, &str, usize, &str); 22] = [
    (
        "alicloud",
        "cn-hangzhou",
        1,
        "ecs.g7.large ecs.c8y.large ecs.c8y.2xlarge ecs.c8a.2xlarge ecs.gn5-c8g1.2xlarge ecs.t6-c1m2.large",
    ),
    ("alicloud", "us-east-1", 1, "ecs.c7.2xlarge ecs.g8i.large ecs.t5-c1m2.large ecs.c7.16xlarge"),
    ("alicloud", "eu-central-1", 1, "ecs.c8a.large ecs.g7.large"),
    (
        "aws",
        "us-east-1",
        1,
        "t3.medium t4g.small t4g.2xlarge c8a.large c8a.xlarge c8a.2xlarge c8g.2xlarge c9g.2xlarge m7i.large m8g.2xlarge r7i.large \
         m7a.16xlarge g5.xlarge g6.xlarge",
    ),
    ("aws", "us-west-2", 2, "t3.medium c7a.large m7i.large c8g.2xlarge"),
    ("aws", "us-west-2", 1, "t4g.2xlarge c7g.2xlarge m8g.large r7g.large"),
    ("aws", "eu-central-1", 1, "t3.medium c7i.large c7a.large c8g.2xlarge m7g.medium r8g.large"),
    ("azure", "westeurope", 2, "Standard_D2s_v6 Standard_D4ps_v6"),
    (
        "azure",
        "westeurope",
        1,
        "Standard_B2as_v2 Standard_D8pds_v6 Standard_F4als_v7 Standard_D64as_v6 Standard_DC2as_v6 Standard_NC24ads_A100_v4",
    ),
    ("azure", "eastus", 1, "Standard_D2s_v6 Standard_D8ps_v6 Standard_F2als_v7 Standard_NC24ads_A100_v4"),
    (
        "gcp",
        "us-central1",
        1,
        "e2-micro e2-standard-2 n2-standard-4 n4-standard-8 c4a-standard-8 t2a-standard-4 c4d-standard-2 g2-standard-4 \
         n2d-standard-64",
    ),
    ("gcp", "europe-west4", 1, "e2-standard-2 c4a-standard-8"),
    (
        "hcloud",
        "fsn1-dc14",
        1,
        "cax11 cax21 cax31 cax41 ccx13 ccx23 ccx33 ccx43 ccx53 ccx63 cpx22 cx23 cx33 cx43 cx53",
    ),
    ("hcloud", "nbg1-dc3", 1, "cax11 cax31 ccx13 ccx33 cx23 cx53"),
    ("hcloud", "ash-dc1", 1, "cpx21 cpx41"),
    ("ovh", "GRA11", 1, "d2-2 b3-8 c3-4 c3-16 r3-16 b3-256 rtx5000-28"),
    ("ovh", "DE1", 1, "b3-8 c3-16"),
    ("ovh", "WAW1", 1, "b3-8"),
    (
        "upcloud",
        "de-fra1",
        1,
        "DEV-1xCPU-2GB 2xCPU-4GB PREMIUM-2xCPU-4GB STARTER-2xCPU-8GB CLOUDNATIVE-4xCPU-16GB CLOUDNATIVE-64xCPU-192GB",
    ),
    ("upcloud", "fi-hel2", 1, "GPU-8xCPU-64GB-1xL4"),
    (
        "vultr",
        "ewr",
        1,
        "vc2-1c-0.5gb-v6 vc2-1c-1gb vc2-2c-4gb vhf-4c-16gb voc-c-4c-8gb-75s-amd vx1-g-16c-64g voc-g-64c-192gb-960s-amd \
         vcg-a40-8c-40g-16vram",
    ),
    ("vultr", "ams", 1, "vc2-2c-4gb"),
];

/// The sample's text, written anew from the whole catalog.
fn write_sample(connection: &Connection) -> String {
    let mut regions = BTreeSet::new();
    let mut zones = BTreeSet::new();
    let mut servers = BTreeSet::new();
    let mut prices = BTreeSet::new();
    for (vendor, region, zone_count, types) in CHOSEN {
        for name in types.split_whitespace() {
            let found = rows(
                connection,
                &PriceRow::TABLE,
                "JOIN server USING (vendor_id, server_id) JOIN region USING (vendor_id, region_id) WHERE vendor_id = ?1 AND \
                 region.api_reference = ?2 AND server.api_reference = ?3",
                &[vendor, region, name],
            );
            let ids: BTreeSet<String> = found.iter().map(|row| row[2].clone()).collect();
            let ids: Vec<_> = ids.into_iter().take(zone_count).collect();
            assert_eq!(ids.len(), zone_count, "{vendor} {region} {name}");
            for row in found.into_iter().filter(|row| ids.contains(&row[2])) {
                regions.insert([row[0].clone(), row[1].clone()]);
                zones.insert([row[0].clone(), row[1].clone(), row[2].clone()]);
                servers.insert([row[0].clone(), row[3].clone()]);
                prices.insert(row);
            }
        }
    }
    let mut out = format!("{HEADER}\n[rate]\ncurrency\tusd\n");
    for (currency, usd) in RATES {
        writeln!(out, "{currency}\t{usd}").unwrap();
    }
    let mut section = |table: &Table, rows: Vec<Vec<String>>| {
        writeln!(out, "\n[{}]\n{}", table.name, table.columns.join("\t")).unwrap();
        rows.iter().for_each(|row| writeln!(out, "{}", row.join("\t")).unwrap());
    };
    let by_key = |table: &Table, condition: &str, key: &[String]| {
        let key: Vec<&str> = key.iter().map(String::as_str).collect();
        rows(connection, table, condition, &key)
    };
    let region =
        |key: &[String; 2]| by_key(&RegionRow::TABLE, "WHERE vendor_id = ?1 AND region_id = ?2", key);
    section(&RegionRow::TABLE, regions.iter().flat_map(region).collect());
    let zone = |key: &[String; 3]| {
        by_key(&ZoneRow::TABLE, "WHERE vendor_id = ?1 AND region_id = ?2 AND zone_id = ?3", key)
    };
    section(&ZoneRow::TABLE, zones.iter().flat_map(zone).collect());
    let of_server = "WHERE vendor_id = ?1 AND server_id = ?2 ORDER BY 1, 2, 3, 4";
    section(
        &ServerRow::TABLE,
        servers.iter().flat_map(|key| by_key(&ServerRow::TABLE, of_server, key)).collect(),
    );
    let scores = servers.iter().flat_map(|key| by_key(&ScoreRow::TABLE, of_server, key));
    section(&ScoreRow::TABLE, scores.filter(|row| benchmark::name(&row[2], &row[3]).is_some()).collect());
    section(&PriceRow::TABLE, prices.into_iter().collect());
    out
}

fn rows(connection: &Connection, table: &Table, rest: &str, arguments: &[&str]) -> Vec<Vec<String>> {
    let columns: Vec<String> =
        table.columns.iter().map(|column| format!("{}.{column}", table.name)).collect();
    let sql = format!("SELECT {} FROM {} {rest}", columns.join(", "), table.name);
    let cells = |row: &Row<'_>| {
        (0..table.columns.len()).map(|i| row.get_ref(i).map(cell)).collect::<Result<Vec<_>, _>>()
    };
    let mut statement = connection.prepare(&sql).unwrap();
    statement.query_map(rusqlite::params_from_iter(arguments), cells).unwrap().map(Result::unwrap).collect()
}

fn cell(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => std::str::from_utf8(text).unwrap().to_owned(),
        ValueRef::Null | ValueRef::Blob(_) => String::new(),
    }
}

#[test]
fn every_row_of_the_sample_is_in_the_real_catalog() {
    let Some(path) = real_catalog("the comparison of the sample with the real catalog") else { return };
    let uri = format!("file:{}?mode=ro&immutable=1", path.display());
    let written = write_sample(&Connection::open(uri).unwrap());
    if std::env::var_os("SCARPENTER_UPDATE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample.tsv"), &written).unwrap();
        return;
    }
    for (number, (have, want)) in TEXT.lines().zip(written.lines()).enumerate() {
        assert_eq!(have, want, "line {} of data/sample.tsv", number + 1);
    }
    assert_eq!(TEXT.len(), written.len());
}

#[test]
fn the_sample_holds_what_the_demo_and_the_readme_promise() {
    let catalog = sample(&Rates::default());
    assert!((60..=150).contains(&catalog.report.offerings), "{}", catalog.report);
    assert_eq!(catalog.report.dropped, BTreeMap::new());
    let lines = lines(&catalog);
    for vendor in ["alicloud", "aws", "azure", "gcp", "hcloud", "ovh", "upcloud", "vultr"] {
        assert!(lines.iter().any(|line| line.starts_with(&format!("{vendor} "))), "{vendor}");
    }
    for line in [
        "aws us-east-1/us-east-1a c8a.large on-demand 107800",
        "gcp us-central1/us-central1-a c4a-standard-8 on-demand 359200",
        "hcloud fsn1/fsn1 ccx33 on-demand 244090",
        "ovh GRA11/gra11-a b3-8 on-demand 56320",
    ] {
        assert!(lines.iter().any(|have| have == line), "{line} is not among\n{}", lines.join("\n"));
    }
    let types = catalog.snapshot.types();
    assert!(types.iter().any(|of| of.gpu_manufacturer == "NVIDIA" && of.gpu_count == 1));
    assert!(types.iter().any(|of| of.benchmarks.is_empty()));
    assert_eq!(types.iter().map(|of| of.cpu).min(), Some(1));
    assert_eq!(types.iter().map(|of| of.cpu).max(), Some(64));
    let fast_arm = |of: &scarpenter_core::offering::InstanceType| {
        of.arch == Arch::Arm64
            && of.cpu >= 8
            && of.benchmarks.get("passmark-single-thread").is_some_and(|score| *score > 1900)
    };
    assert!(types.iter().any(fast_arm));
}

#[test]
fn every_value_of_the_sample_is_a_label_value_as_it_is() {
    use scarpenter_core::label::label_value;
    for of in sample(&Rates::default()).snapshot.types() {
        assert_eq!(label_value(&of.name), of.name);
        assert!(
            of.labels().values().all(|value| !value.is_empty() && *value == label_value(value)),
            "{of:?}"
        );
    }
}

#[test]
fn a_rate_that_is_given_goes_before_the_sample_s_own() {
    let rates = ["EUR=2".parse::<Rate>().unwrap()].into_iter().collect();
    let lines = lines(&sample(&rates));
    assert!(lines.iter().any(|line| line == "hcloud fsn1/fsn1 ccx33 on-demand 443800"));
    assert!(
        lines.iter().any(|line| line == "alicloud cn-hangzhou/cn-hangzhou-b ecs.c8y.large on-demand 37366")
    );
}

#[test]
fn a_sample_without_a_section_or_with_other_columns_is_refused() {
    for (from, to, message) in [
        ("[server_price]", "[prices]", "there is no [server_price]"),
        ("currency\tusd", "currency\teur", "[rate] must have the columns [\"currency\", \"usd\"]"),
        ("EUR\t1.10", "EUR\t0", "\"0\" is not a rate for EUR"),
    ] {
        let refused = read(&TEXT.replace(from, to), &Rates::default()).unwrap_err();
        assert!(refused.starts_with(message), "{refused}");
    }
}
