use std::fs;

use jiff::SignedDuration;
use tempfile::TempDir;

use super::*;
use crate::testing::{TestDatabase, lines, rates};

const NO_HCLOUD: &str = "DELETE FROM server_price WHERE vendor_id = 'hcloud'";

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(folder: &TempDir) -> Store {
    Store::open(folder.path(), rates()).unwrap()
}

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_hours(hour)
}

/// Three vendors.
fn whole() -> Catalog {
    TestDatabase::small().read()
}

/// One of them is gone.
fn shrunken() -> Catalog {
    TestDatabase::small().with(NO_HCLOUD).read()
}

/// Nothing is sold.
fn empty() -> Catalog {
    TestDatabase::small().with("UPDATE server_price SET status = 'INACTIVE'").read()
}

fn older() -> Catalog {
    TestDatabase::small().with("UPDATE server_price SET observed_at = '2026-08-21 00:00:00'").read()
}

fn kept(store: &Store) -> Vec<String> {
    lines(&store.current().unwrap())
}

#[test]
fn what_was_taken_is_there_after_a_restart() {
    let folder = folder();
    let mut store = open(&folder);
    assert!(store.current().is_none());
    assert_eq!(store.offer(whole(), at(0)).unwrap(), Verdict::Taken);
    let again = open(&folder);
    assert_eq!(kept(&again), lines(&whole()));
    let (report, fresh) = (again.current().unwrap().report, whole().report);
    assert_eq!((report.date, report.offerings, report.types), (fresh.date, fresh.offerings, fresh.types));
    assert_eq!(again.moved_aside(), None);
}

#[test]
fn a_bad_one_leaves_the_files_as_they_are_and_says_what_is_wrong() {
    let folder = folder();
    let mut store = open(&folder);
    assert_eq!(store.offer(whole(), at(0)).unwrap(), Verdict::Taken);
    let before = fs::read(folder.path().join("catalog.scc")).unwrap();
    for (bad, words) in [
        (empty(), "no offering"),
        (older(), "older than that of the kept one"),
        (shrunken(), "(hcloud from 1 to 0)"),
    ] {
        let Verdict::Refused(refusal) = store.offer(bad, at(1)).unwrap() else { panic!("{words}: taken") };
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert_eq!(kept(&store), lines(&whole()));
        assert_eq!(fs::read(folder.path().join("catalog.scc")).unwrap(), before);
    }
}

#[test]
fn what_was_seen_of_a_shrink_survives_restarts() {
    let folder = folder();
    assert_eq!(open(&folder).offer(whole(), at(0)).unwrap(), Verdict::Taken);
    for hour in [1, 13] {
        assert!(matches!(open(&folder).offer(shrunken(), at(hour)).unwrap(), Verdict::Refused(_)));
    }
    assert_eq!(open(&folder).offer(shrunken(), at(25)).unwrap(), Verdict::Taken);
    assert_eq!(kept(&open(&folder)), lines(&shrunken()));
    assert!(!folder.path().join("shrunken.json").exists());
}

#[test]
fn a_person_may_take_what_is_smaller_or_older_but_not_nothing() {
    let folder = folder();
    let mut store = open(&folder);
    assert_eq!(store.accept(whole()).unwrap(), Verdict::Taken);
    assert!(matches!(store.accept(empty()).unwrap(), Verdict::Refused(Refusal::Empty { .. })));
    assert_eq!(store.accept(shrunken()).unwrap(), Verdict::Taken);
    assert_eq!(store.accept(older()).unwrap(), Verdict::Taken);
    assert_eq!(kept(&open(&folder)), lines(&older()));
}

