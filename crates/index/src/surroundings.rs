//! What pods are planned by besides nodes and pools: volumes, LimitRanges and namespaces.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::ResourceExt;
use scarpenter_api::limit_range::Defaults;
use scarpenter_core::pod::PodKey;
use scarpenter_core::topology::Namespaces;

use crate::View;

impl View {
    /// Takes in a PersistentVolumeClaim.
    pub fn apply_volume_claim(&mut self, object: &PersistentVolumeClaim) {
        self.volumes.apply_claim(object);
    }

    /// Forgets a PersistentVolumeClaim.
    pub fn remove_volume_claim(&mut self, object: &PersistentVolumeClaim) {
        self.volumes.remove_claim(&key(object));
    }

    /// Forgets PersistentVolumeClaims that a fresh and complete list does not hold.
    pub fn keep_volume_claims(&mut self, listed: &BTreeSet<PodKey>) {
        self.volumes.keep_claims(listed);
    }

    /// Takes in a PersistentVolume.
    pub fn apply_volume(&mut self, object: &PersistentVolume) {
        self.volumes.apply_volume(object);
    }

    /// Forgets a PersistentVolume.
    pub fn remove_volume(&mut self, name: &str) {
        self.volumes.remove_volume(name);
    }

    /// Forgets PersistentVolumes that a fresh and complete list does not hold.
    pub fn keep_volumes(&mut self, listed: &BTreeSet<String>) {
        self.volumes.keep_volumes(listed);
    }

    /// Takes in a StorageClass.
    pub fn apply_storage_class(&mut self, object: &StorageClass) {
        self.volumes.apply_class(object);
    }

    /// Forgets a StorageClass.
    pub fn remove_storage_class(&mut self, name: &str) {
        self.volumes.remove_class(name);
    }

    /// Forgets StorageClasses that a fresh and complete list does not hold.
    pub fn keep_storage_classes(&mut self, listed: &BTreeSet<String>) {
        self.volumes.keep_classes(listed);
    }

    /// Takes in a CSINode.
    pub fn apply_csi_node(&mut self, object: &CSINode) {
        self.volumes.apply_csi_node(object);
    }

    /// Forgets a CSINode.
    pub fn remove_csi_node(&mut self, name: &str) {
        self.volumes.remove_csi_node(name);
    }

    /// Forgets CSINodes that a fresh and complete list does not hold.
    pub fn keep_csi_nodes(&mut self, listed: &BTreeSet<String>) {
        self.volumes.keep_csi_nodes(listed);
    }

    /// Takes in a LimitRange.
    pub fn apply_limit_range(&mut self, object: &LimitRange) {
        self.limit_ranges.insert(key(object), Defaults::parse(object));
    }

    /// Forgets a LimitRange.
    pub fn remove_limit_range(&mut self, object: &LimitRange) {
        self.limit_ranges.remove(&key(object));
    }

    /// Forgets LimitRanges that a fresh and complete list does not hold.
    pub fn keep_limit_ranges(&mut self, listed: &BTreeSet<PodKey>) {
        self.limit_ranges.retain(|key, _| listed.contains(key));
    }

    /// LimitRanges of a namespace, by name.
    pub(crate) fn limit_ranges(&self, namespace: &str) -> impl Iterator<Item = &Defaults> {
        let from = PodKey::new(namespace, "");
        let own = self.limit_ranges.range(from..).take_while(move |(key, _)| key.namespace == namespace);
        own.map(|(_, defaults)| defaults)
    }

    /// Takes in a namespace.
    pub fn apply_namespace(&mut self, object: &Namespace) {
        self.namespaces.insert(object.name_any(), object.labels().clone());
    }

    /// Forgets a namespace.
    pub fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Forgets namespaces that a fresh and complete list does not hold.
    pub fn keep_namespaces(&mut self, listed: &BTreeSet<String>) {
        self.namespaces.retain(|name, _| listed.contains(name));
    }

    /// Labels of all namespaces.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }
}

fn key<K: kube::Resource>(object: &K) -> PodKey {
    PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any())
}
