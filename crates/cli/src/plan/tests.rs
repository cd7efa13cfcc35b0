use std::path::Path;

use scarpenter_core::offering::Price;
use scarpenter_core::pool::Extras;
use scarpenter_core::resources::CPU;

use super::documents::objects;
use super::*;

mod explain;

fn file(folder: &Path, name: &str, text: &str) -> Source {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    Source::File(path)
}

fn workloads(text: &str) -> anyhow::Result<Workloads> {
    let folder = tempfile::tempdir().unwrap();
    Workloads::read(&[file(folder.path(), "pods.yaml", text)])
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
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"{name}\"}}, \"spec\": {{\"containers\": [{{\"name\": \"a\"}}]}}}}"
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
    let read = workloads(
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: here, containers: [{name: a}]}}",
    )
    .unwrap();
    assert!(read.pods.is_empty());
    assert_eq!(read.notes, ["pod default/a is left out: it has a node already"]);
}

#[test]
fn bad_files_are_one_clear_sentence() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}]}}";
    for (text, words) in [
        ("", "holds no object"),
        ("a: 1", "a document has no apiVersion and kind"),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: s}}",
            "Service s (v1) makes no pods: expected Pod",
        ),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: 7}}", "Pod a"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {}, spec: {containers: [{name: a}]}}",
            "neither name nor generateName",
        ),
        (&format!("{pod}\n---\n{pod}"), "pod default/a appears twice"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}",
            "pod default/a has no container",
        ),
        ("a: [", "pods.yaml"),
    ] {
        let error = error(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    let missing = Workloads::read(&[Source::File("/nowhere/at/all.yaml".into())]).unwrap_err();
    assert!(format!("{missing:#}").starts_with("read /nowhere/at/all.yaml: "), "{missing:#}");
}

#[test]
fn a_folder_stands_for_its_files_and_what_makes_no_pods_is_left_out_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let pod = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: a}}]}}}}"
        )
    };
    file(folder.path(), "b.yaml", &pod("b"));
    file(
        folder.path(),
        "a.json",
        &serde_json::json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}).to_string(),
    );
    file(folder.path(), "c.yml", &pod("c"));
    file(folder.path(), "notes.txt", "no object");
    let other = tempfile::tempdir().unwrap();
    let single = file(other.path(), "single", &pod("d"));
    let read = Workloads::read(&[Source::File(folder.path().to_owned()), single]).unwrap();
    let names: Vec<String> = read.pods.iter().map(|pod| pod.key.to_string()).collect();
    assert_eq!(names, ["default/b", "default/c", "default/d"]);
    assert_eq!(read.notes, ["Service s is left out: it makes no pods"]);
    let empty = tempfile::tempdir().unwrap();
    let error = Workloads::read(&[Source::File(empty.path().to_owned())]).unwrap_err().to_string();
    assert!(error.ends_with("holds no object in a *.yaml, *.yml or *.json file"), "{error}");
}

#[test]
fn a_field_that_its_kind_does_not_have_is_told_of() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, label: {}}, spec: {containers: [{name: a, img: x}]}}";
    assert_eq!(
        workloads(pod).unwrap().notes,
        [
            "unknown field metadata.label in Pod a: ignored",
            "unknown field spec.containers[0].img in Pod a: ignored"
        ]
    );
    let pool = POOL.replace("replaced", "mine").replace("spec: {template", "spec: {wieght: 3, template");
    assert_eq!(
        intent(&pool, &CLASS.replace("tenancy", "tenency")).unwrap().notes,
        [
            "unknown field spec.wieght in NodePool p: ignored",
            "unknown field spec.tenency in ScarpenterNodeClass mine: ignored"
        ]
    );
}

const CLASS: &str = "{apiVersion: scarpenter.sparecores.com/v1alpha1, kind: ScarpenterNodeClass, metadata: {name: mine}, \
                     spec: {vendors: {hcloud: {}, aws: {regions: [us-west-2]}}, tenancy: SinglePod}}";
const POOL: &str = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p}, spec: {template: {spec: {nodeClassRef: \
                    {group: scarpenter.sparecores.com, kind: ScarpenterNodeClass, name: replaced}, requirements: []}}}}";

