#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use scarpenter_api::NodeClaim;
use scarpenter_core::label;
use scarpenter_core::name::ClaimUid;
use scarpenter_core::resources::{CPU, MICRO_USD_PER_HOUR, NODES};
use serde_json::{Value, json};

use crate::{ClaimRecord, View};

mod surroundings;

const LAUNCH: &str = r#"{"vendor":"hcloud","region":"fsn1","zone":"fsn1","instanceType":"ccx33","capacityType":"on-demand",
    "arch":"amd64","pricePerHourMicroUsd":244090,"capacity":{"cpu":8000,"memory":33554432000,"pods":110},
    "allocatable":{"cpu":8000,"memory":33449574400,"pods":110},"labels":{"scarpenter.sparecores.com/vendor":"hcloud"}}"#;

fn claim(name: &str, change: impl FnOnce(&mut Value)) -> Arc<NodeClaim> {
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "labels": {label::NODEPOOL: "default"},
            "annotations": {label::LAUNCH: LAUNCH},
        },
        "spec": {
            "nodeClassRef": {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": "default"},
            "requirements": [],
            "taints": [{"key": "own", "effect": "NoSchedule"}],
            "expireAfter": "720h",
        },
    });
    change(&mut object);
    Arc::new(serde_json::from_value(object).unwrap())
}

