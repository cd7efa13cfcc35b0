//! From claim and class to all that a document needs to know. Pure.

use std::collections::BTreeMap;

use scarpenter_api::ScarpenterNodeClass;
use scarpenter_api::node;
use scarpenter_api::nodeclass::JoinMethod;
use scarpenter_bootstrap::{Join, Mesh, Method};
use scarpenter_core::label;
use scarpenter_core::name::{ClaimUid, ProviderId, Secret as Hidden, Vendor};
use scarpenter_core::offering::{Arch, Launch};
use scarpenter_core::pod::Taint;
use scarpenter_index::ClaimRecord;

use super::Error;
use crate::context::Server;

/// The vendor whose machines the API server cannot dial at an address of their own.
const LOCAL: &str = "local";
/// Name in documents that are only looked at: as long as those of claims.
const NOBODY: &str = "nobody-0123456789abcdef";

/// What of a claim is in its document.
pub(super) struct Facts {
    name: String,
    uid: ClaimUid,
    vendor: Vendor,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    lifetime: Option<u64>,
}

/// What is read or made for a document.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) ca_pem: String,
    pub(super) extra: Option<String>,
    pub(super) token: (String, Hidden),
    pub(super) node_password: Option<Hidden>,
    pub(super) mesh: Option<Mesh>,
}

impl Facts {
    pub(super) fn of(record: &ClaimRecord, launch: &Launch) -> Self {
        let spec = &record.object.spec;
        let mut labels = launch.labels.clone();
        labels.extend(record.object.metadata.labels.clone().unwrap_or_default());
        let taints: Vec<_> = spec.taints.iter().chain(&spec.startup_taints).cloned().collect();
        let grace = spec.termination_grace_period.as_ref().and_then(|grace| grace.get());
        Self {
            name: record.claim.name.clone(),
            uid: record.claim.uid.clone(),
            vendor: launch.offering.vendor.clone(),
            labels,
            taints: node::parse_taints(&taints),
            lifetime: record.claim.expire_after.zip(grace).map(|(life, grace)| (life + grace).as_secs()),
        }
    }

