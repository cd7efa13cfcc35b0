//! What a careless reader of the catalog gets wrong, one test each, on rows of the real catalog's shape.

use std::collections::BTreeMap;

use scarpenter_core::offering::{Arch, InstanceType};

use crate::rows::{PriceRow, RegionRow, ServerRow, ZoneRow};
use crate::testing::{TestDatabase, lines, rates};
use crate::{Catalog, Reason, Report};

const AWS: &str = "aws us-east-1/us-east-1c c8a.large on-demand 107800";
const GCP: &str = "gcp us-central1/us-central1-a e2-standard-4 on-demand 134000";
const HCLOUD: &str = "hcloud fsn1/fsn1 ccx33 on-demand 443800";

fn of<'c>(catalog: &'c Catalog, name: &str) -> &'c InstanceType {
    catalog.snapshot.types().iter().find(|of| of.name == name).unwrap()
}

/// What is left after `sql`, and why the rest is not.
fn left_after(sql: &str) -> (Vec<String>, Vec<(Reason, usize)>) {
    let Catalog { snapshot, report } = TestDatabase::small().with(sql).read();
    let dropped = report.dropped.clone().into_iter().collect();
    (lines(&Catalog { snapshot, report }), dropped)
}

#[test]
fn ids_become_the_names_that_the_vendors_use() {
    let catalog = TestDatabase::small().read();
    assert_eq!(lines(&catalog), [AWS, GCP, HCLOUD]);
    let zone_ids: Vec<_> = catalog
        .snapshot
        .places()
        .map(|(vendor, place)| (vendor.as_str(), place.zone_id.as_deref()))
        .collect();
    assert!(zone_ids.contains(&("aws", Some("use1-az2"))), "{zone_ids:?}");
    assert_eq!(zone_ids.iter().filter(|(_, id)| id.is_some()).count(), 1);
}

#[test]
fn equal_region_ids_of_two_vendors_stay_apart() {
    let (lines, dropped) = left_after(
        "INSERT INTO region VALUES ('alicloud', 'us-east-1', 'us-east-1', '[]', 'INACTIVE');
         INSERT INTO zone VALUES ('alicloud', 'us-east-1', 'us-east-1a', 'us-east-1a', 'ACTIVE');
         INSERT INTO server SELECT 'alicloud', 'c8a.large', 'c8a.large', family, 64, cpu_architecture, cpu_allocation, NULL, 1024,
             0, NULL, 0, NULL, NULL, 'ACTIVE' FROM server WHERE vendor_id = 'aws';
         INSERT INTO server_price SELECT 'alicloud', region_id, 'us-east-1a', server_id, 'linux', allocation, unit, 0.5, 'CNY',
             status, observed_at FROM server_price WHERE vendor_id = 'aws';",
    );
    assert_eq!(lines, [AWS, GCP, HCLOUD]);
    assert_eq!(dropped, [(Reason::InactivePlace, 1)]);
}

#[test]
fn a_type_without_a_price_in_a_region_has_no_offering_there() {
    let (lines, _) = left_after(
        "INSERT INTO region VALUES ('hcloud', '2', 'nbg1-dc3', '[\"nbg1\"]', 'ACTIVE'); INSERT INTO zone VALUES ('hcloud', '2', '2', 'nbg1-dc3', 'ACTIVE')",
    );
    assert_eq!(lines, [AWS, GCP, HCLOUD]);
}

#[test]
fn what_is_inactive_at_any_level_is_not_sold() {
    for (table, reasons) in [
        ("server", vec![(Reason::InactiveType, 1), (Reason::NoType, 1)]),
        ("server_price", vec![(Reason::InactivePrice, 1)]),
        ("zone", vec![(Reason::InactivePlace, 1)]),
        ("region", vec![(Reason::InactivePlace, 1)]),
    ] {
        let (lines, dropped) =
            left_after(&format!("UPDATE {table} SET status = 'INACTIVE' WHERE vendor_id = 'aws'"));
        assert_eq!((lines, dropped), (vec![GCP.to_owned(), HCLOUD.to_owned()], reasons), "{table}");
    }
}

#[test]
fn memory_is_the_catalog_s_own_figure() {
    let catalog = TestDatabase::small().read();
    assert_eq!(of(&catalog, "ccx33").memory_mib, 32000);
    assert_eq!(of(&catalog, "e2-standard-4").memory_mib, 16384);
    assert_eq!(of(&catalog, "ccx33").labels()["scarpenter.sparecores.com/instance-memory"], "32000");
}

