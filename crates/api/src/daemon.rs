//! DaemonSets: the pod that each puts on every node it fits.

use k8s_openapi::api::apps::v1::DaemonSet;
use scarpenter_core::node::Daemon;
use scarpenter_core::pod::{Pod, PodKey};

use crate::limit_range::Defaults;
use crate::pod;

/// Reads the pod of a DaemonSet's template, with limits copied to missing requests.
///
/// Restricted labels are fine here: a daemon may ask for `karpenter.sh/registered`, and nothing is bought for it.
#[must_use]
pub fn parse(set: &DaemonSet) -> Daemon {
    parse_under(set, [])
}

/// The same, with what the LimitRanges of its namespace give to containers that do not ask (SCH-25).
#[must_use]
pub fn parse_under<'a>(set: &DaemonSet, ranges: impl IntoIterator<Item = &'a Defaults>) -> Daemon {
    let namespace = set.metadata.namespace.as_deref().unwrap_or("default");
    let template = &set.spec.template;
    let mut out = Pod {
        key: PodKey::new(namespace, set.metadata.name.as_deref().unwrap_or_default()),
        uid: set.metadata.uid.clone().unwrap_or_default(),
        created: set.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
        labels: template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default(),
        ..Pod::default()
    };
    if let Some(mut spec) = template.spec.clone() {
        ranges.into_iter().for_each(|range| range.fill(&mut spec));
        pod::read_spec(&spec, None, &mut out);
    }
    Daemon { pod: out }
}

/// Whether a pod of this DaemonSet is of its present template; one that does not say is taken to be.
#[must_use]
pub fn is_current(set: &DaemonSet, pod: &Pod) -> bool {
    let annotations = set.metadata.annotations.as_ref();
    let wanted = annotations.and_then(|all| all.get("deprecated.daemonset.template.generation"));
    let own = pod.labels.get("pod-template-generation");
    wanted.zip(own).is_none_or(|(wanted, own)| wanted == own)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_core::resources::{CPU, MEMORY, PODS};

    use super::*;

    fn set(text: &str) -> DaemonSet {
        serde_saphyr::from_str(text).unwrap()
    }

    const SET: &str = "metadata: {name: d, namespace: kube-system, uid: u, annotations: {deprecated.daemonset.template.generation: '3'}}\n\
         spec:\n  selector: {}\n  template:\n    metadata: {labels: {app: d}}\n    spec:\n\
         \x20     nodeSelector: {karpenter.sh/registered: 'true'}\n\
         \x20     tolerations: [{operator: Exists}]\n\
         \x20     containers: [{name: a, resources: {limits: {memory: 1Gi}, requests: {cpu: 50m}}}]\n";

    #[test]
    fn a_daemon_is_its_template() {
        let Daemon { pod } = parse(&set(SET));
        assert_eq!(pod.key.to_string(), "kube-system/d");
        assert_eq!(
            (pod.requests.get(CPU), pod.requests.get(MEMORY), pod.requests.get(PODS)),
            (50, 1 << 30, 1)
        );
        assert!(pod.invalid.is_empty(), "{:?}", pod.invalid);
        assert_eq!(pod.labels["app"], "d");
        assert_eq!(pod.tolerations.len(), 1);
    }

    #[test]
    fn a_limit_range_fills_what_the_template_does_not_ask_for() {
        let range = serde_saphyr::from_str(
            "spec: {limits: [{type: Container, default: {cpu: 1, memory: 2Gi, ephemeral-storage: 3Gi}}]}",
        )
        .unwrap();
        let Daemon { pod } = parse_under(&set(SET), [&Defaults::parse(&range)]);
        assert_eq!(pod.requests.to_string(), "cpu 50m, ephemeral-storage 3Gi, memory 1Gi, pods 1");
    }

    #[test]
    fn a_pod_of_an_older_template_does_not_speak_for_the_daemon() {
        let of = |generation: Option<&str>| Pod {
            labels: generation
                .map(|text| ("pod-template-generation".to_owned(), text.to_owned()))
                .into_iter()
                .collect(),
            ..Pod::default()
        };
        assert!(is_current(&set(SET), &of(Some("3"))) && is_current(&set(SET), &of(None)));
        assert!(!is_current(&set(SET), &of(Some("2"))));
    }
}
