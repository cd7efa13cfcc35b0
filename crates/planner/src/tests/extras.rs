use proptest::prelude::*;
use scarpenter_core::pool::Extras;

use super::*;

fn extras(ipv4: u64, disk: u64) -> Extras {
    Extras { public_ipv4: Price::from_micro_usd(ipv4), boot_disk_gib_month: Price::from_micro_usd(disk) }
}

/// A world in which vendor `one` charges this beside the machine.
fn world(pods: impl IntoIterator<Item = Pod>, charged: Extras) -> World {
    let mut world = World::new(pods);
    for class in world.classes.values_mut() {
        class.extras = BTreeMap::from([("one".into(), charged)]);
    }
    world
}

fn on_demand(pod: Pod) -> Pod {
    selecting(selecting(pod, label::CAPACITY_TYPE, "on-demand"), label::ARCH, "amd64")
}

#[test]
fn machines_are_compared_by_their_full_price() {
    let plan = world([on_demand(pod("a", 1))], extras(4999, 0)).plan();
    assert_eq!(bought(&plan), ["one/r1/s2/on-demand"]);
    let claim = &plan.claims[0];
    assert_eq!((claim.launch.price_per_hour_micro_usd.micro_usd(), claim.extras.micro_usd()), (24_999, 4999));
    // The label is the machine's own price, as requirements on it see it.
    assert_eq!(claim.launch.labels[label::PRICE], "20000");

    let plan = world([on_demand(pod("a", 1))], extras(5001, 0)).plan();
    assert_eq!(bought(&plan), ["two/r2a/m2/on-demand"]);
    let claim = &plan.claims[0];
    assert_eq!((claim.launch.price_per_hour_micro_usd.micro_usd(), claim.extras.micro_usd()), (25_000, 0));
    let prices: Vec<u64> = claim.alternatives.iter().map(|other| other.price.micro_usd()).collect();
    assert_eq!(prices, [25_000, 25_001, 25_001]);
}

#[test]
fn a_boot_disk_is_charged_where_the_type_brings_none() {
    // 40 GiB at $0.073 a month are 4000 micro-USD an hour.
    let world = world([on_demand(pod("a", 1))], extras(0, 73_000));
    assert_eq!(world.plan().claims[0].launch.price_per_hour_micro_usd.micro_usd(), 24_000);
    let class = &world.classes["default"];
    let mut with_disk = instance_type("one", "d", 2, Arch::Amd64, None);
    assert_eq!(class.extra_micro_usd_per_hour(&with_disk), 4000);
    with_disk.storage_gb = 80;
    assert_eq!(class.extra_micro_usd_per_hour(&with_disk), 0);
    with_disk.vendor = "two".into();
    assert_eq!(class.extra_micro_usd_per_hour(&with_disk), 0);
}

#[test]
fn limits_and_caps_count_the_full_price() {
    let two = [on_demand(pod("a", 2)), on_demand(pod("b", 2))];
    let mut limited = world(two.clone().map(|pod| selecting(pod, label::VENDOR, "one")), extras(1000, 0));
    limited.pools[0].requirements = vec![Requirement::new(label::INSTANCE_TYPE, Operator::In, &["s2"])];
    limited.pools[0].limits.set(MICRO_USD_PER_HOUR, 41_999);
    let plan = limited.plan();
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 1), "{plan:#?}");
    assert_eq!(plan.unplaced[0].refusal.reason, "limits");
    limited.pools[0].limits.set(MICRO_USD_PER_HOUR, 42_000);
    assert_eq!(limited.plan().unplaced.len(), 0);

    let mut capped = world([on_demand(selecting(pod("a", 2), label::VENDOR, "one"))], extras(1000, 0));
    capped.caps.max_micro_usd_per_hour = Some(20_999);
    let plan = capped.plan();
    assert_eq!(
        refusal(&plan),
        (
            "caps",
            "the controller's --max-usd-per-hour leaves $0.020999/h, and the cheapest offering left costs $0.021000/h"
        )
    );
    capped.caps.max_micro_usd_per_hour = Some(21_000);
    assert_eq!(capped.plan().claims.len(), 1);
}

#[test]
fn of_two_at_one_price_on_demand_is_bought_wherever_it_is() {
    let mut builder = SnapshotBuilder::default();
    let id = builder.instance_type(instance_type("one", "s2", 2, Arch::Amd64, None));
    let place = |region: &str| Place { region: region.to_owned(), zone: None, zone_id: None };
    for (region, capacity) in
        [("r1", CapacityType::Spot), ("r2", CapacityType::OnDemand), ("r2", CapacityType::Spot)]
    {
        builder.offering(id, place(region), capacity, Price::from_micro_usd(20_000));
    }
    let either = requiring(pod("a", 1), &[(label::CAPACITY_TYPE, Operator::In, &["spot", "on-demand"])]);
    let world = World { snapshot: builder.build(), ..World::new([either]) };
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"]);
    let named = world.plan().claims[0]
        .alternatives
        .iter()
        .map(|other| other.offering.to_string())
        .collect::<Vec<_>>();
    assert_eq!(named, ["one/r1/s2/spot", "one/r2/s2/spot"]);
}

proptest! {
    #[test]
    fn the_cheapest_by_full_price_is_bought(
        one in (0..60_000u64, 0..200_000u64),
        two in (0..60_000u64, 0..200_000u64),
        cpu in 1..8i64,
        either in any::<bool>(),
    ) {
        let capacity: &[&str] = if either { &["on-demand", "spot"] } else { &["on-demand"] };
        let wanted = requiring(pod("a", cpu), &[(label::CAPACITY_TYPE, Operator::In, capacity)]);
        let mut world = World::new([wanted]);
        let class = world.classes.get_mut("default").unwrap();
        class.extras = BTreeMap::from([("one".into(), extras(one.0, one.1)), ("two".into(), extras(two.0, two.1))]);
        let class = class.clone();
        let fits = world.snapshot.offerings().filter(|offering| {
            let have = crate::allocatable(offering.instance_type(), &class);
            have.get(CPU) >= cpu * 1000 && (either || offering.capacity_type() == CapacityType::OnDemand)
        });
        let full = |offering: &scarpenter_core::snapshot::Offering<'_>| {
            offering.price().micro_usd() + class.extra_micro_usd_per_hour(offering.instance_type())
        };
        let best = fits.min_by_key(|offering| (full(offering), offering.id())).unwrap();
        let plan = world.plan();
        prop_assert_eq!(bought(&plan), [best.key().to_string()]);
        prop_assert_eq!(plan.claims[0].launch.price_per_hour_micro_usd.micro_usd(), full(&best));
    }
}
