//! How machines become nodes, as a class says it.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct, `pub` included, inside a function")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::GoDuration;

/// How machines become nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Join {
    /// `Kubelet` joins by TLS bootstrap, `K3sAgent` by k3s's own protocol.
    #[serde(default)]
    pub method: JoinMethod,
    /// API servers as machines reach them, tried in turn. Empty: the address that the controller itself uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub servers: Vec<String>,
    /// Where the cluster's CA certificate is.
    #[serde(default)]
    pub ca_certificate: CaCertificate,
    /// Version of the kubelet, such as `v1.37.2` (`K3sAgent`: of k3s, such as `v1.37.2+k3s1`), at most the API server's.
    /// Absent: the API server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^v[0-9]+\.[0-9]+\.[0-9]+(\+k3s[0-9]+)?$"))]
    pub kubernetes_version: Option<String>,
    /// Addresses of the cluster's DNS, for the kubelet.
    #[serde(default, rename = "clusterDNS", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub cluster_dns: Vec<String>,
    /// The cluster's DNS domain.
    #[serde(default = "default_cluster_domain")]
    pub cluster_domain: String,
    /// A claim that no vendor has accepted by then is given up.
    #[serde(default = "default_launch_deadline")]
    pub launch_deadline: GoDuration,
    /// A machine that is no node by then is given up.
    #[serde(default = "default_registration_deadline")]
    pub registration_deadline: GoDuration,
    /// Where system extensions (kubelet, …) are fetched from; a mirror works too.
    #[serde(default = "default_sysext_base_url", rename = "sysextBaseURL")]
    pub sysext_base_url: String,
    /// Hashes that system extensions must have, by file name: `sha256-` or `sha512-` and hex digits. An extension that is
    /// not named here is taken as it comes, and only over https.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysext_hashes: BTreeMap<String, String>,
    /// Drops what comes in from elsewhere than the mesh. Absent: on machines with a mesh everything but the mesh is
    /// dropped, others have no firewall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<Firewall>,
    /// What the kubelet is told, and the planner counts with.
    #[serde(default)]
    pub kubelet: Kubelet,
    /// When a machine powers itself off, whatever the controller does.
    #[serde(default)]
    pub dead_man: DeadMan,
}

impl Default for Join {
    fn default() -> Self {
        Self {
            method: JoinMethod::default(),
            servers: Vec::new(),
            ca_certificate: CaCertificate::default(),
            kubernetes_version: None,
            cluster_dns: Vec::new(),
            cluster_domain: default_cluster_domain(),
            launch_deadline: default_launch_deadline(),
            registration_deadline: default_registration_deadline(),
            sysext_base_url: default_sysext_base_url(),
            sysext_hashes: BTreeMap::new(),
            firewall: None,
            kubelet: Kubelet::default(),
            dead_man: DeadMan::default(),
        }
    }
}

fn default_cluster_domain() -> String {
    "cluster.local".to_owned()
}

fn default_launch_deadline() -> GoDuration {
    GoDuration::new("5m")
}

fn default_registration_deadline() -> GoDuration {
    GoDuration::new("15m")
}

fn default_sysext_base_url() -> String {
    "https://extensions.flatcar.org/extensions".to_owned()
}

/// How a machine becomes a node.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum JoinMethod {
    /// Kubelet with TLS bootstrap.
    #[default]
    Kubelet,
    /// k3s agent.
    K3sAgent,
}

/// What may come in from the network.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Firewall {
    /// Ranges beside the mesh, such as `10.0.0.0/8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub allow_from: Vec<String>,
}

/// Where the cluster's CA certificate is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CaCertificate {
    /// A key of a ConfigMap in the controller's namespace or in kube-public.
    #[serde(default)]
    pub config_map_key_ref: ConfigMapKey,
}

/// A key of a ConfigMap.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapKey {
    /// Name of the ConfigMap.
    #[serde(default = "default_ca_name")]
    pub name: String,
    /// Key in it.
    #[serde(default = "default_ca_key")]
    pub key: String,
}

impl Default for ConfigMapKey {
    fn default() -> Self {
        Self { name: default_ca_name(), key: default_ca_key() }
    }
}

fn default_ca_name() -> String {
    "kube-root-ca.crt".to_owned()
}

fn default_ca_key() -> String {
    "ca.crt".to_owned()
}

/// What the kubelet is told, and the planner counts with.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Kubelet {
    /// Most pods on a node.
    #[serde(default = "default_max_pods")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_pods: i32,
    /// Kept back for Kubernetes' own processes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub kube_reserved: BTreeMap<String, Quantity>,
    /// Kept back for the system's processes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub system_reserved: BTreeMap<String, Quantity>,
    /// Eviction thresholds, such as `memory.available: 200Mi`. Empty: the kubelet's own defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub eviction_hard: BTreeMap<String, String>,
}

impl Default for Kubelet {
    fn default() -> Self {
        Self {
            max_pods: default_max_pods(),
            kube_reserved: BTreeMap::new(),
            system_reserved: BTreeMap::new(),
            eviction_hard: BTreeMap::new(),
        }
    }
}

fn default_max_pods() -> i32 {
    110
}

/// When a machine powers itself off, whatever the controller does.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeadMan {
    /// When it is no node by the registration deadline.
    #[serde(default = "yes")]
    pub never_joined: bool,
    /// When it is older than the claim's `expireAfter` and grace allow.
    #[serde(default = "yes")]
    pub lifetime: bool,
    /// When it has not reached an API server for so long; absent is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_unreachable: Option<GoDuration>,
}

impl Default for DeadMan {
    fn default() -> Self {
        Self { never_joined: true, lifetime: true, api_unreachable: None }
    }
}

fn yes() -> bool {
    true
}
