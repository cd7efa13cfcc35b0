use std::path::Path;

use scarpenter_core::offering::Price;
use scarpenter_core::pool::Extras;
use scarpenter_core::resources::CPU;

use super::documents::objects;
use super::*;

fn file(folder: &Path, name: &str, text: &str) -> Source {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    Source::File(path)
}

fn workloads(text: &str) -> anyhow::Result<Workloads> {
    let folder = tempfile::tempdir().unwrap();
    Workloads::read(&file(folder.path(), "pods.yaml", text))
}

fn error(text: &str) -> String {
    format!("{:#}", workloads(text).unwrap_err())
}

fn names(text: &str) -> Vec<String> {
    workloads(text).unwrap().pods.iter().map(|pod| pod.key.to_string()).collect()
}

const TEMPLATE: &str = "template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}";

#[test]
fn workloads_stand_for_the_pods_that_they_would_make() {
    for (kind, spec, expected) in [
        ("apps/v1, kind: Deployment", "replicas: 2, selector: {}, ", &["ns/w-0", "ns/w-1"][..]),
        ("apps/v1, kind: ReplicaSet", "selector: {}, ", &["ns/w-0"]),
        ("apps/v1, kind: StatefulSet", "replicas: 1, selector: {}, serviceName: s, ", &["ns/w-0"]),
        ("apps/v1, kind: Deployment", "replicas: 0, selector: {}, ", &[]),
        ("batch/v1, kind: Job", "parallelism: 3, completions: 2, ", &["ns/w-0", "ns/w-1"]),
        ("batch/v1, kind: Job", "", &["ns/w-0"]),
    ] {
        let text = format!(
            "{{apiVersion: {kind}, metadata: {{name: w, namespace: ns}}, spec: {{{spec}{TEMPLATE}}}}}"
        );
        assert_eq!(names(&text), expected, "{kind}");
        assert!(workloads(&text).unwrap().pods.iter().all(|pod| pod.requests.get(CPU) == 1000));
    }
    let cron = format!(
        "{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: c}}, spec: {{schedule: '* * * * *', jobTemplate: {{spec: \
         {{parallelism: 2, {TEMPLATE}}}}}}}}}"
    );
    assert_eq!(names(&cron), ["default/c-0", "default/c-1"]);
}

#[test]
fn a_list_stands_for_its_items_and_documents_may_be_json() {
    let pod = |name: &str| {
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"{name}\"}}, \"spec\": {{\"containers\": []}}}}"
        )
    };
    let list =
        format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}, {}]}}", pod("a"), pod("b"));
    assert_eq!(names(&list), ["default/a", "default/b"]);
    assert_eq!(names(&format!("---\n---\n{}\n---\n{}", pod("a"), pod("b"))), ["default/a", "default/b"]);
}

#[test]
fn a_daemonset_makes_no_pod_but_takes_room() {
    let text = format!(
        "{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: d}}, spec: {{selector: {{}}, {TEMPLATE}}}}}"
    );
    let read = workloads(&text).unwrap();
    assert_eq!((read.pods.len(), read.daemons.len()), (0, 1));
}

#[test]
fn a_pod_that_has_a_node_is_left_out_and_that_is_said() {
    let read =
        workloads("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: here, containers: []}}")
            .unwrap();
    assert!(read.pods.is_empty());
    assert_eq!(read.notes, ["pod default/a is left out: it has a node already"]);
}

#[test]
fn bad_files_are_one_clear_sentence() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}";
    for (text, words) in [
        ("", "holds no object"),
        ("a: 1", "a document has no apiVersion and kind"),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: s}}",
            "Service s (v1) makes no pods: expected Pod",
        ),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: 7}}", "Pod a"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {}, spec: {containers: []}}",
            "neither name nor generateName",
        ),
        (&format!("{pod}\n---\n{pod}"), "pod default/a appears twice"),
        ("a: [", "pods.yaml"),
    ] {
        let error = error(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    let missing = Workloads::read(&Source::File("/nowhere/at/all.yaml".into())).unwrap_err();
    assert!(format!("{missing:#}").starts_with("read /nowhere/at/all.yaml: "), "{missing:#}");
}

#[test]
fn without_files_the_example_is_used_and_that_is_said() {
    let intent = Intent::read(None, None).unwrap();
    assert_eq!(
        intent.pools.iter().map(|pool| pool.name.as_str()).collect::<Vec<_>>(),
        ["default", "default-arm64"]
    );
    assert_eq!(intent.classes["default"].vendors.len(), 8);
    assert_eq!(intent.notes.len(), 2);
}

#[test]
fn pools_and_classes_may_stand_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let example: Vec<String> = objects(include_str!("../../../../deploy/examples/default.yaml"))
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(example, ["ScarpenterNodeClass default", "NodePool default", "NodePool default-arm64"]);
    let all = file(folder.path(), "all.yaml", include_str!("../../../../deploy/examples/default.yaml"));
    let intent = Intent::read(Some(&all), None).unwrap();
    assert_eq!((intent.pools.len(), intent.classes.len(), intent.notes.len()), (2, 1, 0));
    let twice = Intent::read(Some(&all), Some(&all)).unwrap_err();
    assert!(twice.to_string().contains("appears twice"), "{twice}");
}

