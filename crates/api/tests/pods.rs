//! What pods ask for besides amounts, and where they are in their lives.

#![allow(clippy::unwrap_used)]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use scarpenter_api::pod::{self, EvictionGroup, Protection};
use scarpenter_core::pod::{Attachment, HostPort, TaintEffect};
use scarpenter_core::requirements::{Operator, Requirement};

fn pod(text: &str) -> Pod {
    serde_saphyr::from_str(text).unwrap()
}

fn spec(fields: &str) -> scarpenter_core::pod::Pod {
    pod::parse(&pod(&format!("{{metadata: {{name: p}}, spec: {{containers: [], {fields}}}}}")))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn names_labels_and_age_are_read() {
    let parsed = pod::parse(&pod(
        "metadata: {name: p, namespace: n, uid: u, labels: {a: b}, creationTimestamp: '1970-01-01T00:01:40Z'}",
    ));
    assert_eq!((parsed.key.to_string().as_str(), parsed.uid.as_str(), parsed.created), ("n/p", "u", 100));
    assert_eq!(parsed.labels["a"], "b");
    assert_eq!(spec("").key.to_string(), "default/p");
}

#[test]
fn old_label_keys_are_read_as_the_new_ones() {
    let parsed = spec(
        "nodeSelector: {beta.kubernetes.io/instance-type: ccx33, scarpenter.sparecores.com/vendor: hcloud}, \
         affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [\
         {matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: NotIn, values: [a]}]}]}}}",
    );
    assert_eq!(parsed.node_selector["node.kubernetes.io/instance-type"], "ccx33");
    assert_eq!(
        parsed.required_terms,
        [[Requirement::new("topology.kubernetes.io/zone", Operator::NotIn, &["a"])]]
    );
    assert!(parsed.invalid.is_empty() && parsed.undecided.is_empty());
}

#[test]
fn alternatives_and_wishes_are_kept_apart() {
    let parsed = spec(
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [\
         {matchExpressions: [{key: a, operator: Exists}]}, {}, {matchExpressions: [{key: b, operator: Gt, values: ['4']}]}]}, \
         preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, preference: {matchExpressions: \
         [{key: c, operator: DoesNotExist}]}}, {weight: 9, preference: {matchFields: [{key: metadata.name, operator: In, values: [x]}]}}]}}",
    );
    assert_eq!(parsed.required_terms.len(), 2);
    assert_eq!(parsed.preferred_terms.len(), 1);
    assert_eq!(parsed.preferred_terms[0].weight, 7);
    assert!(parsed.invalid.is_empty(), "{:?}", parsed.invalid);
}

#[test]
fn what_is_malformed_is_named() {
    let required = |line: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{line}]}}}}}}"
        )
    };
    for (fields, words) in [
        ("nodeSelector: {kubernetes.io/hostname: n1}".to_owned(), "kubernetes.io/hostname"),
        ("nodeSelector: {karpenter.sh/registered: 'true'}".to_owned(), "restricted domain"),
        ("nodeSelector: {a: 'not ok'}".to_owned(), "not a label value"),
        ("nodeSelector: {kubernetes.io/arch: arm64, beta.kubernetes.io/arch: amd64}".to_owned(), "both"),
        (required("{matchExpressions: [{key: a, operator: Within, values: [b]}]}"), "Within"),
        (required("{matchExpressions: [{key: a, operator: Gte, values: ['1']}]}"), "Gte"),
        (required("{matchExpressions: [{key: a, operator: Gt, values: [many]}]}"), "one integer"),
        (required("{matchExpressions: [{key: a, operator: In}]}"), "needs a value"),
        (required("{matchFields: [{key: metadata.name, operator: In, values: [n]}]}"), "matchFields"),
        (required("{}"), "no term"),
        ("tolerations: [{operator: Equal, value: x}]".to_owned(), "Exists"),
        ("tolerations: [{key: a, operator: Exists, effect: Never}]".to_owned(), "not an effect"),
        ("tolerations: [{key: a, operator: Gt, value: '3'}]".to_owned(), "Gt"),
    ] {
        let invalid = spec(&fields).invalid.join("; ");
        assert!(invalid.contains(words), "{fields}: {invalid}");
    }
}

