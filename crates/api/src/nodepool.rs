//! `karpenter.sh/v1` NodePool: the user's standing intent.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct, `pub` included, inside a function")]
#![allow(clippy::duplicated_attributes, reason = "each printcolumn has a type of its own")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::{GoDuration, NillableDuration};
use crate::nodeclass;
use crate::requirement::RequirementSpec;

mod budget;
mod convert;

/// What machines may be made, how many, and when they may go.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A pool of machines that scarpenter may make for pending pods.",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.template.spec.nodeClassRef.name"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.resources.memory", priority = 1)
)]
#[x_kube(
    validation = Rule::new("has(self.replicas) == has(oldSelf.replicas)").message("Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes"),
    validation = Rule::new("!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))").message("only 'limits.nodes' is supported on static NodePools"),
    validation = Rule::new("!has(self.replicas) || !has(self.weight)").message("'weight' is not supported on static NodePools")
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What its claims and machines are made from.
    pub template: NodeClaimTemplate,
    /// When and how fast its machines may go.
    #[serde(default)]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Disruption,
    /// Most that all its machines together may have; besides resources it takes `nodes` and
    /// `scarpenter.sparecores.com/micro-usd-per-hour`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub limits: BTreeMap<String, Quantity>,
    /// Heavier pools are tried first; absent is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// Keeps this many machines whatever is pending: a static pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// Metadata and spec that a pool's claims start from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct NodeClaimTemplate {
    /// Labels and annotations of its claims and nodes.
    #[serde(default, skip_serializing_if = "TemplateMeta::is_empty")]
    pub metadata: TemplateMeta,
    /// Spec of its claims.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of a pool's claims and nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateMeta {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::template_labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::template_annotations")]
    pub annotations: BTreeMap<String, String>,
}

impl TemplateMeta {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// A claim's spec without the sum of requests.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// The class that says how and where.
    #[x_kube(
        validation = Rule::new("self.group == oldSelf.group").message("nodeClassRef.group is immutable"),
        validation = Rule::new("self.kind == oldSelf.kind").message("nodeClassRef.kind is immutable")
    )]
    pub node_class_ref: NodeClassReference,
    /// What its machines must be.
    #[schemars(schema_with = "crate::schema::pool_requirements")]
    pub requirements: Vec<RequirementSpec>,
    /// Taints of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::taints")]
    pub taints: Vec<Taint>,
    /// Taints that others remove once the node has started; pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::taints")]
    pub startup_taints: Vec<Taint>,
    /// Draining is forced after this time; absent waits without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<GoDuration>,
    /// Machines older than this are replaced.
    #[serde(default = "default_expire_after")]
    pub expire_after: NillableDuration,
}

impl Default for NodeClaimTemplateSpec {
    fn default() -> Self {
        Self {
            node_class_ref: NodeClassReference::default(),
            requirements: Vec::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            termination_grace_period: None,
            expire_after: default_expire_after(),
        }
    }
}

pub(crate) fn default_expire_after() -> NillableDuration {
    NillableDuration::new("720h")
}

/// Names a node class.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeClassReference {
    /// API group.
    #[schemars(regex(pattern = "^[^/]*$"))]
    #[x_kube(validation = Rule::new("self != ''").message("group may not be empty"))]
    pub group: String,
    /// Kind.
    #[x_kube(validation = Rule::new("self != ''").message("kind may not be empty"))]
    pub kind: String,
    /// Name.
    #[x_kube(validation = Rule::new("self != ''").message("name may not be empty"))]
    pub name: String,
}

impl NodeClassReference {
    /// A reference to a `ScarpenterNodeClass`.
    #[must_use]
    pub fn scarpenter(name: &str) -> Self {
        Self { group: nodeclass::GROUP.to_owned(), kind: nodeclass::KIND.to_owned(), name: name.to_owned() }
    }

    /// Whether it names a `ScarpenterNodeClass`; everything else is not ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.group == nodeclass::GROUP && self.kind == nodeclass::KIND
    }
}

/// When and how fast machines may go.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a machine must have been empty or underused.
    #[serde(default = "default_consolidate_after")]
    pub consolidate_after: NillableDuration,
    /// Which machines are looked at.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many machines may be going at once; the strictest active one counts.
    #[serde(default = "default_budgets")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = Rule::new("self.all(x, has(x.schedule) == has(x.duration))").message("'schedule' must be set with 'duration'"))]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: default_consolidate_after(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: default_budgets(),
        }
    }
}

fn default_consolidate_after() -> NillableDuration {
    NillableDuration::new("0s")
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget::default()]
}

/// Which machines consolidation looks at.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum ConsolidationPolicy {
    /// Empty ones.
    WhenEmpty,
    /// Also those whose pods fit elsewhere, or cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
    /// The same, when the savings outweigh the disruption.
    Balanced,
}

/// How many machines may be going at once.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// A number, or a percentage of the pool's nodes, rounded up.
    #[serde(default = "default_budget_nodes")]
    #[schemars(regex(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// Reasons that it holds for; absent is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When it starts to hold: five cron fields in UTC, or a word such as `@daily`. Absent is always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long it holds from each start, in hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<String>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { nodes: default_budget_nodes(), reasons: None, schedule: None, duration: None }
    }
}

fn default_budget_nodes() -> String {
    "10%".to_owned()
}

/// Why a machine goes though nobody deleted it.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[schemars(inline)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere, or cheaper.
    Underutilized,
    /// No pod is left on it.
    Empty,
    /// Pool or class have changed.
    Drifted,
}

impl DisruptionReason {
    /// The word in budgets, conditions and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Underutilized => "Underutilized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
        }
    }
}

/// What is known of a pool.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Sum of what its machines have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub resources: BTreeMap<String, Quantity>,
    /// Number of its machines.
    #[serde(default)]
    pub nodes: i64,
    /// Generation of the class that `NodeRegistrationHealthy` was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}
