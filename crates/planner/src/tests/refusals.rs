use scarpenter_core::offering::OfferingKey;

use super::*;
use crate::Removed;

fn refused(pod: Pod) -> (String, String) {
    let plan = World::new([pod]).plan();
    let (reason, message) = refusal(&plan);
    (reason.to_owned(), message.to_owned())
}

#[test]
fn every_rule_says_what_it_removed_and_the_first_that_left_nothing_is_the_reason() {
    let pod = selecting(selecting(pod("a", 1), label::VENDOR, "two"), label::INSTANCE_TYPE, "s2");
    let plan = World::new([pod]).plan();
    let refusal = &plan.unplaced[0].refusal;
    assert_eq!(refusal.reason, "instance-type");
    let removed = |rule: &str, offerings| Removed { rule: rule.to_owned(), offerings };
    assert_eq!(refusal.removed, [removed("vendor", 8), removed("instance-type", 9)]);
    assert_eq!(
        refusal.message,
        "none of the 9 offerings left has node.kubernetes.io/instance-type In [s2]; it is sold by one"
    );
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    assert_eq!(
        refused(selecting(pod("a", 1), "node.kubernetes.io/instancetype", "s2")),
        (
            "node.kubernetes.io/instancetype".to_owned(),
            "no machine will have the label node.kubernetes.io/instancetype, and no NodePool defines it; \
         the nearest known label is node.kubernetes.io/instance-type"
                .to_owned(),
        )
    );
    let (_, message) = refused(selecting(pod("a", 1), "foo", "bar"));
    assert!(message.starts_with("no machine will have the label foo"), "{message}");
    let near = "benchmark.scarpenter.sparecores.com/passmark-single-tread";
    let (_, message) = refused(requiring(pod("a", 1), &[(near, Operator::Gt, &["1"])]));
    assert!(message.ends_with(BENCHMARK), "{message}");
}

#[test]
fn where_many_values_are_known_the_nearest_is_named() {
    let mut world = World::new([selecting(pod("a", 1), label::INSTANCE_TYPE, "mm52")]);
    let mut builder = SnapshotBuilder::default();
    for size in 40..53 {
        let id = builder.instance_type(instance_type("two", &format!("m{size}"), size, Arch::Amd64, None));
        let place = Place { region: "r1".to_owned(), zone: None, zone_id: None };
        builder.offering(id, place, CapacityType::OnDemand, Price::from_micro_usd(1));
    }
    world.snapshot = builder.build();
    assert_eq!(
        refusal(&world.plan()).1,
        "nothing in the catalog has node.kubernetes.io/instance-type mm52 (nearest: m52)"
    );
}

#[test]
fn where_few_values_are_known_all_are_named() {
    assert_eq!(
        refused(selecting(pod("a", 1), label::VENDOR, "three")).1,
        "nothing in the catalog has scarpenter.sparecores.com/vendor three (known: one, two)"
    );
}

#[test]
fn a_type_without_a_price_is_known_but_not_sold() {
    assert_eq!(
        refused(selecting(pod("a", 1), label::INSTANCE_TYPE, "unsold")).1,
        "node.kubernetes.io/instance-type In [unsold] is in the catalog, but nobody offers it at a known price"
    );
}

#[test]
fn a_bound_says_how_many_have_no_value() {
    let (reason, message) = refused(requiring(pod("a", 1), &[(BENCHMARK, Operator::Gt, &["8000"])]));
    assert_eq!(reason, BENCHMARK);
    assert_eq!(
        message,
        format!(
            "none of the 17 offerings left has {BENCHMARK} Gt [8000]: 5 have no value, the others are between 1000 and 3000"
        )
    );
}

#[test]
fn bounds_that_leave_no_number_are_called_impossible() {
    let lines: [(&str, Operator, &[&str]); 2] =
        [(label::INSTANCE_CPU, Operator::Gt, &["8"]), (label::INSTANCE_CPU, Operator::Lt, &["9"])];
    assert_eq!(
        refused(requiring(pod("a", 1), &lines)).1,
        "`scarpenter.sparecores.com/instance-cpu Gt [8]` and `scarpenter.sparecores.com/instance-cpu Lt [9]` can never hold together"
    );
    let both = requiring(selecting(pod("a", 1), "x", "1"), &[("x", Operator::In, &["2"])]);
    assert_eq!(refused(both).1, "`nodeSelector x: 1` and `x In [2]` can never hold together");
}

#[test]
fn a_malformed_or_undecided_pod_is_refused_with_its_own_words() {
    let bad = requiring(pod("a", 1), &[(label::INSTANCE_CPU, Operator::Gt, &["abc"])]);
    assert_eq!(refused(bad).0, "invalid");
    let mut undecided = pod("a", 1);
    undecided.undecided = vec!["a topologySpreadConstraint".to_owned()];
    assert_eq!(
        refused(undecided),
        (
            "undecided".to_owned(),
            "the pod has a topologySpreadConstraint, which scarpenter does not support yet".to_owned()
        )
    );
}

