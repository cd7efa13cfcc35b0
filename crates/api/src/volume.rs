//! Claims, volumes, storage classes and what nodes can attach, as small records.
//!
//! Places are already in words of the labels that machines have, whatever key a CSI driver uses.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeSpec, Pod,
};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scarpenter_core::label;
use scarpenter_core::pod::PodKey;
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::resources;
use scarpenter_core::topology::LabelSelector;

use crate::{pod, selector};

pub(crate) mod driver;

/// Alternatives, each a conjunction. An empty list is anywhere.
pub type Places = Vec<Vec<Requirement>>;

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const STORAGE: &str = "storage";

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Namespace and name.
    pub key: PodKey,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// Its volume is gone.
    pub lost: bool,
    /// Name of its PersistentVolume.
    pub volume: Option<String>,
    /// Whether it is bound to that volume for good, which the annotation `pv.kubernetes.io/bind-completed` says.
    pub bound: bool,
    /// Its StorageClass: `None` is the default one, the empty name is none.
    pub class: Option<String>,
    /// What it wants of a volume that is there already.
    pub wants: Shape,
    /// Labels that such a volume must have.
    pub selector: Option<LabelSelector>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Name.
    pub name: String,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// CSI driver that serves it, that of an in-tree plugin included; empty when there is none.
    pub driver: String,
    /// The driver's name of it.
    pub handle: String,
    /// Where it can be reached.
    pub places: Places,
    /// No node can reach it: its node affinity has no term that one could match.
    pub unreachable: bool,
    /// It lies on a machine's own disk (`local`, `hostPath`).
    pub local: bool,
    /// Its StorageClass; empty when it has none.
    pub class: String,
    /// The claim that it is kept for.
    pub claim: Option<PodKey>,
    /// It may be given to a claim: neither released nor failed.
    pub available: bool,
    /// What it offers.
    pub offers: Shape,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// Size and manner of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bytes.
    pub size: i64,
    /// Access modes.
    pub modes: Vec<String>,
    /// A raw device instead of a file system.
    pub block: bool,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Name.
    pub name: String,
    /// CSI driver that makes its volumes, that of an in-tree plugin included; empty when nobody makes any.
    pub driver: String,
    /// Volumes are made, or bound, when a pod needs them, where the pod is.
    pub waits_for_pod: bool,
    /// Where volumes may be made.
    pub places: Places,
    /// Claims that name no class get this one; of several, the youngest.
    pub default_since: Option<i64>,
}

impl Volume {
    /// Reads a PersistentVolume.
    #[must_use]
    pub fn parse(object: &PersistentVolume) -> Self {
        let metadata = &object.metadata;
        let spec = object.spec.clone().unwrap_or_default();
        let (driver, handle) = source(&spec);
        let (places, unreachable) = places(&driver, &spec, metadata.labels.as_ref());
        let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            places,
            unreachable,
            local: spec.local.is_some() || spec.host_path.is_some(),
            class: spec.storage_class_name.clone().unwrap_or_default(),
            claim: spec.claim_ref.as_ref().map(|claim| {
                let [namespace, name] =
                    [&claim.namespace, &claim.name].map(|text| text.as_deref().unwrap_or_default());
                PodKey::new(namespace, name)
            }),
            available: !matches!(phase, Some("Released" | "Failed")),
            offers: Shape {
                size: size(spec.capacity.as_ref()),
                modes: spec.access_modes.unwrap_or_default(),
                block: spec.volume_mode.as_deref() == Some("Block"),
            },
            labels: metadata.labels.clone().unwrap_or_default(),
            driver,
            handle,
        }
    }

    /// Where a pod can be that uses it. On which machine a local volume lies does not count, since the pod starts anew on
    /// another machine (SCH-34).
    #[must_use]
    pub fn places_for_pod(&self) -> Places {
        let mut places = self.places.clone();
        if self.local {
            places.iter_mut().for_each(|lines| lines.retain(|line| line.key != label::HOSTNAME));
        }
        or_anywhere(places)
    }
}

/// Driver and handle of a volume; both empty when no driver attaches it.
fn source(spec: &PersistentVolumeSpec) -> (String, String) {
    if let Some(csi) = &spec.csi {
        return (csi.driver.clone(), csi.volume_handle.clone());
    }
    let aws = spec.aws_elastic_block_store.as_ref().map(|disk| ("kubernetes.io/aws-ebs", &disk.volume_id));
    let azure = || spec.azure_disk.as_ref().map(|disk| ("kubernetes.io/azure-disk", &disk.disk_uri));
    let gce = || spec.gce_persistent_disk.as_ref().map(|disk| ("kubernetes.io/gce-pd", &disk.pd_name));
    let cinder = || spec.cinder.as_ref().map(|disk| ("kubernetes.io/cinder", &disk.volume_id));
    let found = aws.or_else(azure).or_else(gce).or_else(cinder);
    found.map(|(plugin, handle)| (driver::csi_name(plugin).to_owned(), handle.clone())).unwrap_or_default()
}

/// Node affinity and zone labels together, and whether no node can match them.
fn places(
    driver: &str,
    spec: &PersistentVolumeSpec,
    labels: Option<&BTreeMap<String, String>>,
) -> (Places, bool) {
    let affinity = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let terms: Places = match affinity {
        None => vec![Vec::new()],
        Some(required) => required.node_selector_terms.iter().filter_map(term_lines).collect(),
    };
    let unreachable = terms.is_empty();
    let by_label = zone_lines(labels);
    let whole = |mut lines: Vec<Requirement>| {
        lines.extend(by_label.iter().cloned());
        driver::translate(driver, lines)
    };
    (or_anywhere(terms.into_iter().map(whole).collect()), unreachable)
}

