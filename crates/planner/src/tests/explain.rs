use super::*;
use crate::{Explanation, Outcome, explain, explain_all};

impl World {
    fn explain(&self) -> Vec<Explanation> {
        let plan = self.plan();
        explain_all(&self.input(), &plan)
    }

    fn explain_one(&self) -> Explanation {
        let mut all = self.explain();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

/// Rules that removed something, how many they left, and the price of the cheapest after them.
fn told(explanation: &Explanation) -> Vec<(&str, usize, Option<u64>)> {
    let removing = explanation.rules.iter().filter(|line| line.removed > 0);
    let price = |line: &crate::RuleLine| line.cheapest_after.as_ref().map(|own| own.price.micro_usd());
    removing.map(|line| (line.rule.as_str(), line.left, price(line))).collect()
}

fn advice(explanation: &Explanation) -> &str {
    &explanation.advice[0].words
}

#[test]
fn a_placed_pod_is_told_what_each_rule_left_and_which_made_it_dearer() {
    let explanation = World::new([selecting(pod("a", 1), label::INSTANCE_TYPE, "s8")]).explain_one();
    let Outcome::Machine { pool, bought, beside } = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(
        (pool.as_str(), bought.to_string().as_str()),
        ("default", "one/r1/s8/on-demand at $0.080000/h")
    );
    assert!(beside.is_empty());
    assert_eq!(told(&explanation), [("instance-type", 2, Some(80_000))]);
    let line = &explanation.rules[0];
    assert_eq!(line.asked, "node.kubernetes.io/instance-type In [s8]");
    assert_eq!((line.removed, line.left), (15, 2));
    assert_eq!(line.cheapest_before.as_ref().unwrap().to_string(), "two/r3/m2/spot at $0.008333/h");
    assert_eq!(
        advice(&explanation),
        "drop or widen `node.kubernetes.io/instance-type In [s8]` of the pod: \
         without it one/r1/s2/on-demand at $0.020000/h would be bought, which is $0.060000/h less"
    );
}

#[test]
fn what_is_on_demand_by_default_is_told_with_the_price_of_spot() {
    let explanation = World::new([pod("a", 1)]).explain_one();
    assert_eq!(told(&explanation), [("default-capacity-type", 14, Some(20_000))]);
    assert_eq!(
        advice(&explanation),
        "name karpenter.sh/capacity-type spot in the pod or its NodePool, if it may be interrupted: \
         without it two/r3/m2/spot at $0.008333/h would be bought, which is $0.011667/h less"
    );
}

#[test]
fn the_cheapest_is_looked_for_only_among_machines_with_room() {
    let explanation = World::new([pod("a", 20)]).explain_one();
    assert_eq!(
        explanation.rules[0].cheapest_before.as_ref().unwrap().to_string(),
        "two/r3/m32/spot at $0.133333/h"
    );
}

#[test]
fn a_refused_pod_is_told_up_to_the_rule_that_left_nothing_and_what_would_do() {
    let pod = selecting(selecting(pod("a", 1), label::VENDOR, "two"), label::INSTANCE_TYPE, "s2");
    let explanation = World::new([pod]).explain_one();
    let Outcome::Refused(refusal) = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(refusal.reason, "instance-type");
    assert_eq!(told(&explanation), [("vendor", 9, Some(8_333)), ("instance-type", 0, None)]);
    assert_eq!(
        advice(&explanation),
        "drop or widen `node.kubernetes.io/instance-type In [s2]` of the pod: \
         without it two/r2a/m2/on-demand at $0.025000/h would be bought"
    );
}

#[test]
fn a_rule_that_others_repeat_is_not_promised_to_help() {
    let mut world = World::new([selecting(pod("a", 1), label::VENDOR, "one")]);
    world.classes.get_mut("default").unwrap().vendors.remove(&Vendor::new("two"));
    let explanation = world.explain_one();
    assert_eq!(explanation.advice[0].rule, "vendor");
    assert!(
        advice(&explanation).ends_with("but without it others remove it too"),
        "{}",
        advice(&explanation)
    );
}

#[test]
fn the_requirement_of_a_pool_that_is_guilty_is_named() {
    let mut world = World::new([pod("a", 1)]);
    let line = |key: &str, value: &str| Requirement::new(key, Operator::In, &[value]);
    world.pools[0].requirements =
        vec![line(label::CAPACITY_TYPE, "on-demand"), line(label::REGION, "r2"), line(label::VENDOR, "two")];
    let explanation = world.explain_one();
    assert_eq!(told(&explanation), [("pool-requirements", 6, Some(25_000))]);
    assert!(
        advice(&explanation).starts_with(
            "widen `karpenter.sh/capacity-type In [on-demand] and topology.kubernetes.io/region In [r2]` of NodePool default"
        ),
        "{}",
        advice(&explanation)
    );
}

#[test]
fn limits_are_told_as_each_pod_met_them() {
    let mut world = World::new([pod("a", 20), pod("b", 10)]);
    world.pools[0].limits.set(NODES, 1);
    world.classes.get_mut("default").unwrap().tenancy = Tenancy::SinglePod;
    let explained = world.explain();
    let limits = |explanation: &Explanation| -> String {
        explanation.rules.iter().find(|line| line.rule == "limits").unwrap().asked.clone()
    };
    assert!(matches!(explained[0].outcome, Outcome::Machine { .. }));
    assert_eq!(limits(&explained[0]), "the limits of NodePool default leave nodes 1 of 1");
    let Outcome::Refused(refusal) = &explained[1].outcome else { panic!("{explained:?}") };
    assert_eq!(refusal.reason, "limits");
    assert_eq!(limits(&explained[1]), "the limits of NodePool default leave nodes 0 of 1");
    assert_eq!(explained[1].rules.last().unwrap().rule, "limits");
}

#[test]
fn preferences_and_weights_that_make_it_dearer_are_told_last() {
    let mut wishing = pod("a", 1);
    wishing.preferred_terms.push(scarpenter_core::pod::Preference {
        weight: 7,
        requirements: vec![Requirement::new(label::VENDOR, Operator::In, &["two"])],
    });
    let explanation = World::new([wishing]).explain_one();
    let last = explanation.rules.last().unwrap();
    assert_eq!(
        (last.rule.as_str(), last.asked.as_str()),
        ("preferences", "the pod prefers scarpenter.sparecores.com/vendor In [two] (weight 7)")
    );
    let Outcome::Machine { bought, .. } = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(last.cheapest_after.as_ref(), Some(bought));

    let mut world = World::new([pod("a", 1)]);
    world.pools.push(Pool { weight: 5, ..pool("heavy") });
    world.pools[1].requirements = vec![Requirement::new(label::VENDOR, Operator::In, &["two"])];
    let explanation = world.explain_one();
    assert_eq!(explanation.rules.last().unwrap().rule, "nodepool-weight");
    let Outcome::Machine { pool, bought, .. } = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(
        (pool.as_str(), explanation.rules.last().unwrap().cheapest_after.as_ref()),
        ("heavy", Some(bought))
    );
}

#[test]
fn for_a_pod_alone_the_last_line_is_what_is_bought() {
    let pods = [
        pod("a", 3),
        pod("a", 12),
        selecting(pod("a", 1), label::ARCH, "arm64"),
        selecting(pod("a", 2), label::CAPACITY_TYPE, "spot"),
        requiring(pod("a", 1), &[(BENCHMARK, Operator::Gt, &["1500"])]),
        selecting(pod("a", 1), label::ZONE, "r2b"),
    ];
    for pod in pods {
        let explanation = World::new([pod]).explain_one();
        let Outcome::Machine { bought, .. } = &explanation.outcome else { panic!("{explanation:?}") };
        assert_eq!(explanation.rules.last().unwrap().cheapest_after.as_ref(), Some(bought));
    }
}

fn node(name: &str, cpu: i64) -> Node {
    Node {
        name: name.to_owned(),
        allocatable: Resources::new().with(CPU, cpu * 1000).with(MEMORY, cpu * GIB).with(PODS, 10),
        open: true,
        initialized: true,
        ..Node::default()
    }
}

#[test]
fn nodes_that_did_not_take_it_say_why_the_nearest_first() {
    let mut world = World::new([selecting(pod("a", 2), label::REGION, "r1")]);
    let here = |mut node: Node| {
        node.labels.insert(label::REGION.to_owned(), "r1".to_owned());
        node
    };
    let mut tainted = here(node("c", 9));
    tainted.taints.push(taint("team", "x", TaintEffect::NoSchedule));
    let mut elsewhere = node("d", 9);
    elsewhere.labels.insert(label::REGION.to_owned(), "r2".to_owned());
    world.nodes = vec![
        here(node("b", 1)),
        tainted,
        elsewhere,
        node("e", 9),
        Node { open: false, ..node("f", 9) },
        node("g", 9),
    ];
    let explanation = world.explain_one();
    let told: Vec<(&str, &str, &str)> =
        explanation.nodes.iter().map(|own| (own.node.as_str(), own.reason, own.message.as_str())).collect();
    let no_label =
        "it has no label topology.kubernetes.io/region, asked is topology.kubernetes.io/region In [r1]";
    assert_eq!(
        told,
        [
            ("b", "resource", "cpu 1 free, 2 asked and memory 1Gi free, 2Gi asked"),
            ("c", "taint", "it has the taint team=x:NoSchedule, which the pod does not tolerate"),
            (
                "d",
                "label",
                "its label topology.kubernetes.io/region is r2, asked is topology.kubernetes.io/region In [r1]"
            ),
            ("e", "label", no_label),
            ("g", "label", no_label),
        ]
    );
    assert_eq!(explanation.more_nodes, 1);
}

#[test]
fn a_pod_that_gets_a_place_is_told_which() {
    let mut world = World::new([pod("a", 2), pod("b", 2)]);
    world.nodes =
        vec![Node { promised: vec!["uid-a".to_owned()], requested: pod("a", 2).requests, ..node("n", 4) }];
    let explained = world.explain();
    let place = |promised| Outcome::Place { name: "n".to_owned(), promised };
    assert_eq!((&explained[0].outcome, &explained[1].outcome), (&place(true), &place(false)));
    assert!(explained[0].rules.is_empty() && explained.iter().all(|own| own.nodes.is_empty()));
}

#[test]
fn the_room_that_pods_of_the_plan_take_is_not_free() {
    let mut world = World::new([pod("a", 3), pod("b", 2)]);
    world.nodes = vec![node("n", 4)];
    let explained = world.explain();
    assert_eq!(explained[1].nodes[0].message, "cpu 1 free, 2 asked and memory 1Gi free, 2Gi asked");
}

#[test]
fn a_pod_is_found_by_its_name_only() {
    let world = World::new([pod("a", 1), pod("b", 1)]);
    let found = |name: &str| explain(&world.input(), &PodKey::new("default", name));
    assert_eq!(found("b").unwrap().pod, PodKey::new("default", "b"));
    assert_eq!(found("c"), None);
}

#[test]
fn a_pod_that_cannot_be_read_has_no_table() {
    let mut odd = pod("a", 1);
    odd.volume_problems = vec!["PersistentVolumeClaim data does not exist".to_owned()];
    let explanation = World::new([odd]).explain_one();
    let Outcome::Refused(refusal) = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(
        (refusal.reason.as_str(), refusal.message.as_str()),
        ("volume", "the pod's volumes cannot be used: PersistentVolumeClaim data does not exist")
    );
    assert!(explanation.rules.is_empty());
}

fn labelled(mut pod: Pod) -> Pod {
    pod.labels.insert("app".to_owned(), "x".to_owned());
    pod
}

fn near(key: &str) -> scarpenter_core::topology::PodTerm {
    scarpenter_core::topology::PodTerm {
        topology_key: key.to_owned(),
        selector: Some(vec![Requirement::new("app", Operator::In, &["x"])]),
        namespaces: BTreeSet::from(["default".to_owned()]),
        namespace_selector: None,
    }
}

/// A full node in a zone, with so many pods of the app.
fn full(name: &str, zone: &str, pods: usize) -> Node {
    let mut out = node(name, 0);
    out.labels.insert(label::ZONE.to_owned(), zone.to_owned());
    out.pods =
        (0..pods).map(|number| std::sync::Arc::new(labelled(pod(&format!("{name}-{number}"), 1)))).collect();
    out
}

fn in_zone_r2a(mut world: World) -> World {
    world.pools[0].requirements = vec![Requirement::new(label::ZONE, Operator::In, &["r2a"])];
    world
}

#[test]
fn a_spread_that_no_offering_meets_tells_the_counts_by_domain() {
    let mut spread = labelled(pod("a", 1));
    spread.spread.push(scarpenter_core::topology::Spread {
        topology_key: label::ZONE.to_owned(),
        max_skew: 1,
        min_domains: None,
        selector: near(label::ZONE).selector,
        required: true,
        honor_affinity: true,
        honor_taints: false,
    });
    let mut world = in_zone_r2a(World::new([spread]));
    world.nodes = vec![full("n", "r2a", 2), full("m", "z9", 0)];
    assert_eq!(
        refusal(&world.plan()),
        (
            "spread",
            "topologySpreadConstraint on topology.kubernetes.io/zone (maxSkew 1): matching pods by zone: r2a 2, z9 0; \
             one more may go only to others than r2a, and the 3 offerings left are in r2a; \
             allow offerings in another domain, raise maxSkew, or set whenUnsatisfiable: ScheduleAnyway"
        )
    );
    let explanation = world.explain_one();
    assert_eq!(explanation.rules.last().unwrap().rule, "spread");
    assert_eq!(explanation.nodes[0].reason, "resource");
}

#[test]
fn a_pod_that_wants_to_be_near_others_is_told_where_they_are() {
    let mut lonely = pod("a", 1);
    lonely.affinity.push(near(label::ZONE));
    let world = World::new([lonely]);
    assert_eq!(
        refusal(&world.plan()),
        (
            "pod-affinity",
            "podAffinity on topology.kubernetes.io/zone: no pod matches anywhere; no domain may take one more, \
             and the 14 offerings left are in r2a or r2b; start a pod that it may be near, or make the term a preferred one"
        )
    );
    let mut near_host = pod("a", 1);
    near_host.affinity.push(near(label::HOSTNAME));
    let mut world = World::new([near_host]);
    world.nodes = vec![full("n", "r2a", 1)];
    assert_eq!(
        refusal(&world.plan()),
        (
            "pod-affinity",
            "podAffinity on kubernetes.io/hostname: matching pods by node: n 1; one more may go only to n, \
             and a machine that is still to be bought is a domain of its own; \
             start a pod that it may be near, or make the term a preferred one"
        )
    );
}

#[test]
fn a_pod_that_wants_to_be_apart_is_told_where_the_others_are_and_what_it_costs() {
    let mut apart = pod("a", 1);
    apart.anti_affinity.push(near(label::ZONE));
    let mut world = in_zone_r2a(World::new([apart.clone()]));
    world.nodes = vec![full("n", "r2a", 1)];
    let plan = world.plan();
    let (reason, message) = refusal(&plan);
    assert_eq!(reason, "pod-anti-affinity");
    assert!(
        message.starts_with("podAntiAffinity on topology.kubernetes.io/zone: matching pods by zone: r2a 1; "),
        "{message}"
    );

    let mut world = World::new([selecting(apart, label::VENDOR, "two")]);
    world.pools[0].requirements = vec![Requirement::new(label::CAPACITY_TYPE, Operator::In, &["on-demand"])];
    world.nodes = vec![full("n", "r2a", 1)];
    let explanation = world.explain_one();
    let line = explanation.rules.iter().find(|line| line.rule == "pod-anti-affinity").unwrap();
    assert_eq!((line.removed, line.left), (3, 3), "the other zone is left");
}

#[test]
fn a_machine_that_did_not_take_the_pod_is_named_with_the_gap() {
    let mut world = World::new([selecting(pod("a", 1), label::INSTANCE_TYPE, "s2")]);
    let kind =
        crate::Kind { class: "default".to_owned(), vendor: "one".into(), instance_type: "s2".to_owned() };
    let gap = BTreeMap::from([(kind, "memory 1Gi free, 2Gi asked".to_owned())]);
    world.lessons.unfit.insert("uid-a".to_owned(), gap);
    assert_eq!(
        refusal(&world.plan()),
        (
            "unfit",
            "every machine that would do was bought for this pod before and did not take it \
             (one s2: memory 1Gi free, 2Gi asked); ask for less"
        )
    );
}

#[test]
fn a_pool_that_wants_more_values_than_there_are_is_named_with_both_numbers() {
    let mut world = World::new([selecting(pod("a", 1), label::VENDOR, "two")]);
    let mut many = Requirement::new(label::INSTANCE_TYPE, Operator::Exists, &[]);
    many.min_values = Some(5);
    world.pools[0].requirements = vec![many];
    assert_eq!(
        refusal(&world.plan()),
        (
            "min-values",
            "NodePool default wants at least 5 values of node.kubernetes.io/instance-type, and the offerings left have 3; \
             lower minValues"
        )
    );
    world.rules.strict_min_values = false;
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
}

#[test]
fn a_port_that_daemons_take_everywhere_is_named() {
    let port = scarpenter_core::pod::HostPort { port: 80, protocol: "TCP".to_owned(), ip: String::new() };
    let with_port = |mut pod: Pod| {
        pod.host_ports = vec![port.clone()];
        pod
    };
    let mut world = World::new([with_port(pod("a", 1))]);
    world.daemons = vec![Daemon { pod: with_port(pod("d", 0)) }];
    assert_eq!(
        refusal(&world.plan()),
        (
            "host-port",
            "daemon pods take hostPort 80/TCP on every machine of the 14 offerings left; use another port"
        )
    );
}

#[test]
fn volumes_that_are_nowhere_for_sale_are_told_with_their_place() {
    let mut bound = selecting(pod("a", 1), label::VENDOR, "two");
    bound.volume_terms = vec![vec![Requirement::new(label::REGION, Operator::In, &["r1"])]];
    assert_eq!(
        refusal(&World::new([bound]).plan()),
        (
            "volume",
            "the pod's volumes are at topology.kubernetes.io/region In [r1], and none of the 6 offerings left is there"
        )
    );
}

#[test]
fn equal_pods_get_equal_refusals_until_limits_change() {
    let big = |name: &str| pod(name, 900);
    let mut world = World::new((0..20).map(|number| big(&format!("big-{number}"))));
    let plan = world.plan();
    assert_eq!(plan.unplaced.len(), 20);
    assert!(plan.unplaced.iter().all(|own| own.refusal == plan.unplaced[0].refusal));

    world.pods = (0..3).map(|number| pod(&format!("p-{number}"), 6)).collect();
    world.pools[0].limits.set(NODES, 1);
    world.classes.get_mut("default").unwrap().tenancy = Tenancy::SinglePod;
    let plan = world.plan();
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 2));
    assert!(
        plan.unplaced
            .iter()
            .all(|own| own.refusal.message == "the limits of NodePool default leave nodes 0 of 1")
    );
}