fn intent(pool: &str, class: &str) -> anyhow::Result<Intent> {
    let folder = tempfile::tempdir().unwrap();
    let (pool, class) = (file(folder.path(), "pool.yaml", pool), file(folder.path(), "class.yaml", class));
    Intent::read(Some(&pool), Some(&class))
}

#[test]
fn a_vendor_that_is_not_known_is_told_of_with_those_that_are() {
    let class = CLASS.replace("hcloud", "hetzner");
    let notes = intent(&POOL.replace("replaced", "mine"), &class).unwrap().notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("ScarpenterNodeClass mine: \"hetzner\" is not a vendor; known are alicloud, ")
    );
}

#[test]
fn another_version_of_a_kind_is_refused_with_the_one_that_is_wanted() {
    let error = intent(&POOL.replace("karpenter.sh/v1,", "karpenter.sh/v1beta1,"), CLASS).unwrap_err();
    assert_eq!(error.to_string(), "NodePool p is of karpenter.sh/v1beta1: karpenter.sh/v1 is wanted");
}

#[test]
fn a_pool_and_a_class_that_do_not_meet_are_told_of_once() {
    let error = intent(&POOL.replace("replaced", "other"), CLASS).unwrap_err().to_string();
    let lack = "NodePool p names ScarpenterNodeClass other, which no file holds";
    assert_eq!(error, format!("{lack}: give it by --nodeclass"));
    let two = format!(
        "{}\n---\n{}",
        POOL.replace("replaced", "other"),
        POOL.replace("replaced", "mine").replace("name: p}", "name: q}")
    );
    let intent = intent(&two, CLASS).unwrap();
    assert_eq!((intent.pools.len(), intent.notes), (1, vec![format!("{lack}: it is left out")]));

    let folder = tempfile::tempdir().unwrap();
    let alone = Intent::read(None, Some(&file(folder.path(), "class.yaml", CLASS))).unwrap_err();
    assert_eq!(
        alone.to_string(),
        "no NodePool names ScarpenterNodeClass mine: give one that does by --nodepool"
    );
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
containers: [{name: a}]}}
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
    assert!(text.contains("\n1 pod on 1 machine, $"), "{text}");
    assert!(text.ends_with(" together; 1 pod without a machine\n"), "{text}");
}

#[test]
fn pods_on_one_machine_name_it_and_replicas_do_not_repeat_what_would_do_as_well() {
    let deployment = |cpu: u32| {
        let selector = "scarpenter.sparecores.com/vendor: hcloud, node.kubernetes.io/instance-type: ccx33";
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: w}}, spec: {{replicas: 2, selector: {{}}, template: \
             {{spec: {{nodeSelector: {{{selector}}}, containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}}}"
        )
    };
    let lines = |cpu: u32| -> Vec<String> {
        let text = table::render(&planned(&deployment(cpu)));
        text.lines()
            .map(|line| line.split_once("  hcloud").map_or(line, |(start, _)| start).trim_end().to_owned())
            .collect()
    };
    let shared = lines(2);
    assert_eq!(
        shared.iter().position(|line| line == "default/w-1  same machine as default/w-0"),
        Some(shared.len() - 3),
        "{shared:?}"
    );
    assert!(shared[2].starts_with("  or"), "{shared:?}");
    let apart = lines(5);
    let second = apart.iter().position(|line| line.starts_with("default/w-1")).unwrap();
    assert!(apart[2..second].iter().all(|line| line.starts_with("  or")) && second > 2, "{apart:?}");
    assert_eq!(apart[second + 1], "", "{apart:?}");
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

#[test]
fn the_total_is_told_beside_what_any_plan_costs_at_least() {
    let plan = planned(TWO);
    let total: u64 = plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd()).sum();
    assert_eq!(table::bound(&plan, total), "no plan costs less\n");
    let words = table::bound(&plan, total / 2);
    assert!(words.contains("200 %"), "{words}");
    assert_eq!(table::bound(&Plan::default(), 0), "");
    let document = serde_json::to_value(PlanDocument::new(&plan).at_least(7)).unwrap();
    assert_eq!(document["lowerBoundPricePerHourMicroUsd"], 7);
}
