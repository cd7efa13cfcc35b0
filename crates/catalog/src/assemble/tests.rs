//! What a careless reader of the catalog gets wrong, one test each, on rows of the real catalog's shape.

use std::collections::BTreeMap;

use scarpenter_core::offering::{Arch, Hardware, InstanceType};

use crate::rows::{PriceRow, RegionRow, ServerRow, ZoneRow};
use crate::testing::{PRICE, SERVER, TestDatabase, lines, rates};
use crate::{Catalog, Reason, Report};

const AWS: &str = "aws us-east-1/us-east-1c c8a.large on-demand 107800";
const GCP: &str = "gcp us-central1/us-central1-a e2-standard-4 on-demand 134000";
const HCLOUD: &str = "hcloud fsn1/fsn1 ccx33 on-demand 443800";

fn of<'c>(catalog: &'c Catalog, name: &str) -> &'c InstanceType {
    catalog.snapshot.types().iter().find(|of| of.name == name).unwrap()
}

/// What is left after `sql`, and why the rest is not.
fn left_after(sql: &str) -> (Vec<String>, Vec<(Reason, usize)>) {
    let catalog = TestDatabase::small().with(sql).read();
    let dropped = catalog.report.dropped.clone().into_iter().collect();
    (lines(&catalog), dropped)
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
    let (lines, dropped) = left_after(&format!(
        "INSERT INTO region VALUES ('alicloud', 'us-east-1', 'us-east-1', '[]', 'INACTIVE');
         INSERT INTO zone VALUES ('alicloud', 'us-east-1', 'us-east-1a', 'us-east-1a', 'ACTIVE');
         INSERT INTO {SERVER} SELECT 'alicloud', 'c8a.large', 'c8a.large', family, 64, cpu_architecture, cpu_allocation, NULL, 1024,
             0, NULL, 0, NULL, NULL, 'ACTIVE' FROM server WHERE vendor_id = 'aws';
         INSERT INTO {PRICE} SELECT 'alicloud', region_id, 'us-east-1a', server_id, 'linux', allocation, unit, 0.5, 'CNY',
             status, observed_at FROM server_price WHERE vendor_id = 'aws';",
    ));
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
        ("server", vec![(Reason::InactiveType, 1), (Reason::OfInactiveType, 1)]),
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
    for (reason, prices) in [
        (Reason::NullPrice, ["NULL", "'cheap'", "x'00'"].as_slice()),
        (Reason::ZeroPrice, &["0", "0.0", "-0.0"]),
        (Reason::BadPrice, &["-1", "9e999", "-9e999", "1e-9", "1e12"]),
    ] {
        for price in prices {
            let (lines, dropped) =
                left_after(&format!("UPDATE server_price SET price = {price} WHERE vendor_id = 'aws'"));
            assert_eq!((lines.len(), dropped), (2, vec![(reason, 1)]), "{price}");
        }
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
    let spot = format!(
        "INSERT INTO {PRICE} SELECT vendor_id, region_id, zone_id, server_id, operating_system, 'SPOT', unit, price, \
         currency, status, observed_at FROM server_price WHERE vendor_id = 'gcp'"
    );
    assert_eq!(left_after(&spot).0, [AWS, GCP, &GCP.replace("on-demand", "spot"), HCLOUD]);
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
    let all: Vec<_> = catalog.scores.of(0).map(|(own, score)| (own.id(), own.config(), score)).collect();
    assert_eq!(
        all,
        [
            ("bogomips", "{}", 5000.0),
            ("geekbench:score", r#"{"cores":"multi"}"#, 9000.49),
            ("geekbench:score", r#"{"cores":"single"}"#, 2345.5),
            ("passmark:cpu_single_threaded_test", "{}", 3818.59),
        ],
        "none is rounded or lost"
    );
    assert_eq!(catalog.scores.of(2).count(), 0);
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
    assert_eq!(catalog.report.dropped, BTreeMap::from([(Reason::BadScore, 3), (Reason::InactiveScore, 1)]));
}

#[test]
fn a_mac_is_no_machine_of_ours_and_bare_metal_is() {
    for arch in ["ARM64_MAC", "X86_64_MAC", "I386", "RISCV64", ""] {
        let sql = format!("UPDATE server SET cpu_architecture = '{arch}' WHERE vendor_id = 'aws'");
        let (lines, dropped) = left_after(&sql);
        assert_eq!(
            (lines.len(), dropped),
            (2, vec![(Reason::OtherArch, 1), (Reason::OfOtherType, 1)]),
            "{arch}"
        );
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
        assert_eq!(
            (lines.len(), dropped),
            (2, vec![(Reason::BadType, 1), (Reason::OfOtherType, 1)]),
            "{change}"
        );
    }
    let twin = format!(
        "INSERT INTO {SERVER} SELECT vendor_id, 'x', api_reference, family, 1, cpu_architecture, cpu_allocation, NULL, 1, 0, \
         NULL, 0, NULL, NULL, 'ACTIVE' FROM server WHERE vendor_id = 'aws'"
    );
    let (lines, dropped) = left_after(&twin);
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
    let sql = format!(
        "INSERT INTO region VALUES ('hcloud', '9', 'fsn1-dc15', '[\"fsn1\"]', 'ACTIVE');
         INSERT INTO zone VALUES ('hcloud', '9', '9', 'fsn1-dc15', 'ACTIVE');
         INSERT INTO {PRICE} VALUES ('hcloud', '9', '9', '98', 'Linux', 'ONDEMAND', 'HOUR', 0.1, 'EUR', 'ACTIVE', '')"
    );
    let (lines, dropped) = left_after(&sql);
    assert_eq!(lines, [AWS, GCP, &HCLOUD.replace("443800", "200000")]);
    assert_eq!(dropped, [(Reason::Dearer, 1)]);
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

#[test]
fn what_is_planned_for_retirement_is_sold_until_then() {
    let sql = "UPDATE server SET status = 'PLANNED_FOR_RETIREMENT' WHERE vendor_id = 'aws'";
    let catalog = TestDatabase::small().with(sql).read();
    assert_eq!(lines(&catalog), [AWS, GCP, HCLOUD]);
    assert_eq!(
        ["c8a.large", "ccx33"].map(|name| of(&catalog, name).hardware.retiring),
        [true, false],
        "and is known to end"
    );
}

#[test]
fn all_that_is_known_of_a_machine_is_kept_in_whole_numbers() {
    let sql = r#"UPDATE server SET cpu_cores = 4, cpu_speed = 2.3, cpu_family = 'EPYC', cpu_model = '9R45',
        cpu_flags = '["sha_ni", "avx"]', cpu_l1d_cache = 48, cpu_l1i_cache = 32, cpu_l2_cache = 1024, cpu_l3_cache = 32768,
        cpu_l3_cache_total = 65536, memory_amount_actual = 3900, gpu_count = 0.3333, gpu_memory_min = 2048,
        gpu_memory_total = 0, gpu_manufacturer = 'NVIDIA', gpu_family = 'Ampere', gpu_model = 'A16', storage_size = 840,
        storage_type = 'NVME_SSD', storages = '[{"size": 420}, {"size": 420}]', network_speed_baseline = 0.781,
        network_speed_max = 12.5, ipv4 = 1, average_time_to_start = 314.33 WHERE vendor_id = 'aws'"#;
    let catalog = TestDatabase::small().with(sql).read();
    let expected = Hardware {
        cpu_cores: Some(4),
        cpu_mhz: Some(2300),
        cpu_family: "EPYC".into(),
        cpu_model: "9R45".into(),
        cpu_flags: ["avx", "sha_ni"].into_iter().collect(),
        l1d_kib: Some(48),
        l1i_kib: Some(32),
        l2_kib: Some(1024),
        l3_kib: Some(32768),
        l3_total_kib: Some(65536),
        memory_actual_mib: Some(3900),
        gpu_ten_thousandths: 3333,
        gpu_memory_min_mib: Some(2048),
        gpu_memory_total_mib: None,
        gpu_manufacturer: "NVIDIA".into(),
        gpu_family: "Ampere".into(),
        gpu_model: "A16".into(),
        network_baseline_mbps: Some(781),
        network_peak_mbps: Some(12_500),
        local_storage_gb: 840,
        local_storages: 2,
        storage_type: "nvme ssd".into(),
        ipv4: 1,
        start_millis: Some(314_330),
        retiring: false,
    };
    assert_eq!(*of(&catalog, "c8a.large").hardware, expected);
    assert_eq!(*of(&catalog, "ccx33").hardware, Hardware::default(), "nothing is known of it");
}

#[test]
fn nonsense_about_a_machine_is_as_if_nothing_was_known() {
    for cell in ["NULL", "-1", "9e999", "'many'", "x'00'", "1e300"] {
        let columns = ServerRow::TABLE.columns[15..].iter().filter(|column| **column != "cpu_family");
        let cells: Vec<String> = columns.map(|column| format!("{column} = {cell}")).collect();
        let catalog = TestDatabase::small().with(&format!("UPDATE server SET {}", cells.join(", "))).read();
        let mut hardware = (*of(&catalog, "ccx33").hardware).clone();
        (hardware.cpu_model, hardware.gpu_family) = Default::default();
        assert_eq!(hardware, Hardware::default(), "{cell}");
    }
}

#[test]
fn the_network_of_ovh_is_in_megabits_where_any_of_it_is() {
    let speeds = |of_first: &str| {
        let database = TestDatabase::small();
        let catalog = database
            .with("UPDATE server SET vendor_id = 'ovh' WHERE vendor_id = 'hcloud'")
            .with("UPDATE server SET vendor_id = 'ovh', status = 'INACTIVE' WHERE vendor_id = 'gcp'")
            .with("UPDATE server SET network_speed_baseline = 250.0, network_speed_max = 500.0")
            .with(&format!("UPDATE server SET network_speed_baseline = {of_first} WHERE status = 'INACTIVE'"))
            .read();
        ["ccx33", "c8a.large"].map(|name| {
            let hardware = &of(&catalog, name).hardware;
            (hardware.network_baseline_mbps, hardware.network_peak_mbps)
        })
    };
    let in_gigabits = (Some(250_000), Some(500_000));
    assert_eq!(speeds("1000.0"), [(Some(250), Some(500)), in_gigabits]);
    assert_eq!(speeds("25.0"), [in_gigabits, in_gigabits]);
}

#[test]
fn a_price_keeps_its_own_currency_its_age_and_its_monthly_cap() {
    let tiers = r#"[{"lower": 0.0, "upper": 672.0, "price": 0.2219}, {"lower": 673.0, "upper": "Infinity", "price": 0.0}]"#;
    let sql = format!("UPDATE server_price SET price_tiered = '{tiers}' WHERE vendor_id = 'hcloud'");
    let catalog = TestDatabase::small().with(&sql).read();
    let told: Vec<(String, Option<String>)> = catalog
        .snapshot
        .offerings()
        .map(|of| (of.native_price().to_string(), of.monthly_cap().map(|cap| cap.to_string())))
        .collect();
    assert_eq!(
        told,
        [
            ("0.107800 USD".to_owned(), None),
            ("0.134000 USD".to_owned(), None),
            ("0.221900 EUR".to_owned(), Some("298.233600 USD".to_owned())),
        ]
    );
    let seen = catalog.snapshot.offerings().map(|of| of.observed().unwrap().millis());
    assert!(seen.into_iter().all(|millis| millis == 1_787_370_612_000));
    assert_eq!(lines(&catalog), [AWS, GCP, HCLOUD], "by the hour it costs what it did");
}

#[test]
fn a_price_in_no_currency_is_none() {
    for currency in ["", "EURO", "E1R", "dollars"] {
        let sql = format!("UPDATE server_price SET currency = '{currency}' WHERE vendor_id = 'hcloud'");
        assert_eq!(
            left_after(&sql),
            (vec![AWS.into(), GCP.into()], vec![(Reason::NoCurrency, 1)]),
            "{currency}"
        );
    }
    assert_eq!(left_after("UPDATE server_price SET currency = lower(currency)").0, [AWS, GCP, HCLOUD]);
}

#[test]
fn a_zone_of_an_unknown_region_is_counted_and_so_is_what_is_sold_there() {
    assert_eq!(
        left_after("DELETE FROM region WHERE vendor_id = 'aws'"),
        (vec![GCP.into(), HCLOUD.into()], vec![(Reason::NoRegion, 1), (Reason::NoPlace, 1)])
    );
}

#[test]
fn an_id_that_comes_twice_is_the_type_that_it_was_first() {
    let (lines, dropped) = left_after("INSERT INTO server SELECT * FROM server WHERE vendor_id = 'aws'");
    assert_eq!((lines, dropped), (vec![AWS.into(), GCP.into(), HCLOUD.into()], vec![(Reason::BadType, 1)]));
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
            let of_prices = |reason: &Reason| (Reason::OfInactiveType..=Reason::Dearer).contains(reason);
            let dropped: usize = catalog.report.dropped.iter().filter(|(reason, _)| of_prices(reason)).map(|(_, count)| count).sum();
            prop_assert_eq!(catalog.report.offerings + dropped, 3, "{}", catalog.report);
            for offering in catalog.snapshot.offerings() {
                let of = offering.instance_type();
                prop_assert!(offering.price().micro_usd() > 0 && of.cpu > 0 && of.memory_mib > 0 && !of.name.is_empty());
            }
        }
    }
}
