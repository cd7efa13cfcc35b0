use k8s_openapi::api::apps::v1::DaemonSet;
use scarpenter_core::node::Node as Place;
use scarpenter_core::pod::HostPort;

use super::*;

fn kube<K: k8s_openapi::serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn names(place: &Place) -> Vec<&str> {
    place.pods.iter().map(|pod| pod.key.name.as_str()).collect()
}

fn port(number: u16) -> Value {
    json!([{"name": "main", "resources": {"requests": {"cpu": "2"}}, "ports": [{"containerPort": 1, "hostPort": number}]}])
}

#[test]
fn a_place_shows_the_pods_that_count_there_and_the_ports_of_all_that_hold_it() {
    let mut view = View::default();
    view.apply_claim(claim("a", |object| {
        object["metadata"]["annotations"][label::PODS] = json!("uid-promised")
    }));
    view.apply_node(&node("a", |_| {}));
    view.apply_pod(&pod("promised", |object| object["spec"]["containers"] = port(1)));
    view.apply_pod(&bound("running", "a"));
    view.apply_pod(&pod("leaving", |object| {
        object["spec"]["nodeName"] = json!("a");
        object["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:01:00Z");
        object["spec"]["containers"] = port(2);
    }));
    view.apply_pod(&pod("ended", |object| {
        object["spec"]["nodeName"] = json!("a");
        object["spec"]["containers"] = port(3);
        object["status"]["phase"] = json!("Succeeded");
    }));
    let places = view.places();
    assert_eq!(names(&places[0]), ["running", "promised"]);
    let ports: Vec<u16> = places[0].host_ports.iter().map(|HostPort { port, .. }| *port).collect();
    assert_eq!(ports, [2, 1]);
    let own = &view.pod(&scarpenter_core::pod::PodKey::new("default", "running")).unwrap().pod;
    assert!(Arc::ptr_eq(own, &places[0].pods[0]), "no pod is copied");
}

#[test]
fn a_claim_without_a_node_shows_the_pods_that_it_was_made_for() {
    let mut view = View::default();
    view.apply_claim(claim("a", |object| object["metadata"]["annotations"][label::PODS] = json!("uid-p")));
    view.apply_pod(&pod("p", |object| object["spec"]["containers"] = port(7)));
    let places = view.places();
    assert_eq!((names(&places[0]), places[0].host_ports[0].port), (vec!["p"], 7));
}

#[test]
fn a_pod_whose_port_another_took_is_planned_anew() {
    let mut view = View::default();
    view.apply_claim(claim("a", |object| {
        object["metadata"]["annotations"][label::PODS] = json!("uid-p,uid-q")
    }));
    view.apply_node(&node("a", |object| {
        object["metadata"]["labels"] = json!({label::REGISTERED: "true", label::INITIALIZED: "true"});
    }));
    view.apply_pod(&pod("p", |object| object["spec"]["containers"] = port(7)));
    view.apply_pod(&pod("q", |object| object["spec"]["containers"] = port(8)));
    view.apply_pod(&pod("thief", |object| {
        object["spec"]["nodeName"] = json!("a");
        object["spec"]["containers"] = port(7);
    }));
    assert_eq!(view.places()[0].promised, ["uid-q"]);
}

