//! Leaving: taint and drain, destroy by UID until nothing is found, remove the node, let go.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use scarpenter_api::condition::{self, Status};
use scarpenter_api::{event, pod, reason};
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_index::ClaimRecord;
use scarpenter_provider::DeleteMachine;
use serde_json::json;

use super::{Error, Next, observe, patch, status};
use crate::context::Context;
use crate::event::Severity;
use crate::{clock, join, mesh};

/// A drain that waits for pods is looked at this often, besides by events.
const DRAIN_POLL: Duration = Duration::from_secs(2);
/// Label that takes a node out of load balancers before it goes (TRM-4).
const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Taints the node, then evicts the pods that are left, one group after the other (TRM-7).
pub(crate) async fn drain(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let name = context
        .view()
        .nodes_of(&record.claim.uid)
        .next()
        .map(|node| node.name.clone())
        .ok_or(Error::Stale("the node"))?;
    date_the_end(context, record).await?;
    if !taint(context, &name).await? {
        return Ok(Next::Again);
    }
    let now = Timestamp::now();
    let waiting: Vec<Pod> = observe::pods_on(context, &name)
        .await?
        .into_iter()
        .filter(|object| pod::holds_drain(object, now) || pod::holds_destroy(object))
        .collect();
    let words = format!("waiting for {} pods", waiting.len());
    status::write(context, record, |status, look| {
        condition::set(
            &mut status.conditions,
            look,
            condition::DRAINED,
            Status::Unknown,
            reason::DRAINING,
            &words,
        );
    })
    .await?;
    let first = waiting.iter().filter(|object| pod::holds_drain(object, now)).map(pod::eviction_group).min();
    for object in waiting
        .iter()
        .filter(|object| Some(pod::eviction_group(object)) == first && pod::holds_drain(object, now))
    {
        evict(context, record, &name, object, now).await;
    }
    Ok(if waiting.is_empty() { Next::Again } else { Next::After(DRAIN_POLL) })
}

/// A claim with a grace period gets the time after which nothing is waited for (TRM-1).
async fn date_the_end(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    let grace = record.object.spec.termination_grace_period.as_ref().and_then(|grace| grace.get());
    let (Some(grace), Some(deleted), None) = (grace, record.claim.deleted, record.claim.drain_deadline)
    else {
        return Ok(());
    };
    let end = clock::rfc3339(deleted.after(grace));
    patch::annotate(context, record, "date the end of draining", json!({label::TERMINATION_TIMESTAMP: end}))
        .await?;
    let note = format!("all pods will be deleted by {end}");
    context
        .events
        .publish(
            &context.client,
            &*record.object,
            Severity::Warning,
            event::TERMINATION_GRACE_PERIOD_EXPIRING,
            &note,
        )
        .await;
    Err(Error::Stale("the claim"))
}

/// Whether the node carried the taint already. The view learns of it at once, so the next look counts pods after it.
pub(crate) async fn taint(context: &Context, name: &str) -> Result<bool, Error> {
    let api = Api::<Node>::all(context.client.clone());
    let node = api.get(name).await.map_err(Error::kubernetes("read the node"))?;
    let mut taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == label::DISRUPTED_TAINT && taint.time_added.is_some()) {
        context.view().apply_node(&node);
        return Ok(true);
    }
    taints.retain(|taint| taint.key != label::DISRUPTED_TAINT);
    // The time says from when on no pod can have been bound any more.
    let time_added = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::now()));
    taints.push(Taint {
        key: label::DISRUPTED_TAINT.to_owned(),
        effect: "NoSchedule".to_owned(),
        time_added,
        value: None,
    });
    let patch = json!({
        "metadata": {"resourceVersion": node.resource_version(), "labels": {EXCLUDE: "karpenter"}},
        "spec": {"taints": taints},
    });
    let written = api
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::kubernetes("taint the node"))?;
    context.view().apply_node(&written);
    Ok(false)
}

