use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Mix {
    pods: Vec<Pod>,
    pools: Vec<Pool>,
    daemons: Vec<Daemon>,
    caps: Caps,
}

fn arbitrary_pod() -> impl Strategy<Value = Pod> {
    let selector = proptest::sample::select(vec![
        None,
        None,
        Some((label::VENDOR, "one")),
        Some((label::VENDOR, "two")),
        Some((label::REGION, "r2")),
        Some((label::ARCH, "arm64")),
        Some((label::INSTANCE_TYPE, "s8")),
        Some((label::CAPACITY_TYPE, "spot")),
        Some(("team", "x")),
    ]);
    (100..9000i64, 1..30i64, selector, any::<bool>(), 0..5i64).prop_map(
        |(cpu, memory, selector, or, created)| {
            let mut pod = pod("", 0);
            pod.requests = Resources::new().with(CPU, cpu).with(MEMORY, memory * GIB / 2).with(PODS, 1);
            pod.created = created;
            if let Some((key, value)) = selector {
                pod = selecting(pod, key, value);
            }
            if or {
                pod = requiring(pod, &[(label::REGION, Operator::In, &["r1"])]);
                pod = requiring(pod, &[(BENCHMARK, Operator::Gt, &["1500"])]);
            }
            pod
        },
    )
}

fn arbitrary_pool() -> impl Strategy<Value = Pool> {
    let class = proptest::sample::select(vec!["default", "default", "single"]);
    let limits = (0..60_000i64, 0..200i64, 0..12i64, 0..800_000i64);
    (0..3i32, class, any::<bool>(), limits).prop_map(|(weight, class, team, (cpu, memory, nodes, money))| {
        Pool {
            weight,
            class: class.to_owned(),
            requirements: if team {
                vec![Requirement::new("team", Operator::In, &["x", "y"])]
            } else {
                Vec::new()
            },
            limits: Resources::new()
                .with(CPU, cpu)
                .with(MEMORY, memory * GIB)
                .with(NODES, nodes)
                .with(MICRO_USD_PER_HOUR, money),
            ..Pool::default()
        }
    })
}

fn mix() -> impl Strategy<Value = Mix> {
    (
        proptest::collection::vec(arbitrary_pod(), 0..40),
        proptest::collection::vec(arbitrary_pool(), 1..4),
        proptest::collection::vec(0..600i64, 0..3),
        (0..20u64, 0..1_000_000u64),
    )
        .prop_map(|(mut pods, mut pools, daemons, (machines, money))| {
            for (n, pod) in pods.iter_mut().enumerate() {
                (pod.key.name, pod.uid) = (format!("p{n}"), format!("uid-p{n}"));
            }
            for (n, pool) in pools.iter_mut().enumerate() {
                pool.name = format!("pool-{n}");
            }
            let daemons = daemons.into_iter().map(|cpu| {
                let mut pod = pod("d", 0);
                pod.requests = Resources::new().with(CPU, cpu).with(PODS, 1);
                Daemon { pod }
            });
            let caps =
                Caps { max_machines: Some(machines), max_micro_usd_per_hour: Some(money), ..Caps::default() };
            Mix { pods, pools, daemons: daemons.collect(), caps }
        })
}

fn world(mix: &Mix) -> World {
    let mut world = World::new(mix.pods.clone());
    (world.pools, world.daemons, world.caps) = (mix.pools.clone(), mix.daemons.clone(), mix.caps);
    world
}

