use super::*;

fn daemon(cpu: i64) -> Daemon {
    Daemon { pod: pod("daemon", cpu) }
}

#[test]
fn what_daemons_take_is_kept_free() {
    let mut world = World::new([selecting(pod("a", 2), label::VENDOR, "one")]);
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
    world.daemons = vec![daemon(1)];
    let plan = world.plan();
    assert_eq!(bought(&plan), ["one/r1/a4/on-demand"]);
    assert_eq!(plan.claims[0].requests.get(CPU), 3000);
    assert_eq!(plan.claims[0].requests.get(PODS), 2);
}

#[test]
fn a_daemon_pinned_to_a_type_counts_there_only() {
    let mut world =
        World::new([requiring(pod("a", 2), &[(label::INSTANCE_TYPE, Operator::In, &["s2", "m2"])])]);
    world.daemons = vec![Daemon { pod: selecting(pod("d", 1), label::INSTANCE_TYPE, "s2") }];
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
}

#[test]
fn a_daemon_pinned_to_a_place_counts_there_only() {
    let mut world = World::new([selecting(pod("a", 2), label::INSTANCE_TYPE, "s2")]);
    world.daemons = vec![Daemon { pod: selecting(pod("d", 1), label::REGION, "r1") }];
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"]);
    world.pods = vec![selecting(selecting(pod("a", 2), label::INSTANCE_TYPE, "s2"), label::REGION, "r1")];
    assert_eq!(refusal(&world.plan()).0, "capacity");
}

#[test]
fn only_a_daemon_that_tolerates_the_taint_counts_and_a_catch_all_does() {
    let mut world = World::new([selecting(pod("a", 2), label::VENDOR, "one")]);
    world.pods[0].tolerations = vec![Toleration { key: Some("t".to_owned()), value: None, effect: None }];
    world.pools[0].taints = vec![taint("t", "", TaintEffect::NoSchedule)];
    world.pools[0].startup_taints = vec![taint("s", "", TaintEffect::NoSchedule)];
    world.daemons = vec![daemon(1)];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
    world.daemons[0].pod.tolerations = vec![Toleration { key: None, value: None, effect: None }];
    assert_eq!(bought(&world.plan()), ["one/r1/a4/on-demand"]);
}

#[test]
fn a_single_pod_machine_holds_only_daemons_that_tolerate_everything() {
    let mut world = World::new([selecting(pod("a", 2), label::VENDOR, "one")]);
    world.pools[0].class = "single".to_owned();
    world.daemons = vec![daemon(1)];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
    world.daemons[0].pod.tolerations = vec![Toleration { key: None, value: None, effect: None }];
    assert_eq!(bought(&world.plan()), ["one/r1/a4/on-demand"]);
}

#[test]
fn a_daemon_of_registered_nodes_counts() {
    let mut world = World::new([selecting(pod("a", 2), label::VENDOR, "one")]);
    world.daemons = vec![Daemon { pod: selecting(pod("d", 1), label::REGISTERED, "true") }];
    assert_eq!(bought(&world.plan()), ["one/r1/a4/on-demand"]);
}
