use scarpenter_core::pod::Attachment;
use serde_json::{Value, json};

use super::*;

fn volumes(objects: &[Value]) -> Volumes {
    let mut out = Volumes::default();
    for object in objects {
        let of = |kind: &str| object["kind"] == kind;
        if of("PersistentVolumeClaim") {
            out.apply_claim(&serde_json::from_value(object.clone()).unwrap());
        } else if of("PersistentVolume") {
            out.apply_volume(&serde_json::from_value(object.clone()).unwrap());
        } else if of("StorageClass") {
            out.apply_class(&serde_json::from_value(object.clone()).unwrap());
        } else {
            out.apply_csi_node(&serde_json::from_value(object.clone()).unwrap());
        }
    }
    out
}

/// A claim of namespace `n`, bound to volume `<name>-v`.
fn claim(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "n", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": format!("{name}-v"), "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}}},
        "status": {"phase": "Bound"},
    });
    change(&mut object);
    object
}

/// A claim that waits for its first pod, in class `c`.
fn waiting(name: &str) -> Value {
    claim(name, |object| {
        object["metadata"]["annotations"] = json!({});
        object["spec"]["storageClassName"] = json!("c");
        object["spec"]["volumeName"] = json!("");
        object["status"] = json!({"phase": "Pending"});
    })
}

fn volume(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
}

fn csi(driver: &str, key: &str, value: &str) -> Value {
    json!({"csi": {"driver": driver, "volumeHandle": "h"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}}})
}

fn class(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"},
        "provisioner": "csi.hetzner.cloud", "volumeBindingMode": "WaitForFirstConsumer"});
    change(&mut object);
    object
}

fn resolved(objects: &[Value], claims: &[&str]) -> Pod {
    let mut pod = Pod {
        key: PodKey::new("n", "p"),
        volume_claims: claims.iter().map(|name| (*name).to_owned()).collect(),
        ..Pod::default()
    };
    volumes(objects).resolve(&mut pod);
    pod
}

fn places(pod: &Pod) -> Vec<String> {
    assert_eq!(pod.volume_problems, Vec::<String>::new());
    let words = |lines: &Vec<Requirement>| {
        let all: Vec<String> = lines.iter().map(ToString::to_string).collect();
        all.join("; ")
    };
    pod.volume_terms.iter().map(words).collect()
}

#[test]
fn a_bound_volume_draws_the_pod_to_its_vendor_and_zone() {
    let there = volume("a-v", csi("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", "us-west-2a"));
    let pod = resolved(&[claim("a", |_| {}), there], &["a"]);
    assert_eq!(
        places(&pod),
        ["topology.kubernetes.io/zone In [us-west-2a]; scarpenter.sparecores.com/vendor In [aws]"]
    );
    let attachment = Attachment { driver: "ebs.csi.aws.com".to_owned(), volume: "h".to_owned() };
    assert_eq!(pod.attachments, [attachment]);
    assert_eq!(pod.volume_claims, ["a"]);
}

#[test]
fn a_volume_that_is_not_made_yet_can_be_where_its_class_makes_volumes() {
    let vendor = "scarpenter.sparecores.com/vendor In [hcloud]";
    let anywhere = resolved(&[waiting("a"), class(|_| {})], &["a"]);
    assert_eq!(places(&anywhere), [vendor]);
    let attachment = Attachment { driver: "csi.hetzner.cloud".to_owned(), volume: "n/a".to_owned() };
    assert_eq!(anywhere.attachments, [attachment]);
    let two = class(|object| {
        object["allowedTopologies"] = json!([
            {"matchLabelExpressions": [{"key": "csi.hetzner.cloud/location", "values": ["fsn1", "nbg1"]}]},
            {"matchLabelExpressions": [{"key": "csi.hetzner.cloud/location", "values": ["ash"]}]},
        ]);
    });
    let region = "topology.kubernetes.io/region In";
    assert_eq!(
        places(&resolved(&[waiting("a"), two], &["a"])),
        [format!("{region} [fsn1, nbg1]; {vendor}"), format!("{region} [ash]; {vendor}")]
    );
    let foreign = class(|object| object["provisioner"] = json!("nfs.csi.k8s.io"));
    assert_eq!(places(&resolved(&[waiting("a"), foreign], &["a"])), Vec::<String>::new());
}

