//! Giving a claim up: it is deleted, and the rows for deleted claims do the rest.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use scarpenter_api::{NodeClaim, event};
use scarpenter_core::lifecycle::AbandonReason;
use scarpenter_index::ClaimRecord;
use scarpenter_provider::FindMachine;

use super::{Error, Next};
use crate::context::Context;
use crate::event::Severity;
use crate::{clock, join};

/// Longest piece of a console that an event quotes.
const QUOTE: usize = 300;

/// Deletes the claim, with an event that says why.
pub(crate) async fn abandon(
    context: &Context,
    record: &ClaimRecord,
    reason: &AbandonReason,
) -> Result<Next, Error> {
    if *reason == AbandonReason::NodeDeleted && still_there(context, record).await? {
        return Err(Error::Stale("the node"));
    }
    let words = words(context, record, reason).await;
    tracing::warn!(reason = reason.word(), words, "claim given up");
    let severity = if *reason == AbandonReason::Expired { Severity::Normal } else { Severity::Warning };
    context.events.publish(&context.client, &*record.object, severity, event_of(reason), &words).await;
    context.metrics.disrupted(reason.word(), record.pool.as_deref());
    if let Err(error) = join::forget(context, &record.claim.uid).await {
        tracing::debug!(error = %crate::provisioner::chain(&error), "join material not removed yet");
    }
    // A node that is there may still need the password of its name, until it is drained.
    if !record.claim.registered
        && let Err(error) = join::forget_name(context, record).await
    {
        tracing::debug!(error = %crate::provisioner::chain(&error), "node password not removed yet");
    }
    delete(context, record).await?;
    remember(context, record, reason, &words);
    Ok(Next::Again)
}

/// An offering whose machine never became a node is not bought again at once: others come first, and its time-out grows.
fn remember(context: &Context, record: &ClaimRecord, reason: &AbandonReason, words: &str) {
    let failed = match reason {
        AbandonReason::LaunchTimeout | AbandonReason::RegistrationTimeout => true,
        AbandonReason::MachineStopped => !record.claim.registered,
        _ => false,
    };
    if let Some(launch) = record.claim.launch.as_ref().filter(|_| failed) {
        let until = context.stock().refuse_offering(&launch.offering, clock::now(), words);
        tracing::info!(offering = %launch.offering, until = clock::rfc3339(until), "not tried again before");
    }
}

/// Asks for the deletion of exactly this claim as it was read; one that is gone is fine.
///
/// One that was written meanwhile may have got its machine or its node: the loser of that race looks again.
pub(crate) async fn delete(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    let preconditions = Preconditions {
        uid: Some(record.claim.uid.to_string()),
        resource_version: record.object.resource_version(),
    };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let api = Api::<NodeClaim>::all(context.client.clone());
    match api.delete(&record.claim.name, &params).await {
        Ok(answer) => {
            answer.map_left(|claim| context.wrote(&claim));
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(Error::kubernetes("delete the claim")(error)),
    }
}

/// A view that is behind must not cost a machine: the API decides.
async fn still_there(context: &Context, record: &ClaimRecord) -> Result<bool, Error> {
    let name = record
        .object
        .status
        .as_ref()
        .and_then(|status| status.node_name.clone())
        .unwrap_or_else(|| record.claim.name.clone());
    let node = Api::<Node>::all(context.client.clone())
        .get_metadata_opt(&name)
        .await
        .map_err(Error::kubernetes("read the node"))?;
    Ok(node.is_some_and(|node| node.metadata.deletion_timestamp.is_none()))
}

fn event_of(reason: &AbandonReason) -> &'static str {
    match reason {
        AbandonReason::Refused(_) => event::INSUFFICIENT_CAPACITY_ERROR,
        AbandonReason::ClassNotReady => event::NODE_CLASS_NOT_READY,
        AbandonReason::Expired => event::DISRUPTED,
        _ => event::ABANDONED,
    }
}

async fn words(context: &Context, record: &ClaimRecord, reason: &AbandonReason) -> String {
    let words = match reason {
        AbandonReason::Refused(words) => return words.clone(),
        AbandonReason::LaunchTimeout => "no vendor accepted a machine within the launch deadline",
        AbandonReason::RegistrationTimeout => {
            let words = "the machine did not become a node within the registration deadline";
            return with_console(words, context, record).await;
        }
        AbandonReason::JoinMaterialLost => "its join Secret was deleted before the machine was known",
        AbandonReason::MachineStopped => {
            return with_console("the vendor says that the machine is stopped", context, record).await;
        }
        AbandonReason::MachineGone => {
            "the vendor says that there is no such machine, and the node is not Ready"
        }
        AbandonReason::NodeDeleted => "its node was deleted",
        AbandonReason::Expired => "it has lived as long as expireAfter allows",
        AbandonReason::ClassNotReady => "its node class is missing or not ready",
    };
    words.to_owned()
}

async fn with_console(words: &str, context: &Context, record: &ClaimRecord) -> String {
    match console(context, record).await {
        Some(line) => format!("{words}; its console ends with: {line}"),
        None => words.to_owned(),
    }
}

/// Last words of the machine's console, where its plugin has one.
async fn console(context: &Context, record: &ClaimRecord) -> Option<String> {
    let launch = record.claim.launch.as_ref()?;
    let slot = context.vendors.get(&launch.offering.vendor)?;
    if !slot.capabilities()?.has_console {
        return None;
    }
    let find = FindMachine {
        cluster: context.cluster.clone(),
        claim: record.claim.uid.clone(),
        machine: record.claim.machine_id.clone(),
        place: Some(super::launch::place(launch)),
    };
    let text = slot.client.console_output(find).await.ok()??;
    last_words(&text)
}

/// The last line that says something; that the kernel powers off does not say why.
fn last_words(console: &str) -> Option<String> {
    let lines = console.lines().rev().filter(|line| !line.trim().is_empty());
    let line = lines.into_iter().find(|line| !line.contains("reboot: Power down"))?;
    Some(line.trim().chars().take(QUOTE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_those_before_the_power_goes() {
        let console = "x\nmachine: hash of the extension is wrong \r\n\n[   15.2] reboot: Power down\n";
        assert_eq!(last_words(console).as_deref(), Some("machine: hash of the extension is wrong"));
        assert_eq!(last_words("\n \n"), None);
    }
}
