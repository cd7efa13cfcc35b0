//! The sample is checked by itself, and, where the real catalog is at hand, written anew from it and compared.
//!
//! To accept a change: `SCARPENTER_UPDATE=1 cargo test -p scarpenter-catalog sample`, and read the diff.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use scarpenter_core::offering::Arch;

use super::*;
use crate::rows::{PriceRow, RegionRow, ScoreRow, ServerRow, Table, ZoneRow};
use crate::testing::{TestDatabase, assert_same, lines, real_catalog};
use crate::{Provenance, Rate, open_sqlite};

const CREATED: &str = "2026-11-30T00:00:00Z";
const SOURCE: &str = "a few rows of the Spare Cores catalog of 2026-08-22";
const NOTICE: &str = "servers, places, scores and prices of hcloud, ovh, upcloud and vultr: Spare Cores data \
    (sparecores.com), CC BY-SA 4.0, shortened; other prices: generated price tables of the Karpenter providers for AWS, \
    Azure, Google Cloud and Alibaba Cloud, Apache-2.0, and AWS's own price lists by way of ec2.shop (MIT); keep this \
    notice where the data goes";

/// Round figures for this sample alone, no market rates.
const RATES: [(&str, f64); 2] = [("CNY", 0.14), ("EUR", 1.10)];

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

/// The sample made anew from the whole catalog.
fn made_anew(whole: &Path) -> Catalog {
    let database = TestDatabase::empty();
    database.run(&format!("ATTACH 'file:{}?mode=ro&immutable=1' AS whole", whole.display()));
    for (vendor, region, zones, types) in CHOSEN {
        for name in types.split_whitespace() {
            database.run(&format!(
                "INSERT INTO server_price SELECT {} FROM whole.server_price WHERE vendor_id = '{vendor}'
                 AND region_id = (SELECT region_id FROM whole.region WHERE vendor_id = '{vendor}' AND api_reference = '{region}')
                 AND server_id = (SELECT server_id FROM whole.server WHERE vendor_id = '{vendor}' AND api_reference = '{name}')
                 AND zone_id IN (SELECT DISTINCT zone_id FROM whole.server_price AS all_zones
                     WHERE vendor_id = '{vendor}' AND region_id = server_price.region_id
                     AND server_id = server_price.server_id ORDER BY zone_id LIMIT {zones})",
                PriceRow::TABLE.columns.join(", ")
            ));
        }
    }
    for (table, key) in [
        (RegionRow::TABLE, "vendor_id, region_id"),
        (ZoneRow::TABLE, "vendor_id, region_id, zone_id"),
        (ServerRow::TABLE, "vendor_id, server_id"),
        (ScoreRow::TABLE, "vendor_id, server_id"),
    ] {
        let Table { name, columns } = table;
        let columns = columns.join(", ");
        database.run(&format!(
            "INSERT INTO {name} SELECT {columns} FROM whole.{name}
             WHERE ({key}) IN (SELECT {key} FROM main.server_price)"
        ));
    }
    let mut catalog = open_sqlite(&database.path(), &own_rates()).unwrap();
    catalog.report.provenance = Provenance { notice: NOTICE.to_owned(), ..Provenance::new(SOURCE) };
    catalog.report.provenance.rates = own_rates();
    catalog
}

fn own_rates() -> Rates {
    let day = "2026-11-30".parse().unwrap();
    RATES.into_iter().map(|(currency, usd)| Rate::new(currency, usd).unwrap().of(day)).collect()
}

#[test]
fn the_sample_is_what_the_real_catalog_makes_of_it() {
    let Some(path) = real_catalog("the comparison of the sample with the real catalog") else { return };
    let anew = made_anew(&path);
    let bytes = file::encode(&anew, CREATED.parse().unwrap());
    if std::env::var_os("SCARPENTER_UPDATE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample.scc"), &bytes).unwrap();
        return;
    }
    assert_same(&sample(&Rates::default()), &anew);
    // How it packs may change with the packer's version; what is in it may not.
    assert_same(&file::decode(&bytes, "anew", &Rates::default()).unwrap(), &anew);
    let line = BYTES.split(|byte| *byte == b'\n').next().unwrap();
    let header: serde_json::Value = serde_json::from_slice(line).unwrap();
    assert_eq!((&header["created"], &header["notice"]), (&CREATED.into(), &NOTICE.into()));
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