#[test]
fn volumes_of_a_pending_pod_are_told_and_those_of_bound_pods_are_attached() {
    let mut view = View::default();
    let mounts = |claim: &str| json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    view.apply_node(&node("a", |_| {}));
    for name in ["one", "two"] {
        let mut holder = bound(name, "a");
        holder.spec.as_mut().unwrap().volumes = kube(mounts("data"));
        view.apply_pod(&holder);
    }
    view.apply_pod(&pod("p", |object| object["spec"]["volumes"] = mounts("data")));
    assert!(view.pending()[0].volume_problems[0].contains("default/data does not exist"));
    view.apply_volume_claim(&kube(json!({
        "metadata": {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
    })));
    let driver = "csi.hetzner.cloud";
    view.apply_volume(&kube(
        json!({"metadata": {"name": "v"}, "spec": {"csi": {"driver": driver, "volumeHandle": "7"}}}),
    ));
    view.apply_csi_node(&kube(json!({"metadata": {"name": "a"}, "spec": {"drivers": [
        {"name": driver, "nodeID": "1", "allocatable": {"count": 16}}]}})));
    let pending = view.pending();
    assert_eq!((pending[0].volume_terms.len(), pending[0].volume_problems.len()), (1, 0));
    assert_eq!(pending[0].attachments[0].volume, "7");
    let places = view.places();
    assert_eq!(
        (places[0].attached.as_slice(), places[0].attach_limits[driver]),
        (pending[0].attachments.as_slice(), 16)
    );
    view.keep_volumes(&Default::default());
    assert!(view.pending()[0].volume_problems[0].contains("PersistentVolume v, which does not exist"));
}

fn daemon_set(generation: &str) -> DaemonSet {
    kube(json!({
        "metadata": {"name": "d", "namespace": "kube-system", "uid": "set",
            "annotations": {"deprecated.daemonset.template.generation": generation}},
        "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "main"}]}}},
    }))
}

fn daemon_pod(name: &str, cpu: &str, created: &str, change: impl FnOnce(&mut Value)) -> Pod {
    pod(name, |object| {
        object["metadata"] = json!({"name": name, "namespace": "kube-system", "uid": name, "creationTimestamp": created,
            "labels": {"pod-template-generation": "1"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "set"}]});
        object["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
        object["status"] = json!({"phase": "Running"});
        change(object);
    })
}

#[test]
fn a_daemon_that_asks_for_nothing_takes_what_limit_ranges_of_its_namespace_say() {
    let mut view = View::default();
    let range = |namespace: &str, name: &str, cpu: &str| {
        kube(json!({"metadata": {"name": name, "namespace": namespace},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]}}))
    };
    view.apply_daemon(&daemon_set("1"));
    let cpu = |view: &View| view.daemons()[0].pod.requests.get(CPU);
    assert_eq!(cpu(&view), 0);
    view.apply_limit_range(&range("kube-system-too", "a", "5"));
    assert_eq!(cpu(&view), 0);
    view.apply_limit_range(&range("kube-system", "a", "1"));
    view.apply_limit_range(&range("kube-system", "b", "3"));
    assert_eq!(cpu(&view), 1000, "the first by name wins");
    view.remove_limit_range(&range("kube-system", "a", "1"));
    assert_eq!(cpu(&view), 3000);
    view.keep_limit_ranges(&Default::default());
    assert_eq!(cpu(&view), 0);
}

#[test]
fn the_youngest_living_pod_of_a_daemon_says_what_it_takes() {
    let mut view = View::default();
    view.apply_daemon(&daemon_set("1"));
    view.apply_pod(&daemon_pod("old", "100m", "2026-01-01T00:00:00Z", |_| {}));
    view.apply_pod(&daemon_pod("young", "300m", "2026-01-02T00:00:00Z", |_| {}));
    view.apply_pod(&daemon_pod("ended", "700m", "2026-01-03T00:00:00Z", |object| {
        object["status"]["phase"] = json!("Failed");
    }));
    view.apply_pod(&daemon_pod("leaving", "900m", "2026-01-03T00:00:00Z", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-04T00:00:00Z");
    }));
    let cpu = |view: &View| view.daemons()[0].pod.requests.get(CPU);
    assert_eq!(cpu(&view), 300);
    view.apply_daemon(&daemon_set("2"));
    assert_eq!(cpu(&view), 0, "the template is newer than all of them");
    view.apply_daemon(&daemon_set("1"));
    view.keep_pods(&Default::default());
    assert_eq!(cpu(&view), 0);
}

#[test]
fn namespaces_are_known_by_their_labels() {
    let mut view = View::default();
    view.apply_namespace(&kube(json!({"metadata": {"name": "a", "labels": {"team": "x"}}})));
    assert_eq!(view.namespaces()["a"]["team"], "x");
    view.keep_namespaces(&Default::default());
    assert!(view.namespaces().is_empty());
}
