//! Claims, volumes and storage classes: where a pod can be because of its volumes, and what its node attaches for it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::ResourceExt;
use scarpenter_api::volume::{self, Claim, Class, Volume};
use scarpenter_core::pod::{Attachment, Pod, PodKey};
use scarpenter_core::requirements::{Requirement, Requirements};

mod reach;

use reach::Reach;

/// Everything known of volumes, by apply and remove.
#[derive(Debug, Default)]
pub struct Volumes {
    claims: BTreeMap<PodKey, Claim>,
    volumes: BTreeMap<String, Volume>,
    classes: BTreeMap<String, Class>,
    /// By node, what it can attach.
    limits: BTreeMap<String, BTreeMap<String, u32>>,
}

impl Volumes {
    /// Takes in a PersistentVolumeClaim.
    pub fn apply_claim(&mut self, object: &PersistentVolumeClaim) {
        self.put_claim(Claim::parse(object));
    }

    /// Takes in a claim that is no object yet, such as that of an ephemeral volume of a file.
    pub fn put_claim(&mut self, claim: Claim) {
        self.claims.insert(claim.key.clone(), claim);
    }

    /// Takes in a PersistentVolume.
    pub fn apply_volume(&mut self, object: &PersistentVolume) {
        self.volumes.insert(object.name_any(), Volume::parse(object));
    }

    /// Takes in a StorageClass.
    pub fn apply_class(&mut self, object: &StorageClass) {
        self.classes.insert(object.name_any(), Class::parse(object));
    }

    /// Takes in a CSINode.
    pub fn apply_csi_node(&mut self, object: &CSINode) {
        self.limits.insert(object.name_any(), volume::attach_limits(object));
    }

    /// Forgets a PersistentVolumeClaim.
    pub fn remove_claim(&mut self, key: &PodKey) {
        self.claims.remove(key);
    }

    /// Forgets a PersistentVolume.
    pub fn remove_volume(&mut self, name: &str) {
        self.volumes.remove(name);
    }

    /// Forgets a StorageClass.
    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// Forgets a CSINode.
    pub fn remove_csi_node(&mut self, name: &str) {
        self.limits.remove(name);
    }

    /// Forgets PersistentVolumeClaims that a fresh and complete list does not hold.
    pub fn keep_claims(&mut self, listed: &BTreeSet<PodKey>) {
        self.claims.retain(|key, _| listed.contains(key));
    }

    /// Forgets PersistentVolumes that a fresh and complete list does not hold.
    pub fn keep_volumes(&mut self, listed: &BTreeSet<String>) {
        self.volumes.retain(|name, _| listed.contains(name));
    }

    /// Forgets StorageClasses that a fresh and complete list does not hold.
    pub fn keep_classes(&mut self, listed: &BTreeSet<String>) {
        self.classes.retain(|name, _| listed.contains(name));
    }

    /// Forgets CSINodes that a fresh and complete list does not hold.
    pub fn keep_csi_nodes(&mut self, listed: &BTreeSet<String>) {
        self.limits.retain(|name, _| listed.contains(name));
    }

    /// By CSI driver, how many volumes a node can attach.
    #[must_use]
    pub fn limits(&self, node: &str) -> BTreeMap<String, u32> {
        self.limits.get(node).cloned().unwrap_or_default()
    }

    /// Says of a pod that wants a place what its claims mean: where it can be, what is attached for it, and what is wrong.
    pub fn resolve(&self, pod: &mut Pod) {
        let names = std::mem::take(&mut pod.volume_claims);
        for name in &names {
            let key = PodKey::new(&pod.key.namespace, name);
            match self.reach(&key) {
                Ok(reach) => narrow(pod, &key, reach),
                Err(words) => pod.volume_problems.push(words),
            }
        }
        pod.volume_claims = names;
        pod.attachments.sort();
        pod.attachments.dedup();
    }

    /// What is attached for a pod; claims that lead nowhere attach nothing.
    #[must_use]
    pub fn attachments(&self, pod: &Pod) -> Vec<Attachment> {
        let of_claims = pod.volume_claims.iter().filter_map(|name| {
            let claim = self.claims.get(&PodKey::new(&pod.key.namespace, name))?;
            self.attachment(claim)
        });
        pod.attachments.iter().cloned().chain(of_claims).collect()
    }
}

fn narrow(pod: &mut Pod, key: &PodKey, reach: Reach) {
    pod.attachments.extend(reach.attachment);
    match reach::both(&pod.volume_terms, &reach.places) {
        Some(places) => pod.volume_terms = places,
        None => pod.volume_problems.push(format!(
            "PersistentVolumeClaim {key} can be reached only where {}, which the pod's other volumes exclude: no machine \
             reaches all of them",
            reach::words(&reach.places)
        )),
    }
}

/// Whether a machine can be all of this at once.
fn is_possible(lines: &[Requirement]) -> bool {
    Requirements::from_list(lines).is_ok_and(|all| all.conflict().is_none())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
