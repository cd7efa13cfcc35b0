use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Event, Node as KubeNode, Pod as KubePod};
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass};
use scarpenter_catalog::{Rates, sample};
use scarpenter_index::View;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn pending() -> Value {
    json!({
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}],
            "nodeSelector": {"scarpenter.sparecores.com/vendor": "hcloud"}},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available"}]}
    })
}

/// The pod with a change.
fn changed(change: Value) -> KubePod {
    let mut pod = pending();
    merge(&mut pod, change);
    object(pod)
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(own), Value::Object(change)) => {
            for (key, value) in change {
                merge(own.entry(key).or_insert(Value::Null), value);
            }
        }
        (own, change) => *own = change,
    }
}

fn ready(type_: &str) -> Value {
    json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn class(conditions: &[Value]) -> ScarpenterNodeClass {
    object(json!({
        "apiVersion": "scarpenter.sparecores.com/v1alpha1", "kind": "ScarpenterNodeClass", "metadata": {"name": "default"},
        "spec": {"vendors": {"hcloud": {}, "aws": {}}}, "status": {"conditions": conditions}
    }))
}

fn pool(conditions: &[Value]) -> NodePool {
    object(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef":
            {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "default"}}}},
        "status": {"conditions": conditions}
    }))
}

/// A cluster with a pool that can be used.
fn view() -> View {
    let mut view = View::default();
    view.apply_class(class(&[ready("Ready"), ready("HcloudReady")]).into());
    view.apply_pool(pool(&[ready("Ready")]).into());
    view
}

fn standing(change: Value) -> Standing {
    Standing::of(&changed(change), &view(), false)
}

#[test]
fn each_state_of_a_pod_is_one_sentence() {
    for (change, identifier, words) in [
        (json!({"status": {"phase": "Succeeded"}}), "finished", "it has run to its end (Succeeded)"),
        (json!({"spec": {"nodeName": "n"}}), "bound", "it is bound to node n, so"),
        (
            json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "x"}]}}),
            "daemon-set",
            "DaemonSet d owns it",
        ),
        (
            json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}),
            "static",
            "its node's kubelet made it",
        ),
        (
            json!({"spec": {"schedulingGates": [{"name": "g"}]}}),
            "gated",
            "it is held back by its schedulingGates (g)",
        ),
        (
            json!({"status": {"nominatedNodeName": "n"}}),
            "making-room",
            "the kube-scheduler makes room for it on node n",
        ),
    ] {
        let standing = standing(change);
        assert_eq!(standing.identifier(), identifier);
        assert!(standing.is_settled());
        let sentence = standing.sentence().unwrap();
        assert!(sentence.starts_with(words), "{sentence}");
    }
    assert_eq!((standing(json!({})), Standing::Pending.sentence()), (Standing::Pending, None));
}

#[test]
fn a_pod_that_the_scheduler_has_not_refused_is_explained_all_the_same() {
    let standing = standing(json!({"status": {"conditions": null}}));
    assert_eq!(standing, Standing::NotYetRefused(None));
    assert!(!standing.is_settled());
    let gated = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}]}});
    let standing = Standing::of(&changed(gated), &view(), false);
    assert!(standing.sentence().unwrap().contains("(it says: SchedulerError)"));
}

#[test]
fn a_machine_on_its_way_is_named_with_how_far_it_is() {
    let mut view = view();
    let launch = json!({"vendor": "hcloud", "region": "fsn1", "zone": null, "instanceType": "ccx33", "capacityType": "on-demand",
        "arch": "amd64", "pricePerHourMicroUsd": 107_460, "capacity": {}, "allocatable": {}, "labels": {}});
    let claim: NodeClaim = object(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "p-1", "uid": "c", "annotations":
            {"scarpenter.sparecores.com/launch": launch.to_string(), "scarpenter.sparecores.com/pods": "x,u"}},
        "spec": {"requirements": [], "nodeClassRef":
            {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "default"}},
        "status": {"conditions": [ready("Launched"), {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound",
            "message": "no node yet", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    }));
    view.apply_claim(claim.into());
    view.apply_pod(&object(pending()));
    let standing = Standing::of(&object(pending()), &view, false);
    assert_eq!(standing.identifier(), "awaits-machine");
    assert_eq!(
        standing.sentence().unwrap(),
        "its machine is on its way: nodeclaim p-1, hcloud/fsn1/ccx33/on-demand at $0.107460/h: \
         Launched, not Registered yet (no node yet)"
    );
}

#[test]
fn where_others_have_pools_a_pod_without_our_keys_is_theirs() {
    let mut view = view();
    let other: NodePool = object(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "q"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef":
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x"}}}}
    }));
    view.apply_pool(other.into());
    let plain = changed(json!({"spec": {"nodeSelector": null}}));
    assert_eq!(Standing::of(&plain, &view, false), Standing::OfOthers);
    assert_eq!(Standing::of(&plain, &view, true), Standing::Pending);
    assert_eq!(Standing::of(&object(pending()), &view, false), Standing::Pending);
}

