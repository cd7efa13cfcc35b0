//! What is written is read again, and what was spoiled is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::report::Provenance;
use crate::testing::{TestDatabase, assert_same, lines, rates, real_catalog};
use crate::{open, open_sqlite, sample};

const CREATED: &str = "2026-11-30T12:00:00Z";

fn small() -> Catalog {
    let tiers = r#"[{"lower": 0.0, "upper": 672.0, "price": 0.2219}, {"lower": 673.0, "upper": "Infinity", "price": 0.0}]"#;
    TestDatabase::small()
        .score("passmark:cpu_mark", "{}", "7000")
        .score("static_web:speed", r#"{"size": "1k", "connections": 8}"#, "2897.478")
        .score("llm_speed:text", "", "0.1234567891234")
        .with(&format!("UPDATE server_price SET price_tiered = '{tiers}' WHERE vendor_id = 'hcloud'"))
        .with("UPDATE server_price SET observed_at = NULL WHERE vendor_id = 'gcp'")
        .with("UPDATE server SET cpu_flags = '[\"avx\",\"aes\"]', cpu_cores = 4, network_speed_max = 12.5")
        .with("INSERT INTO server SELECT * FROM server WHERE vendor_id = 'aws'")
        .read()
}

fn bytes_of(catalog: &Catalog) -> Vec<u8> {
    encode(catalog, CREATED.parse().unwrap())
}

fn first_line(bytes: &[u8]) -> serde_json::Value {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    serde_json::from_slice(&bytes[..end]).unwrap()
}

/// The same file with its first line changed and the checksum made right again, as a stranger could.
fn with_line(bytes: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let line = std::str::from_utf8(&bytes[..end]).unwrap();
    let (open, _) = line.rsplit_once(",\"sha256\"").unwrap();
    header::seal_line(&change(open), &bytes[end + 1..])
}

fn flaw_of(bytes: &[u8]) -> Flaw {
    decode(bytes, "test", &Rates::default()).unwrap_err()
}

#[test]
fn what_is_written_is_read_again_in_every_offering_label_and_price() {
    let catalog = small();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.scc");
    write(&path, &catalog).unwrap();
    for again in [read(&path, &Rates::default()).unwrap(), open(&path, &rates()).unwrap()] {
        assert_same(&again, &catalog);
        assert_eq!(again.report.source, path.display().to_string());
    }
    let capped = catalog.snapshot.offerings().find(|offering| offering.monthly_cap().is_some()).unwrap();
    assert_eq!(capped.instance_type().name, "ccx33");
    assert_eq!(capped.monthly_cap().unwrap().micro, 2 * 672 * 221_900);
}

#[test]
fn the_first_line_says_to_people_what_the_file_is() {
    let mut catalog = small();
    catalog.report.provenance = Provenance {
        fetched: Some("2026-11-29T01:02:03Z".parse().unwrap()),
        hash: Some("abc".to_owned()),
        rates: catalog.report.provenance.rates.clone(),
        ..Provenance::new("Keeper http://127.0.0.1:1")
    };
    let line = first_line(&bytes_of(&catalog));
    let said = |key: &str| line[key].to_string();
    assert_eq!(said("format"), "\"scarpenter catalog\"");
    assert_eq!((said("version"), said("created")), ("1".into(), format!("\"{CREATED}\"")));
    assert_eq!(said("source"), "\"Keeper http://127.0.0.1:1\"");
    assert_eq!((said("fetched"), said("hash")), ("\"2026-11-29T01:02:03Z\"".into(), "\"abc\"".into()));
    assert!(said("notice").contains("CC BY-SA 4.0"), "{line}");
    assert_eq!(said("rates"), r#"{"CNY":{"usd":"0.5"},"EUR":{"usd":"2"}}"#);
    assert_eq!((said("types"), said("offerings")), ("3".into(), "3".into()));
    assert_eq!(said("left_out"), r#"{"bad-type":1}"#);
    assert_eq!(line["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn a_rate_that_is_given_goes_before_that_of_the_file() {
    let bytes = bytes_of(&small());
    let rates = ["EUR=3".parse::<crate::Rate>().unwrap()].into_iter().collect();
    let catalog = decode(&bytes, "test", &rates).unwrap();
    assert!(lines(&catalog).contains(&"hcloud fsn1/fsn1 ccx33 on-demand 665700".to_owned()));
    let offering = catalog.snapshot.offerings().find(|of| of.instance_type().name == "ccx33").unwrap();
    assert_eq!(offering.native_price().to_string(), "0.221900 EUR");
    assert_eq!(catalog.report.provenance.rates.get("EUR"), Some(3.0));
    assert_eq!(catalog.report.provenance.rates.get("CNY"), Some(0.5), "the file's own");
}

#[test]
fn prices_without_a_rate_are_kept_in_the_file_until_one_is_given() {
    let database = TestDatabase::small();
    let poor = open_sqlite(&database.path(), &Rates::default()).unwrap();
    assert_eq!(poor.report.offerings, 2);
    let bytes = bytes_of(&poor);
    let still_poor = decode(&bytes, "test", &Rates::default()).unwrap();
    assert_same(&still_poor, &poor);
    assert_eq!(still_poor.report.without_rate["EUR"], 1);
    let rich = decode(&bytes, "test", &rates()).unwrap();
    assert_same(&rich, &database.read());
    // And through a second file.
    let again = decode(&bytes_of(&still_poor), "test", &rates()).unwrap();
    assert_same(&again, &database.read());
}

#[test]
fn equal_catalogs_give_equal_files() {
    assert!(bytes_of(&small()) == bytes_of(&small()));
    let again = decode(&bytes_of(&small()), "test", &Rates::default()).unwrap();
    assert!(bytes_of(&again) == bytes_of(&small()));
}

#[test]
fn every_byte_of_the_file_counts() {
    let bytes = bytes_of(&small());
    for at in 0..bytes.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut spoiled = bytes.clone();
            spoiled[at] ^= flip;
            assert!(decode(&spoiled, "test", &Rates::default()).is_err(), "byte {at} ^ {flip:#x}");
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let bytes = bytes_of(&small());
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len], "test", &Rates::default()).is_err(), "{len} bytes");
    }
    let half = bytes.len() - 9;
    let expected = bytes.len() as u64;
    assert_eq!(flaw_of(&bytes[..half]), Flaw::CutOff { bytes: half as u64, expected });
    assert_eq!(flaw_of(&[&bytes[..], b"x"].concat()), Flaw::TooLong { bytes: expected + 1, expected });
}

#[test]
fn a_file_that_is_no_snapshot_is_one_sentence_that_names_it_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.scc");
    let said = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        open(&path, &Rates::default()).unwrap_err().to_string().replace(&path.display().to_string(), "<path>")
    };
    let whole = bytes_of(&small());
    let neither = "the catalog <path> is neither a SQLite database nor a snapshot file of scarpenter's (.scc): unpack it \
                   if it is compressed, else fetch it again";
    assert_eq!(said(b"<!DOCTYPE html><html>"), neither);
    assert_eq!(said(&whole[1..]), neither);
    assert_eq!(said(b""), "the catalog <path> is an empty file: fetch it again");
    assert_eq!(
        said(&with_line(&whole, |line| line.replace("\"version\":1", "\"version\":2,\"new\":[]"))),
        "the catalog <path> is of version 2 of its format and this program reads version 1: make it anew by this \
         program's `scarpenter catalog snapshot`, or read it with the program that made it"
    );
    assert_eq!(
        said(&with_line(&whole, |line| line.replace("\"created\"", "\"made\""))),
        "the catalog <path> has a damaged first line: fetch it again"
    );
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert_eq!(
        said(&flipped),
        "the catalog <path> is damaged, its content has another checksum than it names: fetch it again"
    );
    assert_eq!(
        said(&whole[..whole.len() - 1]),
        format!(
            "the catalog <path> is cut off after {} of {} bytes: fetch it again",
            whole.len() - 1,
            whole.len()
        )
    );
}

