//! Rules about other pods, volumes, daemons and ports.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::future::LocalBoxFuture;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use scarpenter_core::label;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::case::{Case, RUN_SECONDS, and, exactly, never, of_pool};

pub(super) const RULES: &str = "
  - {instanceType: ccx43, fault: {machine: {bootDelay: 12s}}}
";

pub(super) fn cases(case: Case<'_>) -> Vec<(&'static str, LocalBoxFuture<'_, anyhow::Result<()>>)> {
    vec![
        ("a Deployment spread over zones gets a machine in each", Box::pin(spread(case))),
        ("a Deployment of pods that keep apart gets a machine each", Box::pin(apart(case))),
        ("a pod follows its volume", Box::pin(follows_volume(case))),
        ("a pod whose volume is elsewhere gets nothing and is told", Box::pin(volume_elsewhere(case))),
        ("a daemon with the defaults of a LimitRange is counted", Box::pin(limit_range(case))),
        ("two pods with one port get two machines", Box::pin(ports(case))),
        ("pods whose machines boot for long get no further ones", Box::pin(in_flight(case))),
    ]
}

async fn spread(case: Case<'_>) -> anyhow::Result<()> {
    // Without minDomains the scheduler knows no zone but those of nodes that are there: the first would take all.
    let rule = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "minDomains": 3, "topologyKey": label::ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }]});
    let nodes = deployed(case, "spread", 3, exactly("aws", "t3.medium"), rule).await?;
    let zones: BTreeSet<_> = nodes.iter().filter_map(|node| node.labels().get(label::ZONE)).collect();
    ensure!(zones.len() == 3, "{zones:?}");
    undeploy(case, "spread", "t3.medium", 3).await
}

async fn apart(case: Case<'_>) -> anyhow::Result<()> {
    let rule = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": label::HOSTNAME, "labelSelector": {"matchLabels": {"app": "apart"}},
    }]}}});
    let selector = exactly("hcloud", "ccx33");
    let nodes = deployed(case, "apart", 3, selector, rule).await?;
    let names: BTreeSet<_> = nodes.iter().map(ResourceExt::name_any).collect();
    ensure!(names.len() == 3, "{names:?}");
    undeploy(case, "apart", "ccx33", 3).await
}

/// A Deployment of small pods, once all of them run; the node of each.
async fn deployed(
    case: Case<'_>,
    name: &str,
    replicas: usize,
    selector: Value,
    rule: Value,
) -> anyhow::Result<Vec<Node>> {
    let labels = json!({"app": name});
    let small = json!({
        "metadata": {"labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }],
        },
    });
    let template = and(and(small, selector), json!({"spec": rule}));
    let deployment = json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    });
    create::<Deployment>(case, case.stage.namespace(), deployment).await?;
    let mut pods = Vec::new();
    case.until(&format!("{name}: all pods run"), async || {
        pods = case.pods().list(&ListParams::default().labels(&format!("app={name}"))).await?.items;
        let running = pods.iter().filter(|pod| crate::case::phase(pod) == "Running").count();
        Ok(if running == replicas { Ok(()) } else { Err(format!("{running} of {replicas}")) })
    })
    .await?;
    let mut nodes = Vec::new();
    for pod in &pods {
        nodes.push(case.nodes().get(bound(pod)?).await?);
    }
    Ok(nodes)
}

async fn undeploy(case: Case<'_>, name: &str, instance_type: &str, machines: usize) -> anyhow::Result<()> {
    let api: Api<Deployment> = Api::namespaced(case.stage.client().clone(), case.stage.namespace());
    api.delete(name, &DeleteParams::background()).await?;
    let sold = case.until_sold_is_gone(instance_type).await?;
    ensure!(sold.made == machines, "{sold:?}");
    Ok(())
}

fn bound(pod: &Pod) -> anyhow::Result<&str> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).context("it is bound")
}

async fn follows_volume(case: Case<'_>) -> anyhow::Result<()> {
    volume(case, "followed", "eu-central-1c").await?;
    // For all that the pod itself says, elsewhere is cheaper.
    case.pod("follows", and(exactly("aws", "c7a.large"), mounts("followed"))).await?;
    let pod = case.running("follows").await?;
    let node = case.nodes().get(bound(&pod)?).await?;
    ensure!(
        node.labels().get(label::ZONE).is_some_and(|zone| zone == "eu-central-1c"),
        "{:?}",
        node.labels()
    );
    case.ran("follows").await?;
    let sold = case.until_sold_is_gone("c7a.large").await?;
    ensure!(sold.made == 1, "{sold:?}");
    case.delete(&case.pods(), "follows").await?;
    forget(case, "followed").await
}

async fn volume_elsewhere(case: Case<'_>) -> anyhow::Result<()> {
    volume(case, "elsewhere", "eu-central-1c").await?;
    case.pod("elsewhere", and(exactly("hcloud", "cpx22"), mounts("elsewhere"))).await?;
    case.event("elsewhere", "FailedScheduling", &["eu-central-1c"]).await?;
    never(Duration::from_secs(3), "a claim is made", async || {
        Ok(!case.claims_of("elsewhere").await?.is_empty())
    })
    .await?;
    case.delete(&case.pods(), "elsewhere").await?;
    forget(case, "elsewhere").await
}

