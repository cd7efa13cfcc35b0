//! Registration and initialization: everything is recomputed from claim and node, so repeating it is safe.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use scarpenter_api::{condition, event};
use scarpenter_core::label;
use scarpenter_core::offering::Launch;
use scarpenter_core::resources::format_quantity;
use scarpenter_index::ClaimRecord;
use serde_json::json;

use super::{Error, Next, status};
use crate::context::Context;
use crate::event::Severity;
use crate::{join, lessons, mesh};

/// A node that has so many percent of what was promised is what was promised.
const ENOUGH: i64 = 90;

/// Syncs claim to node in one patch, takes the unregistered taint off, and forgets the join material.
pub(crate) async fn register(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let api = Api::<Node>::all(context.client.clone());
    let name = context
        .view()
        .nodes_of(&record.claim.uid)
        .next()
        .map(|node| node.name.clone())
        .ok_or(Error::Stale("the node"))?;
    let node = api.get(&name).await.map_err(Error::kubernetes("read the node"))?;
    warn_of_missing_taint(context, record, &node).await;
    let patch = registered(record, &node);
    let written = api
        .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::kubernetes("register the node"))?;
    context.view().apply_node(&written);
    // Before the fact is written: Release does not look for the join material of a claim that has registered.
    join::forget(context, &record.claim.uid).await.map_err(|error| Error::Join(Box::new(error)))?;
    status::write(context, record, |status, look| {
        condition::set_true(&mut status.conditions, look, condition::REGISTERED);
        status.node_name = Some(name.clone());
    })
    .await?;
    mesh::joined(context, record);
    if let Some(launch) = &record.claim.launch {
        compare(context, record, launch, &node).await;
    }
    tracing::info!(node = name, "node registered");
    Ok(Next::Again)
}

/// Whether the machine is what was promised. That its pods do not fit is said once it is fit for use, and what it has
/// is learned then.
async fn compare(context: &Context, record: &ClaimRecord, launch: &Launch, node: &Node) {
    context.stock().joined(&launch.offering);
    let found = scarpenter_api::node::allocatable(node);
    let short = launch.allocatable.iter().find(|(name, promised)| {
        i128::from(found.get(name)) * 100 < i128::from(*promised) * i128::from(ENOUGH)
    });
    let Some((name, promised)) = short.filter(|_| !found.is_empty()) else { return };
    let [promised, there] = [promised, found.get(name)].map(|amount| format_quantity(name, amount));
    let words = format!("{} was to have {promised} of {name} and has {there}", launch.offering);
    context
        .events
        .publish(&context.client, &*record.object, Severity::Warning, event::FAILED_CONSISTENCY_CHECK, &words)
        .await;
}

async fn warn_of_missing_taint(context: &Context, record: &ClaimRecord, node: &Node) {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let held = taints.iter().any(|taint| taint.key == label::UNREGISTERED_TAINT);
    if !held && !node.labels().contains_key(label::REGISTERED) {
        let note = format!(
            "node {} joined without taint {}: pods may have landed before it was ready for them",
            node.name_any(),
            label::UNREGISTERED_TAINT
        );
        context
            .events
            .publish(
                &context.client,
                &*record.object,
                Severity::Warning,
                event::UNREGISTERED_TAINT_MISSING,
                &note,
            )
            .await;
    }
}

/// The patch of LIF-7.
fn registered(record: &ClaimRecord, node: &Node) -> serde_json::Value {
    let mut labels: BTreeMap<String, String> =
        record.claim.launch.as_ref().map(|launch| launch.labels.clone()).unwrap_or_default();
    labels.extend(record.object.labels().clone());
    labels.insert(label::REGISTERED.to_owned(), "true".to_owned());
    let annotations = record.object.annotations().iter().filter(|(key, _)| !is_fact(key));
    let annotations: BTreeMap<&String, &String> = annotations.collect();
    let mut finalizers = node.finalizers().to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == label::FINALIZER) {
        finalizers.push(label::FINALIZER.to_owned());
    }
    let mut owners = node.owner_references().to_vec();
    owners.retain(|owner| owner.uid != record.claim.uid.as_str());
    owners.extend(record.object.owner_ref(&()).map(|owner| OwnerReference {
        block_owner_deletion: Some(true),
        controller: None,
        ..owner
    }));
    json!({
        "metadata": {
            "resourceVersion": node.resource_version(),
            "labels": labels,
            "annotations": annotations,
            "finalizers": finalizers,
            "ownerReferences": owners,
        },
        "spec": {"taints": taints(record, node)},
    })
}

/// Facts about the machine stay on the claim; the node need not repeat them.
fn is_fact(key: &str) -> bool {
    let facts = [
        label::LAUNCH,
        label::ATTEMPT,
        label::REFUSED,
        label::MACHINE_ID,
        label::CLIENT_KEY_SHA256,
        label::MESH_KEY,
        label::PODS,
    ];
    facts.contains(&key) || key == "kubectl.kubernetes.io/last-applied-configuration"
}

fn taints(record: &ClaimRecord, node: &Node) -> Vec<Taint> {
    let mut out = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    out.retain(|taint| taint.key != label::UNREGISTERED_TAINT);
    if node.labels().get(label::DO_NOT_SYNC_TAINTS).is_some_and(|value| value == "true") {
        return out;
    }
    for taint in record.object.spec.taints.iter().chain(&record.object.spec.startup_taints) {
        if !out.iter().any(|own| own.key == taint.key && own.effect == taint.effect) {
            out.push(taint.clone());
        }
    }
    out
}

/// Marks the node as fit for use.
pub(crate) async fn initialize(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let api = Api::<Node>::all(context.client.clone());
    let name = record
        .object
        .status
        .as_ref()
        .and_then(|status| status.node_name.clone())
        .unwrap_or_else(|| record.claim.name.clone());
    let found = context.view().node(&name).map(|node| node.allocatable.clone()).unwrap_or_default();
    // Before pods are planned on what the node shows.
    lessons::learn(context, record, &found);
    lessons::promise::first_look(context, record).await;
    let patch = json!({"metadata": {"labels": {label::INITIALIZED: "true"}}});
    let written = api
        .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::kubernetes("initialize the node"))?;
    context.view().apply_node(&written);
    status::write(context, record, |status, look| {
        condition::set_true(&mut status.conditions, look, condition::INITIALIZED);
    })
    .await?;
    tracing::info!(node = name, "node initialized");
    context.wake.pools.notify_one();
    Ok(Next::Again)
}
