//! Files that are no catalog, and the real one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use scarpenter_core::label;
use scarpenter_core::offering::{Arch, CapacityType, InstanceType};

use super::*;
use crate::Reason;
use crate::testing::{TestDatabase, lines, rates, real_catalog};

/// What is said about a file with these bytes; `<path>` stands for its path.
fn said_of(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    fs::write(&path, bytes).unwrap();
    said(&path)
}

fn said(path: &Path) -> String {
    open_sqlite(path, &rates()).unwrap_err().to_string().replace(&path.display().to_string(), "<path>")
}

fn small_file() -> Vec<u8> {
    fs::read(TestDatabase::small().path()).unwrap()
}

#[test]
fn a_file_that_is_no_catalog_is_one_sentence_that_says_what_to_do() {
    let whole = small_file();
    assert_eq!(said_of(b""), "the catalog <path> is an empty file: fetch it again");
    let not_sqlite =
        "the catalog <path> is not a SQLite database: unpack it if it is compressed, else fetch it again";
    assert_eq!(said_of(b"\x1f\x8b\x08\x00"), not_sqlite);
    assert_eq!(said_of(b"<!DOCTYPE html><html>"), not_sqlite);
    assert_eq!(said_of(&[0; 5000]), not_sqlite);
    let half = whole.len() / 2;
    let cut = format!("the catalog <path> is cut off after {half} of {} bytes: fetch it again", whole.len());
    assert_eq!(said_of(&whole[..half]), cut);
    assert_eq!(said_of(&whole[..40]), "the catalog <path> is cut off after 40 of 512 bytes: fetch it again");
    assert_eq!(said_of(&whole[..7]), "the catalog <path> is cut off after 7 of 512 bytes: fetch it again");
}

#[test]
fn a_path_that_is_no_file_is_one_sentence_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        said(&folder.path().join("nothing.sqlite")),
        "there is no catalog at <path>: give the path of a Spare Cores SQLite database or of a snapshot file (.scc), or none at \
         all for the built-in sample"
    );
    assert_eq!(
        said(folder.path()),
        "the catalog <path> is not a file: give the path of the SQLite database or the snapshot file itself"
    );
}

#[test]
fn a_file_of_zeros_inside_a_good_one_is_damaged() {
    let mut bytes = small_file();
    let (first, rest) = (4096, bytes.len());
    bytes[first..rest].fill(0);
    assert_eq!(said_of(&bytes), "the catalog <path> is damaged: fetch it again");
}

#[test]
fn another_schema_is_named_by_the_first_thing_it_lacks() {
    for (sql, lacks) in [
        ("DROP TABLE zone", "table zone"),
        ("ALTER TABLE server_price RENAME TO prices", "table server_price"),
        (
            "ALTER TABLE server RENAME COLUMN api_reference TO reference",
            "column api_reference in table server",
        ),
    ] {
        let database = TestDatabase::small().with(sql);
        assert_eq!(
            said(&database.path()),
            format!(
                "the catalog <path> has no {lacks}: it must have the tables of sparecores-crawler 0.8, so take another file or \
                 another version of it"
            )
        );
    }
}

#[test]
fn tables_without_rows_are_an_error_and_not_an_empty_catalog() {
    assert_eq!(
        said(&TestDatabase::empty().path()),
        "the catalog <path> has no rows in table server: fill it, or fetch it again"
    );
    let database = TestDatabase::small().with("DELETE FROM server_price");
    assert_eq!(
        said(&database.path()),
        "the catalog <path> has no rows in table server_price: fill it, or fetch it again"
    );
}

#[test]
fn a_file_cut_off_anywhere_or_with_a_byte_flipped_never_panics() {
    let whole = small_file();
    for cut in (0..whole.len()).step_by(997) {
        assert!(!said_of(&whole[..cut]).is_empty());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.sqlite");
    for at in (0..whole.len()).step_by(41) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&path, bytes).unwrap();
        let _ = open_sqlite(&path, &rates());
    }
}

