use proptest::prelude::*;

use super::*;
use crate::offering::{Arch, OfferingKey};

fn place(region: &str, zone: Option<&str>) -> Place {
    Place { region: region.to_owned(), zone: zone.map(str::to_owned), zone_id: None }
}

fn instance_type(vendor: &str, name: &str) -> InstanceType {
    InstanceType {
        vendor: vendor.into(),
        name: name.to_owned(),
        arch: Arch::Amd64,
        family: String::new(),
        cpu: 2,
        memory_mib: 4096,
        storage_gb: 0,
        gpu_count: 0,
        gpu_manufacturer: String::new(),
        gpu_model: String::new(),
        cpu_manufacturer: String::new(),
        cpu_allocation: String::new(),
        benchmarks: BTreeMap::from([("passmark-single-thread", 2000)]),
        hardware: Box::default(),
    }
}

/// Two vendors with two types each, in region r with zones a and b.
fn catalog() -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    for vendor in ["one", "two"] {
        for (name, price) in [("x", 10), ("y", 20)] {
            let id = builder.instance_type(instance_type(vendor, name));
            for zone in ["a", "b"] {
                let price = Price::from_micro_usd(price);
                builder.offering(id, place("r", Some(zone)), CapacityType::OnDemand, price);
            }
        }
    }
    builder.build()
}

fn live(name: &str, zone: Option<&str>, price: Option<u64>, available: bool) -> LiveOffering {
    LiveOffering {
        instance_type: name.to_owned(),
        place: place("r", zone),
        capacity_type: CapacityType::OnDemand,
        price: price.map(Price::from_micro_usd),
        available,
    }
}

fn lines(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .offerings()
        .map(|offering| format!("{} {}", offering.key(), offering.price().micro_usd()))
        .collect()
}

/// Lays rows of vendor `one` over the catalog.
fn overlay(rows: Vec<LiveOffering>, types: Vec<InstanceType>) -> (Vec<String>, Overlaid) {
    let live = LiveOfferings { offerings: rows, instance_types: types };
    let (snapshot, mut counts) = catalog().overlay(&BTreeMap::from([("one".into(), live)]));
    let of_two = snapshot.offerings().filter(|offering| offering.instance_type().vendor.as_str() == "two");
    assert_eq!(of_two.count(), 4, "the other vendor's are as they were");
    let of_one = lines(&snapshot).into_iter().filter(|line| line.starts_with("one/")).collect();
    (of_one, counts.remove(&Vendor::new("one")).unwrap_or_default())
}

#[test]
fn a_price_goes_before_the_catalogs_and_what_cannot_be_had_is_left_out() {
    let rows = vec![live("x", Some("a"), Some(30), true), live("y", Some("b"), None, false)];
    let (of_one, counts) = overlay(rows, Vec::new());
    assert_eq!(of_one, ["one/b/x/on-demand 10", "one/a/y/on-demand 20", "one/a/x/on-demand 30"]);
    assert_eq!(counts, Overlaid { repriced: 1, withdrawn: 1, ..Overlaid::default() });
}

#[test]
fn without_a_zone_a_row_speaks_for_all_zones_that_are_not_named() {
    let rows = vec![
        live("x", None, Some(5), true),
        live("x", Some("b"), Some(7), true),
        live("y", None, None, false),
    ];
    let (of_one, counts) = overlay(rows, Vec::new());
    assert_eq!(of_one, ["one/a/x/on-demand 5", "one/b/x/on-demand 7"]);
    assert_eq!(counts, Overlaid { repriced: 2, withdrawn: 2, ..Overlaid::default() });
}

