//! Where a pod is in its life, and what may be done with it.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use scarpenter_core::label;
use scarpenter_core::pod::{Taint, TaintEffect, untolerated};

use super::demands;
use crate::duration;

/// Whether a machine may be made for it: the scheduler found no place, and nobody else will put it somewhere (SCH-1).
#[must_use]
pub fn is_provisionable(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let unschedulable = status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
    });
    let bound =
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|name| !name.is_empty());
    let nominated = status.nominated_node_name.as_deref().is_some_and(|name| !name.is_empty());
    unschedulable && !bound && !nominated && !is_daemon(pod) && !is_owned_by(pod, "v1", "Node")
}

/// Whether its condition `MachineReady` says that it has no machine.
#[must_use]
pub fn is_told_to_wait(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|own| own.type_ == crate::condition::MACHINE_READY && own.status != "True")
}

/// Whether it has run to its end.
#[must_use]
pub fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether it is being deleted.
#[must_use]
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether a DaemonSet owns it.
#[must_use]
pub fn is_daemon(pod: &Pod) -> bool {
    is_owned_by(pod, "apps/v1", "DaemonSet")
}

/// UID of the DaemonSet that it is of.
#[must_use]
pub fn daemon_owner(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut sets = owners.filter(|owner| owner.api_version == "apps/v1" && owner.kind == "DaemonSet");
    sets.next().map(|owner| owner.uid.as_str())
}

/// Whether it only shows what a kubelet runs from its own files.
#[must_use]
pub fn is_mirror(pod: &Pod) -> bool {
    annotation(pod, "kubernetes.io/config.mirror").is_some() || is_owned_by(pod, "v1", "Node")
}

/// Whether it would come back elsewhere when its node goes, so that it needs a place (SCH-5).
#[must_use]
pub fn is_reschedulable(pod: &Pod) -> bool {
    let leaving = is_terminating(pod) && !is_owned_by(pod, "apps/v1", "StatefulSet");
    !is_terminal(pod) && !leaving && !is_daemon(pod) && !is_mirror(pod)
}

/// Whether draining waits for it (TRM-6).
#[must_use]
pub fn holds_drain(pod: &Pod, now: Timestamp) -> bool {
    let stuck =
        pod.metadata.deletion_timestamp.as_ref().is_some_and(|by| now > by.0 + SignedDuration::from_mins(1));
    !is_terminal(pod) && !is_mirror(pod) && !tolerates_disrupted(pod) && !stuck
}

/// Whether someone has still to read its end: a terminal pod with a finalizer.
#[must_use]
pub fn holds_destroy(pod: &Pod) -> bool {
    is_terminal(pod) && pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty())
}

/// Whether it puts up with the taint of a node that is about to go.
#[must_use]
pub fn tolerates_disrupted(pod: &Pod) -> bool {
    let taint = Taint {
        key: label::DISRUPTED_TAINT.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    let tolerations = pod.spec.as_ref().map(|spec| demands::tolerations(spec).0).unwrap_or_default();
    untolerated(&[taint], &tolerations, true).is_none()
}

/// Order of eviction: each group must be gone before the next is asked (TRM-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionGroup {
    /// Neither critical nor a daemon's.
    Workload,
    /// A daemon's.
    Daemon,
    /// Critical.
    CriticalWorkload,
    /// Critical, and a daemon's.
    CriticalDaemon,
}

/// The group that it is evicted with.
#[must_use]
pub fn eviction_group(pod: &Pod) -> EvictionGroup {
    let class = pod.spec.as_ref().and_then(|spec| spec.priority_class_name.as_deref());
    let critical = matches!(class, Some("system-cluster-critical" | "system-node-critical"));
    match (critical, is_daemon(pod)) {
        (false, false) => EvictionGroup::Workload,
        (false, true) => EvictionGroup::Daemon,
        (true, false) => EvictionGroup::CriticalWorkload,
        (true, true) => EvictionGroup::CriticalDaemon,
    }
}

/// Whether evicting it costs anything (DIS-8), from its deletion cost and priority, in integers.
#[must_use]
pub fn has_eviction_cost(pod: &Pod) -> bool {
    let deletion = annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
        .and_then(|text| text.parse::<i32>().ok());
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    (1i64 << 27) + i64::from(deletion.unwrap_or(0)) + 4 * i64::from(priority) > 0
}

/// How far annotation `karpenter.sh/do-not-disrupt` protects a pod (DIS-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Not, or no longer.
    None,
    /// As long as the annotation stands.
    Always,
    /// Until then.
    Until(Timestamp),
    /// Not: the annotation holds this text, which means nothing.
    Unreadable(String),
}

impl Protection {
    /// Whether the pod may not be disturbed now.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Always | Self::Until(_))
    }
}

/// Whether the pod asks not to be disturbed. Terminal and terminating pods never do.
#[must_use]
pub fn protection(pod: &Pod, now: Timestamp) -> Protection {
    let Some(text) = annotation(pod, label::DO_NOT_DISRUPT) else { return Protection::None };
    if is_terminal(pod) || is_terminating(pod) {
        return Protection::None;
    }
    if text == "true" {
        return Protection::Always;
    }
    let lasting = duration::parse(text).filter(|lasting| !lasting.is_zero());
    let Some(lasting) = lasting.and_then(|lasting| SignedDuration::try_from(lasting).ok()) else {
        return Protection::Unreadable(text.to_owned());
    };
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    match started.map(|started| started.0.checked_add(lasting)) {
        Some(Ok(until)) if until > now => Protection::Until(until),
        Some(Ok(_)) => Protection::None,
        None | Some(Err(_)) => Protection::Always,
    }
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn is_owned_by(pod: &Pod, api_version: &str, kind: &str) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.api_version == api_version && owner.kind == kind)
}
