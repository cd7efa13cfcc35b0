//! Requests of a pod, as the kube-scheduler counts them (SCH-22).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scarpenter_core::resources::{self, Resources};

use crate::quantity;

/// Sum of a pod's requests with `pods: 1`, and what could not be read.
///
/// The defaults that the API server would fill in are filled in here too, so that a file and an object give the same.
pub(super) fn count(spec: Option<&PodSpec>, status: Option<&PodStatus>) -> (Resources, Vec<String>) {
    let Some(spec) = spec else { return (Resources::new().with(resources::PODS, 1), Vec::new()) };
    let mut problems = Vec::new();
    let mut out = containers(spec, status, &mut problems);
    if let Some(whole) = &spec.resources {
        let specified = containers(spec, None, &mut Vec::new());
        pod_level(whole, status, &specified, &mut out, &mut problems);
    }
    if let Some(overhead) = &spec.overhead {
        out.add(&quantity::parse_amounts(overhead, &mut problems));
    }
    out.set(resources::PODS, 1);
    problems.sort();
    problems.dedup();
    (out, problems.into_iter().map(|words| format!("resources: {words}")).collect())
}

/// The larger of what runs in the end and of what runs at any step of the start.
fn containers(spec: &PodSpec, status: Option<&PodStatus>, problems: &mut Vec<String>) -> Resources {
    let infeasible = status.is_some_and(is_resize_infeasible);
    let seen = |name: &str, init: bool| {
        let status = status?;
        let list = if init { &status.init_container_statuses } else { &status.container_statuses };
        list.as_ref()?.iter().find(|container| container.name == name)
    };
    let mut total = Resources::new();
    for container in &spec.containers {
        total.add(&resized(container, seen(&container.name, false), infeasible, problems));
    }
    let mut sidecars = Resources::new();
    let mut start = Resources::new();
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            let requests = resized(container, seen(&container.name, true), infeasible, problems);
            total.add(&requests);
            sidecars.add(&requests);
        } else {
            let mut step = specified(container.resources.as_ref(), problems);
            step.add(&sidecars);
            start.max(&step);
        }
    }
    total.max(&start);
    total
}

/// Requests of a container, with limits for those that are missing.
fn specified(from: Option<&ResourceRequirements>, problems: &mut Vec<String>) -> Resources {
    let read = |list: Option<&BTreeMap<String, Quantity>>, problems: &mut Vec<String>| {
        list.map(|list| quantity::parse_amounts(list, problems)).unwrap_or_default()
    };
    let requests = read(from.and_then(|from| from.requests.as_ref()), problems);
    let mut out = read(from.and_then(|from| from.limits.as_ref()), problems);
    for (name, amount) in requests.iter() {
        out.set(name, amount);
    }
    out
}

/// While a container is resized, the node holds the largest of what was, is and shall be.
fn resized(
    container: &Container,
    seen: Option<&ContainerStatus>,
    infeasible: bool,
    problems: &mut Vec<String>,
) -> Resources {
    let wanted = specified(container.resources.as_ref(), problems);
    let Some((seen, actual)) = seen.and_then(|seen| Some((seen, seen.resources.as_ref()?))) else {
        return wanted;
    };
    let mut out = quantity::read(actual.requests.as_ref());
    out.max(&quantity::read(seen.allocated_resources.as_ref()));
    if !infeasible {
        out.max(&wanted);
    }
    out
}

fn is_resize_infeasible(status: &PodStatus) -> bool {
    status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "PodResizePending" && condition.reason.as_deref() == Some("Infeasible")
    })
}

/// Requests of the pod as a whole replace the sum of its containers, for the resources that may be set so.
///
/// The API server fills a missing one from the containers' sum, else from the pod's own limit, as soon as the pod has
/// limits; huge pages are filled from the limit alone.
fn pod_level(
    whole: &ResourceRequirements,
    status: Option<&PodStatus>,
    containers: &Resources,
    out: &mut Resources,
    problems: &mut Vec<String>,
) {
    let read = |list: Option<&BTreeMap<String, Quantity>>, problems: &mut Vec<String>| {
        list.map(|list| quantity::parse_amounts(list, problems)).unwrap_or_default()
    };
    let mut requests = read(whole.requests.as_ref(), problems);
    let limits = read(whole.limits.as_ref(), problems);
    if !limits.is_empty() {
        for name in [resources::CPU, resources::MEMORY] {
            if let (None, Some(amount)) = (requests.find(name), containers.find(name)) {
                requests.set(name, amount);
            }
        }
        for (name, amount) in limits.iter() {
            if requests.find(name).is_none() {
                requests.set(name, amount);
            }
        }
    }
    if let Some(status) = status {
        let actual = status.resources.as_ref().and_then(|actual| actual.requests.as_ref());
        let mut held = quantity::read(actual);
        held.max(&quantity::read(status.allocated_resources.as_ref()));
        let named: Resources = requests.iter().map(|(name, _)| (name.to_owned(), held.get(name))).collect();
        requests.max(&named);
    }
    for (name, amount) in requests.iter().filter(|(name, _)| is_pod_level(name)) {
        out.set(name, amount);
    }
}

fn is_pod_level(name: &str) -> bool {
    name == resources::CPU || name == resources::MEMORY || name.starts_with("hugepages-")
}
