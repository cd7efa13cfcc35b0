//! Spread, affinity and anti-affinity; ports of the host.

use std::sync::Arc;

use scarpenter_core::pod::{HostPort, WeightedTerm};
use scarpenter_core::topology::{PodTerm, Spread};

use super::*;

const ZONE: &str = label::ZONE;

fn labelled(mut pod: Pod, app: &str) -> Pod {
    pod.labels.insert("app".to_owned(), app.to_owned());
    pod
}

fn app(name: &str) -> Option<Vec<Requirement>> {
    Some(vec![Requirement::new("app", Operator::In, &[name])])
}

fn term(key: &str, of: &str) -> PodTerm {
    PodTerm {
        topology_key: key.to_owned(),
        selector: app(of),
        namespaces: BTreeSet::from(["default".to_owned()]),
        namespace_selector: None,
    }
}

fn spread(key: &str, of: &str, max_skew: u32) -> Spread {
    Spread {
        topology_key: key.to_owned(),
        max_skew,
        min_domains: None,
        selector: app(of),
        required: true,
        honor_affinity: true,
        honor_taints: false,
    }
}

fn replicas(count: usize, of: &str, change: impl Fn(&mut Pod)) -> Vec<Pod> {
    let one = |index| {
        let mut pod = labelled(pod(&format!("{of}{index}"), 1), of);
        change(&mut pod);
        pod
    };
    (0..count).map(one).collect()
}

/// How many pods each value of a label gets, by the claims' offerings.
fn by_label(plan: &Plan, key: &str) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for claim in &plan.claims {
        let value = claim.launch.labels.get(key).cloned().unwrap_or_default();
        *out.entry(value).or_default() += claim.pods.len();
    }
    out
}