/// An alternative that asks for nothing leaves nothing of the others.
fn or_anywhere(places: Places) -> Places {
    if places.iter().any(Vec::is_empty) { Places::new() } else { places }
}

/// A term with nothing in it matches no node, nor does one that names nodes by their fields or is malformed.
fn term_lines(term: &NodeSelectorTerm) -> Option<Vec<Requirement>> {
    let by_field = term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty());
    let lines: Result<Vec<_>, _> = term.match_expressions.iter().flatten().map(pod::parse_line).collect();
    lines.ok().filter(|lines| !lines.is_empty() && !by_field)
}

/// The kube-scheduler compares these labels of a volume with the node's; several values are joined by two underscores.
fn zone_lines(labels: Option<&BTreeMap<String, String>>) -> Vec<Requirement> {
    let is_place = |key: &str| matches!(label::normalize_key(key), label::ZONE | label::REGION);
    let found = labels.into_iter().flatten().filter(|(key, _)| is_place(key));
    let line = |(key, value): (&String, &String)| {
        let values: Vec<&str> = value.split("__").collect();
        Requirement::new(key, Operator::In, &values)
    };
    found.map(line).collect()
}

impl Claim {
    /// Reads a PersistentVolumeClaim.
    #[must_use]
    pub fn parse(object: &PersistentVolumeClaim) -> Self {
        let metadata = &object.metadata;
        let spec = object.spec.clone().unwrap_or_default();
        let phase = object.status.as_ref().and_then(|status| status.phase.as_deref());
        let old_class = annotation(metadata, "volume.beta.kubernetes.io/storage-class").map(str::to_owned);
        Self {
            key: PodKey::new(
                metadata.namespace.as_deref().unwrap_or("default"),
                metadata.name.as_deref().unwrap_or_default(),
            ),
            deleting: metadata.deletion_timestamp.is_some(),
            lost: phase == Some("Lost"),
            volume: spec.volume_name.clone().filter(|name| !name.is_empty()),
            bound: annotation(metadata, "pv.kubernetes.io/bind-completed").is_some(),
            class: old_class.or(spec.storage_class_name.clone()),
            selector: selector::parse(spec.selector.as_ref()).ok().flatten(),
            wants: wants(spec),
        }
    }

    /// Claims that Kubernetes makes for the ephemeral volumes of a pod.
    #[must_use]
    pub fn of_ephemeral_volumes(pod: &Pod) -> Vec<Self> {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let key = pod::key(pod);
        let claim = |volume: &k8s_openapi::api::core::v1::Volume| {
            let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
            let metadata = ObjectMeta {
                namespace: Some(key.namespace.clone()),
                name: Some(format!("{}-{}", key.name, volume.name)),
                ..template.metadata.clone().unwrap_or_default()
            };
            let spec = Some(template.spec.clone());
            Some(Self::parse(&PersistentVolumeClaim { metadata, spec, status: None }))
        };
        volumes.filter_map(claim).collect()
    }
}

fn wants(spec: PersistentVolumeClaimSpec) -> Shape {
    Shape {
        size: size(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref())),
        modes: spec.access_modes.unwrap_or_default(),
        block: spec.volume_mode.as_deref() == Some("Block"),
    }
}

impl Shape {
    /// Whether a volume that offers this is enough for a claim that wants `other`.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.size >= other.size
            && self.block == other.block
            && other.modes.iter().all(|mode| self.modes.contains(mode))
    }
}

impl Class {
    /// Reads a StorageClass.
    #[must_use]
    pub fn parse(object: &StorageClass) -> Self {
        let is_default = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ]
        .iter()
        .any(|key| annotation(&object.metadata, key) == Some("true"));
        let created = object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
        let provisioner = Some(object.provisioner.as_str()).filter(|name| *name != NO_PROVISIONER);
        let driver = driver::csi_name(provisioner.unwrap_or_default());
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            waits_for_pod: object.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
            places: class_places(driver, object),
            default_since: is_default.then_some(created),
            driver: driver.to_owned(),
        }
    }
}

/// Each term of `allowedTopologies` asks for one of the values of each of its keys.
fn class_places(driver: &str, object: &StorageClass) -> Places {
    let mut terms: Places = Vec::new();
    for term in object.allowed_topologies.iter().flatten() {
        let lines = term.match_label_expressions.iter().flatten().map(|line| {
            let values: Vec<&str> = line.values.iter().map(String::as_str).collect();
            Requirement::new(&line.key, Operator::In, &values)
        });
        terms.push(lines.collect());
    }
    if terms.is_empty() {
        terms.push(Vec::new());
    }
    or_anywhere(terms.into_iter().map(|lines| driver::translate(driver, lines)).collect())
}

/// By CSI driver, how many volumes a node can attach; a driver that does not say is not limited.
#[must_use]
pub fn attach_limits(object: &CSINode) -> BTreeMap<String, u32> {
    let limit = |driver: &k8s_openapi::api::storage::v1::CSINodeDriver| {
        let count = u32::try_from(driver.allocatable.as_ref()?.count?).ok()?;
        Some((driver.name.clone(), count))
    };
    object.spec.drivers.iter().filter_map(limit).collect()
}

fn size(list: Option<&BTreeMap<String, Quantity>>) -> i64 {
    let text = list.and_then(|list| list.get(STORAGE)).map_or("0", |quantity| quantity.0.as_str());
    resources::parse_quantity(STORAGE, text).unwrap_or(0)
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