/// A volume that can be reached in one zone, and the claim that is bound to it.
async fn volume(case: Case<'_>, name: &str, zone: &str) -> anyhow::Result<()> {
    let namespace = case.stage.namespace();
    let volume = format!("{namespace}-{name}");
    let there = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": label::ZONE, "operator": "In", "values": [zone]},
    ]}]}});
    let persistent: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": name},
            "nodeAffinity": there,
            "hostPath": {"path": "/nowhere"},
        },
    }))?;
    Api::all(case.stage.client().clone()).create(&PostParams::default(), &persistent).await?;
    let claim = json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": volume,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    create::<PersistentVolumeClaim>(case, namespace, claim).await?;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(case.stage.client().clone(), namespace);
    case.until_object(&claims, name, "it is bound", |claim| {
        claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
    })
    .await
    .map(drop)
}

async fn forget(case: Case<'_>, name: &str) -> anyhow::Result<()> {
    let client = case.stage.client();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), case.stage.namespace());
    case.delete(&claims, name).await?;
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    case.delete(&volumes, &format!("{}-{name}", case.stage.namespace())).await
}

fn mounts(claim: &str) -> Value {
    json!({"spec": {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [{
            "name": "main", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }],
    }})
}

/// The daemon asks for nothing and is given a CPU: with it the pod does not fit the machine that it fits alone.
async fn limit_range(case: Case<'_>) -> anyhow::Result<()> {
    let namespace = format!("{}-daemons", case.stage.namespace());
    let namespaces: Api<Namespace> = Api::all(case.stage.client().clone());
    let wanted = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    namespaces.create(&PostParams::default(), &wanted).await?;
    let range = json!({
        "metadata": {"name": "defaults"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}, "default": {"cpu": "1"}}]},
    });
    create::<LimitRange>(case, &namespace, range).await?;
    let daemon = json!({
        "metadata": {"name": "daemon"},
        "spec": {"selector": {"matchLabels": {"app": "daemon"}}, "template": {
            "metadata": {"labels": {"app": "daemon"}},
            "spec": {
                "nodeSelector": {label::NODEPOOL: "limit-range"},
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "none"}],
            },
        }},
    });
    create::<DaemonSet>(case, &namespace, daemon).await?;
    case.pool("limit-range", "default", json!({})).await?;
    let either = json!({"spec": {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": label::INSTANCE_TYPE, "operator": "In", "values": ["cx33", "cx43"]},
                {"key": label::VENDOR, "operator": "In", "values": ["hcloud"]},
            ]}],
        }}},
        "containers": [{
            "name": "main", "image": "none", "resources": {"requests": {"cpu": "3500m", "memory": "1Gi"}},
        }],
    }});
    case.pod("beside-daemon", and(of_pool("limit-range"), either)).await?;
    case.ran("beside-daemon").await?;
    let large = case.until_sold_is_gone("cx43").await?;
    let small = case.sold("cx33")?;
    namespaces.delete(&namespace, &DeleteParams::default()).await?;
    ensure!((small.claims.len(), large.made) == (0, 1), "{small:?}, {large:?}");
    Ok(())
}

async fn ports(case: Case<'_>) -> anyhow::Result<()> {
    let with = |port: u16, seconds: u32| {
        json!({
            "metadata": {"annotations": {RUN_SECONDS: seconds.to_string()}},
            "spec": {"containers": [{
                "name": "main", "image": "none", "ports": [{"containerPort": port, "hostPort": port}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }]},
        })
    };
    for (pod, port) in [("port-1", 8080), ("port-2", 8080), ("port-3", 8081)] {
        case.pod(pod, and(exactly("hcloud", "cx23"), with(port, 8))).await?;
    }
    let mut nodes = Vec::new();
    for pod in ["port-1", "port-2", "port-3"] {
        nodes.push(bound(&case.running(pod).await?)?.to_owned());
    }
    ensure!(nodes[0] != nodes[1], "{nodes:?}");
    let sold = case.until_sold_is_gone("cx23").await?;
    ensure!(sold.made == 2, "{sold:?}");
    Ok(())
}

/// Their machines boot for longer than it takes until pods that wait are planned again.
async fn in_flight(case: Case<'_>) -> anyhow::Result<()> {
    let pods = ["in-flight-1", "in-flight-2", "in-flight-3"];
    for pod in pods {
        let large = json!({"spec": {"containers": [{
            "name": "main", "image": "none", "resources": {"requests": {"cpu": "9", "memory": "256Mi"}},
        }]}});
        case.pod(pod, and(exactly("hcloud", "ccx43"), large)).await?;
    }
    for pod in pods {
        case.ran(pod).await?;
    }
    let sold = case.until_sold_is_gone("ccx43").await?;
    ensure!((sold.claims.len(), sold.made) == (3, 3), "{sold:?}");
    Ok(())
}

async fn create<K>(case: Case<'_>, namespace: &str, object: Value) -> anyhow::Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    let api: Api<K> = Api::namespaced(case.stage.client().clone(), namespace);
    let object: K = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("create a {}", K::kind(&())))?;
    Ok(())
}
