//! The real control plane: objects in, the scheduler's verdicts out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use scarpenter_core::label;
use scarpenter_core::pod::PodKey;
use scarpenter_playground::ControlPlane;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::steer::Steering;
use crate::world;

const PARALLEL: usize = 16;
const LOOK_EVERY: Duration = Duration::from_millis(15);
/// Nothing must have changed for so long before a refused pod is believed to stay so.
const QUIET: Duration = Duration::from_millis(250);
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
const CANARY: &str = "canary-";

/// What the scheduler said of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is on this node.
    Bound(String),
    /// It is nowhere, in the scheduler's words.
    Refused(String),
}

/// A control plane that plays one world after the other.
///
/// Nodes get names that are never used twice, so that what the scheduler still remembers of the last world is no matter;
/// callers see the names that they gave.
pub(crate) struct Cluster {
    client: Client,
    steering: Steering,
    worlds: u32,
    canaries: u32,
}

impl Cluster {
    pub(crate) async fn open(plane: &ControlPlane, steering: Steering) -> anyhow::Result<Self> {
        let client = plane.client().await?;
        let namespaces = Api::<Namespace>::all(client.clone());
        for object in world::namespaces() {
            ensure(&namespaces, object).await?;
        }
        let priorities = Api::<PriorityClass>::all(client.clone());
        for object in world::priorities() {
            ensure(&priorities, object).await?;
        }
        ensure(&Api::<RuntimeClass>::all(client.clone()), world::runtime()).await?;
        Ok(Self { client, steering, worlds: 0, canaries: 0 })
    }

    /// Takes everything away.
    pub(crate) async fn clear(&mut self) -> anyhow::Result<()> {
        self.steering.forget();
        self.worlds += 1;
        for namespace in world::namespace_labels().keys() {
            let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
            pods.delete_collection(&at_once(), &ListParams::default()).await?;
        }
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.delete_collection(&at_once(), &ListParams::default()).await?;
        Ok(())
    }

    fn prefix(&self) -> String {
        format!("w{:04}-", self.worlds)
    }

    pub(crate) async fn put_nodes(&self, nodes: &[Value]) -> anyhow::Result<()> {
        let api = Api::<Node>::all(self.client.clone());
        let create = |object: &Value| {
            let mut node: Node = parse(object);
            let name = format!("{}{}", self.prefix(), node.name_any());
            if let Some(host) = node.labels_mut().get_mut(label::HOSTNAME) {
                host.clone_from(&name);
            }
            node.metadata.name = Some(name);
            let api = api.clone();
            async move { api.create(&PostParams::default(), &node).await }
        };
        let made: Vec<_> = nodes.iter().map(create).collect();
        futures::stream::iter(made).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// Waits until the scheduler knows of exactly so many nodes: it tells of how many it looked at.
    pub(crate) async fn until_seen(&mut self, nodes: usize) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < ANSWERS_WITHIN {
            self.canaries += 1;
            let key = PodKey::new("n0", &format!("{CANARY}{}", self.canaries));
            self.put_pod(&json!({
                "metadata": {"name": key.name, "namespace": key.namespace},
                "spec": {
                    "containers": [{
                        "name": "main",
                        "image": "none",
                        "resources": {"requests": {"cpu": "1000000"}},
                    }],
                },
            }))
            .await?;
            let verdict = self.verdict(&key).await?;
            self.remove_pods([&key]).await?;
            if let Verdict::Refused(words) = verdict
                && looked_at(&words) == Some(nodes)
            {
                return Ok(());
            }
        }
        bail!("the scheduler does not see {nodes} nodes within {} s", ANSWERS_WITHIN.as_secs());
    }

