//! The three pods of the demo.

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use scarpenter_core::label;
use serde_json::{Value, json};

/// The namespace of the pods; the demo makes it.
pub(super) const NAMESPACE: &str = "scarpenter-demo";
/// After so many seconds a simulated pod ends; without it it runs for ever.
pub(super) const RUN_SECONDS: &str = "sim.scarpenter.sparecores.com/run-seconds";

/// An exact type of Hetzner, an exact type of AWS in one region, and any fast and cheap arm64 machine.
pub(super) fn all() -> Vec<Pod> {
    let hcloud = json!({"nodeSelector": {label::VENDOR: "hcloud", label::INSTANCE_TYPE: "ccx33"}});
    let aws = json!({"nodeSelector": {
        label::VENDOR: "aws",
        label::REGION: "us-west-2",
        label::INSTANCE_TYPE: "c7a.large",
    }});
    let single_thread = format!("{}passmark-single-thread", label::BENCHMARK_PREFIX);
    let fast_arm64 = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": label::ARCH, "operator": "In", "values": ["arm64"]},
            {"key": label::INSTANCE_CPU, "operator": "Gt", "values": ["7"]},
            {"key": label::PRICE, "operator": "Lt", "values": ["400000"]},
            {"key": single_thread, "operator": "Gt", "values": ["1500"]},
        ]}],
    }}}});
    vec![pod("exact-hcloud", hcloud), pod("exact-aws", aws), pod("fast-arm64", fast_arm64)]
}

fn pod(name: &str, place: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {RUN_SECONDS: "10"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "inspector", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}],
        },
    });
    if let (Some(spec), Value::Object(place)) = (pod["spec"].as_object_mut(), place) {
        spec.extend(place);
    }
    serde_json::from_value(pod).expect("a test reads each of them")
}

/// Creates the pods. A new namespace has no service account for a moment, and takes no pods.
pub(super) async fn create(client: &Client, pods: &[Pod]) -> anyhow::Result<usize> {
    let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    for pod in pods {
        let created = async {
            while let Err(error) = api.create(&PostParams::default(), pod).await {
                match &error {
                    kube::Error::Api(status) if status.message.contains("serviceaccount") => {}
                    _ => return Err(super::apply::plain(error)),
                }
                tokio::time::sleep(super::LOOK_EVERY).await;
            }
            Ok(())
        };
        let created = tokio::time::timeout(super::STEP_LIMIT, created).await;
        created.context("the new namespace has no service account")?.context("create a pod")?;
    }
    Ok(pods.len())
}

/// Deletes the pods, so that their machines go.
pub(super) async fn delete(client: &Client) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let now = DeleteParams::default().grace_period(0);
    api.delete_collection(&now, &Default::default()).await.context("delete the pods")?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_pod_says_what_machine_it_wants() {
        let pods = all();
        assert_eq!(pods.len(), 3);
        let selector = pods[0].spec.as_ref().unwrap().node_selector.as_ref().unwrap();
        assert_eq!(selector[label::INSTANCE_TYPE], "ccx33");
        assert!(pods[2].spec.as_ref().unwrap().affinity.is_some());
        assert!(pods.iter().all(|pod| pod.metadata.annotations.as_ref().unwrap().contains_key(RUN_SECONDS)));
    }
}