#[test]
fn a_damaged_file_is_moved_aside_and_told_of() {
    let folder = folder();
    assert_eq!(open(&folder).offer(whole(), at(0)).unwrap(), Verdict::Taken);
    let path = folder.path().join("catalog.scc");
    let whole_file = fs::read(&path).unwrap();
    for at_byte in [0, whole_file.len() / 2, whole_file.len() - 1] {
        let mut bytes = whole_file.clone();
        bytes[at_byte] ^= 0x40;
        fs::write(&path, &bytes).unwrap();
        let mut store = open(&folder);
        assert!(store.current().is_none(), "byte {at_byte}");
        assert!(store.moved_aside().unwrap().contains("catalog.scc.damaged"), "{:?}", store.moved_aside());
        assert_eq!(fs::read(folder.path().join("catalog.scc.damaged")).unwrap(), bytes);
        assert_eq!(store.offer(whole(), at(1)).unwrap(), Verdict::Taken);
        assert_eq!(open(&folder).moved_aside(), None);
    }
}

#[test]
fn a_catalog_that_is_damaged_while_it_is_used_goes_on_being_used() {
    let folder = folder();
    let mut store = open(&folder);
    assert_eq!(store.offer(whole(), at(0)).unwrap(), Verdict::Taken);
    fs::write(folder.path().join("catalog.scc"), b"half").unwrap();
    assert!(matches!(store.offer(shrunken(), at(1)).unwrap(), Verdict::Refused(_)));
    assert_eq!(kept(&store), lines(&whole()));
}

#[test]
fn what_was_seen_and_cannot_be_read_has_not_been_seen() {
    let folder = folder();
    assert_eq!(open(&folder).offer(whole(), at(0)).unwrap(), Verdict::Taken);
    for hour in [1, 13] {
        assert!(matches!(open(&folder).offer(shrunken(), at(hour)).unwrap(), Verdict::Refused(_)));
    }
    fs::write(folder.path().join("shrunken.json"), b"{").unwrap();
    assert!(matches!(open(&folder).offer(shrunken(), at(25)).unwrap(), Verdict::Refused(_)));
}

#[test]
fn what_a_writer_that_died_has_left_is_removed() {
    let folder = folder();
    let left = folder.path().join(".catalog.scc.1-0.part");
    fs::write(&left, b"half").unwrap();
    let mut store = open(&folder);
    assert!(!left.exists() && store.current().is_none());
    assert_eq!(store.offer(whole(), at(0)).unwrap(), Verdict::Taken);
    assert_eq!(kept(&open(&folder)), lines(&whole()));
}

#[test]
fn of_two_in_one_folder_each_judges_by_what_the_other_has_put_there() {
    let folder = folder();
    let (mut one, mut other) = (open(&folder), open(&folder));
    assert_eq!(one.offer(whole(), at(0)).unwrap(), Verdict::Taken);
    assert!(matches!(other.offer(shrunken(), at(1)).unwrap(), Verdict::Refused(_)));
    assert_eq!(kept(&other), lines(&whole()));
}

#[test]
fn many_at_once_leave_one_whole_catalog() {
    let folder = folder();
    let catalogs =
        [whole(), shrunken(), TestDatabase::small().with("UPDATE server_price SET price = 7").read()];
    std::thread::scope(|scope| {
        for catalog in &catalogs {
            let folder = &folder;
            scope.spawn(move || {
                for _ in 0..10 {
                    assert_eq!(open(folder).accept(catalog.clone()).unwrap(), Verdict::Taken);
                }
            });
        }
    });
    let store = open(&folder);
    assert_eq!(store.moved_aside(), None);
    assert!(catalogs.iter().any(|catalog| lines(catalog) == kept(&store)));
}

#[test]
fn without_a_folder_the_guard_is_the_same() {
    let mut store = Store::in_memory(rates());
    assert_eq!(store.offer(whole(), at(0)).unwrap(), Verdict::Taken);
    for hour in [1, 13] {
        assert!(matches!(store.offer(shrunken(), at(hour)).unwrap(), Verdict::Refused(_)));
        assert_eq!(kept(&store), lines(&whole()));
    }
    assert_eq!(store.offer(shrunken(), at(25)).unwrap(), Verdict::Taken);
}

#[test]
fn a_folder_that_cannot_be_made_is_told_of_by_name() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Store::open(&file.join("store"), rates()).unwrap_err();
    assert!(error.to_string().contains("cannot make the folder"), "{error}");
    assert!(error.to_string().contains("file/store"), "{error}");
}
