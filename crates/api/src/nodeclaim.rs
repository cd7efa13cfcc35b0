//! `karpenter.sh/v1` NodeClaim: one request for one node, the unit of life.

#![allow(unreachable_pub, reason = "KubeSchema repeats each struct, `pub` included, inside a function")]
#![allow(clippy::duplicated_attributes, reason = "each printcolumn has a type of its own")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::{GoDuration, NillableDuration};
use crate::nodepool::{NodeClaimTemplateSpec, NodeClassReference, default_expire_after};
use crate::requirement::RequirementSpec;

/// What the machine must be; never changed once made.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    category = "karpenter",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "One request for one node, and the machine that answers it.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = r".metadata.labels.node\.kubernetes\.io/instance-type"
    ),
    printcolumn(
        name = "Capacity",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/capacity-type"
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = r".metadata.labels.topology\.kubernetes\.io/zone"
    ),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/nodepool",
        priority = 1
    ),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.nodeClassRef.name", priority = 1),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        priority = 1
    )
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("spec is immutable"))]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// The class that says how and where.
    pub node_class_ref: NodeClassReference,
    /// What the machine must be; holds the full list, whatever offering was bought.
    #[schemars(schema_with = "crate::schema::claim_requirements")]
    pub requirements: Vec<RequirementSpec>,
    /// What the machine must have room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ClaimResources>,
    /// Taints of the node.
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
    /// The machine is replaced when it is older than this.
    #[serde(default = "default_expire_after")]
    pub expire_after: NillableDuration,
}

impl Default for NodeClaimSpec {
    fn default() -> Self {
        Self::from(&NodeClaimTemplateSpec::default())
    }
}

impl From<&NodeClaimTemplateSpec> for NodeClaimSpec {
    fn from(template: &NodeClaimTemplateSpec) -> Self {
        Self {
            node_class_ref: template.node_class_ref.clone(),
            requirements: template.requirements.clone(),
            resources: None,
            taints: template.taints.clone(),
            startup_taints: template.startup_taints.clone(),
            termination_grace_period: template.termination_grace_period.clone(),
            expire_after: template.expire_after.clone(),
        }
    }
}

impl NodeClaim {
    /// Whether its class is a `ScarpenterNodeClass`; everything else is not ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.spec.node_class_ref.is_ours()
    }

    /// Its conditions; empty while it has no status.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// Value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }
}

/// What the machine must have room for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ClaimResources {
    /// Sum of the requests of the pods it was made for, and of the daemon pods beside them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub requests: BTreeMap<String, Quantity>,
}

/// What is known of a claim's machine and node.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// Name of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Id of its node, `scarpenter://<vendor>/<claim uid>`.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Image that the machine was made from.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// What the machine has, as far as known before it joins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What pods can have of it, as far as known before it joins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// When a pod last came to or left the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_pod_event_time: Option<Time>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::claim_conditions")]
    pub conditions: Vec<Condition>,
}