async fn evict(context: &Context, record: &ClaimRecord, node: &str, object: &Pod, now: Timestamp) {
    if pod::is_terminating(object) {
        return;
    }
    if pod::protection(object, now).is_active() {
        let note = format!(
            "pod {}/{} asks not to be disrupted",
            object.namespace().unwrap_or_default(),
            object.name_any()
        );
        context
            .events
            .publish(&context.client, &*record.object, Severity::Warning, event::FAILED_DRAINING, &note)
            .await;
        return;
    }
    // A budget answers 429, which the other client would repeat for minutes.
    let api = Api::<Pod>::namespaced(context.unrepeated.clone(), &object.namespace().unwrap_or_default());
    let preconditions = Preconditions { uid: object.uid(), resource_version: None };
    let params = EvictParams {
        delete_options: Some(DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }),
        ..EvictParams::default()
    };
    match api.evict(&object.name_any(), &params).await {
        Ok(_) => {
            context
                .events
                .publish(
                    &context.client,
                    object,
                    Severity::Normal,
                    event::EVICTED,
                    &format!("Evicted pod: node {node} is going"),
                )
                .await;
        }
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
        Err(error) => {
            let note = format!(
                "pod {}/{} cannot be evicted: {error}",
                object.namespace().unwrap_or_default(),
                object.name_any()
            );
            context
                .events
                .publish(&context.client, &*record.object, Severity::Warning, event::FAILED_DRAINING, &note)
                .await;
        }
    }
}

/// Deletes by UID, and by id where it is known; what is absent is success. It repeats until a list says so too.
pub(crate) async fn destroy(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let vendors = match &record.claim.launch {
        Some(launch) => vec![launch.offering.vendor.clone()],
        None => context.vendors.names(),
    };
    for vendor in &vendors {
        destroy_at(context, record, vendor).await?;
    }
    if record.claim.terminating.is_none() {
        status::write(context, record, |status, look| {
            if record.claim.registered {
                condition::set_true(&mut status.conditions, look, condition::DRAINED);
            }
            condition::set_true(&mut status.conditions, look, condition::INSTANCE_TERMINATING);
        })
        .await?;
        return Ok(Next::Again);
    }
    Ok(Next::After(super::POLL))
}

async fn destroy_at(context: &Context, record: &ClaimRecord, vendor: &Vendor) -> Result<(), Error> {
    let slot = context.vendors.get(vendor).ok_or(Error::Missing("the vendor's plugin"))?;
    slot.want_list(&record.claim.name);
    // Events come often while a machine goes, and a vendor counts every call.
    if !slot.may_delete(&record.claim.uid) {
        return Ok(());
    }
    let delete = DeleteMachine {
        cluster: context.cluster.clone(),
        claim: record.claim.uid.clone(),
        machine: record.claim.machine_id.clone(),
        place: record.claim.launch.as_ref().map(super::launch::place),
        only_this_machine: false,
    };
    let outcome = slot.client.delete_machine(delete).await;
    if let Err(error) = &outcome {
        let note = format!("the machine is not deleted yet: {error}");
        context
            .events
            .publish(&context.client, &*record.object, Severity::Warning, event::FAILED_TERMINATION, &note)
            .await;
    }
    let deleted = outcome.map_err(Error::provider("delete the machine"))?;
    tracing::info!(%vendor, ?deleted, "machine deletion acknowledged");
    slot.deleted(&record.claim.uid);
    Ok(())
}

/// Removes what is left in Kubernetes, then the finalizer.
pub(crate) async fn release(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let nodes: Vec<String> =
        context.view().nodes_of(&record.claim.uid).map(|node| node.name.clone()).collect();
    for node in &nodes {
        remove_node(context, node).await?;
    }
    if !record.claim.registered {
        join::forget(context, &record.claim.uid).await.map_err(|error| Error::Join(Box::new(error)))?;
    }
    join::forget_name(context, record).await.map_err(|error| Error::Join(Box::new(error)))?;
    mesh::leave(context, record).await.map_err(|error| Error::Mesh(Box::new(error)))?;
    patch::let_go(context, record).await?;
    context.released(&record.claim.uid, &record.claim.name);
    context.metrics.terminated(record.pool.as_deref());
    tracing::info!("claim released");
    Ok(Next::After(super::POLL))
}

/// Deletes a Node and takes our finalizer off; foreign finalizers may hold it longer, which is their right.
pub(crate) async fn remove_node(context: &Context, name: &str) -> Result<(), Error> {
    let api = Api::<Node>::all(context.client.clone());
    let gone = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_not_found());
    let node = match api.delete(name, &DeleteParams::default()).await {
        Ok(answer) => answer.left(),
        Err(error) if gone(&error) => return Ok(()),
        Err(error) => return Err(Error::kubernetes("delete the node")(error)),
    };
    let Some(node) =
        node.filter(|node| node.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER))
    else {
        return Ok(());
    };
    let mut finalizers = node.finalizers().to_vec();
    finalizers.retain(|finalizer| finalizer != label::FINALIZER);
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": node.resource_version()}});
    match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(error) if gone(&error) => Ok(()),
        Err(error) => Err(Error::kubernetes("take our finalizer off the node")(error)),
    }
}