fn explained(view: &mut View, pod: &KubePod) -> (Facts, Explanation) {
    view.apply_pod(pod);
    let facts = Facts::gather(view, (None, None), 0);
    let catalog = sample(&Rates::default());
    let explanation = facts.explain(&catalog.snapshot, &PodKey::new("default", "a")).unwrap();
    (facts, explanation)
}

#[test]
fn a_pod_is_planned_for_by_the_classes_and_vendors_that_are_ready() {
    let (facts, explanation) = explained(&mut view(), &object(pending()));
    assert_eq!(
        facts.classes["default"].vendors.keys().map(|own| own.as_str()).collect::<Vec<_>>(),
        ["hcloud"]
    );
    assert!(facts.notes.is_empty());
    let Outcome::Machine { pool, bought, .. } = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!((pool.as_str(), bought.offering.vendor.as_str()), ("p", "hcloud"));
    assert!(!is_refused(&explanation));
}

#[test]
fn a_vendor_that_no_class_can_use_is_told_with_the_words_of_its_condition() {
    let mut view = view();
    let refused = json!({"type": "HcloudReady", "status": "False", "reason": "Unauthenticated", "message": "401",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    view.apply_class(class(&[ready("Ready"), refused, ready("AwsReady")]).into());
    let (facts, explanation) = explained(&mut view, &object(pending()));
    assert_eq!(facts.unavailable.vendors, BTreeMap::from([("hcloud".into(), "401".to_owned())]));
    let Outcome::Refused(refusal) = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(refusal.message, "vendor hcloud cannot be used now: 401");
    assert!(is_refused(&explanation));
}

#[test]
fn a_pool_that_is_not_ready_is_left_out_with_a_sentence() {
    let mut view = view();
    view.apply_pool(pool(&[]).into());
    let (facts, explanation) = explained(&mut view, &object(pending()));
    assert_eq!(facts.notes.len(), 1);
    assert!(facts.notes[0].starts_with("NodePool p is not ready, so it is left out: "), "{:?}", facts.notes);
    let Outcome::Refused(refusal) = &explanation.outcome else { panic!("{explanation:?}") };
    assert_eq!(refusal.reason, "no-nodepool");
}

#[test]
fn the_answer_is_readable_in_100_columns_and_says_what_is_not_seen() {
    let mut view = view();
    let node: KubeNode = object(
        json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}}),
    );
    view.apply_node(&node);
    let told = json!({"status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
        {"type": "scarpenter.sparecores.com/MachineReady", "status": "False", "reason": "NoOffering", "message": "as before",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let pod = changed(told);
    let (facts, explanation) = explained(&mut view, &pod);
    let event: Event =
        object(json!({"metadata": {}, "involvedObject": {}, "type": "Warning", "reason": "FailedScheduling",
        "message": "no", "count": 3, "lastTimestamp": "2026-01-01T00:00:00Z"}));
    let told = Told::of(&pod, &[event]);
    let answer = Answer {
        key: &PodKey::new("default", "a"),
        standing: &Standing::Pending,
        explanation: Some(&explanation),
        notes: &facts.notes,
        told: &told,
    };
    let text = answer.text();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for words in [
        "default/a: hcloud/",
        " for NodePool p\n",
        "vendor: scarpenter.sparecores.com/vendor In [hcloud]",
        "not on n (label): it has no label scarpenter.sparecores.com/vendor",
        "told: MachineReady is False since 2026-01-01T00:00:00Z (NoOffering): as before",
        "event 2026-01-01T00:00:00Z, 3 times: FailedScheduling: no",
        "not seen from outside: ",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let document = serde_json::to_value(answer.document()).unwrap();
    assert_eq!((&document["version"], &document["state"]), (&json!(1), &json!("pending")));
    assert_eq!(document["explanation"]["outcome"], "machine");
    assert_eq!(document["machineReady"]["reason"], "NoOffering");
    assert_eq!(document["events"][0]["count"], 3);
}

#[test]
fn version_1_of_an_explanation_has_exactly_these_fields() {
    let (_, explanation) = explained(&mut view(), &object(pending()));
    let document = serde_json::to_value(document::ExplanationDocument::new(&explanation)).unwrap();
    let keys = |pointer: &str| -> Vec<String> {
        document.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(
        keys(""),
        [
            "advice",
            "beside",
            "message",
            "moreNodes",
            "node",
            "nodePool",
            "nodes",
            "offering",
            "outcome",
            "pod",
            "reason",
            "rules"
        ]
    );
    assert_eq!(keys("/rules/0"), ["asked", "cheapestAfter", "cheapestBefore", "left", "removed", "rule"]);
    assert_eq!(keys("/advice/0"), ["helps", "instead", "message", "removed", "rule"]);
    assert_eq!(
        keys("/offering"),
        ["arch", "capacityType", "instanceType", "pricePerHourMicroUsd", "region", "vendor", "zone"]
    );
}

#[test]
fn a_name_is_a_namespace_and_a_name() {
    let key = |text: &str| text.parse::<Name>().map(|name| name.0.to_string()).ok();
    assert_eq!(key("a/b").as_deref(), Some("a/b"));
    assert_eq!(key("b").as_deref(), Some("default/b"));
    for bad in ["", "a/", "/b", "a/b/c"] {
        assert_eq!(key(bad), None, "{bad}");
    }
}