#[test]
fn the_pool_may_be_named() {
    assert!(
        spec("nodeSelector: {karpenter.sh/nodepool: default, karpenter.sh/capacity-type: spot}")
            .invalid
            .is_empty()
    );
}

#[test]
fn what_is_not_decided_is_named_and_nothing_else_is() {
    for (fields, words) in [
        ("volumes: [{name: v, vsphereVolume: {volumePath: x}}]", "vsphereVolume"),
        ("volumes: [{name: v, rbd: {image: x, monitors: []}}]", "rbd"),
        ("resourceClaims: [{name: r}]", "resourceClaim"),
    ] {
        let undecided = spec(fields).undecided;
        assert!(undecided.len() == 1 && undecided[0].contains(words), "{fields}: {undecided:?}");
    }
    let term = "requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: t, labelSelector: {}}]";
    for fields in [
        "topologySpreadConstraints: [{maxSkew: 1, topologyKey: t, whenUnsatisfiable: DoNotSchedule}]",
        &format!("affinity: {{podAffinity: {{{term}}}, podAntiAffinity: {{{term}}}}}"),
        "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}, {name: w, ephemeral: {}}, {name: x, emptyDir: {}}]",
        "volumes: [{name: v, awsElasticBlockStore: {volumeID: x}}, {name: i, iscsi: {iqn: a, lun: 0, targetPortal: b}}]",
        "hostNetwork: true, initContainers: [{name: a, ports: [{containerPort: 1, hostPort: 2}]}]",
        "resourceClaims: []",
    ] {
        let parsed = spec(fields);
        assert_eq!((parsed.undecided, parsed.invalid), (Vec::new(), Vec::new()), "{fields}");
    }
}

#[test]
fn priority_is_what_the_api_server_wrote() {
    assert_eq!((spec("priority: 7, priorityClassName: x").priority, spec("").priority), (7, 0));
}

#[test]
fn ports_of_the_node_are_those_of_containers_that_stay() {
    let port = |port: u16, protocol: &str, ip: &str| HostPort {
        port,
        protocol: protocol.to_owned(),
        ip: ip.to_owned(),
    };
    let main = |ports: &str| {
        format!("{{metadata: {{name: p}}, spec: {{containers: [{{name: a, ports: [{ports}]}}]}}}}")
    };
    let init = |fields: &str| {
        format!(
            "{{metadata: {{name: p}}, spec: {{containers: [], initContainers: [{{name: a, {fields}}}]}}}}"
        )
    };
    let ports = "ports: [{containerPort: 1, hostPort: 2}]";
    for (text, expected) in [
        (main("{containerPort: 80}"), vec![]),
        (main("{containerPort: 80, hostPort: 8080}"), vec![port(8080, "TCP", "")]),
        (main("{containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}"), vec![port(53, "UDP", "10.0.0.1")]),
        (
            main("{containerPort: 1, hostPort: 1, hostIP: 0.0.0.0}, {containerPort: 2, hostPort: 2, hostIP: '::'}"),
            vec![port(1, "TCP", ""), port(2, "TCP", "")],
        ),
        (main("{containerPort: 1, hostPort: 1}, {containerPort: 2, hostPort: 1}"), vec![port(1, "TCP", "")]),
        (init(ports), vec![]),
        (init(&format!("restartPolicy: Always, {ports}")), vec![port(2, "TCP", "")]),
        (
            "{metadata: {name: p}, spec: {hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80}]}], \
             initContainers: [{name: i, ports: [{containerPort: 81}]}]}}"
                .to_owned(),
            vec![port(80, "TCP", "")],
        ),
    ] {
        assert_eq!(pod::parse(&pod(&text)).host_ports, expected, "{text}");
    }
    let invalid = pod::parse(&pod(&main("{containerPort: 1, hostPort: 70000}"))).invalid;
    assert_eq!(invalid, ["hostPort: 70000 is not a port"]);
}