#[test]
fn a_length_that_no_catalog_has_is_refused_and_not_set_aside() {
    let whole = bytes_of(&small());
    let raw = first_line(&whole)["raw_bytes"].to_string();
    let claims = |bytes: &str| {
        flaw_of(&with_line(&whole, |line| {
            line.replace(&format!("\"raw_bytes\":{raw}"), &format!("\"raw_bytes\":{bytes}"))
        }))
    };
    assert_eq!(claims("18446744073709551615"), Flaw::TooLarge { bytes: u64::MAX, most: MOST_RAW_BYTES });
    assert_eq!(claims("60000000"), Flaw::Content("its body does not unpack"));
    assert_eq!(claims("3"), Flaw::Content("its body does not unpack"));
    assert_eq!(claims("-1"), Flaw::Header);
    // A hole of that size, which costs no disk.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.scc");
    fs::write(&path, &whole).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let refused = read(&path, &Rates::default()).unwrap_err().to_string();
    assert!(refused.contains("claims 1099511627776 bytes"), "{refused}");
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.scc");
    write(&path, &small()).unwrap();
    let before = fs::read(&path).unwrap();
    let missing = folder.path().join("nowhere/c.scc");
    let refused = write(&missing, &small()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "cannot write the catalog {}: check that its folder is there, has room, and that this user may write to it",
            missing.display()
        )
    );
    let in_the_way = folder.path().join("folder.scc");
    fs::create_dir(&in_the_way).unwrap();
    assert!(write(&in_the_way, &small()).is_err());
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_file_may_be_read_by_others_as_any_that_a_user_makes() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, plain) = (folder.path().join("c.scc"), folder.path().join("plain"));
    write(&ours, &small()).unwrap();
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));
}

#[test]
fn the_real_catalog_comes_back_whole() {
    let Some(path) = real_catalog("the round trip of the real catalog through a snapshot file") else {
        return;
    };
    let catalog = open_sqlite(&path, &rates()).unwrap();
    let bytes = bytes_of(&catalog);
    assert_same(&decode(&bytes, "test", &Rates::default()).unwrap(), &catalog);
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    let poor = open_sqlite(&path, &Rates::default()).unwrap();
    assert_same(&decode(&bytes_of(&poor), "test", &rates()).unwrap(), &catalog);
}

/// A spoiled file is an error or, where nothing that counts was changed, the same catalog.
fn refused_or_the_same(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(catalog) = decode(bytes, "test", &Rates::default()) {
        prop_assert_eq!(lines(&catalog), lines(&sample(&Rates::default())));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_spoiled_file_never_panics_and_is_never_another_catalog(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| bytes_of(&sample(&Rates::default())));
        let mut bytes = WHOLE.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        refused_or_the_same(&bytes)?;
    }

    #[test]
    fn a_body_that_a_stranger_sealed_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| pack::pack(&sample(&Rates::default())));
        let mut raw = WHOLE.clone();
        for (at, value) in changes {
            let at = at.index(raw.len());
            raw[at] = value;
        }
        if let Some(cut) = cut {
            raw.truncate(cut.index(raw.len()));
        }
        if let Ok(offers) = unpack::unpack(&raw) {
            let catalog = offers.into_catalog(crate::Report::default());
            prop_assert!(catalog.snapshot.offerings().all(|offering| offering.price().micro_usd() > 0));
        }
    }
}