fn node(name: &str, labels: &[(&str, &str)], pods: Vec<Pod>) -> Node {
    let amounts = Resources::new().with(CPU, 4000).with(MEMORY, 16 * GIB).with(PODS, 110);
    Node {
        name: name.to_owned(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        allocatable: amounts,
        open: true,
        initialized: true,
        pods: pods.into_iter().map(Arc::new).collect(),
        ..Node::default()
    }
}

#[test]
fn pods_that_keep_apart_by_host_get_a_machine_each() {
    let pods = replicas(3, "web", |pod| pod.anti_affinity = vec![term(label::HOSTNAME, "web")]);
    let plan = World::new(pods).plan();
    assert_eq!(plan.claims.len(), 3);
    assert_eq!(bought(&plan), ["one/r1/s2/on-demand"; 3]);
}

#[test]
fn a_pod_keeps_away_from_a_placed_pod_that_does_not_want_it() {
    let mut world = World::new([labelled(pod("new", 1), "web")]);
    let mut shy = labelled(pod("shy", 1), "db");
    shy.anti_affinity = vec![term(label::HOSTNAME, "web")];
    world.nodes = vec![node("n", &[], vec![shy])];
    assert_eq!(world.plan().claims.len(), 1);
    world.nodes[0].pods.clear();
    assert_eq!(world.plan().nominated[0].node, "n");
}

#[test]
fn pods_that_belong_together_share_a_host_and_the_machine_grows_for_them() {
    let pods = replicas(6, "team", |pod| pod.affinity = vec![term(label::HOSTNAME, "team")]);
    let plan = World::new(pods).plan();
    assert_eq!((plan.claims.len(), plan.claims[0].pods.len()), (1, 6), "{:#?}", plan.unplaced);
}

#[test]
fn a_pod_follows_those_that_are_placed_after_it() {
    let mut large = labelled(pod("a", 8), "front");
    large.affinity = vec![term(label::REGION, "back")];
    let back = selecting(labelled(pod("b", 1), "back"), label::REGION, "r2");
    let plan = World::new([large, back]).plan();
    assert!(plan.unplaced.is_empty(), "{:#?}", plan.unplaced);
    assert_eq!(by_label(&plan, label::REGION), BTreeMap::from([("r2".to_owned(), 2)]));
}

#[test]
fn a_pod_whose_friend_does_not_exist_gets_nothing_and_is_told_so() {
    let mut lonely = pod("a", 1);
    lonely.affinity = vec![term(label::REGION, "nobody")];
    let plan = World::new([lonely]).plan();
    let (reason, message) = refusal(&plan);
    assert_eq!(reason, "pod-affinity", "{message}");
}

#[test]
fn a_spread_fills_every_domain_that_could_be_bought_before_it_fills_one_twice() {
    let of_region = |pod: &mut Pod| pod.spread = vec![spread(label::REGION, "web", 1)];
    let plan = World::new(replicas(4, "web", of_region)).plan();
    assert_eq!(
        by_label(&plan, label::REGION),
        BTreeMap::from([("r1".to_owned(), 2), ("r2".to_owned(), 2)]),
        "region r3 has only spot, which nobody asked for"
    );
    let wide = |pod: &mut Pod| pod.spread = vec![spread(label::REGION, "web", 3)];
    let plan = World::new(replicas(3, "web", wide)).plan();
    assert_eq!(
        by_label(&plan, label::REGION),
        BTreeMap::from([("r1".to_owned(), 3)]),
        "cheapest, within the skew"
    );
}

#[test]
fn an_offering_without_a_zone_makes_no_domain() {
    let of_zone = |pod: &mut Pod| pod.spread = vec![spread(ZONE, "web", 1)];
    let plan = World::new(replicas(4, "web", of_zone)).plan();
    assert_eq!(
        by_label(&plan, ZONE),
        BTreeMap::from([("r2a".to_owned(), 2), ("r2b".to_owned(), 2)]),
        "vendor one sells without zones"
    );
}

#[test]
fn placed_pods_count_and_min_domains_makes_the_emptiest_count_as_empty() {
    let spread_over_vendors = |least| {
        move |pod: &mut Pod| {
            pod.spread = vec![Spread { min_domains: least, ..spread(label::VENDOR, "web", 1) }];
        }
    };
    let held = || {
        let placed = labelled(pod("old", 1), "web");
        node("n", &[(label::VENDOR, "one")], vec![placed])
    };
    let mut world = World::new(replicas(1, "web", spread_over_vendors(None)));
    world.nodes = vec![held()];
    assert_eq!(by_label(&world.plan(), label::VENDOR), BTreeMap::from([("two".to_owned(), 1)]));
    let mut world = World::new(replicas(3, "web", spread_over_vendors(Some(3))));
    world.nodes = vec![held()];
    let plan = world.plan();
    assert_eq!(by_label(&plan, label::VENDOR), BTreeMap::from([("two".to_owned(), 1)]), "one each, of three");
    assert_eq!(plan.unplaced[0].refusal.reason, "spread", "{:#?}", plan.unplaced);
}

#[test]
fn nodes_that_the_pod_could_not_use_make_no_domain_unless_it_says_so() {
    let mut world = World::new([]);
    world.nodes = vec![node("n", &[(label::VENDOR, "three")], Vec::new())];
    world.nodes[0].open = false;
    let choose = |honor_affinity| {
        replicas(2, "web", |pod| {
            pod.spread = vec![Spread { honor_affinity, ..spread(label::VENDOR, "web", 1) }];
            pod.node_selector.insert(label::VENDOR.to_owned(), "one".to_owned());
        })
    };
    world.pods = choose(true);
    assert_eq!(world.plan().claims[0].pods.len(), 2, "only vendor one makes a domain");
    world.pods = choose(false);
    let plan = world.plan();
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 1), "vendor three counts, and stays empty");
}

