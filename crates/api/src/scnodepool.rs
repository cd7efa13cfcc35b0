//! `karpenter.sparecores.com/v1alpha1` SCNodePool: which types a Karpenter NodePool shall list, by what was measured.
//!
//! The object is for clusters where Karpenter, of whatever provider, already runs: one SCNodePool makes one NodePool of
//! its name, whose list of instance types follows the data of Spare Cores.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct, `pub` included, inside a function")]
#![allow(clippy::duplicated_attributes, reason = "each printcolumn has a type of its own")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::GoDuration;

mod ranking;
mod schema;
mod selector;
mod status;

pub use ranking::{Band, FamilyBounds, Objective, Ranking, RankingNormalize, Score};
pub use selector::{
    BenchmarkFilter, BenchmarkRef, Caches, Cpu, Flags, Globs, Gpu, GpuMemory, LocalStorage, Memory, Network,
    Normalize, NumberRange, PriceBasis, PriceFilter, SizeRange, Storage, TypeSelector, Unbenchmarked,
    VcpuRange, WorkloadProfile,
};
pub use status::{
    BandStatus, Excluded, FamilyStatus, PendingRemoval, SCNodePoolStatus, Selected, SelectedType,
};

/// API group.
pub const GROUP: &str = "karpenter.sparecores.com";
/// Version.
pub const VERSION: &str = "v1alpha1";
/// Kind.
pub const KIND: &str = "SCNodePool";

/// Which types a NodePool of Karpenter's shall list.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "karpenter.sparecores.com",
    version = "v1alpha1",
    kind = "SCNodePool",
    plural = "scnodepools",
    singular = "scnodepool",
    shortname = "scnp",
    category = "karpenter",
    status = "SCNodePoolStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Karpenter NodePool whose instance types are chosen by what was measured.",
    validation = Rule::new("size(self.metadata.name) <= 63").message("the name may have at most 63 characters, since it is a label value of the NodePool"),
    printcolumn(name = "NodePool", type_ = "string", json_path = ".status.nodePoolName"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".status.provider"),
    printcolumn(name = "Types", type_ = "integer", json_path = ".status.selected.count"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Last refresh", type_ = "date", json_path = ".status.lastRefreshTime"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct SCNodePoolSpec {
    /// The NodePool but for its list of instance types.
    pub node_pool_template: NodePoolTemplate,
    /// Where its machines may be.
    #[serde(default)]
    pub location: Location,
    /// What each type must be; all that is set must hold.
    #[serde(default)]
    pub selector: TypeSelector,
    /// Keeps the best families only; absent keeps every type that passes the selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// When data is looked at again.
    #[serde(default)]
    pub refresh: Refresh,
    /// How slowly types are taken off the list.
    #[serde(default)]
    pub churn: Churn,
    /// Fills the status and writes no NodePool.
    #[serde(default)]
    pub dry_run: bool,
    /// What becomes of the NodePool when this object is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// The NodePool but for its list of instance types.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct NodePoolTemplate {
    /// Labels and annotations of the NodePool itself, not of its nodes.
    #[serde(default, skip_serializing_if = "TemplateMetadata::is_empty")]
    pub metadata: TemplateMetadata,
    /// A `karpenter.sh/v1` NodePoolSpec, copied as it is; the cluster's own NodePool definition judges it.
    #[schemars(schema_with = "schema::nodepool_spec")]
    pub spec: Map<String, Value>,
}

/// Labels and annotations of the NodePool itself.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::annotations")]
    pub annotations: BTreeMap<String, String>,
}

impl TemplateMetadata {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// Where machines may be.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Regions, as the provider labels its nodes; empty: found out from the node class or the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub regions: Vec<String>,
    /// Zones, as the provider labels its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub zones: Vec<String>,
}

/// When data is looked at again.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Time between two refreshes, at least ten minutes.
    #[serde(default = "day")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('10m')").message("interval must be at least 10m"))]
    #[schemars(length(max = 32))]
    pub interval: GoDuration,
}

impl Default for Refresh {
    fn default() -> Self {
        Self { interval: day() }
    }
}

/// How slowly types are taken off the list: each removal replaces every node of that type.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Churn {
    /// A type that misses a bound by no more than this many percent stays.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 100))]
    pub remove_margin_percent: i64,
    /// So many refreshes in a row must want a type gone.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 30))]
    pub remove_after_refreshes: i64,
    /// Most types that one pass takes off; 0 freezes removals.
    #[serde(default = "three")]
    #[schemars(range(min = 0, max = 1000))]
    pub max_removals_per_refresh: i64,
    /// When only that cap holds removals back, the next batch follows after this, at least a minute.
    #[serde(default = "hour")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1m')").message("stepInterval must be at least 1m"))]
    #[schemars(length(max = 32))]
    pub step_interval: GoDuration,
}

impl Default for Churn {
    fn default() -> Self {
        Self {
            remove_margin_percent: five(),
            remove_after_refreshes: two(),
            max_removals_per_refresh: three(),
            step_interval: hour(),
        }
    }
}

/// What becomes of the NodePool when its SCNodePool is deleted.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum DeletionPolicy {
    /// It goes too, and Karpenter drains its nodes.
    #[default]
    Delete,
    /// It stays.
    Orphan,
}

fn day() -> GoDuration {
    GoDuration::new("24h")
}

fn hour() -> GoDuration {
    GoDuration::new("1h")
}

fn five() -> i64 {
    5
}

fn two() -> i64 {
    2
}

fn three() -> i64 {
    3
}