    /// Of a claim that is not there: what every claim has, and no more.
    pub(super) fn of_nobody(vendor: &Vendor, arch: Arch) -> Self {
        let labels = [
            (label::ARCH, arch.as_str()),
            (label::OS, "linux"),
            (label::INSTANCE_TYPE, "standard-8-of-some-length"),
            (label::REGION, "region-of-some-length-1"),
            (label::ZONE, "region-of-some-length-1a"),
            (label::CAPACITY_TYPE, "on-demand"),
            (label::NODEPOOL, "pool-of-some-length"),
            (label::NODE_CLASS, "class-of-some-length"),
        ];
        Self {
            name: NOBODY.to_owned(),
            uid: ClaimUid::new("00000000-0000-0000-0000-000000000000"),
            vendor: vendor.clone(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            taints: Vec::new(),
            lifetime: None,
        }
    }
}

/// Whether the controller writes the addresses of such a node, and takes its `uninitialized` taint off.
///
/// A k3s server's own cloud controller does so for its agents.
pub(crate) fn writes_addresses(vendor: &Vendor, method: JoinMethod) -> bool {
    vendor.as_str() == LOCAL && method == JoinMethod::Kubelet
}

/// All that the document needs to know.
///
/// # Errors
/// [`Error::Version`] when it is not known which version the machine would run.
pub(super) fn join(
    server: &Server,
    class: &ScarpenterNodeClass,
    facts: Facts,
    given: Given,
) -> Result<Join, Error> {
    let spec = &class.spec.join;
    let (token_id, token_secret) = given.token;
    let deadline = class.registration_deadline(&facts.vendor).as_secs();
    let api_unreachable = spec.dead_man.api_unreachable.as_ref().and_then(|out| out.get());
    Ok(Join {
        provider_id: ProviderId { vendor: facts.vendor.clone(), claim: facts.uid }.to_string(),
        node_name: facts.name,
        servers: match spec.servers.is_empty() {
            true => vec![server.url.clone()],
            false => spec.servers.clone(),
        },
        ca_pem: given.ca_pem,
        token_id,
        token_secret,
        kubernetes_version: version(server, spec.method, spec.kubernetes_version.as_deref())?,
        cluster_dns: spec.cluster_dns.clone(),
        cluster_domain: spec.cluster_domain.clone(),
        labels: facts.labels,
        taints: facts.taints,
        kubelet: class.to_class().kubelet,
        sysext_base_url: spec.sysext_base_url.clone(),
        sysext_hashes: spec.sysext_hashes.clone(),
        never_joined_after: spec.dead_man.never_joined.then_some(deadline),
        lifetime: facts.lifetime.filter(|_| spec.dead_man.lifetime),
        api_unreachable_after: api_unreachable.map(|out| out.as_secs()),
        method: match given.node_password {
            Some(node_password) => Method::K3sAgent { node_password },
            None => Method::Kubelet,
        },
        mesh: given.mesh,
        firewall: spec.firewall.as_ref().map(|firewall| firewall.allow_from.clone()),
        extra: given.extra,
        external_addresses: writes_addresses(&facts.vendor, spec.method),
    })
}

/// The class's own version, else the API server's: of k3s for its agents, without a distribution's suffix for the
/// kubelet, whose extension images are those of Kubernetes itself.
fn version(server: &Server, method: JoinMethod, own: Option<&str>) -> Result<String, Error> {
    if let Some(own) = own {
        return Ok(own.to_owned());
    }
    let found = server.version.as_str();
    match method {
        JoinMethod::K3sAgent if found.contains("+k3s") => Ok(found.to_owned()),
        JoinMethod::K3sAgent => Err(Error::Version(found.to_owned())),
        JoinMethod::Kubelet => {
            let plain = found.split('+').next().unwrap_or(found);
            let (numbers, rest) = plain.split_once('-').unwrap_or((plain, ""));
            let before_release = ["alpha.", "beta.", "rc."].iter().any(|word| rest.starts_with(word));
            Ok(if before_release { plain } else { numbers }.to_owned())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(found: &str, method: JoinMethod, own: Option<&str>) -> Result<String, String> {
        let server = Server { url: String::new(), version: found.to_owned() };
        version(&server, method, own).map_err(|error| error.to_string())
    }

    #[test]
    fn a_kubelet_has_the_servers_version_without_a_distributions_suffix() {
        for (found, expected) in [
            ("v1.37.2", "v1.37.2"),
            ("v1.37.2+k3s1", "v1.37.2"),
            ("v1.33.1-eks-595af52", "v1.33.1"),
            ("v1.33.1-gke.1386000", "v1.33.1"),
            ("v1.38.0-rc.1", "v1.38.0-rc.1"),
        ] {
            assert_eq!(of(found, JoinMethod::Kubelet, None).unwrap(), expected);
        }
        assert_eq!(of("v1.37.2+k3s1", JoinMethod::Kubelet, Some("v1.36.0")).unwrap(), "v1.36.0");
    }

    #[test]
    fn an_agent_has_the_version_of_its_k3s_server_or_the_class_says_it() {
        assert_eq!(of("v1.37.2+k3s1", JoinMethod::K3sAgent, None).unwrap(), "v1.37.2+k3s1");
        assert_eq!(of("v1.37.2", JoinMethod::K3sAgent, Some("v1.37.2+k3s2")).unwrap(), "v1.37.2+k3s2");
        let words = of("v1.37.2", JoinMethod::K3sAgent, None).unwrap_err();
        assert!(words.contains("v1.37.2") && words.contains("join.kubernetesVersion"), "{words}");
    }

    #[test]
    fn only_kubelets_of_local_machines_wait_for_their_addresses() {
        assert!(writes_addresses(&Vendor::new("local"), JoinMethod::Kubelet));
        assert!(!writes_addresses(&Vendor::new("local"), JoinMethod::K3sAgent));
        assert!(!writes_addresses(&Vendor::new("hcloud"), JoinMethod::Kubelet));
    }
}