#[test]
fn claims_are_named_and_those_of_ephemeral_volumes_after_the_pod() {
    let parsed = spec(
        "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}, {name: w, ephemeral: {}}, {name: x, \
         persistentVolumeClaim: {claimName: c}}, {name: y, emptyDir: {}}]",
    );
    assert_eq!(parsed.volume_claims, ["c", "p-w"]);
    assert!(parsed.attachments.is_empty() && parsed.volume_terms.is_empty());
}

#[test]
fn a_disk_in_the_pod_itself_is_attached_by_its_vendors_driver() {
    for (fields, driver, vendor) in [
        ("awsElasticBlockStore: {volumeID: d}", "ebs.csi.aws.com", "aws"),
        ("azureDisk: {diskName: x, diskURI: d}", "disk.csi.azure.com", "azure"),
        ("gcePersistentDisk: {pdName: d}", "pd.csi.storage.gke.io", "gcp"),
        ("cinder: {volumeID: d}", "cinder.csi.openstack.org", "ovh"),
    ] {
        let parsed = spec(&format!("volumes: [{{name: v, {fields}}}]"));
        let attachment = Attachment { driver: driver.to_owned(), volume: "d".to_owned() };
        assert_eq!(parsed.attachments, [attachment], "{fields}");
        let line = Requirement::new("scarpenter.sparecores.com/vendor", Operator::In, &[vendor]);
        assert_eq!(parsed.volume_terms, [[line]], "{fields}");
    }
}

#[test]
fn tolerations_cover_what_they_say() {
    let parsed = spec("tolerations: [{operator: Exists}, {key: a, value: v, effect: NoSchedule}, {key: b}]");
    let [all, one, empty] = parsed.tolerations.as_slice() else { panic!("{:?}", parsed.tolerations) };
    assert_eq!((&all.key, &all.value, all.effect), (&None, &None, None));
    assert_eq!((one.value.as_deref(), one.effect), (Some("v"), Some(TaintEffect::NoSchedule)));
    assert_eq!(empty.value.as_deref(), Some(""));
}

#[test]
fn only_a_pod_that_the_scheduler_gave_up_on_is_provisionable() {
    let unschedulable = "conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]";
    let owner = |version: &str, kind: &str| {
        format!(
            "{{metadata: {{ownerReferences: [{{apiVersion: {version}, kind: {kind}, name: o, uid: u}}]}}, status: {{{unschedulable}}}}}"
        )
    };
    assert!(pod::is_provisionable(&pod(&format!("status: {{{unschedulable}}}"))));
    assert!(pod::is_provisionable(&pod(&owner("apps/v1", "ReplicaSet"))));
    for text in [
        "metadata: {name: p}".to_owned(),
        "status: {conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}".to_owned(),
        format!("{{spec: {{containers: [], nodeName: n}}, status: {{{unschedulable}}}}}"),
        format!("status: {{nominatedNodeName: n, {unschedulable}}}"),
        owner("apps/v1", "DaemonSet"),
        owner("v1", "Node"),
    ] {
        assert!(!pod::is_provisionable(&pod(&text)), "{text}");
    }
}

#[test]
fn a_pod_that_ended_or_leaves_needs_no_new_place() {
    let owned = |kind: &str| {
        format!(
            "metadata: {{deletionTimestamp: '2026-01-01T00:00:00Z', ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: o, uid: u}}]}}"
        )
    };
    assert!(pod::is_reschedulable(&pod("status: {phase: Running}")));
    assert!(pod::is_reschedulable(&pod(&owned("StatefulSet"))));
    assert!(!pod::is_reschedulable(&pod(&owned("ReplicaSet"))));
    assert!(!pod::is_reschedulable(&pod("status: {phase: Succeeded}")));
    assert!(!pod::is_reschedulable(&pod("metadata: {annotations: {kubernetes.io/config.mirror: x}}")));
}

