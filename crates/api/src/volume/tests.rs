use super::*;

fn claim(text: &str) -> Claim {
    Claim::parse(&serde_saphyr::from_str(text).unwrap())
}

fn volume(spec: &str) -> Volume {
    Volume::parse(&serde_saphyr::from_str(&format!("{{metadata: {{name: v}}, spec: {{{spec}}}}}")).unwrap())
}

fn class(text: &str) -> Class {
    Class::parse(&serde_saphyr::from_str(text).unwrap())
}

fn words(places: &Places) -> Vec<String> {
    let and = |lines: &Vec<Requirement>| lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    places.iter().map(and).collect()
}

#[test]
fn every_field_of_a_claim_is_read() {
    let all = claim(
        "{metadata: {name: c, namespace: own, deletionTimestamp: '2026-01-01T00:00:00Z', annotations: \
         {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v, storageClassName: s, accessModes: [ReadWriteOnce], \
         volumeMode: Block, resources: {requests: {storage: 1Gi}}, selector: {matchLabels: {a: b}}}, status: {phase: Lost}}",
    );
    let expected = Claim {
        key: PodKey::new("own", "c"),
        deleting: true,
        lost: true,
        volume: Some("v".to_owned()),
        bound: true,
        class: Some("s".to_owned()),
        wants: Shape { size: 1 << 30, modes: vec!["ReadWriteOnce".to_owned()], block: true },
        selector: Some(vec![Requirement::new("a", Operator::In, &["b"])]),
    };
    assert_eq!(all, expected);
    let bare = claim("{metadata: {name: c}, spec: {volumeName: '', storageClassName: ''}}");
    let expected = Claim { key: PodKey::new("default", "c"), class: Some(String::new()), ..Claim::default() };
    assert_eq!(bare, expected);
    let old = "{metadata: {name: c, annotations: {volume.beta.kubernetes.io/storage-class: old}}}";
    assert_eq!(claim(old).class.as_deref(), Some("old"));
}

#[test]
fn every_field_of_a_volume_is_read() {
    let all: PersistentVolume = serde_saphyr::from_str(
        "{metadata: {name: v, labels: {a: b}, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {csi: {driver: d, \
         volumeHandle: h}, capacity: {storage: 2Gi}, accessModes: [ReadOnlyMany], volumeMode: Block, storageClassName: s, \
         claimRef: {namespace: ns, name: c}}, status: {phase: Failed}}",
    )
    .unwrap();
    let expected = Volume {
        name: "v".to_owned(),
        deleting: true,
        driver: "d".to_owned(),
        handle: "h".to_owned(),
        class: "s".to_owned(),
        claim: Some(PodKey::new("ns", "c")),
        offers: Shape { size: 2 << 30, modes: vec!["ReadOnlyMany".to_owned()], block: true },
        labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        ..Volume::default()
    };
    assert_eq!(Volume::parse(&all), expected);
    assert!(volume("nfs: {path: /, server: s}").available);
}

#[test]
fn a_volume_of_an_in_tree_plugin_is_its_drivers() {
    for (spec, driver, handle) in [
        ("awsElasticBlockStore: {volumeID: d}", "ebs.csi.aws.com", "d"),
        ("azureDisk: {diskName: x, diskURI: d}", "disk.csi.azure.com", "d"),
        ("gcePersistentDisk: {pdName: d}", "pd.csi.storage.gke.io", "d"),
        ("cinder: {volumeID: d}", "cinder.csi.openstack.org", "d"),
        ("nfs: {path: /, server: s}", "", ""),
    ] {
        let read = volume(spec);
        assert_eq!((read.driver.as_str(), read.handle.as_str()), (driver, handle), "{spec}");
    }
}

#[test]
fn terms_that_no_node_matches_are_no_alternatives() {
    let affinity = |terms: &str| format!("nodeAffinity: {{required: {{nodeSelectorTerms: [{terms}]}}}}");
    let rack = "{matchExpressions: [{key: rack, operator: In, values: [r]}]}";
    let by_field = "{matchFields: [{key: metadata.name, operator: In, values: [n]}], matchExpressions: [{key: a, operator: Exists}]}";
    let malformed = "{matchExpressions: [{key: a, operator: Within, values: [b]}]}";
    for (terms, places, unreachable) in [
        (format!("{rack}, {{}}, {by_field}, {malformed}"), vec!["rack In [r]"], false),
        (format!("{{}}, {by_field}"), vec![], true),
        (String::new(), vec![], true),
    ] {
        let read = volume(&affinity(&terms));
        assert_eq!(
            (words(&read.places), read.unreachable),
            (places.iter().map(ToString::to_string).collect(), unreachable),
            "{terms}"
        );
    }
}

#[test]
fn a_local_volume_with_another_place_keeps_that_one() {
    let lines = "{key: kubernetes.io/hostname, operator: In, values: [n]}, {key: topology.kubernetes.io/zone, operator: In, values: [z]}";
    let affinity = |lines: &str| {
        format!(
            "local: {{path: /x}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{lines}]}}]}}}}"
        )
    };
    let read = volume(&affinity(lines));
    assert_eq!(words(&read.places_for_pod()), ["topology.kubernetes.io/zone In [z]"]);
    assert_eq!(read.places[0].len(), 2);
    let only = volume(&affinity("{key: kubernetes.io/hostname, operator: In, values: [n]}"));
    assert_eq!(only.places_for_pod(), Places::new());
}

#[test]
fn every_field_of_a_class_is_read() {
    let all = class(
        "{metadata: {name: s, creationTimestamp: '1970-01-01T00:00:07Z', annotations: \
         {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: kubernetes.io/gce-pd, volumeBindingMode: \
         WaitForFirstConsumer, allowedTopologies: [{matchLabelExpressions: [{key: topology.gke.io/zone, values: [a, b]}]}]}",
    );
    assert_eq!((all.name.as_str(), all.driver.as_str()), ("s", "pd.csi.storage.gke.io"));
    assert_eq!((all.waits_for_pod, all.default_since), (true, Some(7)));
    assert_eq!(
        words(&all.places),
        ["topology.kubernetes.io/zone In [a, b]; scarpenter.sparecores.com/vendor In [gcp]"]
    );
    let other = class(
        "{metadata: {name: s}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: Immediate}",
    );
    assert_eq!(other, Class { name: "s".to_owned(), ..Class::default() });
}

#[test]
fn an_ephemeral_volume_has_a_claim_of_its_own() {
    let pod: Pod = serde_saphyr::from_str(
        "{metadata: {name: p, namespace: ns}, spec: {containers: [], volumes: [{name: v, ephemeral: {volumeClaimTemplate: \
         {spec: {storageClassName: s}}}}, {name: w, ephemeral: {}}, {name: x, emptyDir: {}}]}}",
    )
    .unwrap();
    let claims = Claim::of_ephemeral_volumes(&pod);
    let expected = Claim { key: PodKey::new("ns", "p-v"), class: Some("s".to_owned()), ..Claim::default() };
    assert_eq!(claims, [expected]);
}

#[test]
fn a_node_attaches_as_many_volumes_as_its_drivers_say() {
    let node = serde_saphyr::from_str(
        "{metadata: {name: n}, spec: {drivers: [{name: a, nodeID: x, allocatable: {count: 3}}, {name: b, nodeID: x, \
         allocatable: {}}, {name: c, nodeID: x}, {name: d, nodeID: x, allocatable: {count: -1}}]}}",
    )
    .unwrap();
    assert_eq!(attach_limits(&node), BTreeMap::from([("a".to_owned(), 3)]));
}
