use super::*;

fn node(name: &str, cpu: i64) -> Node {
    let amounts = Resources::new().with(CPU, cpu * 1000).with(MEMORY, cpu * GIB).with(PODS, 110);
    Node {
        name: name.to_owned(),
        pool: Some("default".to_owned()),
        labels: BTreeMap::from([(label::ARCH.to_owned(), "amd64".to_owned())]),
        allocatable: amounts.clone(),
        counted: amounts.with(NODES, 1),
        open: true,
        initialized: true,
        ..Node::default()
    }
}

fn nominated(plan: &Plan) -> Vec<(&str, &str)> {
    plan.nominated.iter().map(|nomination| (nomination.pod.name.as_str(), nomination.node.as_str())).collect()
}

#[test]
fn places_that_exist_come_first_initialized_ones_before_others_then_by_name() {
    let mut world = World::new([pod("a", 2), pod("b", 2), pod("c", 2), pod("d", 2)]);
    let mut young = node("a-young", 2);
    young.initialized = false;
    world.nodes = vec![young, node("z", 2), node("y", 2)];
    let plan = world.plan();
    assert_eq!(nominated(&plan), [("a", "y"), ("b", "z"), ("c", "a-young")]);
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn a_pod_that_a_claim_was_made_for_is_not_planned_again() {
    let mut world = World::new([pod("a", 2)]);
    let mut flying = node("flying", 2);
    (flying.initialized, flying.promised) = (false, vec!["uid-a".to_owned()]);
    flying.requested = world.pods[0].requests.clone();
    world.nodes = vec![flying];
    assert_eq!(world.plan(), Plan::default());
    world.nodes[0].open = false;
    assert_eq!(world.plan().claims.len(), 1, "a claim that is going keeps no promise");
}

#[test]
fn room_that_is_promised_to_others_is_not_given_away() {
    let mut world = World::new([pod("a", 2), pod("b", 2)]);
    let mut flying = node("flying", 3);
    (flying.promised, flying.requested) = (vec!["uid-a".to_owned()], world.pods[0].requests.clone());
    world.nodes = vec![flying];
    let plan = world.plan();
    assert_eq!((plan.claims.len(), plan.nominated.len()), (1, 0));
}

#[test]
fn a_missing_label_of_a_real_node_is_no_match_but_for_not_in() {
    let mut world = World::new([selecting(pod("a", 1), label::INSTANCE_TYPE, "s2")]);
    world.nodes = vec![node("server", 8)];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
    world.pods = vec![requiring(pod("a", 1), &[(label::INSTANCE_TYPE, Operator::NotIn, &["s2"])])];
    assert_eq!(nominated(&world.plan()), [("a", "server")]);
}

#[test]
fn a_closed_or_tainted_place_takes_nothing() {
    let mut world = World::new([pod("a", 1)]);
    world.nodes = vec![node("n", 8)];
    world.nodes[0].taints = vec![taint("t", "", TaintEffect::NoSchedule)];
    assert_eq!(nominated(&world.plan()), []);
    world.nodes[0].taints = vec![taint("t", "", TaintEffect::PreferNoSchedule)];
    assert_eq!(nominated(&world.plan()), [("a", "n")]);
    world.nodes[0].open = false;
    assert_eq!(nominated(&world.plan()), []);
}

#[test]
fn the_taint_of_an_architecture_is_tolerated_on_a_place_of_ours_too() {
    let mut world = World::new([selecting(pod("a", 1), label::ARCH, "arm64")]);
    world.nodes = vec![node("n", 8)];
    world.nodes[0].labels.insert(label::ARCH.to_owned(), "arm64".to_owned());
    world.nodes[0].taints = vec![taint(label::ARCH, "arm64", TaintEffect::NoSchedule)];
    let plan = world.plan();
    assert_eq!(nominated(&plan), [("a", "n")]);
    assert_eq!(plan.nominated[0].tolerations.len(), 1);
    world.nodes[0].pool = None;
    assert_eq!(nominated(&world.plan()), []);
}

#[test]
fn daemons_that_are_still_to_come_keep_their_room() {
    let mut world = World::new([pod("a", 2)]);
    world.daemons = vec![Daemon { pod: pod("d", 1) }];
    world.nodes = vec![node("n", 2)];
    assert_eq!(nominated(&world.plan()), []);
    world.nodes = vec![node("n", 3)];
    world.nodes[0].requested = world.daemons[0].pod.requests.clone();
    world.nodes[0].daemon_requested = world.nodes[0].requested.clone();
    assert_eq!(nominated(&world.plan()), [("a", "n")]);
}

#[test]
fn a_node_that_holds_more_than_it_has_takes_nothing() {
    let mut world = World::new([pod("a", 1)]);
    world.nodes = vec![node("n", 8)];
    world.nodes[0].requested = Resources::new().with(MEMORY, 9 * GIB);
    assert_eq!(nominated(&world.plan()), []);
}

#[test]
fn among_places_a_preference_ranks() {
    let mut world = World::new([pod("a", 1)]);
    world.nodes = vec![node("m", 8), node("n", 8)];
    world.nodes[1].labels.insert("disk".to_owned(), "fast".to_owned());
    world.pods[0].preferred_terms = vec![scarpenter_core::pod::Preference {
        weight: 1,
        requirements: vec![Requirement::new("disk", Operator::In, &["fast"])],
    }];
    assert_eq!(nominated(&world.plan()), [("a", "n")]);
}