#[test]
fn of_many_kinds_of_refused_pods_the_later_ones_are_told_the_same_without_counts() {
    let world = World::new((0..100).map(|number| pod(&format!("p-{number}"), 900 + number)));
    let plan = world.plan();
    let message = |cpu: i64| {
        format!("the pod asks for cpu {cpu}, and a machine of the 14 offerings left has at most 32 for pods")
    };
    for (number, own) in (0..).zip(&plan.unplaced) {
        let cpu: i64 = 900 + own.pod.name.trim_start_matches("p-").parse::<i64>().unwrap();
        assert_eq!(own.refusal.message, message(cpu), "{number}");
    }
    let counted = plan.unplaced.iter().filter(|own| !own.refusal.removed.is_empty()).count();
    assert!((1..100).contains(&counted), "{counted}");
}

#[test]
fn a_pod_that_others_of_its_plan_push_elsewhere_is_told_so() {
    let spread = |name: &str| {
        let mut out = labelled(pod(name, 1));
        out.spread.push(scarpenter_core::topology::Spread {
            topology_key: label::ZONE.to_owned(),
            max_skew: 1,
            min_domains: None,
            selector: near(label::ZONE).selector,
            required: true,
            honor_affinity: true,
            honor_taints: false,
        });
        selecting(out, label::CAPACITY_TYPE, "on-demand")
    };
    let mut world = World::new([spread("a"), spread("b")]);
    world.classes.get_mut("default").unwrap().tenancy = Tenancy::SinglePod;
    let explained = world.explain();
    for explanation in &explained {
        let Outcome::Machine { bought, .. } = &explanation.outcome else { panic!("{explanation:?}") };
        assert_eq!(explanation.rules.last().unwrap().cheapest_after.as_ref(), Some(bought));
    }
    let told = |explanation: &Explanation| {
        explanation.rules.iter().find(|line| line.rule == "spread").unwrap().asked.clone()
    };
    assert!(
        explained.iter().any(|own| told(own).ends_with("matching pods by zone: r2a 1")),
        "{:?}",
        explained.iter().map(told).collect::<Vec<_>>()
    );
}

#[test]
fn a_bound_is_told_as_it_was_written() {
    let explanation =
        World::new([requiring(pod("a", 1), &[(BENCHMARK, Operator::Gt, &["1500"])])]).explain_one();
    assert_eq!(explanation.rules[0].asked, format!("{BENCHMARK} Gt [1500]"));
}
