//! What was learned from machines, who comes first, and how much variety a pool wants.

use scarpenter_core::name::Vendor;
use scarpenter_core::pod::Attachment;

use super::*;
use crate::Kind;

fn kind(vendor: &str, instance_type: &str) -> Kind {
    Kind { class: "default".to_owned(), vendor: Vendor::new(vendor), instance_type: instance_type.to_owned() }
}

fn asking(name: &str, cpu: i64, memory: i64) -> Pod {
    let requests = Resources::new().with(CPU, cpu).with(MEMORY, memory).with(PODS, 1);
    Pod { requests, ..pod(name, 1) }
}

#[test]
fn what_the_first_machine_showed_decides_over_what_the_catalog_says() {
    let mut world = World::new([asking("a", 2000, 7 * GIB)]);
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
    let shown = Resources::new().with(CPU, 2000).with(MEMORY, 6 * GIB).with(PODS, 110);
    world.lessons.allocatable.insert(kind("one", "s2"), shown);
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
    world.lessons.allocatable.clear();
    let shown = Resources::new().with(CPU, 2000).with(MEMORY, 8 * GIB).with(PODS, 110);
    world.lessons.allocatable.insert(kind("one", "s2"), shown);
    world.pods = vec![asking("a", 2000, 8 * GIB)];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"], "more than the catalog promises");
}

#[test]
fn near_the_edge_a_larger_type_is_bought_unless_one_type_is_asked_for_by_name() {
    let edge = asking("a", 1000, 8 * GIB - (200 << 20));
    let mut world = World::new([edge.clone()]);
    assert_eq!(bought(&world.plan()), ["one/r1/a4/on-demand"], "8 GiB are sold and fewer are there");
    world.pods = vec![selecting(edge, label::INSTANCE_TYPE, "s2")];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
}

#[test]
fn a_kind_that_did_not_take_a_pod_is_never_bought_again_for_it() {
    let mut world = World::new([pod("a", 2), pod("b", 2)]);
    let words = BTreeMap::from([(kind("one", "s2"), "it lacked the label x".to_owned())]);
    world.lessons.unfit.insert("uid-a".to_owned(), words);
    world.caps = Caps::default();
    let plan = world.plan();
    let of = |name: &str| {
        let claim = plan.claims.iter().find(|claim| claim.pods.iter().any(|(key, _)| key.name == name));
        claim.unwrap().launch.offering.instance_type.clone()
    };
    assert_ne!(of("a"), "s2");
    let mut only = selecting(pod("a", 2), label::INSTANCE_TYPE, "s2");
    only.uid = "uid-a".to_owned();
    world.pods = vec![only];
    let plan = world.plan();
    let (reason, message) = refusal(&plan);
    assert_eq!(reason, "unfit");
    assert!(message.contains("it lacked the label x"), "{message}");
}

#[test]
fn important_pods_come_first_and_hopeless_ones_last() {
    let mut world = World::new([pod("small", 1), pod("large", 2), pod("stale", 2)]);
    world.caps.max_machines = Some(1);
    world.pods[0].priority = 1000;
    world.pods.iter_mut().for_each(|pod| {
        pod.node_selector.insert(label::INSTANCE_TYPE.to_owned(), "s2".to_owned());
    });
    assert_eq!(world.plan().claims[0].pods[0].0.name, "small");
    world.pods[0].priority = 0;
    assert_eq!(world.plan().claims[0].pods[0].0.name, "large");
    world.lessons.hopeless = ["uid-large", "uid-small"].map(str::to_owned).into();
    assert_eq!(world.plan().claims[0].pods[0].0.name, "stale");
}

#[test]
fn a_pass_is_bounded_and_says_how_many_it_left() {
    let mut world = World::new((0..5).map(|n| pod(&format!("p{n}"), 1)));
    world.rules.most_pods = 3;
    let plan = world.plan();
    let planned: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    assert_eq!((planned, plan.unplaced.len(), plan.deferred), (3, 0, 2));
}

