use super::*;
use crate::ClaimInput;
use scarpenter_core::pod::Preference;

#[test]
fn an_exact_type_is_bought_where_it_is_cheapest_and_equals_are_told_apart_by_name() {
    let world =
        World::new([selecting(selecting(pod("a", 1), label::VENDOR, "one"), label::INSTANCE_TYPE, "s8")]);
    let plan = world.plan();
    assert_eq!(bought(&plan), ["one/r1/s8/on-demand"]);
    let claim = &plan.claims[0];
    assert_eq!(
        claim.alternatives.iter().map(|other| other.offering.to_string()).collect::<Vec<_>>(),
        ["one/r2/s8/on-demand"]
    );
    assert_eq!(claim.pods, [(PodKey::new("default", "a"), "uid-a".to_owned())]);
    assert_eq!(claim.labels[label::NODEPOOL], "default");
    assert_eq!(claim.labels[label::NODE_CLASS], "default");
    assert_eq!(claim.launch.labels[label::TENANCY], "shared");
    assert!(claim.requirements.contains(&Requirement::new(label::INSTANCE_TYPE, Operator::In, &["s8"])));
    assert!(claim.requirements.contains(&Requirement::new(
        label::CAPACITY_TYPE,
        Operator::In,
        &["on-demand"]
    )));
}

#[test]
fn the_cheapest_that_fits_is_bought() {
    assert_eq!(bought(&World::new([pod("a", 1)]).plan()), ["one/r1/s2/on-demand"]);
    assert_eq!(
        bought(&World::new([pod("a", 3)]).plan()),
        ["one/r1/a4/on-demand"],
        "nothing asks for an architecture"
    );
    assert_eq!(bought(&World::new([pod("a", 20)]).plan()), ["two/r2a/m32/on-demand"]);
}

#[test]
fn spot_is_bought_only_when_somebody_names_it() {
    let spot = selecting(pod("a", 1), label::CAPACITY_TYPE, "spot");
    assert_eq!(bought(&World::new([spot]).plan()), ["two/r3/m2/spot"]);
    let either = requiring(pod("a", 1), &[(label::CAPACITY_TYPE, Operator::In, &["spot", "on-demand"])]);
    assert_eq!(bought(&World::new([either]).plan()), ["two/r3/m2/spot"]);
    let mut world = World::new([pod("a", 1)]);
    world.pools[0].requirements.push(Requirement::new(label::CAPACITY_TYPE, Operator::Exists, &[]));
    assert_eq!(bought(&world.plan()), ["two/r3/m2/spot"]);
}

#[test]
fn of_alternatives_the_cheapest_is_taken_wherever_it_stands() {
    let pod = requiring(pod("a", 1), &[(label::VENDOR, Operator::In, &["two"])]);
    let pod = requiring(pod, &[(label::VENDOR, Operator::In, &["one"])]);
    assert_eq!(bought(&World::new([pod]).plan()), ["one/r1/s2/on-demand"]);
}

#[test]
fn a_preference_ranks_and_never_refuses() {
    let prefer = |values: &[(i32, &str, &str)]| {
        let mut pod = pod("a", 1);
        pod.preferred_terms = values
            .iter()
            .map(|(weight, key, value)| Preference {
                weight: *weight,
                requirements: vec![Requirement::new(key, Operator::In, &[value])],
            })
            .collect();
        bought(&World::new([pod]).plan())
    };
    assert_eq!(prefer(&[(1, label::VENDOR, "two")]), ["two/r2a/m2/on-demand"]);
    assert_eq!(prefer(&[(1, label::VENDOR, "two"), (9, label::VENDOR, "one")]), ["one/r1/s2/on-demand"]);
    assert_eq!(prefer(&[(1, label::ZONE, "r2b"), (9, label::VENDOR, "two")]), ["two/r2b/m2/on-demand"]);
    assert_eq!(prefer(&[(1, label::VENDOR, "nobody")]), ["one/r1/s2/on-demand"]);
    assert_eq!(prefer(&[(1, "unheard.of/key", "x")]), ["one/r1/s2/on-demand"]);
}

#[test]
fn a_preference_for_a_missing_label_is_met_by_every_machine() {
    let mut pod = pod("a", 1);
    pod.preferred_terms = vec![Preference {
        weight: 1,
        requirements: vec![Requirement::new("scarpenter.sparecores.com/claim", Operator::DoesNotExist, &[])],
    }];
    assert_eq!(bought(&World::new([pod]).plan()), ["one/r1/s2/on-demand"]);
}