#[test]
fn draining_waits_for_live_pods_but_not_for_ever() {
    let now = at(1_000);
    assert!(pod::holds_drain(&pod("status: {phase: Running}"), now));
    assert!(!pod::holds_drain(&pod("status: {phase: Failed}"), now));
    assert!(!pod::holds_drain(&pod("spec: {containers: [], tolerations: [{operator: Exists}]}"), now));
    let leaving = pod("metadata: {deletionTimestamp: '1970-01-01T00:15:40Z'}");
    assert!(pod::holds_drain(&leaving, at(1_000)));
    assert!(!pod::holds_drain(&leaving, at(1_001)));
}

#[test]
fn a_finished_pod_with_a_finalizer_holds_the_machine() {
    assert!(pod::holds_destroy(&pod("{metadata: {finalizers: [x/y]}, status: {phase: Succeeded}}")));
    assert!(!pod::holds_destroy(&pod("{metadata: {finalizers: [x/y]}, status: {phase: Running}}")));
    assert!(!pod::holds_destroy(&pod("status: {phase: Succeeded}")));
}

#[test]
fn only_matching_tolerations_bear_the_disrupted_taint() {
    let with = |toleration: &str| pod(&format!("spec: {{containers: [], tolerations: [{toleration}]}}"));
    assert!(pod::tolerates_disrupted(&with("{key: karpenter.sh/disrupted, operator: Exists}")));
    assert!(pod::tolerates_disrupted(&with("{key: karpenter.sh/disrupted, effect: NoSchedule}")));
    assert!(!pod::tolerates_disrupted(&with("{key: karpenter.sh/disrupted, effect: NoExecute}")));
    assert!(!pod::tolerates_disrupted(&with("{key: other, operator: Exists}")));
}

#[test]
fn groups_are_evicted_from_the_least_to_the_most_critical() {
    let daemon = "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: o, uid: u}]}";
    let critical = "spec: {containers: [], priorityClassName: system-node-critical}";
    let groups = [
        pod::eviction_group(&pod("status: {}")),
        pod::eviction_group(&pod(daemon)),
        pod::eviction_group(&pod(critical)),
        pod::eviction_group(&pod(&format!("{{{daemon}, {critical}}}"))),
    ];
    assert!(groups.is_sorted());
    assert_eq!(groups[3], EvictionGroup::CriticalDaemon);
}

#[test]
fn a_pod_that_costs_nothing_keeps_no_machine() {
    let cost = |cost: &str, priority: i32| {
        let text = format!(
            "{{metadata: {{annotations: {{controller.kubernetes.io/pod-deletion-cost: '{cost}'}}}}, spec: {{containers: [], priority: {priority}}}}}"
        );
        pod::has_eviction_cost(&pod(&text))
    };
    assert!(cost("0", 0) && cost("x", 0) && cost("-134217727", 0));
    assert!(!cost("-134217728", 0));
    assert!(!cost("0", -33_554_432));
}

#[test]
fn protection_is_for_ever_for_a_time_or_not_at_all() {
    let with = |value: &str, more: &str| {
        pod(&format!(
            "{{metadata: {{annotations: {{karpenter.sh/do-not-disrupt: '{value}'}}}}, status: {{phase: Running{more}}}}}"
        ))
    };
    let started = ", startTime: '1970-01-01T00:01:00Z'";
    assert_eq!(pod::protection(&with("true", ""), at(100)), Protection::Always);
    assert_eq!(pod::protection(&with("2m", started), at(100)), Protection::Until(at(180)));
    assert_eq!(pod::protection(&with("2m", started), at(180)), Protection::None);
    assert!(pod::protection(&with("2m", ""), at(10_000)).is_active());
    for text in ["false", "", "-1m", "0s", "soon"] {
        assert_eq!(pod::protection(&with(text, started), at(100)), Protection::Unreadable(text.to_owned()));
    }
    let ended = "{metadata: {annotations: {karpenter.sh/do-not-disrupt: 'true'}}, status: {phase: Failed}}";
    assert_eq!(pod::protection(&pod(ended), at(100)), Protection::None);
    assert_eq!(pod::protection(&pod("status: {}"), at(100)), Protection::None);
}
