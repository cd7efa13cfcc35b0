//! DaemonSets: the pod that each puts on every node it fits.

use k8s_openapi::api::apps::v1::DaemonSet;
use scarpenter_core::node::Daemon;
use scarpenter_core::pod::PodKey;

use crate::pod;

/// Reads the pod of a DaemonSet's template, with limits copied to missing requests.
///
/// Restricted labels are fine here: a daemon may ask for `karpenter.sh/registered`, and nothing is bought for it.
#[must_use]
pub fn parse(set: &DaemonSet) -> Daemon {
    let namespace = set.metadata.namespace.as_deref().unwrap_or("default");
    let template = &set.spec.template;
    let mut out = template.spec.as_ref().map(|spec| pod::from_spec(spec, None)).unwrap_or_default();
    out.key = PodKey::new(namespace, set.metadata.name.as_deref().unwrap_or_default());
    out.uid = set.metadata.uid.clone().unwrap_or_default();
    out.created = set.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
    out.labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    Daemon { pod: out }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_core::resources::{CPU, MEMORY, PODS};

    use super::*;

    #[test]
    fn a_daemon_is_its_template() {
        let set: DaemonSet = serde_saphyr::from_str(
            "metadata: {name: d, namespace: kube-system, uid: u}\n\
             spec:\n  selector: {}\n  template:\n    metadata: {labels: {app: d}}\n    spec:\n\
             \x20     nodeSelector: {karpenter.sh/registered: 'true'}\n\
             \x20     tolerations: [{operator: Exists}]\n\
             \x20     containers: [{name: a, resources: {limits: {memory: 1Gi}, requests: {cpu: 50m}}}]\n",
        )
        .unwrap();
        let Daemon { pod } = parse(&set);
        assert_eq!(pod.key.to_string(), "kube-system/d");
        assert_eq!(
            (pod.requests.get(CPU), pod.requests.get(MEMORY), pod.requests.get(PODS)),
            (50, 1 << 30, 1)
        );
        assert!(pod.invalid.is_empty(), "{:?}", pod.invalid);
        assert_eq!(pod.labels["app"], "d");
        assert_eq!(pod.tolerations.len(), 1);
    }
}
