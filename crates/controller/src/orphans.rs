//! Nodes of ours without a live claim: tainted, then removed, with an event that says so.
//!
//! A client certificate cannot be revoked, so a machine whose claim is gone may come back as a node; nothing of it stays.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use scarpenter_api::{NodeClaim, event};
use scarpenter_core::label;
use scarpenter_core::name::{ClaimUid, ProviderId};
use serde_json::json;

use crate::context::Context;
use crate::event::Severity;
use crate::lifecycle::{Error, remove_node};
use crate::provisioner::chain;

/// Nodes are looked at again after this long, besides by events.
const AGAIN: Duration = Duration::from_secs(30);
/// A node must have been without a claim for this long, so that a view that is behind costs nothing.
const GRACE: Duration = Duration::from_secs(5);

/// Looks at all nodes for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let mut since: HashMap<String, Instant> = HashMap::new();
    loop {
        let _ = tokio::time::timeout(
            if since.is_empty() { AGAIN } else { GRACE },
            context.wake.orphans.notified(),
        )
        .await;
        let suspects = suspects(&context);
        since.retain(|uid, _| suspects.iter().any(|(_, own, _)| own == uid));
        for (name, uid, claim) in suspects {
            let first = *since.entry(uid).or_insert_with(Instant::now);
            if first.elapsed() < GRACE {
                continue;
            }
            if let Err(error) = remove(&context, &name, &claim).await {
                tracing::error!(node = name, error = %chain(&error), "node without a claim not removed");
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Name and UID of nodes whose provider id is ours and whose claim the view does not hold, or under another name.
fn suspects(context: &Context) -> Vec<(String, String, ClaimUid)> {
    let view = context.view();
    view.nodes()
        .filter_map(|node| Some((node, node.provider_id.as_ref()?)))
        .filter(|(node, _)| view.claim_of_node(node).is_none())
        .map(|(node, id)| (node.name.clone(), node.uid.clone(), id.claim.clone()))
        .collect()
}

async fn remove(context: &Context, name: &str, claim: &ClaimUid) -> Result<(), Error> {
    let claims = Api::<NodeClaim>::all(context.client.clone()).list_metadata(&ListParams::default()).await;
    let claims = claims.map_err(Error::kubernetes("list the claims"))?;
    let owner = claims.items.iter().find(|object| object.metadata.uid.as_deref() == Some(claim.as_str()));
    let owner = owner.map(ResourceExt::name_any);
    if owner.as_deref() == Some(name) {
        return Ok(());
    }
    let api = Api::<Node>::all(context.client.clone());
    let Some(node) = api.get_opt(name).await.map_err(Error::kubernetes("read the node"))? else {
        return Ok(());
    };
    let ours = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).and_then(ProviderId::parse);
    if ours.is_none_or(|id| id.claim != *claim) {
        return Ok(());
    }
    let note = match owner {
        Some(owner) => format!(
            "node {name} has the provider id of NodeClaim {owner}, whose node has its name; it is tainted and removed"
        ),
        None => {
            format!("node {name} belongs to no live NodeClaim (claim {claim}); it is tainted and removed")
        }
    };
    tracing::warn!(node = name, %claim, "{note}");
    context.events.publish(&context.client, &node, Severity::Warning, event::FOREIGN_NODE, &note).await;
    taint(&api, &node).await?;
    remove_node(context, name).await
}

/// Nothing new lands on it, and what runs there is told to go.
async fn taint(api: &Api<Node>, node: &Node) -> Result<(), Error> {
    let mut taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == label::DISRUPTED_TAINT && taint.effect == "NoExecute") {
        return Ok(());
    }
    taints.push(Taint {
        key: label::DISRUPTED_TAINT.to_owned(),
        effect: "NoExecute".to_owned(),
        ..Taint::default()
    });
    let patch = json!({"metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": taints}});
    api.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
        .map_err(Error::kubernetes("taint the node"))
}