#[test]
fn without_a_pool_the_message_says_so() {
    let mut world = World::new([pod("a", 1)]);
    world.pools.clear();
    assert_eq!(refusal(&world.plan()), ("no-nodepool", "no NodePool with a ScarpenterNodeClass"));
}

#[test]
fn an_unknown_class_is_named() {
    let mut world = World::new([pod("a", 1)]);
    world.pools[0].class = "gone".to_owned();
    assert_eq!(
        refusal(&world.plan()),
        (
            "node-class",
            "NodePool default names ScarpenterNodeClass gone, which does not exist or is not ready"
        )
    );
}

#[test]
fn a_vendor_that_the_class_does_not_use_is_named() {
    let mut world = World::new([selecting(pod("a", 1), label::VENDOR, "two")]);
    world.classes.get_mut("default").unwrap().vendors.remove(&Vendor::new("two"));
    assert_eq!(
        refusal(&world.plan()),
        ("class-vendor", "ScarpenterNodeClass default does not use vendor two")
    );
    world.classes.get_mut("default").unwrap().vendors.insert("two".into(), BTreeSet::from(["r9".to_owned()]));
    let plan = world.plan();
    assert_eq!(
        refusal(&plan).1,
        "ScarpenterNodeClass default names other regions of the vendor than r2 or r3"
    );
}

#[test]
fn a_vendor_that_cannot_be_asked_is_named_with_the_reason() {
    let mut world = World::new([selecting(pod("a", 1), label::VENDOR, "two")]);
    world.unavailable.vendors.insert("two".into(), "its plugin does not answer".to_owned());
    assert_eq!(
        refusal(&world.plan()),
        ("vendor-unavailable", "vendor two cannot be used now: its plugin does not answer")
    );
}

#[test]
fn a_pool_that_wants_something_else_is_named() {
    let mut world = World::new([selecting(pod("a", 1), label::ARCH, "arm64")]);
    world.pools[0].requirements = vec![Requirement::new(label::ARCH, Operator::In, &["amd64"])];
    assert_eq!(
        refusal(&world.plan()),
        ("pool-requirements", "NodePool default takes only kubernetes.io/arch In [amd64]")
    );
}

#[test]
fn a_pod_that_asks_for_spot_is_told_which_pool_it_takes() {
    let mut world = World::new([selecting(pod("a", 1), label::CAPACITY_TYPE, "spot")]);
    world.pools[0].requirements = vec![Requirement::new(label::CAPACITY_TYPE, Operator::In, &["on-demand"])];
    assert_eq!(
        refusal(&world.plan()),
        (
            "pool-requirements",
            "NodePool default takes only karpenter.sh/capacity-type In [on-demand]; \
             it takes a NodePool whose requirements allow karpenter.sh/capacity-type spot"
        )
    );
}

#[test]
fn a_pod_that_only_spot_would_fit_is_told_to_name_it() {
    let world = World::new([selecting(pod("a", 1), label::REGION, "r3")]);
    assert_eq!(refusal(&world.plan()).0, "default-capacity-type");
}

#[test]
fn a_pod_too_large_is_told_what_there_is() {
    assert_eq!(
        refused(pod("a", 64)),
        (
            "capacity".to_owned(),
            "the pod asks for cpu 64, and a machine of the 14 offerings left has at most 32 for pods"
                .to_owned()
        )
    );
    let mut odd = pod("a", 1);
    odd.requests.set("example.com/fpga", 1);
    assert!(refused(odd).1.contains("example.com/fpga 1"));
}

#[test]
fn a_pod_that_asks_for_the_whole_disk_as_it_is_sold_is_refused() {
    let mut greedy = pod("a", 1);
    greedy.requests.set("ephemeral-storage", 40 * GIB);
    assert_eq!(refused(greedy).0, "capacity");
}

#[test]
fn what_is_sold_out_is_not_bought_and_everything_else_is_tried_first() {
    let mut world = World::new([selecting(pod("a", 1), label::INSTANCE_TYPE, "s2")]);
    let key = |region: &str| OfferingKey {
        vendor: "one".into(),
        region: region.to_owned(),
        zone: None,
        instance_type: "s2".to_owned(),
        capacity_type: CapacityType::OnDemand,
    };
    world.unavailable.offerings.insert(key("r1"), 1600);
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"]);
    world.unavailable.offerings.insert(key("r2"), 1300);
    let plan = world.plan();
    assert_eq!(
        refusal(&plan),
        (
            "stock-out",
            "all 2 offerings left are sold out or over quota; the next try is at 1970-01-01T00:21:40Z"
        )
    );
    assert_eq!(plan.unplaced[0].refusal.until, Some(1300));
    world.unavailable.offerings.insert(key("r2"), 1000);
    assert_eq!(bought(&world.plan()), ["one/r2/s2/on-demand"], "the time is over");
}

#[test]
fn a_quota_shuts_a_vendors_region_only() {
    let mut world = World::new([selecting(pod("a", 1), label::REGION, "r2")]);
    world.unavailable.regions.insert(("one".into(), "r2".to_owned()), 2000);
    assert_eq!(bought(&world.plan()), ["two/r2a/m2/on-demand"]);
}