#[test]
fn wishes_about_other_pods_are_given_up_when_they_cannot_hold() {
    let mut wishful = labelled(pod("a", 1), "web");
    let wish = |key: &str, of: &str| WeightedTerm { weight: 1, term: term(key, of) };
    wishful.preferred_affinity = vec![wish(label::REGION, "nobody")];
    wishful.spread = vec![Spread { required: false, ..spread("no-such-label", "web", 1) }];
    assert_eq!(World::new([wishful]).plan().claims.len(), 1);
    let apart = replicas(2, "web", |pod| pod.preferred_anti_affinity = vec![wish(label::HOSTNAME, "web")]);
    let mut world = World::new(apart);
    assert_eq!(world.plan().claims.len(), 2, "a wish that can be met is met");
    world.rules.respect_preferences = false;
    assert_eq!(world.plan().claims.len(), 1);
}

#[test]
fn namespaces_are_chosen_by_name_or_by_their_labels() {
    let mut shy = labelled(pod("a", 1), "web");
    shy.anti_affinity = vec![PodTerm {
        namespaces: BTreeSet::new(),
        namespace_selector: Some(vec![Requirement::new("team", Operator::In, &["x"])]),
        ..term(label::HOSTNAME, "web")
    }];
    let mut world = World::new([shy]);
    let mut placed = labelled(pod("old", 1), "web");
    placed.key.namespace = "other".to_owned();
    world.nodes = vec![node("n", &[], vec![placed])];
    assert_eq!(world.plan().nominated.len(), 1);
    world.namespaces =
        BTreeMap::from([("other".to_owned(), BTreeMap::from([("team".to_owned(), "x".to_owned())]))]);
    assert_eq!(world.plan().claims.len(), 1);
}

#[test]
fn a_machine_with_counted_pods_stays_in_its_domain_when_it_grows() {
    let mut pods = replicas(1, "web", |pod| pod.spread = vec![spread(label::REGION, "web", 1)]);
    pods.extend((0..12).map(|n| selecting(pod(&format!("x{n}"), 1), label::ARCH, "amd64")));
    let plan = World::new(pods).plan();
    for claim in plan.claims.iter().filter(|claim| claim.pods.iter().any(|(key, _)| key.name == "web0")) {
        let region = &claim.launch.offering.region;
        let line = Requirement::new(label::REGION, Operator::In, &[region]);
        assert!(claim.requirements.contains(&line), "{:#?}", claim.requirements);
    }
    assert!(plan.unplaced.is_empty());
}

#[test]
fn a_port_of_the_host_is_taken_once_a_machine() {
    let port = |ip: &str| HostPort { port: 80, protocol: "TCP".to_owned(), ip: ip.to_owned() };
    let with = |name: &str, ip: &str| Pod { host_ports: vec![port(ip)], ..pod(name, 1) };
    assert_eq!(World::new([with("a", ""), with("b", "")]).plan().claims.len(), 2);
    assert_eq!(World::new([with("a", "10.0.0.1"), with("b", "10.0.0.2")]).plan().claims.len(), 1);
    let mut world = World::new([with("a", "")]);
    world.nodes = vec![node("n", &[], Vec::new())];
    world.nodes[0].host_ports = vec![port("10.0.0.1")];
    assert_eq!(world.plan().claims.len(), 1);
}

#[test]
fn a_daemons_port_is_taken_only_where_the_daemon_runs() {
    let port = HostPort { port: 80, protocol: "TCP".to_owned(), ip: String::new() };
    let daemon = selecting(pod("d", 0), label::ARCH, "amd64");
    let daemon = Pod { host_ports: vec![port.clone()], ..daemon };
    let mut world = World::new([Pod { host_ports: vec![port], ..pod("a", 1) }]);
    world.daemons = vec![Daemon { pod: daemon }];
    assert_eq!(bought(&world.plan()), ["one/r1/a4/on-demand"], "the cheapest machine without the daemon");
}

