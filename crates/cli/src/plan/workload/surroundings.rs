//! What a cluster would add to the pods of a file: defaults, priorities, volumes, labels of namespaces.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, PersistentVolume, PersistentVolumeClaim, Pod as KubePod, PodSpec,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use scarpenter_api::limit_range::Defaults;
use scarpenter_api::pod;
use scarpenter_api::volume::Claim;
use scarpenter_core::pod::{Pod, PodKey};
use scarpenter_core::topology::Namespaces;
use scarpenter_index::Volumes;

use super::super::documents::Object;

/// Label that every namespace has of itself.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

pub(super) const VERSIONS_AND_KINDS: [(&str, &str); 6] = [
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("v1", "LimitRange"),
    ("v1", "Namespace"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
];

/// Everything of the files that makes no pods but says how they are planned.
#[derive(Debug)]
pub(super) struct Surroundings {
    volumes: Volumes,
    ranges: BTreeMap<PodKey, Defaults>,
    pub(super) namespaces: Namespaces,
    priorities: BTreeMap<String, i32>,
    default_priority: Option<i32>,
    /// PriorityClasses that pods name and no file holds.
    lacking: BTreeSet<String>,
}

impl Default for Surroundings {
    /// With the two PriorityClasses that every cluster has.
    fn default() -> Self {
        let system = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
        Self {
            volumes: Volumes::default(),
            ranges: BTreeMap::new(),
            namespaces: Namespaces::new(),
            priorities: system.map(|(name, value)| (name.to_owned(), value)).into(),
            default_priority: None,
            lacking: BTreeSet::new(),
        }
    }
}

impl Surroundings {
    /// Takes in an object of [`VERSIONS_AND_KINDS`].
    pub(super) fn add(&mut self, object: Object, notes: &mut Vec<String>) -> anyhow::Result<()> {
        match object.kind.as_str() {
            "PersistentVolumeClaim" => self.add_claim(&object.parse(notes)?),
            "PersistentVolume" => self.volumes.apply_volume(&object.parse::<PersistentVolume>(notes)?),
            "StorageClass" => self.volumes.apply_class(&object.parse::<StorageClass>(notes)?),
            "LimitRange" => {
                let range = object.parse::<LimitRange>(notes)?;
                let namespace = range.namespace().unwrap_or_else(|| "default".to_owned());
                self.ranges.insert(PodKey::new(&namespace, &range.name_any()), Defaults::parse(&range));
            }
            "Namespace" => {
                let namespace = object.parse::<Namespace>(notes)?;
                self.add_namespace(&namespace.name_any(), namespace.metadata.labels.unwrap_or_default());
            }
            _ => {
                let class = object.parse::<PriorityClass>(notes)?;
                let value = class.value.unwrap_or(0);
                self.priorities.insert(class.name_any(), value);
                if class.global_default == Some(true) {
                    self.default_priority = Some(value);
                }
            }
        }
        Ok(())
    }

    /// A claim that names its volume is bound to it as soon as both are there.
    pub(super) fn add_claim(&mut self, object: &PersistentVolumeClaim) {
        let mut claim = Claim::parse(object);
        claim.bound |= claim.volume.is_some();
        self.volumes.put_claim(claim);
    }

    fn add_namespace(&mut self, name: &str, labels: BTreeMap<String, String>) {
        let own = self.namespaces.entry(name.to_owned()).or_default();
        own.extend(labels);
        own.insert(NAMESPACE_NAME.to_owned(), name.to_owned());
    }

    /// The pod as the planner sees it, once a cluster has taken it in.
    pub(super) fn admit(&mut self, mut object: KubePod) -> Pod {
        let key = pod::key(&object);
        self.add_namespace(&key.namespace, BTreeMap::new());
        if let Some(spec) = &mut object.spec {
            self.ranges_of(&key.namespace).for_each(|range| range.fill(spec));
            spec.priority = spec.priority.or(self.priority(spec));
        }
        for claim in Claim::of_ephemeral_volumes(&object) {
            self.volumes.put_claim(claim);
        }
        let mut out = pod::parse(&object);
        self.volumes.resolve(&mut out);
        out
    }

    pub(super) fn ranges_of(&self, namespace: &str) -> impl Iterator<Item = &Defaults> {
        let from = PodKey::new(namespace, "");
        self.ranges
            .range(from..)
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, range)| range)
    }

    fn priority(&mut self, spec: &PodSpec) -> Option<i32> {
        let Some(name) = spec.priority_class_name.as_ref().filter(|name| !name.is_empty()) else {
            return self.default_priority;
        };
        let known = self.priorities.get(name).copied();
        if known.is_none() {
            self.lacking.insert(name.clone());
        }
        known
    }

    /// What is to be said once all pods were admitted.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.lacking
            .iter()
            .map(|name| format!("no file holds PriorityClass {name}: its pods are planned with priority 0"))
    }
}
