//! Pods: what one asks for, and what may be done with it.

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use scarpenter_core::pod as core;
use scarpenter_core::pod::PodKey;
use scarpenter_core::resources::Resources;

use crate::requirement;

mod demands;
mod neighbours;
mod requests;
mod state;
mod taken;

pub(crate) use demands::parse_line;

pub use state::{
    EvictionGroup, Protection, daemon_owner, eviction_group, has_eviction_cost, holds_destroy, holds_drain,
    is_daemon, is_mirror, is_provisionable, is_reschedulable, is_terminal, is_terminating, is_told_to_wait,
    protection, tolerates_disrupted,
};

/// Reads a pod that wants a place. What is malformed or not decided here is named in `invalid` and `undecided`.
///
/// Claims of its volumes are only named: what they mean is known where claims and volumes are.
#[must_use]
pub fn parse(pod: &Pod) -> core::Pod {
    let mut out = core::Pod {
        key: key(pod),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        created: pod.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
        labels: pod.metadata.labels.clone().unwrap_or_default(),
        ..core::Pod::default()
    };
    if let Some(spec) = &pod.spec {
        read_spec(spec, pod.status.as_ref(), &mut out);
    }
    let restricted = restrictions(&out);
    out.invalid.extend(restricted);
    out
}

/// Namespace and name.
#[must_use]
pub fn key(pod: &Pod) -> PodKey {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    PodKey::new(namespace, pod.metadata.name.as_deref().unwrap_or_default())
}

/// All that a pod asks for as the kube-scheduler counts it, `pods: 1` included (SCH-22).
#[must_use]
pub fn requests(pod: &Pod) -> Resources {
    requests::count(pod.spec.as_ref(), pod.status.as_ref()).0
}

/// Reads what a spec asks for into a pod whose names and labels are known.
pub(crate) fn read_spec(spec: &PodSpec, status: Option<&PodStatus>, out: &mut core::Pod) {
    let (requests, problems) = requests::count(Some(spec), status);
    out.requests = requests;
    out.priority = spec.priority.unwrap_or(0);
    out.invalid.extend(problems);
    demands::read(spec, out);
    neighbours::read(spec, out);
    taken::read(spec, out);
}

/// Labels that a pod may not ask for (SCH-6); preferences for them are only never met.
fn restrictions(pod: &core::Pod) -> Vec<String> {
    let selected = pod.node_selector.keys().map(|key| ("nodeSelector", key));
    let required = pod.required_terms.iter().flatten().map(|line| ("required node affinity", &line.key));
    let words = |(place, key): (&str, &String)| Some(format!("{place}: {}", requirement::restriction(key)?));
    selected.chain(required).filter_map(words).collect()
}