#[test]
fn any_path_can_be_opened_and_nothing_is_written_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a b?mode=rwc#%41ä");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("catalog.sqlite");
    fs::copy(TestDatabase::small().path(), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(open_sqlite(&path, &rates()).unwrap().report.offerings, 3);
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_database_that_another_program_holds_is_said_to_be_locked() {
    let database = TestDatabase::small().with("PRAGMA journal_mode = WAL; PRAGMA locking_mode = EXCLUSIVE");
    database.run("UPDATE server_price SET price = 7");
    assert_eq!(
        said(&database.path()),
        "the catalog <path> is locked by another program: wait until that has finished writing, or give a copy of the file"
    );
}

#[test]
fn a_catalog_says_which_file_it_is_from_without_saying_where_that_is() {
    let database = TestDatabase::small();
    let provenance = database.read().report.provenance;
    assert_eq!(provenance.source, "SQLite database catalog.sqlite");
    let hash = provenance.hash.unwrap();
    assert_eq!((hash.len(), database.read().report.provenance.hash), (64, Some(hash.clone())));
    let changed = database.with("UPDATE server_price SET price = 7");
    assert_ne!(changed.read().report.provenance.hash, Some(hash));
    let written = changed.with("PRAGMA journal_mode = WAL; UPDATE server_price SET price = 8");
    assert_eq!(written.read().report.provenance.hash, None, "the file is not all of it");
}

#[test]
fn rows_that_are_still_in_the_write_ahead_log_are_read() {
    let database = TestDatabase::small();
    let mode = "PRAGMA journal_mode = WAL; UPDATE server_price SET price = 7 WHERE vendor_id = 'aws'";
    let database = database.with(mode);
    assert!(database.lines().contains(&"aws us-east-1/us-east-1c c8a.large on-demand 7000000".to_owned()));
}

#[test]
fn the_real_catalog_is_read_whole_and_nothing_is_lost_unseen() {
    let Some(path) = real_catalog("the reading of the real catalog") else { return };
    let catalog = open_sqlite(&path, &rates()).unwrap();
    let report = &catalog.report;
    let hash = report.provenance.hash.as_deref().unwrap();
    assert!(hash.starts_with("6ebbe924904693819d74"), "{hash}: another catalog has other figures");
    assert_eq!(
        report.dropped,
        BTreeMap::from([
            (Reason::InactiveType, 967),
            (Reason::OtherArch, 18),
            (Reason::OfInactiveType, 1421),
            (Reason::OfOtherType, 205)
        ]),
        "{report}"
    );
    assert_eq!(report.offerings + 1421 + 205, 85_523);
    let bought = lines(&catalog);
    for line in [
        "hcloud fsn1/fsn1 ccx33 on-demand 443800",
        "hcloud ash/ash cpx41 on-demand 386200",
        "aws us-east-1/us-east-1a c8a.large on-demand 107800",
        "aws us-west-2/us-west-2b c7g.2xlarge on-demand 290000",
        "azure westeurope/westeurope-1 Standard_D2s_v6 on-demand 121000",
        "gcp us-central1/us-central1-a c4a-standard-8 on-demand 359200",
        "gcp us-central1/us-central1-a e2-micro on-demand 8400",
        "alicloud cn-hangzhou/cn-hangzhou-b ecs.g7.large on-demand 261600",
        "ovh GRA11/gra11-a b3-8 on-demand 102400",
        "upcloud de-fra1/de-fra1 2xCPU-4GB on-demand 84800",
        "vultr ewr/ewr vc2-1c-1gb on-demand 7000",
    ] {
        assert!(bought.iter().any(|have| have == line), "{line}");
    }
}

#[test]
fn facts_of_the_real_catalog_come_out_as_its_readme_says() {
    let Some(path) = real_catalog("the facts of the real catalog") else { return };
    let catalog = open_sqlite(&path, &rates()).unwrap();
    let of = |vendor: &str, name: &str| {
        catalog.snapshot.types().iter().find(|of| of.vendor.as_str() == vendor && of.name == name)
    };
    assert_eq!(of("hcloud", "ccx33").unwrap().memory_mib, 32000);
    assert_eq!(of("hcloud", "cx11"), None, "inactive");
    assert_eq!(of("aws", "mac2.metal"), None, "a Mac");
    assert!(of("aws", "a1.metal").is_some_and(|of| of.arch == Arch::Arm64));
    assert_eq!(of("vultr", "vcg-a16-2c-8g-2vram").unwrap().gpu_count, 0);
    assert_eq!(of("aws", "c8a.large").unwrap().benchmarks["passmark-single-thread"], 3819);
    assert_eq!(of("aws", "c9g.2xlarge").unwrap().benchmarks, BTreeMap::new());
    let arm = |of: &&scarpenter_core::offering::InstanceType| {
        of.name.starts_with("c4a-") || of.name.starts_with("n4a-")
    };
    assert!(catalog.snapshot.types().iter().filter(arm).all(|of| of.arch == Arch::Arm64));
    let spot = catalog.snapshot.offerings().filter(|offering| offering.capacity_type() == CapacityType::Spot);
    assert!(spot.into_iter().all(|offering| offering.instance_type().vendor.as_str() == "gcp"));
    for (vendor, place) in catalog.snapshot.places() {
        for name in [Some(&place.region), place.zone.as_ref()].into_iter().flatten() {
            assert_eq!(label::label_value(name), **name, "{vendor}");
        }
    }
    let measured = catalog.snapshot.types().iter().filter(|of| !of.benchmarks.is_empty()).count();
    assert!(measured > 3000, "{measured}");
}

/// The figures are those that another reader counted by SQL (nodepool emission, section 8).
#[test]
fn the_real_catalog_s_machines_can_be_told_apart_by_what_they_are() {
    let Some(path) = real_catalog("the counting of the real catalog's machines") else { return };
    let catalog = open_sqlite(&path, &rates()).unwrap();
    let count = |vendor: &str, region: &str, takes: &dyn Fn(&InstanceType) -> bool| {
        let here = |of: &&InstanceType| of.vendor.as_str() == vendor && takes(of);
        let sold_here = |index: usize| {
            catalog.snapshot.offerings_of(index).map(|id| catalog.snapshot.offering(id)).any(|offering| {
                offering.place().region == region && offering.capacity_type() == CapacityType::OnDemand
            })
        };
        let types = catalog.snapshot.types().iter().zip(0..);
        types.filter(|(of, index)| here(of) && sold_here(*index)).count()
    };
    let virginia = |takes: &dyn Fn(&InstanceType) -> bool| count("aws", "us-east-1", takes);
    let middling = |of: &InstanceType| (2..=32).contains(&of.cpu);
    assert_eq!(virginia(&|_| true), 1339);
    assert_eq!(virginia(&|of| of.arch == Arch::Amd64), 943);
    assert_eq!(virginia(&|of| middling(of) && of.hardware.cpu_flags.contains("amx_tile")), 94);
    assert_eq!(virginia(&|of| middling(of) && of.hardware.cpu_flags.is_empty()), 73, "not measured");
    let one_thread_a_core = |of: &InstanceType| of.hardware.cpu_cores.is_some_and(|cores| of.cpu <= cores);
    assert_eq!(virginia(&|of| middling(of) && one_thread_a_core(of)), 249);
    assert_eq!(virginia(&|of| of.hardware.local_storages >= 2), 226);
    assert_eq!(count("hcloud", "fsn1", &|of| of.memory_mib >= 4096), 16, "4000 MiB are less than 4 GiB");
    assert_eq!(count("hcloud", "fsn1", &|of| of.memory_mib * 10 >= 38 * 1024), 19);
    let fast = |of: &InstanceType| of.hardware.network_baseline_mbps >= Some(4000);
    assert_eq!(count("ovh", "GRA11", &fast), 38, "of 68 by plain SQL, where 4000 means megabits");
    let shown = catalog.snapshot.types().iter().find(|of| of.name == "m7i.large").unwrap();
    assert_eq!(shown.hardware.l3_kib, Some(105 * 1024));
}

#[test]
fn prices_of_the_real_catalog_keep_their_currency_age_and_cap() {
    let Some(path) = real_catalog("the terms of the real catalog's prices") else { return };
    let catalog = open_sqlite(&path, &rates()).unwrap();
    let mut capped = BTreeMap::new();
    for offering in catalog.snapshot.offerings() {
        let vendor = offering.instance_type().vendor.as_str();
        let currency = match vendor {
            "alicloud" => "CNY",
            "hcloud" | "ovh" | "upcloud" => "EUR",
            _ => "USD",
        };
        assert_eq!(offering.native_price().currency.as_str(), currency, "{vendor}");
        assert!(offering.observed().is_some());
        if offering.monthly_cap().is_some() {
            *capped.entry(vendor).or_insert(0) += 1;
        }
    }
    assert_eq!(capped, BTreeMap::from([("upcloud", 140), ("vultr", 388)]));
    let dev = catalog.snapshot.offerings().find(|of| of.instance_type().name == "2xCPU-4GB").unwrap();
    assert_eq!(dev.native_price().micro * 672, dev.terms().monthly_cap_micro.unwrap());
}

#[test]
fn without_rates_the_real_catalog_says_which_are_wanted() {
    let Some(path) = real_catalog("the report on the real catalog without rates") else { return };
    let report = open_sqlite(&path, &Rates::default()).unwrap().report;
    assert_eq!(report.without_rate, BTreeMap::from([("CNY".to_owned(), 9638), ("EUR".to_owned(), 382)]));
    assert_eq!(
        report.rate_hint().unwrap(),
        "prices in CNY (9638), EUR (382) are no offerings until their rate in USD is given: --rate CNY=… --rate EUR=…"
    );
}
