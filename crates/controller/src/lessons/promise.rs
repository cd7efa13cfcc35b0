//! Pods that a machine was bought for and that do not come onto it: why, and what follows.
//!
//! The kind of machine is remembered as unfit for the pod before the promise ends, so that nothing buys it again for that
//! pod, even if this process dies in between. The promise ends by taking the pod off the claim's annotation: from then on
//! the pod is planned anew, and the machine counts as empty when nobody else is on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ObjectReference, Pod as KubePod};
use kube::{Api, ResourceExt};
use scarpenter_api::{condition, event};
use scarpenter_core::label;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::pod::{HostPort, Pod};
use scarpenter_index::{ClaimRecord, View};
use serde_json::json;

use super::gap::{Gap, gap};
use crate::clock;
use crate::context::Context;
use crate::event::Severity;
use crate::lifecycle::{Error, annotate};
use crate::provisioner::chain;

/// The loop looks this often.
const EVERY: Duration = Duration::from_secs(1);
/// So many times the patience nobody waits in any case.
const LONGEST: u32 = 10;
/// While the scheduler has bound a pod within this part of the patience, it may only be busy.
const QUIET_PART: u32 = 3;
/// A pod for which so many kinds of machines did not do gets no further one.
pub(crate) const MOST_KINDS: usize = 5;

/// A promise that is not kept.
struct Broken {
    record: ClaimRecord,
    pod: Pod,
    /// What differs, as far as can be told without the scheduler.
    words: Option<String>,
}

/// Looks at promises for ever.
pub(crate) async fn run(context: Arc<Context>) {
    loop {
        tokio::time::sleep(EVERY).await;
        for broken in broken(&context) {
            if let Err(error) = end(&context, &broken).await {
                tracing::debug!(claim = broken.record.claim.name, error = %chain(&error), "promise not ended yet");
            }
        }
    }
}

/// How long a machine is kept for the pods that it was bought for, from when its node is fit for use.
pub(crate) fn longest(patience: Duration) -> Duration {
    patience * LONGEST + 10 * EVERY
}

/// Ends promises that a machine can never keep, before its node counts as fit for use: only from then on are such pods
/// planned anew, and one that is bound elsewhere is no longer told anything.
pub(crate) async fn first_look(context: &Context, record: &ClaimRecord) {
    for broken in lasting(context, record) {
        if let Err(error) = end(context, &broken).await {
            tracing::debug!(claim = broken.record.claim.name, error = %chain(&error), "promise not ended yet");
        }
    }
}

fn lasting(context: &Context, record: &ClaimRecord) -> Vec<Broken> {
    let view = context.view();
    let waiting = waiting(&view, &record.pods.iter().map(String::as_str).collect());
    let Some(node) = view.place(&record.claim.name) else { return Vec::new() };
    let ports = daemon_ports(&view, &node.name);
    let broken = waiting.into_values().filter_map(|pod| {
        let gap = gap(&pod, &node, &ports).filter(|gap| gap.lasting)?;
        Some(Broken { record: record.clone(), pod, words: Some(gap.words) })
    });
    broken.collect()
}

fn broken(context: &Context) -> Vec<Broken> {
    let view = context.view();
    let made = || {
        view.claims().filter(|record| {
            record.claim.initialized && record.claim.deleted.is_none() && !record.pods.is_empty()
        })
    };
    let promised = made().flat_map(|record| record.pods.iter().map(String::as_str)).collect();
    let waiting = waiting(&view, &promised);
    if waiting.is_empty() {
        return Vec::new();
    }
    let places = view.places();
    let places: BTreeMap<&str, _> = places.iter().map(|node| (node.name.as_str(), node)).collect();
    let quiet = context.quiet();
    let mut out = Vec::new();
    for record in made() {
        let Some(node) = places.get(record.claim.name.as_str()).filter(|node| node.open) else { continue };
        if view.node(&node.name).is_none_or(|own| !own.ready) {
            continue;
        }
        let since = since_initialized(record);
        let ports = daemon_ports(&view, &node.name);
        for pod in record.pods.iter().filter_map(|uid| waiting.get(uid)) {
            let has_room = node.promised.contains(&pod.uid);
            let verdict = judge(gap(pod, node, &ports), has_room, since, quiet, context.settings.unfit_after);
            if let Verdict::Unfit(words) = verdict {
                out.push(Broken { record: record.clone(), pod: pod.clone(), words });
            }
        }
    }
    out
}

/// Those of the pods that still want a machine, by UID.
fn waiting(view: &View, promised: &BTreeSet<&str>) -> BTreeMap<String, Pod> {
    if !view.pending_uids().any(|uid| promised.contains(uid)) {
        return BTreeMap::new();
    }
    let waiting = view.pending().into_iter().filter(|pod| promised.contains(pod.uid.as_str()));
    waiting.map(|pod| (pod.uid.clone(), pod)).collect()
}

fn daemon_ports(view: &View, node: &str) -> Vec<HostPort> {
    let daemons = view.pods_on(node).filter(|own| own.stays_with_node && !own.terminal);
    daemons.flat_map(|own| own.pod.host_ports.iter().cloned()).collect()
}

fn since_initialized(record: &ClaimRecord) -> Duration {
    let since = condition::since(record.object.conditions(), condition::INITIALIZED);
    since.map_or(Duration::ZERO, |at| Time::from_millis(at.as_millisecond()).until(clock::now()))
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    Unfit(Option<String>),
}

