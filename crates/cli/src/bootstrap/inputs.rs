//! The claim, its class and what a controller would have found in the cluster, from files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};
use scarpenter_api::nodeclass::JoinMethod;
use scarpenter_api::{NodeClaim, ScarpenterNodeClass};
use scarpenter_controller::Surroundings;
use scarpenter_core::label;
use scarpenter_core::name::{Vendor, sha256_hex};
use scarpenter_core::offering::{Arch, CapacityType, Launch, OfferingKey, Price};
use scarpenter_core::requirements::Operator;
use scarpenter_core::resources::Resources;

use super::render::Args;
use crate::plan::documents::Object;

const VERSION: &str = "v1.37.2";
const K3S_VERSION: &str = "v1.37.2+k3s1";
/// UID of a claim that was never created.
const UID: &str = "00000000-0000-4000-8000-000000000000";
/// The key of the ConfigMap that holds Ignition, unless it has another and only one.
const IGNITION_KEY: &str = "ignition";

/// All that a document is made of.
pub(super) struct Inputs {
    pub(super) claim: NodeClaim,
    pub(super) launch: Launch,
    pub(super) class: ScarpenterNodeClass,
    pub(super) surroundings: Surroundings,
    /// What is to be said about it.
    pub(super) notes: Vec<String>,
}

impl Inputs {
    pub(super) fn read(args: &Args) -> anyhow::Result<Self> {
        let mut files = Files::default();
        for source in args.filenames.iter().chain(&args.nodeclass) {
            for object in source.objects()? {
                files.add(object)?;
            }
        }
        let claim = files.claim()?;
        let class = files.class(&claim)?;
        let launch = launch(&claim, &class)?;
        let surroundings = Surroundings {
            server: args.server.clone(),
            version: version(args, &class, &mut files.notes),
            ca_pem: files.authority(args.ca_certificate.as_deref(), &class)?,
            ignition: files.ignition(args.extra.as_deref(), &class)?,
        };
        if class.spec.join.servers.is_empty() {
            files.notes.push(format!("the class names no server: rendered with {}", args.server));
        }
        Ok(Self { claim, launch, class, surroundings, notes: files.notes })
    }
}

/// What the files hold.
#[derive(Default)]
struct Files {
    claims: Vec<NodeClaim>,
    classes: Vec<ScarpenterNodeClass>,
    maps: BTreeMap<String, BTreeMap<String, String>>,
    notes: Vec<String>,
}

impl Files {
    fn add(&mut self, object: Object) -> anyhow::Result<()> {
        match object.kind.as_str() {
            "NodeClaim" => {
                object.expect_version(&NodeClaim::api_version(&()))?;
                self.claims.push(object.parse(&mut self.notes)?);
            }
            "ScarpenterNodeClass" => {
                object.expect_version(&ScarpenterNodeClass::api_version(&()))?;
                self.classes.push(object.parse(&mut self.notes)?);
            }
            "ConfigMap" => {
                let map: ConfigMap = object.parse(&mut self.notes)?;
                self.maps.insert(map.name_any(), map.data.unwrap_or_default());
            }
            _ => self.notes.push(format!("{object} is left out: it is not needed here")),
        }
        Ok(())
    }

    fn claim(&mut self) -> anyhow::Result<NodeClaim> {
        let mut claim = match (self.claims.pop(), self.claims.len()) {
            (Some(claim), 0) => claim,
            (None, _) => bail!("no file holds a NodeClaim: give one by -f"),
            (Some(_), more) => bail!("the files hold {} NodeClaims: give one", more + 1),
        };
        if claim.metadata.name.is_none() {
            bail!("the NodeClaim has no metadata.name, which the machine and its node are named by");
        }
        claim.metadata.uid.get_or_insert_with(|| UID.to_owned());
        Ok(claim)
    }

    fn class(&mut self, claim: &NodeClaim) -> anyhow::Result<ScarpenterNodeClass> {
        let reference = &claim.spec.node_class_ref;
        if !claim.is_ours() {
            bail!("NodeClaim {}: its nodeClassRef is no ScarpenterNodeClass", claim.name_any());
        }
        let at = self.classes.iter().position(|class| class.name_any() == reference.name);
        let at = at.with_context(|| {
            format!("no file holds ScarpenterNodeClass {}: give it by --nodeclass", reference.name)
        })?;
        let class = self.classes.swap_remove(at);
        let problems = class.problems().into_iter().chain(class.vendor_problems().into_values().flatten());
        self.notes.extend(problems.map(|words| format!("ScarpenterNodeClass {}: {words}", reference.name)));
        Ok(class)
    }