#[test]
fn a_preference_gives_way_to_the_limits() {
    let mut pod = pod("a", 1);
    pod.preferred_terms = vec![Preference {
        weight: 1,
        requirements: vec![Requirement::new(label::VENDOR, Operator::In, &["two"])],
    }];
    let mut world = World::new([pod]);
    world.pools[0].limits.set(MICRO_USD_PER_HOUR, 22_000);
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
}

#[test]
fn a_benchmark_bound_never_matches_a_type_that_was_not_measured() {
    let pod = requiring(pod("a", 5), &[(BENCHMARK, Operator::Gt, &["100"])]);
    assert_eq!(bought(&World::new([pod]).plan()), ["two/r2a/m8/on-demand"]);
}

#[test]
fn the_heaviest_pool_that_fits_wins_over_a_cheaper_one() {
    let mut world = World::new([pod("a", 1)]);
    let mut dear = pool("dear");
    dear.weight = 10;
    dear.requirements = vec![Requirement::new(label::VENDOR, Operator::In, &["two"])];
    world.pools.push(dear);
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
    world.pods = vec![selecting(pod("a", 1), label::REGION, "r1")];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"], "the heavier one has nothing there");
}

#[test]
fn pools_of_equal_weight_compete_by_price() {
    let mut world = World::new([pod("a", 1)]);
    world.pools[0].requirements = vec![Requirement::new(label::VENDOR, Operator::In, &["two"])];
    let mut other = pool("a-cheaper");
    other.requirements = vec![Requirement::new(label::VENDOR, Operator::In, &["one"])];
    world.pools.push(other);
    assert_eq!(world.plan().claims[0].pool, "a-cheaper");
}

#[test]
fn a_custom_key_must_be_defined_by_the_pool() {
    let mut world = World::new([selecting(pod("a", 1), "team", "x")]);
    assert_eq!(refusal(&world.plan()).0, "team");
    world.pools[0].requirements = vec![Requirement::new("team", Operator::In, &["w", "x"])];
    let plan = world.plan();
    assert_eq!(plan.claims[0].labels["team"], "x");
    assert!(plan.claims[0].requirements.contains(&Requirement::new("team", Operator::In, &["x"])));
}

#[test]
fn taints_must_be_tolerated_and_a_pool_that_would_rather_not_take_a_pod_comes_last() {
    let mut world = World::new([pod("a", 1)]);
    world.pools[0].taints = vec![taint("t", "", TaintEffect::NoSchedule)];
    world.pools[0].startup_taints = vec![taint("s", "", TaintEffect::NoSchedule)];
    assert_eq!(refusal(&world.plan()).0, "taints");
    world.pools[0].taints = vec![taint("t", "", TaintEffect::PreferNoSchedule)];
    assert_eq!(world.plan().claims[0].pool, "default");
    let mut other = pool("other");
    other.requirements = vec![Requirement::new(label::INSTANCE_TYPE, Operator::In, &["m32"])];
    world.pools.push(other);
    assert_eq!(world.plan().claims[0].pool, "other", "though it is dearer");
    world.pools.pop();
    world.pods[0].tolerations = vec![Toleration { key: Some("t".to_owned()), value: None, effect: None }];
    assert_eq!(world.plan().claims[0].startup_taints.len(), 1);
}

#[test]
fn the_taint_of_an_architecture_is_tolerated_for_a_pod_that_selects_it() {
    let mut world = World::new([]);
    let mut arm = pool("arm");
    arm.requirements = vec![Requirement::new(label::ARCH, Operator::In, &["arm64"])];
    arm.taints = vec![taint(label::ARCH, "arm64", TaintEffect::NoSchedule)];
    world.pools = vec![arm];
    for chosen in [
        selecting(pod("a", 1), label::ARCH, "arm64"),
        selecting(pod("a", 1), label::INSTANCE_TYPE, "a4"),
        requiring(pod("a", 1), &[(label::INSTANCE_TYPE, Operator::In, &["s2", "a4"])]),
        requiring(pod("a", 1), &[(label::ARCH, Operator::NotIn, &["amd64"])]),
    ] {
        world.pods = vec![chosen];
        let plan = world.plan();
        assert_eq!(bought(&plan), ["one/r1/a4/on-demand"]);
        let expected = Toleration {
            key: Some(label::ARCH.to_owned()),
            value: Some("arm64".to_owned()),
            effect: Some(TaintEffect::NoSchedule),
        };
        assert_eq!(plan.claims[0].tolerations["uid-a"], [expected]);
    }
    world.pods = vec![pod("a", 1)];
    assert_eq!(refusal(&world.plan()).0, "taints");
    world.pods = vec![requiring(pod("a", 1), &[(label::ARCH, Operator::Exists, &[])])];
    assert_eq!(refusal(&world.plan()).0, "taints");
}