#[test]
fn a_claim_that_names_no_class_gets_the_youngest_default_one() {
    let default = |name: &str, provisioner: &str, created: &str| {
        class(|object| {
            object["metadata"] = json!({"name": name, "creationTimestamp": created,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}});
            object["provisioner"] = json!(provisioner);
        })
    };
    let mut unnamed = waiting("a");
    unnamed["spec"]["storageClassName"] = Value::Null;
    let old = default("old", "ebs.csi.aws.com", "2026-01-01T00:00:00Z");
    let young = default("young", "pd.csi.storage.gke.io", "2026-02-01T00:00:00Z");
    let pod = resolved(&[unnamed, old, young], &["a"]);
    assert_eq!(places(&pod), ["scarpenter.sparecores.com/vendor In [gcp]"]);
}

#[test]
fn alternatives_of_several_volumes_multiply_and_impossible_ones_drop_out() {
    let zones = |values: &[&str]| {
        let terms: Vec<Value> = values
            .iter()
            .map(|zone| json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}))
            .collect();
        json!({"nfs": {"path": "/", "server": "s"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}})
    };
    let objects = [
        claim("a", |_| {}),
        claim("b", |_| {}),
        volume("a-v", zones(&["x", "y"])),
        volume("b-v", zones(&["y", "z"])),
    ];
    assert_eq!(places(&resolved(&objects, &["a", "b"])), ["topology.kubernetes.io/zone In [y]"]);
    let many: Vec<String> = (0..20).map(|number| format!("z{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let wide = json!({"nfs": {"path": "/", "server": "s"}, "nodeAffinity": {"required": {"nodeSelectorTerms":
        many.iter().map(|rack| json!({"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}))
            .collect::<Vec<_>>()}}});
    let objects = [claim("a", |_| {}), claim("b", |_| {}), volume("a-v", zones(&many)), volume("b-v", wide)];
    assert_eq!(places(&resolved(&objects, &["a", "b"])).len(), 64, "400 are cut");
}

#[test]
fn volumes_of_two_vendors_leave_no_machine_and_that_is_said() {
    let objects = [
        claim("a", |_| {}),
        claim("b", |_| {}),
        volume("a-v", csi("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", "us-west-2a")),
        volume("b-v", csi("csi.hetzner.cloud", "csi.hetzner.cloud/location", "fsn1")),
    ];
    let problems = resolved(&objects, &["a", "b"]).volume_problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("PersistentVolumeClaim n/b can be reached only where topology.kubernetes.io/region In [fsn1] and \
                                 scarpenter.sparecores.com/vendor In [hcloud], which the pod's other volumes exclude"),
        "{problems:?}"
    );
}

#[test]
fn the_machine_that_holds_a_local_volume_does_not_count() {
    let local = |source: Value| {
        let mut spec = csi("", "kubernetes.io/hostname", "gone");
        spec["csi"] = Value::Null;
        spec.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        [claim("a", |_| {}), volume("a-v", spec)]
    };
    for source in [json!({"local": {"path": "/x"}}), json!({"hostPath": {"path": "/x"}})] {
        let terms = resolved(&local(source), &["a"]).volume_terms;
        assert!(terms.is_empty(), "{terms:?}");
    }
    let pinned = resolved(&local(json!({"nfs": {"path": "/", "server": "s"}})), &["a"]);
    assert_eq!(places(&pinned), ["kubernetes.io/hostname In [gone]"]);
}

#[test]
fn zone_labels_of_a_volume_count_as_the_scheduler_counts_them() {
    let mut there = volume("a-v", json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}));
    there["metadata"]["labels"] =
        json!({"failure-domain.beta.kubernetes.io/zone": "us-west-2a__us-west-2b", "other": "x"});
    let pod = resolved(&[claim("a", |_| {}), there], &["a"]);
    assert_eq!(
        places(&pod),
        [
            "topology.kubernetes.io/zone In [us-west-2a, us-west-2b]; scarpenter.sparecores.com/vendor In [aws]"
        ]
    );
    assert_eq!(pod.attachments[0].driver, "ebs.csi.aws.com");
}

#[test]
fn a_class_that_makes_no_volumes_leaves_those_that_are_free() {
    let none = class(|object| object["provisioner"] = json!("kubernetes.io/no-provisioner"));
    let free = |name: &str, zone: &str, size: &str, change: fn(&mut Value)| {
        let mut object = volume(
            name,
            json!({"nfs": {"path": "/", "server": "s"}, "storageClassName": "c", "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
                [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]}}}),
        );
        change(&mut object);
        object
    };
    let objects = [
        waiting("a"),
        none.clone(),
        free("v1", "z1", "10Gi", |_| {}),
        free("v2", "z2", "1Gi", |_| {}),
        free("v3", "z3", "20Gi", |object| object["status"] = json!({"phase": "Released"})),
        free("v4", "z4", "20Gi", |object| {
            object["spec"]["claimRef"] = json!({"namespace": "n", "name": "other"})
        }),
        free("v5", "z5", "20Gi", |object| object["spec"]["storageClassName"] = json!("d")),
        free("v6", "z6", "20Gi", |object| object["spec"]["accessModes"] = json!(["ReadOnlyMany"])),
        free("v7", "z7", "20Gi", |object| object["spec"]["volumeMode"] = json!("Block")),
        free("v8", "z8", "20Gi", |object| {
            object["spec"]["claimRef"] = json!({"namespace": "n", "name": "a"})
        }),
    ];
    let zone = |name: &str| format!("topology.kubernetes.io/zone In [{name}]");
    assert_eq!(places(&resolved(&objects, &["a"])), [zone("z1"), zone("z8")]);
    let problems = resolved(&[waiting("a"), none], &["a"]).volume_problems;
    assert!(
        problems[0].starts_with("no PersistentVolume is free for PersistentVolumeClaim n/a"),
        "{problems:?}"
    );
}

