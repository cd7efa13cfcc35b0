//! Files in `deploy/` that are generated from the types, or read through them.
//!
//! To accept a change of the definitions: `UPDATE_GOLDEN=1 cargo test -p scarpenter-api --test golden`, then read the diff.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use scarpenter_api::nodepool::{ConsolidationPolicy, DisruptionReason};
use scarpenter_api::{NodePool, ScarpenterNodeClass};
use scarpenter_core::pod::TaintEffect;
use scarpenter_core::resources::{CPU, MICRO_USD_PER_HOUR, NODES};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

#[test]
fn the_definitions_in_deploy_are_those_of_the_types() {
    for (name, text) in scarpenter_api::crds::yaml() {
        let path = deploy().join("crds").join(format!("{name}.yaml"));
        let text =
            format!("# Generated from the Rust types (`scarpenter crds`); not edited by hand.\n{text}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == text, "{} is stale; UPDATE_GOLDEN=1 writes it anew", path.display());
    }
}

#[test]
fn what_is_printed_reads_back_as_the_four_definitions() {
    let stream = scarpenter_api::crds::stream();
    let read: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&stream).unwrap();
    assert_eq!(read, scarpenter_api::crds::all());
    assert_eq!(read.len(), 4);
}

#[test]
fn the_example_is_one_class_of_eight_vendors_and_two_pools() {
    let text = std::fs::read_to_string(deploy().join("examples/default.yaml")).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let [class, default, arm64] = documents.as_slice() else { panic!("{} documents", documents.len()) };

    let class: ScarpenterNodeClass = serde_json::from_value(class.clone()).unwrap();
    assert_eq!((class.problems(), class.vendor_problems().len()), (Vec::new(), 0));
    assert_eq!(class.to_class().vendors.len(), 8);

    for (document, name, arch) in [(default, "default", "amd64"), (arm64, "default-arm64", "arm64")] {
        let pool: NodePool = serde_json::from_value(document.clone()).unwrap();
        let core = pool.to_pool().unwrap();
        assert!(pool.is_ours());
        assert_eq!((core.name.as_str(), core.class.as_str()), (name, "default"));
        let line = core.requirements.iter().find(|line| line.key == "kubernetes.io/arch").unwrap();
        assert_eq!(line.values, [arch]);
        assert_eq!((core.limits.get(CPU), core.limits.get(NODES)), (1_000_000, 100));
        assert_eq!(core.limits.get(MICRO_USD_PER_HOUR), 10_000_000);
        assert_eq!(pool.spec.disruption.consolidation_policy, ConsolidationPolicy::WhenEmpty);
        assert_eq!(pool.consolidate_after(), Some(std::time::Duration::from_secs(5)));
        assert_eq!(
            pool.allowed_disruptions(DisruptionReason::Empty, 7, "2026-01-01T00:00:00Z".parse().unwrap()),
            7
        );
        let tainted = core
            .taints
            .iter()
            .any(|taint| taint.key == "kubernetes.io/arch" && taint.effect == TaintEffect::NoSchedule);
        assert_eq!(tainted, arch == "arm64");
    }
}
