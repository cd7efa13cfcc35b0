//! No answer, however broken, makes anything panic.

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::client::Sink as _;
use super::super::fetch::{Fetched, SCORE};
use super::super::list::{List, Rows, Shape};
use super::super::rate;
use super::recorded::recordings;
use super::*;

#[derive(Clone, Debug)]
enum Change {
    Byte(Index, u8),
    Cut(Index),
    Drop(Index, Index),
    Twice(Index, Index),
    Digit(Index, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let odd = prop::sample::select(vec![
        "null",
        "-1",
        "1e999",
        "-0",
        "NaN",
        "\"\"",
        "\"Infinity\"",
        "[]",
        "{}",
        "true",
        "1e300",
        "99999999999999999999",
        "\"\\ud800\"",
        "0.00001",
    ]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        any::<Index>().prop_map(Change::Cut),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Drop(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Twice(from, to)),
        (any::<Index>(), odd).prop_map(|(at, odd)| Change::Digit(at, odd)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let range = |from: &Index, to: &Index, len| {
        let (from, to) = (from.index(len), to.index(len));
        from.min(to)..from.max(to).min(from.min(to) + 300)
    };
    match change {
        Change::Byte(at, byte) => *at.get_mut(bytes) = *byte,
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Drop(from, to) => drop(bytes.drain(range(from, to, bytes.len()))),
        Change::Twice(from, to) => {
            let range = range(from, to, bytes.len());
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, copy);
        }
        Change::Digit(at, odd) => {
            let colons: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b':').collect();
            if colons.is_empty() {
                return;
            }
            let from = *at.get(&colons) + 1;
            let to = bytes[from..]
                .iter()
                .position(|byte| matches!(byte, b',' | b'}'))
                .map_or(bytes.len(), |to| from + to);
            bytes.splice(from..to, odd.bytes());
        }
    }
}

fn read(shape: &Shape, bytes: &[u8]) -> Rows {
    let mut list = List::new(shape);
    for chunk in bytes.chunks(1000) {
        if list.feed(chunk).is_err() {
            return Rows::default();
        }
    }
    list.end().unwrap_or_default()
}

fn shapes() -> [Shape; 5] {
    [
        Shape::of(&RegionRow::TABLE, |row| RegionRow::read(row).active),
        Shape::of(&ZoneRow::TABLE, |row| ZoneRow::read(row).active),
        Shape::of(&ServerRow::TABLE, |row| ServerRow::read(row).vcpus),
        Shape::new(&SCORE, |row| (row.text(0).len(), row.text(1).len(), row.number(2))),
        Shape::of(&PriceRow::TABLE, |row| PriceRow::read(row).price),
    ]
}

/// All that is done with rows, done with these.
fn through(bodies: &[Vec<u8>; 5]) -> Catalog {
    let shapes = shapes();
    let [regions, zones, servers, scores, prices] =
        std::array::from_fn(|table| read(&shapes[table], &bodies[table]));
    let dollars = read(&shapes[4], &bodies[4]);
    let wanted = rate::wanted([&prices].into_iter());
    let found = wanted.iter().filter_map(|(currency, _)| {
        let rate = rate::rate(currency, [&prices].into_iter(), &dollars)?;
        crate::Rate::new(currency, rate).ok()
    });
    let rates = rates().overridden_by(&found.collect());
    let of = ask::Scores { benchmark: "stress_ng:best1".into(), config: "{}".into(), vendor: None };
    let of_vendor = ask::Prices::of("hcloud", Vec::new(), 0, false).remove(0);
    let fetched = Fetched {
        regions,
        zones,
        servers,
        scores: vec![(of, scores)],
        prices: vec![(of_vendor, prices)],
        rates: Rates::default(),
    };
    assemble(&fetched, &rates, Provenance::new("mutated"))
}

fn bodies() -> [Vec<u8>; 5] {
    let data = Data::small();
    let mut bodies = data.tables().map(|(_, rows)| serde_json::to_vec(rows).unwrap());
    bodies[3] = br#"[{"vendor_id":"aws","server_id":"c8a.large","selected_benchmark_score":17.5}]"#.to_vec();
    bodies
}

#[test]
fn what_is_mutated_is_a_whole_catalog_before() {
    assert!(through(&bodies()).report.offerings > 10);
}

proptest! {
    #[test]
    fn changed_answers_never_panic(changes in prop::collection::vec((0usize..5, change()), 1..12)) {
        let mut bodies = bodies();
        for (table, change) in &changes {
            apply(&mut bodies[*table], change);
        }
        through(&bodies);
    }

    #[test]
    fn changed_recordings_never_panic(which in any::<Index>(), changes in prop::collection::vec(change(), 1..12)) {
        let recordings = recordings();
        if recordings.is_empty() {
            return Ok(());
        }
        let mut body = which.get(recordings).clone();
        for change in &changes {
            apply(&mut body, change);
        }
        for shape in shapes() {
            read(&shape, &body).iter().for_each(|row| {
                row.number(row.text(0).len());
            });
        }
        through(&[body.clone(), body.clone(), body.clone(), body.clone(), body]);
    }
}
