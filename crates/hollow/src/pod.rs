//! A pod's life on paper: what comes next, and what its status says then. Pure.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use scarpenter_core::name::sha256_hex;
use serde_json::{Value, json};

use crate::admission::Rejection;
use crate::duration::parse_go;

/// Seconds after which a pod succeeds by itself; a fraction is fine.
const RUN_SECONDS: &str = "sim.scarpenter.sparecores.com/run-seconds";
/// What its containers exit with then; any other than 0 fails the pod.
const EXIT_CODE: &str = "sim.scarpenter.sparecores.com/exit-code";
/// Time that a deleted pod takes to shut down, a Go duration.
const DELETE_DELAY: &str = "pod-delete.stage.kwok.x-k8s.io/delay";
/// `unhealthy`: runs, and is never Ready.
const HEALTH: &str = "kwok.x-k8s.io/stage";
/// 128 + SIGTERM: a process that does not catch the signal.
const TERMINATED: i32 = 143;

/// How far the pod has come here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Bound, not looked at.
    New,
    /// Its containers run, since then.
    Running(Timestamp),
    /// Succeeded, failed or rejected.
    Done,
    /// Deleted for good; the object may be held by a finalizer.
    Removed,
}

/// What to do with the pod now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Look whether it fits, and start it.
    Admit,
    /// Its containers end by themselves.
    Finish {
        /// With this code.
        exit_code: i32,
    },
    /// Its containers were ended; the object goes.
    Remove {
        /// Code to record first, when somebody will read it.
        record: Option<i32>,
    },
    /// Nothing, until then.
    Wait(Option<Timestamp>),
}

/// The stage of a pod that is seen for the first time.
pub(crate) fn first_stage(pod: &core::Pod) -> Stage {
    let status = pod.status.as_ref();
    match status.and_then(|status| status.phase.as_deref()) {
        Some("Succeeded" | "Failed") => Stage::Done,
        Some("Running") => {
            let since = status.and_then(|status| status.start_time.as_ref());
            Stage::Running(since.map_or(Timestamp::UNIX_EPOCH, |time| time.0))
        }
        _ => Stage::New,
    }
}

/// What comes next for the pod.
pub(crate) fn next(pod: &core::Pod, stage: Stage, now: Timestamp) -> Next {
    if stage == Stage::Removed {
        return Next::Wait(None);
    }
    if let Some(end) = shutdown_ends(pod) {
        return match stage {
            Stage::Running(_) if now < end => Next::Wait(Some(end)),
            // A finalizer's owner will read how it ended.
            Stage::Running(_) if pod.metadata.finalizers.as_ref().is_some_and(|list| !list.is_empty()) => {
                Next::Remove { record: Some(exit_code(pod).unwrap_or(TERMINATED)) }
            }
            _ => Next::Remove { record: None },
        };
    }
    match stage {
        Stage::New => Next::Admit,
        Stage::Running(since) => match run_time(pod).map(|time| since.saturating_add(time)) {
            Some(Ok(end)) if end <= now => Next::Finish { exit_code: exit_code(pod).unwrap_or(0) },
            Some(Ok(end)) => Next::Wait(Some(end)),
            _ => Next::Wait(None),
        },
        Stage::Done | Stage::Removed => Next::Wait(None),
    }
}

/// When a deleted pod's containers have ended: after their delay, or when the grace is over.
///
/// A second deletion with a shorter grace moves `deletionTimestamp` forward and so wins.
fn shutdown_ends(pod: &core::Pod) -> Option<Timestamp> {
    let killed = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
    let delay = annotation(pod, DELETE_DELAY).and_then(parse_go).unwrap_or_default();
    let asked = killed.checked_sub(grace).unwrap_or(killed);
    let ended = SignedDuration::try_from(delay).ok().and_then(|delay| asked.checked_add(delay).ok());
    Some(ended.unwrap_or(killed).min(killed))
}

fn run_time(pod: &core::Pod) -> Option<SignedDuration> {
    let seconds: f64 = annotation(pod, RUN_SECONDS)?.trim().parse().ok()?;
    SignedDuration::try_from(Duration::try_from_secs_f64(seconds).ok()?).ok()
}

