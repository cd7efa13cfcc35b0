//! `scarpenter.sparecores.com/v1alpha1` ScarpenterNodeClass: which vendors and regions, and how machines join.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct, `pub` included, inside a function")]
#![allow(clippy::duplicated_attributes, reason = "each printcolumn has a type of its own")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::duration::GoDuration;

mod convert;
mod join;

pub use join::{CaCertificate, ConfigMapKey, DeadMan, Firewall, Join, JoinMethod, Kubelet};

/// API group of the class, and of everything else that is only ours.
pub const GROUP: &str = "scarpenter.sparecores.com";
/// Kind of the class.
pub const KIND: &str = "ScarpenterNodeClass";

/// Which vendors and regions, which image, and how machines join the cluster.
///
/// Vendor credentials are never here: each provider process holds its own vendor's.
/// Secrets and ConfigMaps are named without a namespace: it is always the controller's own (the CA also from kube-public).
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "scarpenter.sparecores.com",
    version = "v1alpha1",
    kind = "ScarpenterNodeClass",
    plural = "scarpenternodeclasses",
    shortname = "snc",
    category = "scarpenter",
    status = "ScarpenterNodeClassStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Which vendors and regions machines may come from, and how they join the cluster.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ScarpenterNodeClassSpec {
    /// Vendors by id. An absent vendor is not used; `{}` is all its regions with the provider's defaults.
    #[serde(default)]
    pub vendors: BTreeMap<String, VendorSpec>,
    /// What machines boot.
    #[serde(default)]
    pub image: Image,
    /// How machines become nodes.
    #[serde(default)]
    pub join: Join,
    /// Mesh network that machines join first; absent: they reach the API server directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<Mesh>,
    /// Whether a machine takes many pods or one, ever.
    #[serde(default)]
    pub tenancy: Tenancy,
    /// Ignition of your own, merged into the machine's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition: Option<Ignition>,
    /// Disk of types that have none of their own.
    #[serde(default)]
    pub boot_disk: BootDisk,
}

/// One vendor's part.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VendorSpec {
    /// Regions by the vendor's own names; empty is all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub regions: Vec<String>,
    /// What the vendor's provider understands: texts and lists of texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::free_form")]
    pub settings: BTreeMap<String, Value>,
    /// What the vendor charges beside the machine: machines are compared by their full price, and limits count it.
    #[serde(default, skip_serializing_if = "Extras::is_nothing")]
    pub extras: Extras,
    /// A longer (or shorter) registration deadline than the class's, say for bare metal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_deadline: Option<GoDuration>,
}

/// What a vendor charges beside the machine itself, in micro-USD (millionths of a US dollar).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// A public IPv4 address, an hour: 5000 is $0.005.
    #[serde(default, rename = "publicIPv4MicroUSDPerHour", skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub public_ipv4: i64,
    /// A GiB of boot disk, a month of 730 hours, for types that bring no disk of their own: 80000 is $0.08.
    #[serde(default, rename = "bootDiskMicroUSDPerGiBMonth", skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub boot_disk_gib_month: i64,
}

impl Extras {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// What machines boot.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Flatcar as the vendor offers it.
    #[serde(default)]
    pub flatcar: Flatcar,
    /// Image ids of your own by place, the most exact one wins: `aws`, `aws/us-west-2`, `aws/us-west-2/amd64`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ids: BTreeMap<String, String>,
}

/// Flatcar as the vendor offers it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Flatcar {
    /// Release channel.
    #[serde(default)]
    pub channel: Channel,
}

/// Flatcar's release channels.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Channel {
    /// Stable.
    #[default]
    Stable,
    /// Beta.
    Beta,
    /// Alpha.
    Alpha,
    /// Long-term support.
    Lts,
}

impl Channel {
    /// The word in image names.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Beta => "beta",
            Self::Alpha => "alpha",
            Self::Lts => "lts",
        }
    }
}

/// Mesh network that machines join first.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// A Headscale server.
    pub headscale: Headscale,
    /// What machines run to join it.
    #[serde(default)]
    pub tailscale: Tailscale,
}

/// What machines run to join a mesh.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Tailscale {
    /// Version of the system extension.
    #[serde(default = "default_tailscale_version")]
    #[schemars(regex(pattern = r"^v[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub version: String,
    /// Whether machines take the routes that other mesh nodes advertise, such as those to pods.
    #[serde(default = "yes")]
    pub accept_routes: bool,
}

impl Default for Tailscale {
    fn default() -> Self {
        Self { version: default_tailscale_version(), accept_routes: true }
    }
}

fn default_tailscale_version() -> String {
    "v1.102.5".to_owned()
}

fn yes() -> bool {
    true
}

/// A Headscale server.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Headscale {
    /// Its URL, as machines and the controller reach it: https, or http to a loopback address.
    pub url: String,
    /// Name of the user that machines join as.
    pub user: String,
    /// Tags of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A key of a Secret in the controller's namespace that holds an API key.
    pub api_key_secret_ref: SecretKey,
}

/// A key of a Secret.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// Name of the Secret.
    pub name: String,
    /// Key in it.
    pub key: String,
}

/// Whether a machine takes many pods or one, ever.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum Tenancy {
    /// As many as fit.
    #[default]
    Shared,
    /// One workload pod, ever; daemon pods run beside it.
    SinglePod,
}

/// Ignition of your own.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Ignition {
    /// A ConfigMap in the controller's namespace: JSON of Ignition 3.0.0 to 3.3.0 under the key `ignition`, or under its only
    /// key.
    pub config_map_ref: ConfigMapName,
}

/// Names a ConfigMap.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapName {
    /// Name.
    pub name: String,
}

/// Disk of types that have none of their own.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct BootDisk {
    /// Size in GiB, where the vendor sells it; elsewhere the plan's own disk.
    #[serde(default = "default_boot_disk", rename = "sizeGiB")]
    #[schemars(range(min = 8, max = 16384))]
    pub size_gib: i64,
}

impl Default for BootDisk {
    fn default() -> Self {
        Self { size_gib: default_boot_disk() }
    }
}

fn default_boot_disk() -> i64 {
    40
}

/// What is known of a class.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct ScarpenterNodeClassStatus {
    /// Conditions: Ready, JoinReady, MeshReady, CatalogReady, and one per vendor, such as HcloudReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}
