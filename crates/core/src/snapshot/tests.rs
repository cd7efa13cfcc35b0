use proptest::prelude::*;

use crate::offering::Arch;
use crate::requirements::{Operator, Requirement, Requirements};

use super::*;

fn instance_type(vendor: &str, name: &str, cpu: u32) -> InstanceType {
    InstanceType {
        vendor: vendor.into(),
        name: name.to_owned(),
        arch: if name.starts_with('a') { Arch::Arm64 } else { Arch::Amd64 },
        family: name.chars().take(1).collect(),
        cpu,
        memory_mib: u64::from(cpu) * 4096,
        storage_gb: 0,
        gpu_count: 0,
        gpu_manufacturer: String::new(),
        gpu_model: String::new(),
        cpu_manufacturer: String::new(),
        cpu_allocation: "dedicated".to_owned(),
        benchmarks: if cpu.is_multiple_of(2) {
            BTreeMap::from([("passmark-single-thread", u64::from(cpu) * 100)])
        } else {
            BTreeMap::new()
        },
        hardware: Box::default(),
    }
}

fn place(region: &str, zone: Option<&str>) -> Place {
    Place { region: region.to_owned(), zone: zone.map(str::to_owned), zone_id: None }
}

/// Some types of two vendors in some places, at prices that are often equal.
fn build(shift: usize) -> Snapshot {
    let mut rows: Vec<(&str, String, u32, Place, CapacityType, u64)> = Vec::new();
    for (vendor, regions) in [("one", ["r1", "r2"]), ("two", ["r2", "r3"])] {
        for cpu in 1..40u32 {
            let name = format!("{}{cpu}", if cpu % 3 == 0 { "a" } else { "x" });
            for region in regions {
                for zone in [None, Some("z")] {
                    let price = u64::from(cpu / 4 + 1) * 10_000;
                    let place = place(region, zone.map(|zone| format!("{region}{zone}")).as_deref());
                    rows.push((vendor, name.clone(), cpu, place.clone(), CapacityType::OnDemand, price));
                    if cpu % 5 == 0 {
                        rows.push((vendor, name.clone(), cpu, place, CapacityType::Spot, price / 2));
                    }
                }
            }
        }
    }
    let shift = shift % rows.len();
    rows.rotate_left(shift);
    let mut builder = SnapshotBuilder::default();
    for (vendor, name, cpu, place, capacity, price) in rows {
        let id = builder.instance_type(instance_type(vendor, &name, cpu));
        builder.offering(id, place, capacity, Price::from_micro_usd(price));
    }
    builder.build()
}

fn keys(snapshot: &Snapshot) -> Vec<(Price, OfferingKey)> {
    snapshot.offerings().map(|offering| (offering.price(), offering.key())).collect()
}

#[test]
fn offerings_stand_in_the_order_of_choosing_whatever_the_order_of_adding() {
    let first = keys(&build(0));
    let mut sorted = first.clone();
    sorted.sort_by(|(a_price, a), (b_price, b)| {
        (a_price, a.capacity_type, &a.vendor, &a.region, &a.zone, &a.instance_type).cmp(&(
            b_price,
            b.capacity_type,
            &b.vendor,
            &b.region,
            &b.zone,
            &b.instance_type,
        ))
    });
    // Types sort by name within a vendor, so the numbers agree with the names.
    assert_eq!(first, sorted);
    assert_eq!(first, keys(&build(71)));
}

#[test]
fn of_two_offerings_with_one_key_the_cheaper_is_kept() {
    let mut builder = SnapshotBuilder::default();
    let id = builder.instance_type(instance_type("one", "x1", 1));
    for price in [3, 1, 2] {
        builder.offering(id, place("r", None), CapacityType::OnDemand, Price::from_micro_usd(price));
    }
    let snapshot = builder.build();
    assert_eq!(snapshot.offerings().map(|offering| offering.price().micro_usd()).collect::<Vec<_>>(), [1]);
}

#[test]
fn of_two_offerings_at_one_price_the_one_seen_last_is_kept_with_its_own_terms() {
    let terms = |micro, cap, seconds: i64| Terms {
        native: Money { micro, currency: Currency::parse("EUR").unwrap() },
        monthly_cap_micro: cap,
        observed: Some(Time::from_millis(seconds * 1000)),
    };
    let older = terms(4, Some(2000), 1_700_000_000);
    let newer = terms(5, None, 1_800_000_000);
    for order in [[older, newer], [newer, older]] {
        let mut builder = SnapshotBuilder::default();
        let id = builder.instance_type(instance_type("one", "x1", 1));
        let (here, there) = ("r", "s");
        for terms in order {
            let at = builder.place(&"one".into(), place(here, None));
            builder.offer(id, at, CapacityType::OnDemand, Price::from_micro_usd(6), terms);
        }
        let at = builder.place(&"one".into(), place(there, None));
        builder.offer(id, at, CapacityType::OnDemand, Price::from_micro_usd(6), older);
        let snapshot = builder.build();
        let kept: Vec<Offering<'_>> = snapshot.offerings().collect();
        assert_eq!(kept.iter().map(Offering::terms).collect::<Vec<_>>(), [newer, older]);
        assert_eq!(kept[0].monthly_cap(), None);
        let cap = Money { micro: 3000, currency: Currency::USD };
        assert_eq!(kept[1].monthly_cap(), Some(cap), "in USD, as the hour is");
        assert_eq!(kept[1].observed(), older.observed);
    }
}