/// Whether a machine that is fit for use `since` so long does not do for a pod that still waits for it. `quiet` is how
/// long the scheduler has bound nothing.
fn judge(gap: Option<Gap>, has_room: bool, since: Duration, quiet: Duration, patience: Duration) -> Verdict {
    match gap {
        Some(Gap { words, lasting: true }) => Verdict::Unfit(Some(words)),
        // Others took its room, or a promise to others counts: it is planned anew, and the kind is as good as any.
        _ if !has_room => Verdict::Wait,
        Some(Gap { words, .. }) if since >= patience => Verdict::Unfit(Some(words)),
        None if since >= patience && quiet >= patience / QUIET_PART => Verdict::Unfit(None),
        None if since >= patience * LONGEST => Verdict::Unfit(None),
        _ => Verdict::Wait,
    }
}

async fn end(context: &Context, broken: &Broken) -> Result<(), Error> {
    let Broken { record, pod, words } = broken;
    let api = Api::<KubePod>::namespaced(context.client.clone(), &pod.key.namespace);
    let object = api.get_opt(&pod.key.name).await.map_err(Error::kubernetes("read the pod"))?;
    // The view may be behind: it may be bound by now.
    let Some(object) = object.filter(|object| object.uid().as_deref() == Some(&pod.uid) && !is_bound(object))
    else {
        return Ok(());
    };
    let words = words.clone().or_else(|| scheduler_says(&object));
    let words = words.unwrap_or_else(|| "the scheduler does not say why".to_owned());
    remember(context, record, &pod.uid, &words).await;
    let record = ClaimRecord::parse(context.newest(Arc::clone(&record.object)));
    let rest: Vec<&str> = record.pods.iter().map(String::as_str).filter(|uid| *uid != pod.uid).collect();
    let rest = if rest.is_empty() { json!(null) } else { json!(rest.join(",")) };
    annotate(context, &record, "end a promise", json!({label::PODS: rest})).await?;
    context.wake.pods.notify_one();
    tell(context, &record, &object, &words).await;
    Ok(())
}

fn is_bound(object: &KubePod) -> bool {
    let node = object.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|name| !name.is_empty())
}

fn scheduler_says(object: &KubePod) -> Option<String> {
    let conditions = object.status.as_ref()?.conditions.as_ref()?;
    let own = conditions.iter().find(|own| own.type_ == "PodScheduled" && own.status == "False")?;
    Some(format!("the scheduler says: {}", own.message.as_deref()?))
}

async fn remember(context: &Context, record: &ClaimRecord, pod: &str, words: &str) {
    let Some(kind) = super::kind(record) else { return };
    let vendor = kind.vendor.clone();
    if !context.lessons.memory().refuse(pod, kind, words) {
        return;
    }
    context.metrics.unfit(&vendor);
    if let Err(error) = super::write(context).await {
        tracing::warn!(error = %chain(&error), "lessons not written yet");
        context.lessons.news.notify_one();
    }
}

async fn tell(context: &Context, record: &ClaimRecord, pod: &KubePod, words: &str) {
    let offering = record.claim.launch.as_ref().map(|launch| launch.offering.to_string()).unwrap_or_default();
    let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    tracing::warn!(claim = record.claim.name, pod = name, offering, words, "machine does not do for its pod");
    let note = format!("{offering} does not do for pod {name} and is not bought for it again: {words}");
    let (client, reason) = (&context.client, event::MACHINE_UNFIT);
    context.events.publish(client, &*record.object, Severity::Warning, reason, &note).await;
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name_any()),
        namespace: pod.namespace(),
        uid: pod.uid(),
        ..ObjectReference::default()
    };
    let note = format!(
        "{offering} (nodeclaim {}) does not do and is not bought for it again: {words}",
        record.claim.name
    );
    context.events.publish_about(client, about, Severity::Warning, reason, &note).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn differs(lasting: bool) -> Option<Gap> {
        Some(Gap { words: "w".to_owned(), lasting })
    }

    #[test]
    fn a_machine_that_is_too_small_does_not_do_from_the_first_look() {
        let verdict = judge(differs(true), false, Duration::ZERO, Duration::ZERO, PATIENCE);
        assert_eq!(verdict, Verdict::Unfit(Some("w".to_owned())));
    }

    #[test]
    fn what_may_pass_is_waited_for_as_long_as_is_set() {
        let at = |since| judge(differs(false), true, seconds(since), Duration::ZERO, PATIENCE);
        assert_eq!(at(29), Verdict::Wait);
        assert_eq!(at(30), Verdict::Unfit(Some("w".to_owned())));
    }

    #[test]
    fn a_pod_whose_room_others_took_teaches_nothing_of_the_machine() {
        assert_eq!(judge(None, false, seconds(900), seconds(900), PATIENCE), Verdict::Wait);
        assert_eq!(judge(differs(false), false, seconds(900), seconds(900), PATIENCE), Verdict::Wait);
    }

    #[test]
    fn where_nothing_differs_a_busy_scheduler_is_waited_for_but_not_for_ever() {
        let at = |since, quiet| judge(None, true, seconds(since), seconds(quiet), PATIENCE);
        assert_eq!(at(29, 29), Verdict::Wait);
        assert_eq!(at(60, 2), Verdict::Wait);
        assert_eq!(at(60, 10), Verdict::Unfit(None));
        assert_eq!(at(300, 0), Verdict::Unfit(None));
    }
}