fn exit_code(pod: &core::Pod) -> Option<i32> {
    annotation(pod, EXIT_CODE)?.trim().parse().ok()
}

fn annotation<'a>(pod: &'a core::Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn is_unhealthy(pod: &core::Pod) -> bool {
    pod.metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(HEALTH))
        .is_some_and(|stage| stage == "unhealthy")
}

/// Status of a pod whose containers run.
pub(crate) fn running(pod: &core::Pod, host: Option<IpAddr>, now: Timestamp) -> Value {
    let ready = !is_unhealthy(pod);
    let word = if ready { "True" } else { "False" };
    let ip = pod_ip(pod);
    let state = json!({"running": {"startedAt": Time(now)}});
    let mut status = json!({
        "phase": "Running",
        "startTime": Time(now),
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [
            condition("PodReadyToStartContainers", "True", None, now),
            condition("Initialized", "True", None, now),
            condition("ContainersReady", word, (!ready).then_some("ContainersNotReady"), now),
            condition("Ready", word, (!ready).then_some("ContainersNotReady"), now),
        ],
        "containerStatuses": containers(pod).map(|c| container_status(c, ready, true, &state)).collect::<Value>(),
        "initContainerStatuses": init_containers(pod).map(|container| {
            if container.restart_policy.as_deref() == Some("Always") {
                container_status(container, true, true, &state)
            } else {
                container_status(container, true, false, &terminated(0, now, now))
            }
        }).collect::<Value>(),
    });
    if let Some(host) = host {
        status["hostIP"] = json!(host);
        status["hostIPs"] = json!([{"ip": host}]);
    }
    patch(pod, status)
}

/// Status of a pod whose containers ended.
pub(crate) fn finished(pod: &core::Pod, since: Timestamp, now: Timestamp, exit_code: i32) -> Value {
    let (phase, reason) =
        if exit_code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    let state = terminated(exit_code, since, now);
    let status = json!({
        "phase": phase,
        "conditions": [
            condition("ContainersReady", "False", Some(reason), now),
            condition("Ready", "False", Some(reason), now),
        ],
        "containerStatuses": containers(pod).map(|c| container_status(c, false, false, &state)).collect::<Value>(),
    });
    patch(pod, status)
}

/// Status of a pod that was not taken.
pub(crate) fn rejected(pod: &core::Pod, rejection: &Rejection, now: Timestamp) -> Value {
    let Rejection { reason, message } = rejection;
    patch(pod, json!({"phase": "Failed", "reason": reason, "message": message, "startTime": Time(now)}))
}

/// With the UID, so that a pod made anew under the same name is not meant.
fn patch(pod: &core::Pod, status: Value) -> Value {
    json!({"metadata": {"uid": pod.metadata.uid}, "status": status})
}

fn containers(pod: &core::Pod) -> impl Iterator<Item = &core::Container> {
    pod.spec.iter().flat_map(|spec| &spec.containers)
}

fn init_containers(pod: &core::Pod) -> impl Iterator<Item = &core::Container> {
    pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten())
}

fn condition(kind: &str, status: &str, reason: Option<&str>, now: Timestamp) -> Value {
    let mut out = json!({"type": kind, "status": status, "lastTransitionTime": Time(now)});
    if let Some(reason) = reason {
        out["reason"] = json!(reason);
    }
    out
}

fn container_status(container: &core::Container, ready: bool, started: bool, state: &Value) -> Value {
    let image = container.image.as_deref().unwrap_or_default();
    json!({
        "name": container.name, "image": image, "imageID": format!("hollow://{image}"),
        "containerID": format!("hollow://{}", container.name),
        "ready": ready, "started": started, "restartCount": 0, "state": state,
    })
}

fn terminated(exit_code: i32, since: Timestamp, now: Timestamp) -> Value {
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    json!({"terminated": {
        "exitCode": exit_code, "reason": reason, "startedAt": Time(since), "finishedAt": Time(now),
    }})
}