#[test]
fn what_keeps_a_volume_from_being_used_is_one_sentence() {
    let there = || volume("a-v", csi("d", "zone", "x"));
    let no_mode = class(|object| object["volumeBindingMode"] = Value::Null);
    for (objects, words) in [
        (vec![], "PersistentVolumeClaim n/a does not exist: create it"),
        (
            vec![
                claim("a", |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
                there(),
            ],
            "PersistentVolumeClaim n/a is being deleted",
        ),
        (
            vec![claim("a", |object| object["status"]["phase"] = json!("Lost")), there()],
            "PersistentVolumeClaim n/a is Lost",
        ),
        (vec![claim("a", |_| {})], "bound to PersistentVolume a-v, which does not exist"),
        (
            vec![claim("a", |object| object["metadata"]["annotations"] = json!({})), there()],
            "names PersistentVolume a-v but is not bound to it yet",
        ),
        (
            vec![claim("a", |_| {}), {
                let mut going = there();
                going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                going
            }],
            "PersistentVolume a-v of PersistentVolumeClaim n/a is being deleted",
        ),
        (
            vec![
                claim("a", |_| {}),
                volume("a-v", json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{}]}}})),
            ],
            "has a node affinity that no node can match",
        ),
        (vec![waiting("a")], "StorageClass c of PersistentVolumeClaim n/a does not exist"),
        (vec![waiting("a"), no_mode], "is not bound, though StorageClass c binds at once"),
        (
            vec![{
                let mut classless = waiting("a");
                classless["spec"]["storageClassName"] = json!("");
                classless
            }],
            "is not bound and has no StorageClass",
        ),
    ] {
        let problems = resolved(&objects, &["a"]).volume_problems;
        assert!(problems.len() == 1 && problems[0].contains(words), "{words}: {problems:?}");
    }
}

#[test]
fn a_claim_that_two_pods_share_is_attached_once() {
    let all = volumes(&[
        claim("a", |_| {}),
        volume("a-v", csi("d", "zone", "x")),
        waiting("b"),
        class(|_| {}),
        json!({"kind": "CSINode", "metadata": {"name": "node"}, "spec": {"drivers": [
            {"name": "d", "nodeID": "x", "allocatable": {"count": 7}}, {"name": "unlimited", "nodeID": "x"}]}}),
    ]);
    let pod = |claims: &[&str]| Pod {
        key: PodKey::new("n", "p"),
        volume_claims: claims.iter().map(|name| (*name).to_owned()).collect(),
        ..Pod::default()
    };
    let attached: BTreeSet<Attachment> = [pod(&["a", "b"]), pod(&["a"]), pod(&["absent"])]
        .iter()
        .flat_map(|pod| all.attachments(pod))
        .collect();
    let names: Vec<&str> = attached.iter().map(|attachment| attachment.volume.as_str()).collect();
    assert_eq!(names, ["n/b", "h"], "by driver csi.hetzner.cloud, then d");
    assert_eq!(all.limits("node"), BTreeMap::from([("d".to_owned(), 7)]));
    assert_eq!(all.limits("other"), BTreeMap::new());
}

#[test]
fn what_a_fresh_list_does_not_hold_is_forgotten() {
    let mut all = volumes(&[claim("a", |_| {}), volume("a-v", csi("d", "zone", "x"))]);
    let mut pod = Pod { key: PodKey::new("n", "p"), volume_claims: vec!["a".to_owned()], ..Pod::default() };
    all.keep_volumes(&BTreeSet::new());
    all.resolve(&mut pod);
    assert!(pod.volume_problems[0].contains("does not exist: restore it"), "{:?}", pod.volume_problems);
    all.keep_claims(&BTreeSet::new());
    assert!(all.attachments(&pod).is_empty());
}
