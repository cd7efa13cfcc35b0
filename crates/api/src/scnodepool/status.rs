//! What was chosen, and why the rest was not.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// What was chosen, when, from which data, and why the rest was not.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SCNodePoolStatus {
    /// Generation of the spec that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Which provider of Karpenter's the node class belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Regions whose prices count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The NodePool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pool_name: Option<String>,
    /// Which price counts: `OnDemand` or `Spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_basis: Option<String>,
    /// When the data was last updated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub data_timestamp: Option<Time>,
    /// What tells one state of the data from another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_hash: Option<String>,
    /// When data was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_refresh_time: Option<Time>,
    /// Why that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refresh_reason: Option<String>,
    /// When it will be again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub next_refresh_time: Option<Time>,
    /// Value of the annotation `karpenter.sparecores.com/refresh-requested` that was last obeyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refresh_request: Option<String>,
    /// What was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<Selected>,
    /// How many types were left out at which step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<Excluded>,
    /// Types that are to go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_removals: Vec<PendingRemoval>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// What was chosen.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Selected {
    /// How many types are on the list.
    pub count: i64,
    /// SHA-256 of the sorted list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selection_hash: String,
    /// How far the ranking went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<BandStatus>,
    /// Families by rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<FamilyStatus>,
    /// Types by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instance_types: Vec<SelectedType>,
}

/// How far the ranking went.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BandStatus {
    /// The best family.
    pub reference: String,
    /// Its median.
    pub reference_value: f64,
    /// Median of the last family that is kept.
    pub lowest_kept: f64,
    /// How far that is from the best, in percent.
    pub lowest_kept_delta_percent: f64,
    /// Families from outside the band were needed to reach the least number.
    pub widened: bool,
    /// Families within the band were cut.
    pub trimmed: bool,
}

/// A family that is kept.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct FamilyStatus {
    /// Its name.
    pub name: String,
    /// 1 is the best.
    pub rank: i64,
    /// Median over its sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<f64>,
    /// How many of its sizes are on the list.
    pub sizes: i64,
}

/// A type on the list.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct SelectedType {
    /// Its name.
    pub name: String,
    /// Its family.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// Its score, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Its price in US dollars an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    /// It is no longer wanted and stays for now, so that its nodes are not replaced in haste.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// How many types were left out, each counted at the first step that it failed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Excluded {
    /// The provider cannot launch them, or they have no price in the regions.
    pub provider_ineligible: i64,
    /// The template's own requirements forbid them.
    pub template_constraints: i64,
    /// By selector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, i64>,
    /// A fact or score that is needed is not known.
    pub missing_data: i64,
    /// Their family is not among the best.
    pub ranking: i64,
}

/// A type that is to go.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PendingRemoval {
    /// Its name.
    pub name: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub since: Option<Time>,
    /// How many refreshes in a row wanted it gone.
    pub refreshes: i64,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// By how much it misses, in percent; absent where that is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<f64>,
    /// It goes as soon as the cap allows.
    #[serde(default)]
    pub due: bool,
}
