use std::io::Write;

use scarpenter_core::resources::{CPU, MEMORY};

use super::*;

fn read(text: &str) -> Workloads {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Workloads::read(&[Source::File(file.path().to_owned())]).unwrap()
}

fn all(documents: &[&str]) -> Workloads {
    read(&documents.join("\n---\n"))
}

fn pod(fields: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: a}}], {fields}}}}}"
    )
}

const RANGE: &str = "{apiVersion: v1, kind: LimitRange, metadata: {name: r}, spec: {limits: [{type: Container, \
                     defaultRequest: {cpu: 250m}, default: {memory: 1Gi}}]}}";
const CLASS: &str = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: ssd}, provisioner: \
                     ebs.csi.aws.com, volumeBindingMode: WaitForFirstConsumer}";

#[test]
fn limit_ranges_fill_pods_and_daemons_of_their_namespace_wherever_they_stand_in_the_files() {
    let daemon = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {}, template: {spec: \
                  {containers: [{name: a}]}}}}";
    let other = pod("").replace("{name: p}", "{name: p, namespace: other}");
    let read = all(&[&pod(""), &other, daemon, RANGE]);
    let amounts = |pod: &Pod| (pod.requests.get(CPU), pod.requests.get(MEMORY));
    assert_eq!(amounts(&read.pods[0]), (250, 1 << 30));
    assert_eq!(amounts(&read.pods[1]), (0, 0));
    assert_eq!(amounts(&read.daemons[0].pod), (250, 1 << 30));
}

#[test]
fn a_pod_has_the_priority_of_its_class() {
    let class = |name: &str, value: i32, more: &str| {
        format!(
            "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {name}}}, value: {value}{more}}}"
        )
    };
    let high = class("high", 1000, "");
    for (fields, extra, expected) in [
        ("", None, 0),
        ("priorityClassName: high", None, 1000),
        ("priorityClassName: high, priority: 7", None, 7),
        ("priorityClassName: system-node-critical", None, 2_000_001_000),
        ("", Some(class("usual", -5, ", globalDefault: true")), -5),
    ] {
        let read = all(&[&pod(fields), &high, extra.as_deref().unwrap_or(&high)]);
        assert_eq!((read.pods[0].priority, read.notes), (expected, Vec::new()), "{fields}");
    }
    let notes = all(&[&pod("priorityClassName: absent")]).notes;
    assert_eq!(notes, ["no file holds PriorityClass absent: its pods are planned with priority 0"]);
}

#[test]
fn a_claim_of_the_files_says_where_its_pod_can_be() {
    let mounting = pod("volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]");
    let claim = |spec: &str| {
        format!("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {{{spec}}}}}")
    };
    let volume = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {csi: {driver: csi.hetzner.cloud, \
                  volumeHandle: '7'}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: \
                  [{key: csi.hetzner.cloud/location, operator: In, values: [fsn1]}]}]}}}}";
    let lines = |read: &Workloads| -> Vec<String> {
        assert_eq!((&read.pods[0].volume_problems, &read.notes), (&Vec::new(), &Vec::new()));
        read.pods[0].volume_terms.iter().flatten().map(ToString::to_string).collect()
    };
    let made = all(&[&mounting, &claim("storageClassName: ssd"), CLASS]);
    assert_eq!(lines(&made), ["scarpenter.sparecores.com/vendor In [aws]"]);
    let there = all(&[volume, &claim("volumeName: disk"), &mounting]);
    assert_eq!(
        lines(&there),
        ["topology.kubernetes.io/region In [fsn1]", "scarpenter.sparecores.com/vendor In [hcloud]"]
    );
    let problems = &all(&[&mounting]).pods[0].volume_problems;
    assert!(problems[0].starts_with("PersistentVolumeClaim default/data does not exist"), "{problems:?}");
}

#[test]
fn a_stateful_set_and_an_ephemeral_volume_bring_their_own_claims() {
    let set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns}, spec: {replicas: 2, selector: {}, \
               serviceName: s, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: ssd}}], template: \
               {spec: {containers: [{name: a}], volumes: [{name: data, emptyDir: {}}]}}}}";
    let read = all(&[set, CLASS]);
    let claims: Vec<_> =
        read.pods.iter().map(|pod| (pod.key.to_string(), pod.volume_claims.clone())).collect();
    let own = |number: u8| (format!("ns/db-{number}"), vec![format!("data-db-{number}")]);
    assert_eq!(claims, [own(0), own(1)]);
    assert!(read.pods.iter().all(|pod| pod.volume_problems.is_empty() && pod.volume_terms.len() == 1));
    assert_ne!(read.pods[0].attachments, read.pods[1].attachments);
    let template = "volumeClaimTemplate: {spec: {storageClassName: ssd}}";
    let ephemeral = all(&[&pod(&format!("volumes: [{{name: scratch, ephemeral: {{{template}}}}}]")), CLASS]);
    assert_eq!(ephemeral.pods[0].volume_claims, ["p-scratch"]);
    assert_eq!((ephemeral.pods[0].volume_problems.len(), ephemeral.pods[0].volume_terms.len()), (0, 1));
}

#[test]
fn namespaces_have_the_labels_of_the_files_and_their_own_name() {
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {team: x}}}";
    let read = all(&[namespace, &pod("")]);
    let own = |name: &str| ("kubernetes.io/metadata.name".to_owned(), name.to_owned());
    assert_eq!(read.namespaces["a"], [own("a"), ("team".to_owned(), "x".to_owned())].into());
    assert_eq!(read.namespaces["default"], [own("default")].into());
}