fn node(name: &str, change: impl FnOnce(&mut Value)) -> Node {
    let mut object = json!({
        "metadata": {"name": name, "uid": format!("node-{name}"), "labels": {}},
        "spec": {"providerID": format!("scarpenter://hcloud/uid-{name}")},
        "status": {"allocatable": {"cpu": "7", "memory": "30Gi", "pods": "110"}},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Pod {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn bound(name: &str, node: &str) -> Pod {
    pod(name, |object| {
        object["spec"]["nodeName"] = json!(node);
        object["status"] = json!({"phase": "Running"});
    })
}

#[test]
fn a_claim_counts_from_its_creation_with_what_it_was_bought_with() {
    let mut view = View::default();
    view.apply_claim(claim("a", |_| {}));
    let places = view.places();
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].allocatable.get(CPU), 8000);
    assert_eq!((places[0].counted.get(NODES), places[0].counted.get(MICRO_USD_PER_HOUR)), (1, 244_090));
    assert_eq!(places[0].labels[label::VENDOR], "hcloud");
    assert!(places[0].open && !places[0].initialized);
}

#[test]
fn pods_that_a_claim_was_made_for_take_their_room_there_until_they_are_bound() {
    let mut view = View::default();
    view.apply_claim(claim("a", |object| {
        object["metadata"]["annotations"][label::PODS] = json!("uid-p,uid-other")
    }));
    view.apply_pod(&pod("p", |_| {}));
    let promised = view.places().remove(0);
    assert_eq!(
        (promised.promised.as_slice(), promised.requested.get(CPU)),
        (["uid-p".to_owned()].as_slice(), 2000)
    );
    view.apply_pod(&bound("p", "elsewhere"));
    let free = view.places().remove(0);
    assert!(free.promised.is_empty() && free.requested.is_empty());
}

#[test]
fn a_pod_whose_room_another_took_is_planned_anew() {
    let mut view = View::default();
    view.apply_claim(claim("a", |object| {
        object["metadata"]["annotations"][label::PODS] = json!("uid-p,uid-q")
    }));
    view.apply_node(&node("a", |object| {
        object["metadata"]["labels"][label::REGISTERED] = json!("true");
        object["metadata"]["labels"][label::INITIALIZED] = json!("true");
    }));
    view.apply_pod(&pod("p", |_| {}));
    view.apply_pod(&pod("q", |_| {}));
    assert_eq!(view.places()[0].promised, ["uid-p", "uid-q"]);
    view.apply_pod(&pod("thief", |object| {
        object["spec"]["nodeName"] = json!("a");
        object["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("4");
    }));
    let places = view.places();
    assert_eq!(places[0].promised, ["uid-p"], "7 CPUs hold the thief and one of the two");
    assert_eq!(places[0].requested.get(CPU), 6000);
}

#[test]
fn a_pod_that_was_told_to_wait_and_is_bound_anywhere_has_arrived() {
    let mut view = View::default();
    let told = |status: &'static str, node: Option<&'static str>| {
        pod("p", move |object| {
            object["status"]["conditions"] =
                json!([{"type": scarpenter_api::condition::MACHINE_READY, "status": status}]);
            if let Some(node) = node {
                object["spec"]["nodeName"] = json!(node);
            }
        })
    };
    for (status, node, arrived) in
        [("False", None, 0), ("False", Some("of-another-claim"), 1), ("True", Some("a"), 0)]
    {
        view.apply_pod(&told(status, node));
        assert_eq!(view.arrived().count(), arrived, "{status} {node:?}");
    }
}

#[test]
fn a_claim_that_goes_keeps_no_pod_waiting() {
    let mut view = View::default();
    view.apply_claim(claim("a", |object| {
        object["metadata"]["annotations"][label::PODS] = json!("uid-p");
        object["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:01:00Z");
    }));
    view.apply_pod(&pod("p", |_| {}));
    let places = view.places();
    assert!(places[0].promised.is_empty() && !places[0].open);
}

#[test]
fn a_claim_that_is_gone_does_not_come_back_by_a_late_answer() {
    let mut view = View::default();
    let late = claim("a", |_| {});
    view.apply_claim(Arc::clone(&late));
    view.remove_claim(&late);
    view.apply_claim(late);
    assert!(view.places().is_empty());
}

#[test]
fn node_and_claim_are_one_place() {
    let mut view = View::default();
    view.apply_claim(claim("a", |_| {}));
    let touched = view.apply_node(&node("a", |_| {}));
    assert_eq!(touched.claims, ["a"]);
    let places = view.places();
    assert_eq!(places.len(), 1);
    assert_eq!(places[0].allocatable.get(CPU), 7000, "the node knows better");
    assert_eq!(places[0].taints.len(), 1, "the claim's taints count until the node is registered");
}

#[test]
fn until_a_node_is_initialized_its_passing_taints_do_not_count() {
    let mut view = View::default();
    view.apply_claim(claim("a", |_| {}));
    let taints = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, {"key": "own", "effect": "NoSchedule"}]);
    let registered = |initialized: &str| {
        node("a", |object| {
            object["spec"]["taints"] = taints.clone();
            object["metadata"]["labels"] =
                json!({label::REGISTERED: "true", label::INITIALIZED: initialized});
        })
    };
    view.apply_node(&registered("false"));
    assert_eq!(view.places()[0].taints.len(), 1);
    view.apply_node(&registered("true"));
    assert_eq!(view.places()[0].taints.len(), 2);
}

#[test]
fn foreign_and_garbage_provider_ids_belong_to_no_claim() {
    let mut view = View::default();
    view.apply_claim(claim("a", |_| {}));
    for id in ["aws:///us-west-2a/i-1", "scarpenter://", "scarpenter://hcloud/uid-b"] {
        view.apply_node(&node("foreign", |object| object["spec"]["providerID"] = json!(id)));
        assert_eq!(view.places().len(), 2, "{id}");
        assert!(view.places().iter().any(|place| place.name == "foreign" && place.pool.is_none()), "{id}");
    }
}

#[test]
fn a_node_of_another_name_is_not_the_claims_whatever_it_says() {
    let mut view = View::default();
    let uid = ClaimUid::from("uid-a");
    view.apply_node(&node("a", |_| {}));
    view.apply_node(&node("impostor", |object| {
        object["spec"]["providerID"] = json!("scarpenter://hcloud/uid-a")
    }));
    assert_eq!(view.nodes_of(&uid).count(), 2, "of a claim that is gone everything has to go");
    view.apply_claim(claim("a", |_| {}));
    let names: Vec<&str> = view.nodes_of(&uid).map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    let owned = |name: &str| view.claim_of_node(view.node(name).unwrap()).is_some();
    assert!(owned("a") && !owned("impostor"));
    let places = view.places();
    let impostor = places.iter().find(|place| place.name == "impostor").unwrap();
    assert_eq!((places.len(), &impostor.pool), (2, &None));
}

#[test]
fn a_pod_that_moves_frees_its_old_place() {
    let mut view = View::default();
    view.apply_node(&node("a", |_| {}));
    view.apply_pod(&bound("p", "a"));
    assert_eq!(view.places()[0].requested.get(CPU), 2000);
    view.apply_pod(&bound("p", "b"));
    assert_eq!(view.places()[0].requested.get(CPU), 0);
}

#[test]
fn what_a_fresh_list_does_not_hold_is_forgotten() {
    let mut view = View::default();
    view.apply_claim(claim("a", |_| {}));
    view.apply_node(&node("a", |_| {}));
    view.apply_pod(&pod("p", |_| {}));
    assert_eq!(view.keep_nodes(&Default::default()), ["a"]);
    view.keep_claims(&Default::default());
    view.keep_pods(&Default::default());
    assert!(view.places().is_empty() && view.pending().is_empty());
}

#[test]
fn facts_that_cannot_be_read_are_named_and_never_mean_that_no_machine_was_made() {
    let record = ClaimRecord::parse(claim("a", |object| {
        object["metadata"]["annotations"] = json!({label::LAUNCH: "{", label::ATTEMPT: "yesterday"});
    }));
    assert_eq!(record.unreadable.len(), 2);
    assert!(record.claim.launch.is_none());
    assert_eq!(record.claim.attempt, Some(record.claim.created));
}

#[test]
fn a_delete_is_taken_as_acknowledged_no_earlier_than_it_was() {
    let record = ClaimRecord::parse(claim("a", |object| {
        let at = "2026-11-30T12:05:00Z";
        object["status"] = json!({"conditions": [{"type": "InstanceTerminating", "status": "True", "lastTransitionTime": at}]});
    }));
    let seconds = record.claim.terminating.unwrap().millis() - record.claim.created.millis();
    assert_eq!(seconds, 301_000);
}