#[test]
fn a_bad_pool_is_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let pool = file(
        folder.path(),
        "pool.yaml",
        "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p}, spec: {template: {spec: {nodeClassRef: {group: \
         scarpenter.sparecores.com, kind: ScarpenterNodeClass, name: default}, requirements: [{key: a, operator: Gt, \
         values: [x]}]}}}}",
    );
    let error = Intent::read(Some(&pool), None).unwrap_err().to_string();
    assert!(error.starts_with("NodePool p: "), "{error}");
}

fn planned(pods: &str) -> Plan {
    inputs(pods).plan()
}

fn inputs(pods: &str) -> Inputs {
    Inputs {
        workloads: workloads(pods).unwrap(),
        intent: Intent::read(None, None).unwrap(),
        catalog: scarpenter_catalog::sample(&scarpenter_catalog::Rates::default()),
        caps: Caps::default(),
        notes: Vec::new(),
    }
}

const TWO: &str = "\
{apiVersion: v1, kind: Pod, metadata: {name: exact}, spec: {nodeSelector: {scarpenter.sparecores.com/vendor: hcloud, \
node.kubernetes.io/instance-type: ccx33}, containers: [{name: a, resources: {requests: {cpu: 2}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: typo}, spec: {nodeSelector: {node.kubernetes.io/instancetype: ccx33}, \
containers: []}}
";

#[test]
fn version_1_of_the_contract_has_exactly_these_fields() {
    let document = serde_json::to_value(PlanDocument::new(&planned(TWO))).unwrap();
    let keys = |pointer: &str| -> Vec<String> {
        document.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(""), ["claims", "totalPricePerHourMicroUsd", "unplaced", "version"]);
    assert_eq!(
        keys("/claims/0"),
        ["alternatives", "extrasPerHourMicroUsd", "nodePool", "offering", "pods", "requests"]
    );
    let offering =
        ["arch", "capacityType", "instanceType", "pricePerHourMicroUsd", "region", "vendor", "zone"];
    assert_eq!(keys("/claims/0/offering"), offering);
    assert_eq!(keys("/claims/0/alternatives/0"), offering);
    assert_eq!(keys("/unplaced/0"), ["message", "pod", "reason", "removed"]);
    assert_eq!(keys("/unplaced/0/removed/0"), ["offerings", "rule"]);
    assert_eq!(document["version"], 1);
    assert_eq!(document["claims"][0]["pods"], serde_json::json!(["default/exact"]));
    assert_eq!(document["claims"][0]["offering"]["instanceType"], "ccx33");
    assert_eq!(document["claims"][0]["requests"]["cpu"], "2");
    assert_eq!(
        document["claims"][0]["offering"]["pricePerHourMicroUsd"],
        document["totalPricePerHourMicroUsd"]
    );
    assert_eq!(document["unplaced"][0]["reason"], "node.kubernetes.io/instancetype");
}

#[test]
fn the_table_names_every_pod() {
    let text = table::render(&planned(TWO));
    assert!(text.starts_with("POD "), "{text}");
    assert!(text.contains("default/exact  default   hcloud  ccx33"), "{text}");
    assert!(text.contains("default/typo: no machine (node.kubernetes.io/instancetype): "), "{text}");
    assert!(text.ends_with(" together\n"), "{text}");
}

#[test]
fn what_is_charged_beside_the_machine_is_shown() {
    let mut inputs = inputs(TWO);
    let own = inputs.plan().claims[0].launch.price_per_hour_micro_usd.micro_usd();
    let public_ipv4 = Price::from_micro_usd(800);
    let extras = Extras { public_ipv4, ..Extras::default() };
    inputs.intent.classes.get_mut("default").unwrap().extras = [("hcloud".into(), extras)].into();
    let plan = inputs.plan();
    let document = serde_json::to_value(PlanDocument::new(&plan)).unwrap();
    assert_eq!(document["claims"][0]["extrasPerHourMicroUsd"], 800);
    assert_eq!(document["claims"][0]["offering"]["pricePerHourMicroUsd"], own + 800);
    let text = table::render(&plan);
    let row = text.lines().find(|line| line.starts_with("  of it extras")).unwrap();
    assert!(row.ends_with(" 0.000800"), "{text}");
}
