//! All that the document needs to know, and what may be wrong with it.

use std::collections::BTreeMap;

use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::label;
use scarpenter_core::name::Secret;
use scarpenter_core::pod::{Taint, TaintEffect};

mod check;

pub(crate) use check::authority;

/// Facts of one claim and its class.
#[derive(Clone, Debug)]
pub struct Join {
    /// Name of claim, node and host.
    pub node_name: String,
    /// `scarpenter://<vendor>/<claim uid>`.
    pub provider_id: String,
    /// API servers, `https://host:port`, tried in turn. With several, their certificates must hold the name
    /// `kubernetes.default`, as those of kubeadm and k3s do.
    pub servers: Vec<String>,
    /// Certificates of the authority that signed the API servers' own, PEM.
    pub ca_pem: String,
    /// Public half of the bootstrap token.
    pub token_id: String,
    /// Secret half of the bootstrap token.
    pub token_secret: Secret,
    /// Version of the kubelet, such as `v1.37.2`.
    pub kubernetes_version: String,
    /// Addresses of the cluster's DNS.
    pub cluster_dns: Vec<String>,
    /// The cluster's DNS domain.
    pub cluster_domain: String,
    /// All labels of the claim; the document gets those that a kubelet may set. `kubernetes.io/arch` chooses
    /// the kubelet image.
    pub labels: BTreeMap<String, String>,
    /// Taints and startup taints of the claim; `karpenter.sh/unregistered:NoExecute` is added.
    pub taints: Vec<Taint>,
    /// Limit of pods, reserved resources, eviction.
    pub kubelet: Kubelet,
    /// Where the system extension images are.
    pub sysext_base_url: String,
    /// Hashes of those images by file name, as Ignition writes them: `sha256-…` or `sha512-…`. An image without one
    /// is taken only over https.
    pub sysext_hashes: BTreeMap<String, String>,
    /// Seconds from boot after which a machine that never joined powers itself off. `None`: never.
    pub never_joined_after: Option<u64>,
    /// Seconds from boot after which the machine powers itself off in any case. `None`: never.
    pub lifetime: Option<u64>,
    /// Seconds without an API server after which a machine that has joined powers itself off. `None`: never.
    pub api_unreachable_after: Option<u64>,
    /// What becomes a node.
    pub method: Method,
    /// Mesh that the machine joins first.
    pub mesh: Option<Mesh>,
    /// Ranges that may come in beside the mesh. `None`: a machine with a mesh has a firewall that lets in nothing but
    /// the mesh, one without has none.
    pub firewall: Option<Vec<String>>,
    /// Ignition of the class's own, JSON of version 3.0.0 to 3.3.0, merged into the document.
    pub extra: Option<String>,
    /// Whether somebody else writes the node's addresses: the kubelet then runs with `--cloud-provider=external`,
    /// as k3s's does in any case.
    pub external_addresses: bool,
}

/// What becomes a node.
#[derive(Clone, Debug)]
pub enum Method {
    /// Kubelet with TLS bootstrap.
    Kubelet,
    /// k3s agent.
    K3sAgent {
        /// Password that the node's name was given at the server before.
        node_password: Secret,
    },
}

/// Mesh that a machine joins before it is a node.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// URL of the control server.
    pub login_server: String,
    /// Single-use key of this claim.
    pub auth_key: Secret,
    /// Version of the tailscale system extension, such as `v1.102.5`.
    pub tailscale_version: String,
    /// Whether routes that others advertise are taken.
    pub accept_routes: bool,
}

/// What is wrong with a [`Join`]; `field` names it as in the class.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A text that would not survive the way into a unit or a URL.
    #[error("{field} {text:?} is not {expected}")]
    Malformed {
        /// Which one.
        field: &'static str,
        /// What was given.
        text: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// The bootstrap token is not `<6>.<16>` of `a-z0-9`. Its text is not shown.
    #[error("bootstrap token is not six and sixteen characters of a-z0-9")]
    Token,
    /// A secret that would not be one word in its file. Its text is not shown.
    #[error("{0} is empty or holds blanks")]
    Secret(&'static str),
    /// The CA holds no certificate.
    #[error("join.caCertificate holds no PEM certificate")]
    Ca,
    /// An image that anybody on the way could replace.
    #[error(
        "join.sysextBaseURL {url} is not https, so join.sysextHashes must name {file}: add its sha256- or sha512- hash"
    )]
    Unverified {
        /// Where it would come from.
        url: String,
        /// File name of the image.
        file: String,
    },
    /// No API server.
    #[error("join.servers is empty")]
    NoServers,
}

/// Keys in Kubernetes' own domains that a kubelet may set on its node.
const KUBELET_KEYS: [&str; 11] = [
    label::HOSTNAME,
    label::OS,
    label::ARCH,
    label::INSTANCE_TYPE,
    label::REGION,
    label::ZONE,
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
];

/// Whether a kubelet may set `key` on its own node: it refuses to start with any other, and so does NodeRestriction.
#[must_use]
pub fn is_kubelet_label(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let within =
        |suffix: &str| domain == suffix || domain.strip_suffix(suffix).is_some_and(|d| d.ends_with('.'));
    let kubernetes = within("kubernetes.io") || within("k8s.io");
    !kubernetes
        || KUBELET_KEYS.contains(&key)
        || within("kubelet.kubernetes.io")
        || within("node.kubernetes.io")
}

/// Those of `labels` that a kubelet may set; the controller puts on the others.
#[must_use]
pub fn kubelet_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut out = labels.clone();
    out.retain(|key, _| is_kubelet_label(key));
    out
}

impl Join {
    /// The labels that the kubelet registers with.
    #[must_use]
    pub fn kubelet_labels(&self) -> BTreeMap<String, String> {
        kubelet_labels(&self.labels)
    }

    /// The taints that the kubelet registers with, each once.
    #[must_use]
    pub fn register_with_taints(&self) -> Vec<Taint> {
        let unregistered = Taint {
            key: label::UNREGISTERED_TAINT.to_owned(),
            value: String::new(),
            effect: TaintEffect::NoExecute,
        };
        let mut out: Vec<Taint> = Vec::new();
        for taint in std::iter::once(&unregistered).chain(&self.taints) {
            // The API server refuses a node that has one key and effect twice.
            if !out.iter().any(|seen| seen.key == taint.key && seen.effect == taint.effect) {
                out.push(taint.clone());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_stops_the_kubelet_is_left_to_the_controller() {
        for key in [
            "node-restriction.kubernetes.io/x",
            "kops.k8s.io/y",
            "node-role.kubernetes.io/worker",
            "kubernetes.io/role",
            "topology.kubernetes.io/other",
            "k8s.io/z",
        ] {
            assert!(!is_kubelet_label(key), "{key}");
        }
        for key in [
            "kubernetes.io/arch",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/anything",
            "x.kubelet.kubernetes.io/anything",
            "topology.k8s.aws/zone-id",
            "notkubernetes.io/x",
            "karpenter.sh/nodepool",
            "plain",
        ] {
            assert!(is_kubelet_label(key), "{key}");
        }
    }
}