    pub(crate) async fn put_pods(&self, pods: &[Value]) -> anyhow::Result<()> {
        let made: Vec<_> = pods.iter().map(|pod| self.put_pod(pod)).collect();
        futures::stream::iter(made).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    pub(crate) async fn put_pod(&self, object: &Value) -> anyhow::Result<()> {
        let mut pod: Pod = parse(object);
        if let Some(node) = pod.spec.as_mut().and_then(|spec| spec.node_name.as_mut()) {
            *node = format!("{}{node}", self.prefix());
        }
        let namespace = pod.namespace().unwrap_or_default();
        let api = Api::<Pod>::namespaced(self.client.clone(), &namespace);
        let created = api.create(&PostParams::default(), &pod).await;
        created.with_context(|| format!("create {namespace}/{}", pod.name_any()))?;
        Ok(())
    }

    pub(crate) async fn remove_pods(&self, keys: impl IntoIterator<Item = &PodKey>) -> anyhow::Result<()> {
        for key in keys {
            let api = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
            match api.delete(&key.name, &at_once()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Lets a pod go to these nodes only.
    pub(crate) fn steer(&self, pod: &PodKey, nodes: impl IntoIterator<Item = String>) {
        let nodes = nodes.into_iter().map(|node| format!("{}{node}", self.prefix())).collect();
        self.steering.allow_only(pod.clone(), nodes);
    }

    /// Lets every pod go anywhere.
    pub(crate) fn steer_nobody(&self) {
        self.steering.forget();
    }

    /// Waits for the first verdict on a pod.
    pub(crate) async fn verdict(&self, key: &PodKey) -> anyhow::Result<Verdict> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        let begun = Instant::now();
        loop {
            if let Some(verdict) = self.read(&api.get(&key.name).await?) {
                return Ok(verdict);
            }
            if begun.elapsed() > ANSWERS_WITHIN {
                bail!("the scheduler says nothing of {key} within {} s", ANSWERS_WITHIN.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until there is a verdict on every pod, and none changes any more.
    pub(crate) async fn settle(&self) -> anyhow::Result<BTreeMap<PodKey, Verdict>> {
        let (begun, mut changed) = (Instant::now(), Instant::now());
        let mut last = BTreeMap::new();
        loop {
            let pods = self.pods().await?;
            let verdicts: BTreeMap<PodKey, Verdict> =
                pods.iter().filter_map(|pod| Some((key(pod), self.read(pod)?))).collect();
            let waiting = verdicts.values().any(|verdict| matches!(verdict, Verdict::Refused(_)));
            let whole = verdicts.len() == pods.len();
            if verdicts != last {
                (changed, last) = (Instant::now(), verdicts);
            }
            if whole && (!waiting || changed.elapsed() > QUIET) {
                return Ok(last);
            }
            if begun.elapsed() > ANSWERS_WITHIN {
                bail!("the scheduler does not come to rest within {} s", ANSWERS_WITHIN.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// All pods of the world, with node names as they were given.
    pub(crate) async fn pods(&self) -> anyhow::Result<Vec<Pod>> {
        let listed = Api::<Pod>::all(self.client.clone()).list(&ListParams::default()).await?;
        let mut pods = listed.items;
        pods.retain(|pod| !pod.name_any().starts_with(CANARY));
        for pod in &mut pods {
            if let Some(node) = pod.spec.as_mut().and_then(|spec| spec.node_name.as_mut()) {
                *node = self.given(node);
            }
        }
        Ok(pods)
    }

    fn given(&self, name: &str) -> String {
        name.strip_prefix(&self.prefix()).unwrap_or(name).to_owned()
    }

    fn read(&self, pod: &Pod) -> Option<Verdict> {
        if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            return Some(Verdict::Bound(self.given(node)));
        }
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        let refused = conditions.iter().find(|condition| {
            condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
        })?;
        Some(Verdict::Refused(refused.message.clone().unwrap_or_default()))
    }
}

/// Namespace and name of a pod.
pub(crate) fn key(pod: &Pod) -> PodKey {
    scarpenter_api::pod::key(pod)
}

/// An object as Kubernetes types have it.
pub(crate) fn parse<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"))
}

async fn ensure<T>(api: &Api<T>, object: Value) -> anyhow::Result<()>
where
    T: Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
{
    match api.create(&PostParams::default(), &parse(&object)).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

fn at_once() -> DeleteParams {
    DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }
}

/// Of how many nodes a refusal tells: `0/3 nodes are available: …`.
fn looked_at(words: &str) -> Option<usize> {
    if words.starts_with("no nodes available") {
        return Some(0);
    }
    words.strip_prefix("0/")?.split(' ').next()?.parse().ok()
}