#[test]
fn as_many_values_stay_possible_as_the_pool_wants_or_the_wish_is_lowered() {
    let line = |least| Requirement {
        min_values: Some(least),
        ..Requirement::new(label::INSTANCE_TYPE, Operator::Exists, &[])
    };
    let mut world = World::new([pod("a", 8)]);
    world.pools[0].requirements = vec![line(3)];
    let claim = world.plan().claims.remove(0);
    assert_eq!(claim.min_values_relaxed, Some(false), "s8, m8 and m32");
    world.pools[0].requirements = vec![line(4)];
    assert_eq!(refusal(&world.plan()).0, "min-values");
    world.rules.strict_min_values = false;
    let claim = world.plan().claims.remove(0);
    assert_eq!(claim.min_values_relaxed, Some(true));
    let types = claim.requirements.iter().find(|line| line.key == label::INSTANCE_TYPE).unwrap();
    assert_eq!((types.values.len(), types.min_values), (3, Some(3)));
}

#[test]
fn pods_join_a_machine_only_while_enough_types_stay_possible() {
    let mut world = World::new([pod("a", 5), pod("b", 5)]);
    world.pools[0].requirements = vec![Requirement {
        min_values: Some(2),
        ..Requirement::new(label::INSTANCE_TYPE, Operator::Exists, &[])
    }];
    let plan = world.plan();
    assert_eq!(plan.claims.len(), 2, "together only m32 would be left: {:#?}", bought(&plan));
}

#[test]
fn a_machine_goes_where_the_pods_volumes_are() {
    let at = |vendor: &str, region: &str| {
        vec![
            Requirement::new(label::VENDOR, Operator::In, &[vendor]),
            Requirement::new(label::REGION, Operator::In, &[region]),
        ]
    };
    let mut world = World::new([Pod { volume_terms: vec![at("two", "r2")], ..pod("a", 1) }]);
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
    world.pods[0].volume_terms.push(at("one", "r2"));
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"], "the cheaper of two places");
    world.pods[0].volume_terms.truncate(1);
    world.pods[0].node_selector.insert(label::VENDOR.to_owned(), "one".to_owned());
    assert_eq!(refusal(&world.plan()).0, "volume");
    world.pods[0].volume_terms.clear();
    world.pods[0].volume_problems = vec!["PersistentVolumeClaim default/x does not exist".to_owned()];
    assert_eq!(refusal(&world.plan()).0, "volume");
}

#[test]
fn a_node_attaches_no_more_volumes_than_its_driver_can() {
    let volume = |name: &str| Attachment { driver: "d".to_owned(), volume: name.to_owned() };
    let mut world = World::new([Pod { attachments: vec![volume("a"), volume("b")], ..pod("a", 1) }]);
    let amounts = Resources::new().with(CPU, 4000).with(MEMORY, 16 * GIB).with(PODS, 110);
    world.nodes = vec![Node {
        name: "n".to_owned(),
        allocatable: amounts,
        open: true,
        initialized: true,
        attached: vec![volume("c")],
        attach_limits: BTreeMap::from([("d".to_owned(), 2)]),
        ..Node::default()
    }];
    assert_eq!(world.plan().claims.len(), 1);
    world.nodes[0].attach_limits = BTreeMap::from([("d".to_owned(), 3)]);
    assert_eq!(world.plan().nominated.len(), 1);
}

#[test]
fn however_many_are_hopeless_a_pass_places_all_that_can_be_and_words_only_so_many() {
    let hopeless =
        (0..20).map(|n| selecting(pod(&format!("h{n:02}"), 4), label::INSTANCE_TYPE, &format!("x{n}")));
    let mut world = World::new(hopeless.chain([pod("good", 1)]));
    world.rules.most_refusals = 5;
    let plan = world.plan();
    assert_eq!(plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>(), 1);
    assert_eq!((plan.unplaced.len(), plan.deferred), (5, 15));
}