#[test]
fn daemons_count_where_they_run_and_keep_others_away() {
    let daemon = labelled(selecting(pod("d", 0), label::REGION, "r1"), "agent");
    let mut shy = labelled(pod("a", 1), "web");
    shy.anti_affinity = vec![term(label::REGION, "agent")];
    let mut world = World::new([shy.clone()]);
    world.daemons = vec![Daemon { pod: daemon.clone() }];
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"], "in region r1 the daemon would be there, too");
    let mut near = labelled(pod("a", 1), "web");
    near.affinity = vec![term(label::HOSTNAME, "agent")];
    world.pods = vec![near];
    assert_eq!(bought(&world.plan()), ["one/r1/s2/on-demand"]);
    world.pods = vec![labelled(pod("a", 1), "web")];
    world.daemons[0].pod.anti_affinity = vec![term(label::HOSTNAME, "web")];
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"]);
    world.daemons = vec![Daemon { pod: daemon }];
    world.pods = vec![shy];
    world.nodes = vec![node("young", &[(label::REGION, "r1")], Vec::new())];
    assert_eq!(world.plan().claims.len(), 1, "the daemon is still to come to the node");
}

#[test]
fn only_what_has_all_labels_of_a_pods_spreads_makes_domains() {
    let both = |pod: &mut Pod| pod.spread = vec![spread(label::REGION, "web", 1), spread(ZONE, "web", 1)];
    let plan = World::new(replicas(3, "web", both)).plan();
    assert!(plan.unplaced.is_empty(), "{:#?}", plan.unplaced);
    assert_eq!(by_label(&plan, label::REGION), BTreeMap::from([("r2".to_owned(), 3)]), "r1 has no zones");
}

#[test]
fn a_domain_that_cannot_be_bought_in_the_end_holds_nobody_up() {
    let mut pods = replicas(2, "web", |pod| pod.spread = vec![spread(label::VENDOR, "web", 1)]);
    pods.iter_mut().for_each(|pod| pod.anti_affinity = vec![term(label::VENDOR, "db")]);
    let mut world = World::new(pods);
    let far = node("n", &[(label::REGION, "elsewhere")], Vec::new());
    let mut held = node("m", &[(label::VENDOR, "two")], vec![labelled(pod("old", 1), "db")]);
    held.open = false;
    held.labels.remove(label::REGION);
    held.taints = vec![taint("t", "", TaintEffect::NoSchedule)];
    world.nodes = vec![far, held];
    world.pods.iter_mut().for_each(|pod| {
        pod.spread[0].honor_taints = true;
    });
    let plan = world.plan();
    assert_eq!(
        by_label(&plan, label::VENDOR),
        BTreeMap::from([("one".to_owned(), 2)]),
        "{:#?}",
        plan.unplaced
    );
}

#[test]
fn a_label_that_the_pool_leaves_open_is_one_value_for_all_pods_of_a_machine() {
    let mut picky = selecting(labelled(pod("a", 1), "web"), "shelf", "b");
    picky.anti_affinity = vec![term(label::REGION, "web")];
    let mut counting = labelled(pod("c", 1), "other");
    counting.spread = vec![spread("shelf", "other", 5)];
    let mut world = World::new([picky, pod("b", 1), counting]);
    world.pools[0].requirements = vec![Requirement::new("shelf", Operator::In, &["a", "b", "c"])];
    let plan = world.plan();
    assert!(plan.unplaced.is_empty());
    let of = |name: &str| plan.claims.iter().find(|claim| claim.pods.iter().any(|(key, _)| key.name == name));
    assert_eq!(of("a").unwrap().labels["shelf"], "b", "{:#?}", plan.claims);
}

#[test]
fn daemons_of_the_only_domain_raise_its_minimum_with_its_count() {
    let daemons = ["d", "e"].map(|name| Daemon { pod: labelled(pod(name, 0), "web") });
    let mut world = World::new(replicas(1, "web", |pod| {
        pod.spread = vec![spread(label::REGION, "web", 2)];
        pod.node_selector.insert(label::REGION.to_owned(), "r1".to_owned());
    }));
    world.daemons = daemons.into();
    assert_eq!(world.plan().claims.len(), 1, "2 daemons and 1 pod against 2 daemons");
}