#[test]
fn a_single_pod_machine_is_tainted_for_its_pod_and_takes_no_other() {
    let mut world = World::new([pod("a", 1), pod("b", 1)]);
    world.pools[0].class = "single".to_owned();
    let plan = world.plan();
    assert_eq!(plan.claims.len(), 2);
    for claim in &plan.claims {
        let uid = &claim.pods[0].1;
        assert_eq!(claim.taints, [taint(label::POD_TAINT, uid, TaintEffect::NoSchedule)]);
        assert_eq!(claim.tolerations[uid][0].value.as_ref(), Some(uid));
        assert_eq!(claim.launch.labels[label::TENANCY], "single-pod");
    }
}

#[test]
fn a_pod_may_select_the_tenancy() {
    let mut world = World::new([selecting(pod("a", 1), label::TENANCY, "single-pod")]);
    assert_eq!(refusal(&world.plan()).0, label::TENANCY);
    let mut single = pool("single");
    single.class = "single".to_owned();
    world.pools.push(single);
    assert_eq!(world.plan().claims[0].pool, "single");
}

#[test]
fn pods_share_a_machine_when_that_is_not_dearer() {
    let plan = World::new([pod("a", 2), pod("b", 1)]).plan();
    assert_eq!(bought(&plan), ["one/r1/a4/on-demand"], "30000 for both, against 2 × 20000");
    assert_eq!(plan.claims[0].pods.len(), 2);
    let plan = World::new([pod("a", 3), pod("b", 1), pod("c", 6)]).plan();
    let pods: Vec<usize> = plan.claims.iter().map(|claim| claim.pods.len()).collect();
    assert_eq!(
        (bought(&plan), pods),
        (vec!["one/r1/s8/on-demand".to_owned(), "one/r1/a4/on-demand".to_owned()], vec![1, 2]),
        "where less is left of the machine"
    );
}

#[test]
fn what_pods_of_one_machine_ask_for_holds_for_all_of_it() {
    let a = selecting(pod("a", 1), label::REGION, "r2");
    let b = selecting(pod("b", 1), label::ARCH, "amd64");
    let c = selecting(pod("c", 1), label::REGION, "r1");
    let plan = World::new([a, b, c]).plan();
    for claim in &plan.claims {
        let regions: BTreeSet<&str> = claim
            .pods
            .iter()
            .filter_map(|(key, _)| match key.name.as_str() {
                "a" => Some("r2"),
                "c" => Some("r1"),
                _ => None,
            })
            .collect();
        assert!(regions.iter().all(|region| *region == claim.launch.offering.region), "{claim:#?}");
    }
    assert!(plan.unplaced.is_empty());
}

#[test]
fn a_users_claim_gets_the_cheapest_that_satisfies_requirements_and_requests() {
    let world = World::new([]);
    let requests = Resources::new().with(CPU, 3000).with(MEMORY, 11 * GIB);
    let ask = |requirements: &[Requirement]| {
        crate::plan_claim(&ClaimInput {
            snapshot: &world.snapshot,
            class: &world.classes["default"],
            requirements,
            requests: &requests,
            unavailable: &world.unavailable,
            caps: &world.caps,
            now: 0,
        })
    };
    let amd64 = Requirement::new(label::ARCH, Operator::In, &["amd64"]);
    let on_demand = Requirement::new(label::CAPACITY_TYPE, Operator::In, &["on-demand"]);
    assert_eq!(ask(&[amd64.clone(), on_demand]).unwrap().offering.to_string(), "one/r1/s4/on-demand");
    assert_eq!(
        ask(&[amd64]).unwrap().offering.to_string(),
        "two/r3/m8/spot",
        "no default for the capacity type"
    );
    let nothing = Requirement::new(label::INSTANCE_CPU, Operator::Gt, &["99"]);
    assert_eq!(ask(&[nothing]).unwrap_err().reason, "pool-requirements");
}