/// From the range for benchmarks, which no network routes: nobody answers there.
fn pod_ip(pod: &core::Pod) -> Ipv4Addr {
    let digest = sha256_hex(pod.metadata.uid.as_deref().unwrap_or_default().as_bytes());
    let number = u32::from_str_radix(&digest[..8], 16).unwrap_or_default();
    Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + number % (1 << 17))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn pod(metadata: Value) -> core::Pod {
        let spec = json!({"containers": [{"name": "main", "image": "pause"}]});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn deleted(grace: i64, killed: i64, delay: &str) -> core::Pod {
        pod(json!({
            "deletionTimestamp": Time(at(killed)), "deletionGracePeriodSeconds": grace,
            "annotations": {DELETE_DELAY: delay},
        }))
    }

    #[test]
    fn a_pod_runs_for_ever_unless_told_how_long() {
        assert_eq!(next(&pod(json!({})), Stage::New, at(0)), Next::Admit);
        assert_eq!(next(&pod(json!({})), Stage::Running(at(0)), at(1 << 30)), Next::Wait(None));
        let short = pod(json!({"annotations": {RUN_SECONDS: "2.5"}}));
        let end = at(12) + SignedDuration::from_millis(500);
        assert_eq!(next(&short, Stage::Running(at(10)), at(11)), Next::Wait(Some(end)));
        assert_eq!(next(&short, Stage::Running(at(10)), end), Next::Finish { exit_code: 0 });
        assert_eq!(next(&short, Stage::Done, at(99)), Next::Wait(None));
        let failing = pod(json!({"annotations": {RUN_SECONDS: "0", EXIT_CODE: "3"}}));
        assert_eq!(next(&failing, Stage::Running(at(10)), at(10)), Next::Finish { exit_code: 3 });
    }

    #[test]
    fn a_deleted_pod_goes_after_its_delay_or_when_its_grace_is_over() {
        let gone = Next::Remove { record: None };
        let running = Stage::Running(at(0));
        assert_eq!(next(&deleted(30, 130, "0"), running, at(100)), gone);
        assert_eq!(next(&deleted(30, 130, "10s"), running, at(105)), Next::Wait(Some(at(110))));
        assert_eq!(next(&deleted(30, 130, "10s"), running, at(110)), gone);
        assert_eq!(next(&deleted(30, 130, "1h"), running, at(129)), Next::Wait(Some(at(130))));
        assert_eq!(next(&deleted(30, 130, "1h"), running, at(130)), gone);
        assert_eq!(next(&deleted(5, 105, "1h"), running, at(105)), gone, "a shorter grace wins");
        for stage in [Stage::New, Stage::Done] {
            assert_eq!(next(&deleted(30, 130, "10s"), stage, at(100)), gone);
        }
        assert_eq!(next(&deleted(30, 130, "0"), Stage::Removed, at(200)), Next::Wait(None));
    }

    #[test]
    fn how_a_held_pod_ended_is_recorded_before_it_goes() {
        let mut held = deleted(0, 100, "0");
        held.metadata.finalizers = Some(vec!["example.com/reader".to_owned()]);
        assert_eq!(next(&held, Stage::Running(at(0)), at(100)), Next::Remove { record: Some(143) });
        assert_eq!(next(&held, Stage::Done, at(100)), Next::Remove { record: None });
    }

    #[test]
    fn an_unhealthy_pod_runs_and_is_never_ready() {
        let condition = |pod: &core::Pod| {
            let conditions = running(pod, None, at(0))["status"]["conditions"].clone();
            let ready = conditions.as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap().clone();
            ready["status"].as_str().unwrap().to_owned()
        };
        assert_eq!(condition(&pod(json!({}))), "True");
        assert_eq!(condition(&pod(json!({"labels": {HEALTH: "unhealthy"}}))), "False");
    }

    #[test]
    fn the_status_is_one_that_kubernetes_knows() {
        let pod = pod(json!({"uid": "u-1"}));
        let statuses = [
            running(&pod, Some("10.0.0.1".parse().unwrap()), at(0)),
            finished(&pod, at(0), at(9), 3),
            rejected(&pod, &Rejection { reason: "OutOfcpu".to_owned(), message: "m".to_owned() }, at(0)),
        ];
        let phases: Vec<String> = statuses
            .map(|patch| serde_json::from_value::<core::PodStatus>(patch["status"].clone()).unwrap())
            .map(|status| status.phase.unwrap())
            .to_vec();
        assert_eq!(phases, ["Running", "Failed", "Failed"]);
    }
}