#[test]
fn a_currency_without_a_rate_is_no_offering_and_the_report_names_the_flag() {
    let database = TestDatabase::small();
    let catalog = crate::open_sqlite(&database.path(), &crate::Rates::default()).unwrap();
    assert_eq!(lines(&catalog), [AWS, GCP]);
    assert_eq!(catalog.report.without_rate, BTreeMap::from([("EUR".to_owned(), 1)]));
    let told = catalog.report.to_string();
    assert!(
        told.ends_with("prices in EUR (1) are no offerings until their rate in USD is given: --rate EUR=…"),
        "{told}"
    );
}

#[test]
fn only_prices_by_the_hour_count() {
    for unit in ["MONTH", "GB", "", "GB_MONTH"] {
        let (lines, dropped) =
            left_after(&format!("UPDATE server_price SET unit = '{unit}' WHERE vendor_id = 'aws'"));
        assert_eq!((lines.len(), dropped), (2, vec![(Reason::NotHourly, 1)]), "{unit}");
    }
}

#[test]
fn null_zero_negative_and_absurd_prices_are_no_offers() {
    for price in ["NULL", "0", "0.0", "-1", "9e999", "-9e999", "'cheap'", "x'00'", "1e-9"] {
        let (lines, dropped) =
            left_after(&format!("UPDATE server_price SET price = {price} WHERE vendor_id = 'aws'"));
        assert_eq!((lines.len(), dropped), (2, vec![(Reason::NoPrice, 1)]), "{price}");
    }
}

#[test]
fn a_whole_price_is_a_price() {
    assert_eq!(
        left_after("UPDATE server_price SET price = 2 WHERE vendor_id = 'aws'").0[0],
        AWS.replace("107800", "2000000")
    );
}

#[test]
fn spot_is_what_the_catalog_says_even_where_it_saves_nothing() {
    let spot = "INSERT INTO server_price SELECT vendor_id, region_id, zone_id, server_id, operating_system, 'SPOT', unit, price, \
                currency, status, observed_at FROM server_price WHERE vendor_id = 'gcp'";
    assert_eq!(left_after(spot).0, [AWS, GCP, &GCP.replace("on-demand", "spot"), HCLOUD]);
}

#[test]
fn equal_rows_in_another_order_give_an_equal_catalog() {
    let forth = TestDatabase::small();
    let back = TestDatabase::small();
    for table in ["region", "zone", "server", "server_price"] {
        back.run(&format!(
            "CREATE TABLE turned AS SELECT * FROM {table} ORDER BY rowid DESC; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM turned; DROP TABLE turned"
        ));
    }
    let (forth, back) = (forth.read(), back.read());
    assert_eq!(forth.snapshot.types(), back.snapshot.types());
    assert_eq!(lines(&forth), lines(&back));
    let keys =
        |catalog: &Catalog| catalog.snapshot.offerings().map(|offering| offering.key()).collect::<Vec<_>>();
    assert_eq!(keys(&forth), keys(&back));
}

