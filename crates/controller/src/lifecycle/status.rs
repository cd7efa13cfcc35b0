//! The status of a claim, computed from its facts and from what is seen.

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use scarpenter_api::condition::{self, Look, Status};
use scarpenter_api::{NodeClaim, NodeClaimStatus, quantity, reason};
use scarpenter_core::lifecycle::{NodeSeen, Seen, WaitReason};
use scarpenter_index::ClaimRecord;
use serde_json::json;

use super::Error;
use crate::context::Context;
use crate::event::Severity;

/// Longest reason text that Karpenter keeps of a failed launch.
const WORDS: usize = 300;

/// Writes what is waited for; nothing is written when nothing changed.
pub(crate) async fn waiting(
    context: &Context,
    record: &ClaimRecord,
    seen: &Seen,
    reason: &WaitReason,
) -> Result<(), Error> {
    write(context, record, |status, look| {
        let registered = record.claim.registered;
        match reason {
            WaitReason::Settling => set_launching(
                status,
                look,
                reason::LAUNCH_FAILED,
                "the outcome of the latest create is not known yet",
            ),
            WaitReason::ProviderUnreachable(why)
                if record.claim.machine_id.is_none() && record.claim.deleted.is_none() =>
            {
                set_launching(status, look, reason::LAUNCH_FAILED, why);
            }
            WaitReason::NodeNotFound => set_unknown(
                status,
                look,
                condition::REGISTERED,
                reason::NODE_NOT_FOUND,
                "no node has joined yet",
            ),
            WaitReason::MultipleNodesFound if !registered => {
                let words = "more than one node has its provider id";
                condition::set(
                    &mut status.conditions,
                    look,
                    condition::REGISTERED,
                    Status::False,
                    reason::MULTIPLE_NODES_FOUND,
                    words,
                );
            }
            WaitReason::NotInitialized(word, words) => {
                set_unknown(status, look, condition::INITIALIZED, word, words)
            }
            WaitReason::Draining => set_unknown(
                status,
                look,
                condition::DRAINED,
                reason::DRAINING,
                "waiting for a pod that may still be on its way",
            ),
            _ => {}
        }
        if matches!(seen.node, NodeSeen::Absent) && record.claim.machine_id.is_none() && !registered {
            set_unknown(
                status,
                look,
                condition::REGISTERED,
                reason::NODE_NOT_FOUND,
                "no machine has been launched yet",
            );
        }
    })
    .await
    .map(drop)
}

fn set_launching(status: &mut NodeClaimStatus, look: Look, word: &str, words: &str) {
    set_unknown(status, look, condition::LAUNCHED, word, words);
}

fn set_unknown(status: &mut NodeClaimStatus, look: Look, type_: &str, word: &str, words: &str) {
    let cut: String = words.chars().take(WORDS).collect();
    condition::set(&mut status.conditions, look, type_, Status::Unknown, word, &cut);
}

/// Changes the status of a claim if it is still as it was read.
///
/// What follows from the facts alone (launched, provider id, capacity, Ready) is filled in each time.
pub(crate) async fn write(
    context: &Context,
    record: &ClaimRecord,
    change: impl FnOnce(&mut NodeClaimStatus, Look),
) -> Result<Arc<NodeClaim>, Error> {
    let before = record.object.status.clone().unwrap_or_default();
    let look = Look { generation: record.object.metadata.generation, now: Timestamp::now() };
    let mut status = before.clone();
    launched(record, &mut status, look);
    change(&mut status, look);
    let created = record.object.creation_timestamp().map_or(look.now, |at| at.0);
    condition::complete(&mut status.conditions, look, created, &condition::CLAIM_DEPENDENTS);
    if status == before {
        return Ok(Arc::clone(&record.object));
    }
    let patch = json!({
        "metadata": {"resourceVersion": record.object.resource_version(), "uid": record.claim.uid.as_str()},
        "status": status,
    });
    let api = Api::<NodeClaim>::all(context.client.clone());
    let written = api.patch_status(&record.claim.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    let written = written.map_err(Error::kubernetes("write the claim's status"))?;
    context.wrote(&written);
    announce(context, &before, &written).await;
    Ok(Arc::new(written))
}

/// What a recorded machine id says.
fn launched(record: &ClaimRecord, status: &mut NodeClaimStatus, look: Look) {
    let (Some(_), Some(launch)) = (&record.claim.machine_id, &record.claim.launch) else { return };
    condition::set_true(&mut status.conditions, look, condition::LAUNCHED);
    status.provider_id = record.provider_id().map(|id| id.to_string());
    if status.capacity.is_empty() {
        status.capacity = quantity::write(&launch.capacity);
        status.allocatable = quantity::write(&launch.allocatable);
    }
}

/// An event for each condition that became true: a claim's milestones (CND-5).
async fn announce(context: &Context, before: &NodeClaimStatus, after: &NodeClaim) {
    for (type_, word) in
        [(condition::REGISTERED, condition::REGISTERED), (condition::INITIALIZED, condition::INITIALIZED)]
    {
        if condition::is_true(after.conditions(), type_) && !condition::is_true(&before.conditions, type_) {
            let note = format!("Status condition transitioned, Type: {type_}, Status: True");
            context.events.publish(&context.client, after, Severity::Normal, word, &note).await;
        }
    }
}