#[test]
fn what_the_catalog_does_not_know_is_added_at_its_price_be_it_nothing() {
    let mut spot = live("x", Some("a"), Some(0), true);
    spot.capacity_type = CapacityType::Spot;
    let rows = vec![
        spot,
        live("bench", Some("rack"), Some(0), true),
        live("bench", Some("full"), Some(0), false),
        live("y", Some("c"), None, true),
        live("nobody", Some("a"), Some(1), true),
    ];
    let (of_one, counts) = overlay(rows, vec![instance_type("forged", "bench"), instance_type("one", "x")]);
    assert_eq!(of_one[..2], ["one/rack/bench/on-demand 0", "one/a/x/spot 0"]);
    assert_eq!(of_one.len(), 6);
    assert_eq!(counts, Overlaid { added: 2, unknown: 2, ..Overlaid::default() });
}

#[test]
fn a_type_that_the_catalog_knows_keeps_what_the_catalog_knows_of_it() {
    let mut bare = instance_type("one", "x");
    bare.benchmarks.clear();
    let live = LiveOfferings { offerings: Vec::new(), instance_types: vec![bare] };
    let (snapshot, _) = catalog().overlay(&BTreeMap::from([("one".into(), live)]));
    assert_eq!(snapshot.types(), catalog().types());
}

fn rows() -> impl Strategy<Value = Vec<LiveOffering>> {
    let name = proptest::sample::select(vec!["x", "y", "bench", "nobody"]);
    let zone = proptest::sample::select(vec![None, Some("a"), Some("b"), Some("c")]);
    let row = (name, zone, proptest::option::of(0..40u64), any::<bool>());
    proptest::collection::vec(
        row.prop_map(|(name, zone, price, available)| live(name, zone, price, available)),
        0..12,
    )
    .prop_map(|mut rows| {
        rows.sort_by_key(|row| (row.instance_type.clone(), row.place.clone()));
        rows.dedup_by_key(|row| (row.instance_type.clone(), row.place.clone()));
        rows
    })
}

proptest! {
    #[test]
    fn each_offering_is_what_the_nearest_word_on_it_says(rows in rows()) {
        let live = LiveOfferings { offerings: rows.clone(), instance_types: vec![instance_type("one", "bench")] };
        let (snapshot, _) = catalog().overlay(&BTreeMap::from([("one".into(), live)]));
        let word = |name: &str, zone: Option<&str>| {
            rows.iter().find(|row| row.instance_type == name && row.place.zone.as_deref() == zone)
        };
        for name in ["x", "y", "bench", "nobody"] {
            for zone in [None, Some("a"), Some("b"), Some("c")] {
                let listed = match (name, zone) {
                    ("x", Some("a" | "b")) => Some(10),
                    ("y", Some("a" | "b")) => Some(20),
                    _ => None,
                };
                let speaks_for_listed = zone.is_none() && listed.is_none() && ["x", "y"].contains(&name)
                    && ["a", "b"].iter().any(|zone| word(name, Some(zone)).is_none());
                let expected = match (listed, word(name, zone)) {
                    (Some(price), said) => match said.or(word(name, None)) {
                        None => Some(price),
                        Some(said) => said.available.then(|| said.price.map_or(price, Price::micro_usd)),
                    },
                    (None, Some(said)) if said.available && name != "nobody" && !speaks_for_listed => {
                        said.price.map(Price::micro_usd)
                    }
                    _ => None,
                };
                let key = OfferingKey {
                    vendor: "one".into(),
                    region: "r".to_owned(),
                    zone: zone.map(str::to_owned),
                    instance_type: name.to_owned(),
                    capacity_type: CapacityType::OnDemand,
                };
                let found = snapshot.find(&key).map(|id| snapshot.offering(id).price().micro_usd());
                prop_assert_eq!(found, expected, "{} {:?}", name, zone);
            }
        }
    }

    #[test]
    fn laid_over_twice_is_the_same_as_once(rows in rows()) {
        let live = LiveOfferings { offerings: rows, instance_types: vec![instance_type("one", "bench")] };
        let live = BTreeMap::from([("one".into(), live)]);
        let once = catalog().overlay(&live).0;
        prop_assert_eq!(lines(&once.overlay(&live).0), lines(&once));
    }
}