#[test]
fn an_offering_of_which_only_the_price_is_known_has_it_in_dollars() {
    let snapshot = build(0);
    let offering = snapshot.offering(OfferingId(0));
    assert_eq!(offering.terms(), Terms::usd(offering.price()));
}

#[test]
fn every_offering_is_found_by_its_key() {
    let snapshot = build(0);
    for offering in snapshot.offerings() {
        assert_eq!(snapshot.find(&offering.key()), Some(offering.id()));
    }
    let mut unknown = snapshot.offering(OfferingId(0)).key();
    unknown.region = "nowhere".to_owned();
    assert_eq!(snapshot.find(&unknown), None);
}

#[test]
fn a_type_without_offerings_is_known_by_name() {
    let mut builder = SnapshotBuilder::default();
    builder.instance_type(instance_type("one", "x1", 1));
    let snapshot = builder.build();
    assert_eq!(snapshot.known_values(label::INSTANCE_TYPE), ["x1"]);
    assert!(snapshot.is_empty());
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let text = proptest::sample::select(vec![
        (label::VENDOR, vec!["one", "two", "three"]),
        (label::INSTANCE_TYPE, vec!["x1", "x2", "a3", "x40"]),
        (label::ARCH, vec!["amd64", "arm64"]),
        (label::REGION, vec!["r1", "r2"]),
        (label::UNIQUE_REGION, vec!["one.r2", "two.r2"]),
        (label::ZONE, vec!["r1z", "r3z"]),
        (label::CAPACITY_TYPE, vec!["spot", "on-demand"]),
        (label::INSTANCE_CPU, vec!["1", "8", "39"]),
        (label::PRICE, vec!["10000", "20000", "50000"]),
        (label::AWS_ZONE_ID, vec!["z"]),
        ("custom", vec!["a"]),
    ])
    .prop_flat_map(|(key, values)| {
        (Just(key), proptest::sample::subsequence(values.clone(), 1..=values.len()), 0..4)
    })
    .prop_map(|(key, values, operator)| match operator {
        0 => Requirement::new(key, Operator::NotIn, &values),
        1 => Requirement::new(key, Operator::Exists, &[]),
        2 => Requirement::new(key, Operator::DoesNotExist, &[]),
        _ => Requirement::new(key, Operator::In, &values),
    });
    let number = (
        proptest::sample::select(vec![
            (label::INSTANCE_CPU, 40u64),
            (label::PRICE, 100_000),
            ("benchmark.scarpenter.sparecores.com/passmark-single-thread", 4000),
            ("benchmark.scarpenter.sparecores.com/geekbench-single", 10),
        ]),
        0.0..1.0f64,
        proptest::sample::select(vec![Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte]),
    )
        .prop_map(|((key, most), part, operator)| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let value = (most as f64 * part) as u64;
            Requirement::new(key, operator, &[&value.to_string()])
        });
    prop_oneof![3 => text, 1 => number]
}

proptest! {
    #[test]
    fn the_index_finds_what_the_labels_match(lines in proptest::collection::vec(requirement(), 0..5)) {
        let snapshot = build(0);
        let requirements = Requirements::from_list(&lines).unwrap();
        let expected: Vec<OfferingId> = snapshot
            .offerings()
            .filter(|offering| requirements.match_labels(&offering.labels()))
            .map(|offering| offering.id())
            .collect();
        let found: Vec<OfferingId> = snapshot.matching(&requirements).collect();
        prop_assert_eq!(&found, &expected);
        if lines.iter().all(|line| Snapshot::carries(&line.key)) {
            let selection = snapshot.select(&requirements);
            prop_assert_eq!(snapshot.count(&selection), expected.len());
            let accept = |id: OfferingId| !id.index().is_multiple_of(7);
            prop_assert_eq!(snapshot.cheapest(&selection), expected.first().copied());
            let first = expected.iter().copied().find(|id| accept(*id));
            prop_assert_eq!(snapshot.first(&selection, accept), first);
            for most in [0, 10_000, 45_000, 1_000_000].map(Price::from_micro_usd) {
                let first = first.filter(|id| snapshot.offering(*id).price() <= most);
                prop_assert_eq!(snapshot.first_up_to(&selection, most, accept), first);
            }
        }
    }

    #[test]
    fn one_label_is_the_same_as_in_all_labels(id in 0..300u32) {
        let snapshot = build(0);
        let offering = snapshot.offering(OfferingId(id));
        let labels = offering.labels();
        for key in label::WELL_KNOWN {
            let one = offering.label(key);
            prop_assert_eq!(one.as_deref(), labels.get(key).map(String::as_str), "{}", key);
        }
    }
}
