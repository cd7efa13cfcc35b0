use super::*;

/// Six pods that cannot share: each wants a type of its own size alone.
fn six() -> World {
    World::new((0..6).map(|n| {
        selecting(selecting(pod(&format!("p{n}"), 2), label::INSTANCE_TYPE, "s2"), label::REGION, "r1")
    }))
}

#[test]
fn no_limit_is_ever_passed_within_one_pass() {
    for (name, limit, machines) in
        [(NODES, 2, 2), (CPU, 5000, 2), (MEMORY, 17 * GIB, 2), (MICRO_USD_PER_HOUR, 59_999, 2), (NODES, 0, 0)]
    {
        let mut world = six();
        world.pools[0].limits.set(name, limit);
        let plan = world.plan();
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (machines, 6 - machines), "{name}");
        assert!(plan.unplaced.iter().all(|unplaced| unplaced.refusal.reason == "limits"), "{plan:#?}");
    }
}

#[test]
fn what_there_is_counts_towards_the_limits() {
    let mut world = six();
    world.pools[0].limits.set(NODES, 3);
    world.nodes = vec![Node {
        name: "old".to_owned(),
        pool: Some("default".to_owned()),
        counted: Resources::new().with(NODES, 1),
        ..Node::default()
    }];
    let plan = world.plan();
    assert_eq!(plan.claims.len(), 2);
    assert_eq!(plan.unplaced[0].refusal.message, "the limits of NodePool default leave nodes 0 of 3");
}

#[test]
fn a_limit_steers_to_a_type_that_it_allows() {
    let mut world = World::new([pod("a", 1)]);
    world.pools[0].requirements = vec![Requirement::new(label::INSTANCE_TYPE, Operator::In, &["m2", "s4"])];
    world.unavailable.vendors.insert("two".into(), "no plugin".to_owned());
    world.pools[0].limits.set(CPU, 2000);
    assert_eq!(refusal(&world.plan()).0, "limits");
    world.unavailable.vendors.clear();
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
}

#[test]
fn another_pool_takes_over_when_the_limits_of_one_are_reached() {
    let mut world = six();
    world.pools[0].limits.set(NODES, 4);
    world.pools.push(pool("other"));
    let plan = world.plan();
    let of = |name: &str| plan.claims.iter().filter(|claim| claim.pool == name).count();
    assert_eq!((of("default") + of("other"), plan.unplaced.len()), (6, 0));
    assert!(of("default") <= 4);
}

#[test]
fn the_caps_hold_over_all_pools() {
    let mut world = six();
    world.pools.push(pool("other"));
    world.caps = Caps { max_machines: Some(10), used_machines: 8, ..Caps::default() };
    let plan = world.plan();
    assert_eq!(plan.claims.len(), 2);
    assert_eq!(plan.capped.as_deref(), Some("the controller's --max-machines is reached"));
    world.caps =
        Caps { max_micro_usd_per_hour: Some(100_000), used_micro_usd_per_hour: 50_000, ..Caps::default() };
    let plan = world.plan();
    assert_eq!(plan.claims.len(), 2);
    assert_eq!(
        plan.capped.as_deref(),
        Some(
            "the controller's --max-usd-per-hour leaves $0.010000/h, and the cheapest offering left costs $0.020000/h"
        )
    );
}
