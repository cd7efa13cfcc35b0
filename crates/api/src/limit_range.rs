//! LimitRanges: what the API server writes into containers that do not say what they ask for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, LimitRange, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Requests that a LimitRange gives to each container of its namespace.
///
/// Only its items of type Container give any: one of type Pod bounds a pod's sum and makes the API server refuse what is
/// outside, but adds nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults(BTreeMap<String, Quantity>);

impl Defaults {
    /// Reads a LimitRange. What it leaves open is filled as the API server does: `default` from `max`, then
    /// `defaultRequest` from `default`, else from `min`.
    #[must_use]
    pub fn parse(range: &LimitRange) -> Self {
        let items = range.spec.iter().flat_map(|spec| &spec.limits).filter(|item| item.type_ == "Container");
        let mut out = BTreeMap::new();
        for item in items {
            let mut requests = item.default_request.clone().unwrap_or_default();
            for list in [&item.default, &item.max, &item.min] {
                for (name, amount) in list.iter().flatten() {
                    requests.entry(name.clone()).or_insert_with(|| amount.clone());
                }
            }
            out.extend(requests);
        }
        Self(out)
    }

    /// Fills in what containers do not ask for. A limit of their own counts as a request before this one.
    pub fn fill(&self, spec: &mut PodSpec) {
        let init = spec.init_containers.iter_mut().flatten();
        for container in spec.containers.iter_mut().chain(init) {
            self.fill_container(container);
        }
    }

    fn fill_container(&self, container: &mut Container) {
        let resources = container.resources.get_or_insert_default();
        let limits = resources.limits.as_ref();
        let has_limit = |name: &String| limits.is_some_and(|limits| limits.contains_key(name));
        let missing = self.0.iter().filter(|(name, _)| !has_limit(name));
        let missing: Vec<_> = missing.map(|(name, amount)| (name.clone(), amount.clone())).collect();
        let requests = resources.requests.get_or_insert_default();
        for (name, amount) in missing {
            requests.entry(name).or_insert(amount);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::pod;

    fn filled(range: &str, containers: &str) -> String {
        let range: LimitRange = serde_saphyr::from_str(&format!("spec: {{limits: [{range}]}}")).unwrap();
        let mut own: k8s_openapi::api::core::v1::Pod =
            serde_saphyr::from_str(&format!("{{metadata: {{name: p}}, spec: {{{containers}}}}}")).unwrap();
        Defaults::parse(&range).fill(own.spec.as_mut().unwrap());
        pod::requests(&own).to_string()
    }

    #[test]
    fn a_container_that_does_not_ask_gets_what_the_api_server_would_write() {
        let bare = "containers: [{name: a}]";
        for (range, containers, expected) in [
            ("{type: Container, defaultRequest: {cpu: 300m}, default: {cpu: 1}}", bare, "cpu 300m, pods 1"),
            ("{type: Container, default: {cpu: 1}}", bare, "cpu 1, pods 1"),
            (
                "{type: Container, max: {cpu: 2}, min: {cpu: 100m, memory: 1Gi}}",
                bare,
                "cpu 2, memory 1Gi, pods 1",
            ),
            ("{type: Container, min: {cpu: 100m}}", bare, "cpu 100m, pods 1"),
            ("{type: Pod, max: {cpu: 2}, min: {cpu: 1}}", bare, "pods 1"),
            (
                "{type: Container, default: {cpu: 1, memory: 1Gi}}",
                "containers: [{name: a, resources: {requests: {cpu: 2}, limits: {memory: 3Gi}}}, {name: b}]",
                "cpu 3, memory 4Gi, pods 1",
            ),
            (
                "{type: Container, default: {cpu: 1}}",
                "containers: [{name: a, resources: {requests: {cpu: 1}}}], initContainers: [{name: s, restartPolicy: Always}, {name: i}]",
                "cpu 2, pods 1",
            ),
        ] {
            assert_eq!(filled(range, containers), expected, "{range} {containers}");
        }
    }
}
