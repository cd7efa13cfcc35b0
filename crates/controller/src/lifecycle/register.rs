//! Registration and initialization: everything is recomputed from claim and node, so repeating it is safe.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, NodeAddress, Taint};
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
use crate::{csr, join, lessons, mesh};

/// A node that has so many percent of what was promised is what was promised.
const ENOUGH: i64 = 90;

/// Taint of a kubelet that waits for somebody to write its addresses.
const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

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
    let node = match writes_addresses(context, record) {
        true => with_addresses(context, record, &api, node).await?,
        false => node,
    };
    warn_of_missing_taint(context, record, &node).await;
    let patch = registered(record, &node, writes_addresses(context, record));
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

fn writes_addresses(context: &Context, record: &ClaimRecord) -> bool {
    let class = context.view().class(&record.object.spec.node_class_ref.name).cloned();
    let launch = record.claim.launch.as_ref();
    class.zip(launch).is_some_and(|(class, launch)| {
        join::writes_addresses(&launch.offering.vendor, class.spec.join.method)
    })
}

/// Writes the addresses at which the API server reaches the node, which it cannot know itself. Its kubelet keeps them,
/// and asks for a serving certificate only now.
async fn with_addresses(
    context: &Context,
    record: &ClaimRecord,
    api: &Api<Node>,
    node: Node,
) -> Result<Node, Error> {
    let found = csr::vendor_addresses(context, record).await?;
    if found.is_empty() {
        return Err(Error::Missing("an address of the machine"));
    }
    let addresses = addresses(&node.name_any(), &found);
    if node.status.as_ref().and_then(|status| status.addresses.as_ref()) == Some(&addresses) {
        return Ok(node);
    }
    let patch = json!({
        "metadata": {"resourceVersion": node.resource_version()},
        "status": {"addresses": addresses},
    });
    api.patch_status(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::kubernetes("write the addresses of the node"))
}

/// As a cloud controller would write them; the name comes last, so that the API server dials an address.
fn addresses(name: &str, found: &[IpAddr]) -> Vec<NodeAddress> {
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    let found = found.iter().map(|found| address("InternalIP", found.to_string()));
    found.chain([address("Hostname", name.to_owned())]).collect()
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
fn registered(record: &ClaimRecord, node: &Node, has_addresses: bool) -> serde_json::Value {
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
        "spec": {"taints": taints(record, node, has_addresses)},
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

fn taints(record: &ClaimRecord, node: &Node, has_addresses: bool) -> Vec<Taint> {
    let mut out = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    out.retain(|taint| taint.key != label::UNREGISTERED_TAINT);
    if has_addresses {
        out.retain(|taint| taint.key != UNINITIALIZED_TAINT);
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn registering(has_addresses: bool) -> Vec<String> {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c", "uid": "u"},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "c"}},
        });
        let record = ClaimRecord::parse(Arc::new(serde_json::from_value(claim).unwrap()));
        let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
        let node = json!({"metadata": {"name": "c"}, "spec": {"taints": [
            taint(label::UNREGISTERED_TAINT), taint(UNINITIALIZED_TAINT), taint("example.com/own"),
        ]}});
        let patch = registered(&record, &serde_json::from_value(node).unwrap(), has_addresses);
        let taints = patch["spec"]["taints"].as_array().unwrap().clone();
        taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_whose_addresses_are_written_here_loses_the_taint_of_those_that_wait_for_them() {
        assert_eq!(registering(true), ["example.com/own"]);
        assert_eq!(registering(false), [UNINITIALIZED_TAINT, "example.com/own"]);
    }

    #[test]
    fn a_node_is_dialled_at_its_address_and_known_by_its_name() {
        let written = addresses("c", &["127.0.0.9".parse().unwrap()]);
        let written: Vec<_> = written.iter().map(|own| (own.type_.as_str(), own.address.as_str())).collect();
        assert_eq!(written, [("InternalIP", "127.0.0.9"), ("Hostname", "c")]);
    }
}