#[test]
fn scores_are_told_apart_by_their_config() {
    let catalog = TestDatabase::small()
        .score("geekbench:score", r#"{"cores": "single"}"#, "2345.5")
        .score("geekbench:score", r#"{"cores":"multi"}"#, "9000.49")
        .score("passmark:cpu_single_threaded_test", "{}", "3818.59")
        .score("bogomips", "{}", "5000")
        .read();
    let expected = BTreeMap::from([
        ("geekbench-single", 2346),
        ("geekbench-multi", 9000),
        ("passmark-single-thread", 3819),
    ]);
    assert_eq!(of(&catalog, "c8a.large").benchmarks, expected);
    assert_eq!(of(&catalog, "ccx33").benchmarks, BTreeMap::new());
    assert_eq!(catalog.report.dropped, BTreeMap::new());
}

#[test]
fn a_score_that_is_none_is_left_out_and_an_inactive_one_too() {
    let mut database = TestDatabase::small();
    for (benchmark, score) in [
        ("passmark:cpu_mark", "-1"),
        ("passmark:memory_mark", "NULL"),
        ("stress_ng:best1", "9e999"),
        ("stress_ng:bestn", "7"),
    ] {
        database = database.score(benchmark, "{}", score);
    }
    let catalog = database.with("UPDATE benchmark_score SET status = 'INACTIVE' WHERE score = 7").read();
    assert_eq!(of(&catalog, "c8a.large").benchmarks, BTreeMap::new());
    assert_eq!(catalog.report.dropped, BTreeMap::from([(Reason::BadScore, 3)]));
}

#[test]
fn a_mac_is_no_machine_of_ours_and_bare_metal_is() {
    for arch in ["ARM64_MAC", "X86_64_MAC", "I386", "RISCV64", ""] {
        let sql = format!("UPDATE server SET cpu_architecture = '{arch}' WHERE vendor_id = 'aws'");
        let (lines, dropped) = left_after(&sql);
        assert_eq!((lines.len(), dropped), (2, vec![(Reason::OtherArch, 1), (Reason::NoType, 1)]), "{arch}");
    }
    let (lines, _) = left_after(
        "UPDATE server SET api_reference = 'a1.metal', cpu_architecture = 'ARM64' WHERE vendor_id = 'aws'",
    );
    assert_eq!(lines[0], AWS.replace("c8a.large", "a1.metal"));
}

#[test]
fn words_are_read_in_either_case() {
    let sql = "UPDATE server_price SET operating_system = 'linux', allocation = 'ondemand', unit = 'hour', status = 'active';
               UPDATE server SET cpu_architecture = 'x86_64', status = 'active', cpu_allocation = 'Dedicated'";
    assert_eq!(left_after(sql).0, [AWS, GCP, HCLOUD]);
    assert_eq!(of(&TestDatabase::small().with(sql).read(), "ccx33").cpu_allocation, "dedicated");
}

#[test]
fn only_linux_on_demand_or_spot_is_sold() {
    for (change, reason) in [
        ("operating_system = 'Windows'", Reason::OtherSystem),
        ("operating_system = 'rhel'", Reason::OtherSystem),
        ("allocation = 'RESERVED'", Reason::OtherAllocation),
        ("zone_id = 'use1-az9'", Reason::NoPlace),
        ("region_id = 'us-east-9'", Reason::NoPlace),
        ("server_id = 'c9.large'", Reason::NoType),
        ("vendor_id = 'nobody'", Reason::NoType),
    ] {
        let (lines, dropped) =
            left_after(&format!("UPDATE server_price SET {change} WHERE vendor_id = 'aws'"));
        assert_eq!((lines.len(), dropped), (2, vec![(reason, 1)]), "{change}");
    }
}

#[test]
fn a_fraction_of_a_gpu_is_none() {
    for (count, whole) in [("0.3333", 0), ("1.0", 1), ("1.5", 1), ("8", 8), ("NULL", 0), ("-1", 0)] {
        let sql =
            format!("UPDATE server SET gpu_count = {count}, gpu_manufacturer = 'NVIDIA', gpu_model = 'A16'");
        let catalog = TestDatabase::small().with(&sql).read();
        let model = if whole > 0 { "A16" } else { "" };
        assert_eq!(
            (of(&catalog, "ccx33").gpu_count, of(&catalog, "ccx33").gpu_model.as_str()),
            (whole, model),
            "{count}"
        );
    }
}

#[test]
fn a_type_without_name_or_size_or_with_a_name_that_is_taken_is_left_out() {
    for change in [
        "vcpus = 0",
        "vcpus = NULL",
        "vcpus = -4",
        "memory_amount = 0",
        "memory_amount = NULL",
        "api_reference = ''",
    ] {
        let (lines, dropped) = left_after(&format!("UPDATE server SET {change} WHERE vendor_id = 'aws'"));
        assert_eq!((lines.len(), dropped), (2, vec![(Reason::BadType, 1), (Reason::NoType, 1)]), "{change}");
    }
    let twin = "INSERT INTO server SELECT vendor_id, 'x', api_reference, family, 1, cpu_architecture, cpu_allocation, NULL, 1, 0, \
                NULL, 0, NULL, NULL, 'ACTIVE' FROM server WHERE vendor_id = 'aws'";
    let (lines, dropped) = left_after(twin);
    assert_eq!((lines.len(), dropped), (3, vec![(Reason::BadType, 1)]));
}

#[test]
fn google_s_arm_families_are_arm_whatever_the_catalog_says() {
    for (name, arch) in
        [("c4a-standard-8", Arch::Arm64), ("n4a-highmem-2", Arch::Arm64), ("c4-standard-8", Arch::Amd64)]
    {
        let sql = format!(
            "UPDATE server SET api_reference = '{name}', cpu_architecture = 'X86_64' WHERE vendor_id = 'gcp'"
        );
        assert_eq!(of(&TestDatabase::small().with(&sql).read(), name).arch, arch, "{name}");
    }
}

#[test]
fn times_are_utc_and_the_report_tells_the_oldest_and_the_newest() {
    let sql = "UPDATE server_price SET observed_at = '2024-12-30 23:59:59.000000' WHERE vendor_id = 'aws'";
    let report = TestDatabase::small().with(sql).read().report;
    assert_eq!(report.oldest.unwrap().to_string(), "2024-12-30T23:59:59Z");
    assert_eq!(report.date.unwrap().to_string(), "2026-08-22T03:50:12Z");
    assert!(report.to_string().contains("prices of 2024-12-30 to 2026-08-22"), "{report}");
}

#[test]
fn a_time_that_is_none_is_no_reason_to_refuse_a_price() {
    let catalog = TestDatabase::small().with("UPDATE server_price SET observed_at = 'yesterday'").read();
    assert_eq!((catalog.report.offerings, catalog.report.date), (3, None));
}

#[test]
fn two_datacenters_of_one_location_are_one_place_at_the_lower_price() {
    let sql = "INSERT INTO region VALUES ('hcloud', '9', 'fsn1-dc15', '[\"fsn1\"]', 'ACTIVE');
               INSERT INTO zone VALUES ('hcloud', '9', '9', 'fsn1-dc15', 'ACTIVE');
               INSERT INTO server_price VALUES ('hcloud', '9', '9', '98', 'Linux', 'ONDEMAND', 'HOUR', 0.1, 'EUR', 'ACTIVE', '')";
    assert_eq!(left_after(sql).0, [AWS, GCP, &HCLOUD.replace("443800", "200000")]);
}

#[test]
fn only_a_disk_that_a_machine_starts_from_counts() {
    let catalog =
        TestDatabase::small().with("UPDATE server SET storage_size = 75, storage_type = 'NVME_SSD'").read();
    assert_eq!([of(&catalog, "c8a.large").storage_gb, of(&catalog, "ccx33").storage_gb], [0, 75]);
}

#[test]
fn a_type_that_is_nowhere_for_sale_is_known_but_not_counted() {
    let catalog = TestDatabase::small().with("DELETE FROM server_price WHERE vendor_id = 'aws'").read();
    let Report { types, offerings, .. } = catalog.report;
    assert_eq!((types, offerings, catalog.snapshot.types().len()), (2, 2, 3));
    assert_eq!(rates().get("USD"), Some(1.0));
}

mod any_cells {
    use proptest::prelude::*;

    use super::*;

    /// A value that no crawler writes, or one that it does.
    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("NULL".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            (-1e3..1e6f64).prop_map(|number| format!("{number:e}")),
            "[a-zA-Z0-9 \"{}\\[\\]:.-]{0,8}".prop_map(|text| format!("'{text}'")),
            Just("x'ff00fe'".to_owned()),
            Just("CAST(x'ff00fe' AS TEXT)".to_owned()),
        ]
    }

    fn change() -> impl Strategy<Value = String> {
        let columns: Vec<(&str, &str)> =
            [RegionRow::TABLE, ZoneRow::TABLE, ServerRow::TABLE, PriceRow::TABLE]
                .into_iter()
                .flat_map(|table| table.columns.iter().map(move |column| (table.name, *column)))
                .collect();
        let vendor = prop_oneof![Just("aws"), Just("gcp"), Just("hcloud")];
        (prop::sample::select(columns), value(), vendor).prop_map(|((table, column), value, vendor)| {
            format!("UPDATE {table} SET {column} = {value} WHERE vendor_id = '{vendor}';")
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_price_is_an_offering_or_is_counted(changes in prop::collection::vec(change(), 1..6)) {
            let catalog = TestDatabase::small().with(&changes.concat()).read();
            let of_prices = |reason: &Reason| (Reason::NoType..=Reason::NoRate).contains(reason);
            let dropped: usize = catalog.report.dropped.iter().filter(|(reason, _)| of_prices(reason)).map(|(_, count)| count).sum();
            prop_assert_eq!(catalog.report.offerings + dropped, 3, "{}", catalog.report);
            for offering in catalog.snapshot.offerings() {
                let of = offering.instance_type();
                prop_assert!(offering.price().micro_usd() > 0 && of.cpu > 0 && of.memory_mib > 0 && !of.name.is_empty());
            }
        }
    }
}