fn money(plan: &Plan) -> u64 {
    plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packing_never_exceeds_what_a_machine_has(mix in mix()) {
        for claim in world(&mix).plan().claims {
            prop_assert!(claim.requests.fits(&claim.launch.allocatable), "{:#?}", claim);
        }
    }

    #[test]
    fn limits_and_caps_are_never_passed(mix in mix()) {
        let plan = world(&mix).plan();
        for pool in &mix.pools {
            let mut total = Resources::new();
            for claim in plan.claims.iter().filter(|claim| claim.pool == pool.name) {
                total.add(&claim.launch.capacity);
                let price = i64::try_from(claim.launch.price_per_hour_micro_usd.micro_usd()).unwrap();
                total.add(&Resources::new().with(NODES, 1).with(MICRO_USD_PER_HOUR, price));
            }
            for (name, limit) in pool.limits.iter() {
                prop_assert!(total.get(name) <= limit, "{} {} of {}", name, total.get(name), limit);
            }
        }
        prop_assert!(plan.claims.len() as u64 <= mix.caps.max_machines.unwrap());
        prop_assert!(money(&plan) <= mix.caps.max_micro_usd_per_hour.unwrap());
    }

    #[test]
    fn every_pod_is_in_exactly_one_place_and_matches_it(mix in mix()) {
        let plan = world(&mix).plan();
        let mut seen: Vec<&PodKey> = plan.claims.iter().flat_map(|claim| claim.pods.iter().map(|(key, _)| key)).collect();
        seen.extend(plan.unplaced.iter().map(|unplaced| &unplaced.pod));
        seen.sort();
        let mut all: Vec<&PodKey> = mix.pods.iter().map(|pod| &pod.key).collect();
        all.sort();
        prop_assert_eq!(seen, all);
        for claim in &plan.claims {
            let mut labels = claim.launch.labels.clone();
            labels.extend(claim.labels.clone());
            for (key, _) in &claim.pods {
                let pod = mix.pods.iter().find(|pod| pod.key == *key).unwrap();
                let selector = scarpenter_core::requirements::Requirements::from_labels(&pod.node_selector);
                prop_assert!(selector.match_labels(&labels), "{:#?}", claim);
                let term = |lines: &Vec<Requirement>| scarpenter_core::requirements::Requirements::from_list(lines).unwrap().match_labels(&labels);
                prop_assert!(pod.required_terms.is_empty() || pod.required_terms.iter().any(term));
            }
            let own = scarpenter_core::requirements::Requirements::from_list(&claim.requirements).unwrap();
            prop_assert!(own.match_labels(&labels), "{:#?}", claim);
        }
    }

    #[test]
    fn equal_input_in_any_order_gives_an_equal_plan(mix in mix(), seed in any::<u64>()) {
        let mut other = mix.clone();
        let rotate = |len: usize| usize::try_from(seed % 1000).unwrap().checked_rem(len).unwrap_or(0);
        let by = rotate(other.pods.len());
        other.pods.rotate_left(by);
        other.pods.reverse();
        other.pools.reverse();
        other.daemons.reverse();
        prop_assert_eq!(world(&mix).plan(), world(&other).plan());
    }

    #[test]
    fn no_pod_is_left_over_that_a_machine_alone_could_serve(mix in mix()) {
        let mut free = mix.clone();
        free.caps = Caps::default();
        for pool in &mut free.pools {
            pool.limits = Resources::new();
        }
        for unplaced in world(&free).plan().unplaced {
            let pod = free.pods.iter().find(|pod| pod.key == unplaced.pod).unwrap();
            let alone = Mix { pods: vec![pod.clone()], ..free.clone() };
            prop_assert_eq!(&world(&alone).plan().unplaced, &[unplaced]);
        }
    }

    #[test]
    fn a_plan_is_never_dearer_than_first_fit_decreasing_onto_any_one_offering_nor_cheaper_than_its_bound(
        sizes in proptest::collection::vec((100..4000i64, 1..16i64, any::<bool>()), 1..60)
    ) {
        let pods = sizes.iter().enumerate().map(|(n, (cpu, memory, amd64))| {
            let mut pod = pod(&format!("p{n}"), 0);
            pod.requests = Resources::new().with(CPU, *cpu).with(MEMORY, memory * GIB).with(PODS, 1);
            if *amd64 { selecting(pod, label::ARCH, "amd64") } else { pod }
        });
        let world = World::new(pods);
        let plan = world.plan();
        prop_assert!(plan.unplaced.is_empty());
        for offering in world.snapshot.offerings() {
            if let Some(price) = first_fit_decreasing(&world, &offering) {
                prop_assert!(money(&plan) <= price, "{} by {}", price, offering.key());
            }
        }
        prop_assert!(crate::lower_bound(&world.input()) <= money(&plan));
    }
}

/// What it costs to put every pod, from large to small, on the first machine of one offering with room; `None` when one
/// of them may not be there.
fn first_fit_decreasing(world: &World, offering: &scarpenter_core::snapshot::Offering<'_>) -> Option<u64> {
    let all_may = world.pods.iter().all(|pod| {
        pod.node_selector
            .get(label::ARCH)
            .is_none_or(|arch| offering.label(label::ARCH).as_deref() == Some(arch))
    });
    if !all_may || offering.capacity_type() != CapacityType::OnDemand {
        return None;
    }
    let room = crate::allocatable::prudent(offering.instance_type(), &world.classes["default"]);
    let mut pods: Vec<&Pod> = world.pods.iter().collect();
    pods.sort_by_key(|pod| std::cmp::Reverse((pod.requests.get(CPU), pod.requests.get(MEMORY))));
    let mut machines: Vec<Resources> = Vec::new();
    for pod in pods {
        let fits = |used: &Resources| {
            let mut with = used.clone();
            with.add(&pod.requests);
            with.fits(&room).then_some(with)
        };
        match machines.iter_mut().find_map(|used| fits(used).map(|with| (used, with))) {
            Some((used, with)) => *used = with,
            None => machines.push(fits(&Resources::new())?),
        }
    }
    Some(offering.price().micro_usd() * machines.len() as u64)
}