    fn authority(&mut self, file: Option<&Path>, class: &ScarpenterNodeClass) -> anyhow::Result<String> {
        if let Some(file) = file {
            return read(file);
        }
        let reference = &class.spec.join.ca_certificate.config_map_key_ref;
        match self.maps.get(&reference.name) {
            Some(data) => data.get(&reference.key).cloned().with_context(|| {
                format!(
                    "ConfigMap {} has no key {}, which join.caCertificate names",
                    reference.name, reference.key
                )
            }),
            None => {
                self.notes.push(format!(
                    "no file holds ConfigMap {}: rendered with a made-up CA of the usual size (--ca-certificate)",
                    reference.name
                ));
                Ok(made_up_authority())
            }
        }
    }

    fn ignition(&self, file: Option<&Path>, class: &ScarpenterNodeClass) -> anyhow::Result<Option<String>> {
        if let Some(file) = file {
            return read(file).map(Some);
        }
        let Some(ignition) = &class.spec.ignition else { return Ok(None) };
        let name = &ignition.config_map_ref.name;
        let data = self.maps.get(name).with_context(|| {
            format!("no file holds ConfigMap {name}, which spec.ignition names: give it by --nodeclass, or its Ignition by --extra")
        })?;
        let only = (data.len() == 1).then(|| data.values().next()).flatten();
        let text = data.get(IGNITION_KEY).or(only).with_context(|| {
            format!(
                "ConfigMap {name}, which spec.ignition names, has neither key {IGNITION_KEY} nor only one key"
            )
        })?;
        Ok(Some(text.clone()))
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))
}

fn version(args: &Args, class: &ScarpenterNodeClass, notes: &mut Vec<String>) -> String {
    let usual = match class.spec.join.method {
        JoinMethod::K3sAgent => K3S_VERSION,
        JoinMethod::Kubelet => VERSION,
    };
    if class.spec.join.kubernetes_version.is_none() && args.kubernetes_version.is_none() {
        notes.push(format!(
            "the class names no kubernetesVersion: rendered as if the API server were {usual}"
        ));
    }
    args.kubernetes_version.clone().unwrap_or_else(|| usual.to_owned())
}

/// The launch that the claim carries, or for a claim that was not bound yet what can be known of one.
fn launch(claim: &NodeClaim, class: &ScarpenterNodeClass) -> anyhow::Result<Launch> {
    if let Some(text) = claim.annotation(label::LAUNCH) {
        return serde_json::from_str(text).with_context(|| format!("annotation {}", label::LAUNCH));
    }
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for requirement in claim.spec.requirements.iter().map(|requirement| requirement.to_core()) {
        if let (Operator::In, [value]) = (requirement.operator, requirement.values.as_slice()) {
            labels.insert(requirement.key, value.clone());
        }
    }
    labels.extend(claim.metadata.labels.clone().unwrap_or_default());
    let of_class = class.spec.vendors.keys().next();
    let vendor = labels.get(label::VENDOR).or(of_class).context("the class names no vendor")?.clone();
    let arch = match labels.get(label::ARCH).map(String::as_str) {
        None | Some("amd64") => Arch::Amd64,
        Some("arm64") => Arch::Arm64,
        Some(other) => bail!("{} is {other:?}: there are machines of amd64 and arm64", label::ARCH),
    };
    labels.insert(label::VENDOR.to_owned(), vendor.clone());
    labels.insert(label::ARCH.to_owned(), arch.as_str().to_owned());
    let of = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let offering = OfferingKey {
        vendor: Vendor::new(vendor),
        region: of(label::REGION),
        zone: labels.get(label::ZONE).cloned(),
        instance_type: of(label::INSTANCE_TYPE),
        capacity_type: CapacityType::OnDemand,
    };
    Ok(Launch {
        offering,
        zone_id: None,
        arch,
        price_per_hour_micro_usd: Price::from_micro_usd(0),
        capacity: Resources::new(),
        allocatable: Resources::new(),
        labels,
    })
}

/// As long as kubeadm's, and as hard to pack.
fn made_up_authority() -> String {
    let line = |number: u32| sha256_hex(&number.to_be_bytes()) + "\n";
    let lines: String = (0..17).map(line).collect();
    format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
