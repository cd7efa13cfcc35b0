//! What is left of a trial, and its removal by force where a trial failed.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{LOOK_EVERY, Stage};

const SCRUBBED_WITHIN: Duration = Duration::from_secs(30);
/// What a controller remembers: lessons of machines, and mesh keys.
const MEMORIES: [&str; 2] = ["scarpenter-lessons", "scarpenter-mesh"];

/// Names of what is left, by kind.
#[derive(Debug, Default)]
pub struct Left(BTreeMap<&'static str, Vec<String>>);

impl Left {
    /// Asks the API server and every vendor of the plugin.
    pub(super) async fn look(stage: &Stage) -> anyhow::Result<Self> {
        let client = &stage.client;
        let mut left = Self::of_cluster(client).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &stage.namespace);
        left.add("pods", names(&pods).await?);
        for provider in stage.providers()? {
            let list = provider.list_machines(&stage.cluster).await;
            let list = list.with_context(|| format!("list the machines of {}", provider.vendor()))?;
            left.add("machines", list.machines.iter().map(|machine| machine.id.to_string()).collect());
        }
        Ok(left)
    }

    async fn of_cluster(client: &Client) -> anyhow::Result<Self> {
        let mut left = Self::default();
        left.add("claims", names(&Api::<NodeClaim>::all(client.clone())).await?);
        left.add("nodes", names(&Api::<Node>::all(client.clone())).await?);
        let secrets = names(&secrets(client)).await?;
        left.add("secrets", secrets.into_iter().filter(|name| is_join_material(name)).collect());
        Ok(left)
    }

    fn add(&mut self, kind: &'static str, names: Vec<String>) {
        if !names.is_empty() {
            self.0.entry(kind).or_default().extend(names);
        }
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.0.iter().map(|(kind, names)| match names.as_slice() {
            [some @ .., _] if some.len() > 4 => format!("{} {kind}, as {}", names.len(), names[0]),
            _ => format!("{kind} {}", names.join(", ")),
        });
        f.write_str(&kinds.collect::<Vec<_>>().join("; "))
    }
}

fn is_join_material(name: &str) -> bool {
    name.starts_with("join-") || name.starts_with("bootstrap-token-") || name.ends_with(".node-password.k3s")
}

fn secrets(client: &Client) -> Api<Secret> {
    Api::namespaced(client.clone(), "kube-system")
}

async fn names<K>(api: &Api<K>) -> anyhow::Result<Vec<String>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let list = api.list_metadata(&Default::default()).await;
    let list = list.with_context(|| format!("list {}", K::plural(&())))?;
    Ok(list.items.iter().map(ResourceExt::name_any).collect())
}

/// Removes everything of ours from the cluster by force; nothing runs any more that could.
pub(super) async fn scrub(client: &Client) -> anyhow::Result<()> {
    let deadline = Instant::now() + SCRUBBED_WITHIN;
    remove_all(&Api::<NodePool>::all(client.clone())).await?;
    remove_all(&Api::<ScarpenterNodeClass>::all(client.clone())).await?;
    // What one trial has taught would surprise the next.
    for name in MEMORIES {
        remove(&Api::<ConfigMap>::namespaced(client.clone(), "kube-system"), name).await?;
    }
    loop {
        remove_all(&Api::<NodeClaim>::all(client.clone())).await?;
        remove_all(&Api::<Node>::all(client.clone())).await?;
        let secrets = secrets(client);
        for name in names(&secrets).await?.into_iter().filter(|name| is_join_material(name)) {
            remove(&secrets, &name).await?;
        }
        let left = Left::of_cluster(client).await?;
        if left.is_nothing() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "cannot be removed by force: {left}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn remove_all<K>(api: &Api<K>) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    for name in names(api).await? {
        remove(api, &name).await?;
    }
    Ok(())
}

async fn remove<K>(api: &Api<K>, name: &str) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for outcome in [
        api.delete(name, &DeleteParams::default()).await.map(drop),
        api.patch_metadata(name, &PatchParams::default(), &free).await.map(drop),
    ] {
        match outcome {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            outcome => outcome.with_context(|| format!("remove {} {name}", K::kind(&())))?,
        }
    }
    Ok(())
}
