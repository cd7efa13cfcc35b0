//! The objects of a cluster that decide about a pod.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition,
};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt};
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass, pod};
use scarpenter_core::pod::PodKey;
use scarpenter_index::View;
use serde::de::DeserializeOwned;

use crate::BadInput;

/// So many objects are asked for at a time.
const PAGE: u32 = 500;

/// Which cluster.
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Kubeconfig; without it KUBECONFIG, then the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArgs {
    async fn client(&self) -> anyhow::Result<Client> {
        let config = self.config().await.context(BadInput)?;
        Ok(Client::try_from(config)?)
    }

    async fn config(&self) -> anyhow::Result<Config> {
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path).with_context(|| format!("read {}", path.display()))?,
            None if self.context.is_none() => {
                return Config::infer().await.context("no kubeconfig: give --kubeconfig or set KUBECONFIG");
            }
            None => Kubeconfig::read().context("no kubeconfig: give --kubeconfig or set KUBECONFIG")?,
        };
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(kubeconfig, &options).await.context("use the kubeconfig")
    }
}

/// What was read.
pub(super) struct Cluster {
    pub(super) view: View,
    /// The pod that was asked for.
    pub(super) pod: Option<Pod>,
    /// Its events, oldest first.
    pub(super) events: Vec<Event>,
    /// What may not be read, and is planned without.
    pub(super) notes: Vec<String>,
}

impl Cluster {
    /// Lists everything once; nodes and claims before pods, so that one that is bound between is not counted twice.
    pub(super) async fn read(args: &ClusterArgs, key: &PodKey) -> anyhow::Result<Self> {
        let client = args.client().await?;
        let api = Api::<Pod>::namespaced(client.clone(), &key.namespace);
        let pod = api.get_opt(&key.name).await.with_context(|| format!("read pod {key}"))?;
        let mut out = Self { view: View::default(), pod: None, events: Vec::new(), notes: Vec::new() };
        let Some(pod) = pod else { return Ok(out) };
        out.objects(&client).await?;
        out.events = events(&client, &pod).await?;
        out.pod = Some(pod);
        Ok(out)
    }

    /// Plans on as if the scheduler had refused the pod that was asked for.
    pub(super) fn suppose_refused(&mut self) {
        let Some(mut pod) = self.pod.clone() else { return };
        let status = pod.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            ..PodCondition::default()
        });
        self.view.apply_pod(&pod);
    }

    async fn objects(&mut self, client: &Client) -> anyhow::Result<()> {
        let (view, notes) = (&mut self.view, &mut self.notes);
        may::<Namespace>(client, notes).await?.iter().for_each(|own| view.apply_namespace(own));
        may::<LimitRange>(client, notes).await?.iter().for_each(|own| view.apply_limit_range(own));
        may::<StorageClass>(client, notes).await?.iter().for_each(|own| view.apply_storage_class(own));
        may::<CSINode>(client, notes).await?.iter().for_each(|own| view.apply_csi_node(own));
        may::<PersistentVolume>(client, notes).await?.iter().for_each(|own| view.apply_volume(own));
        let claims = may::<PersistentVolumeClaim>(client, notes).await?;
        claims.iter().for_each(|own| view.apply_volume_claim(own));
        may::<DaemonSet>(client, notes).await?.iter().for_each(|own| view.apply_daemon(own));
        must::<ScarpenterNodeClass>(client)
            .await?
            .into_iter()
            .for_each(|own| view.apply_class(Arc::new(own)));
        must::<NodePool>(client).await?.into_iter().for_each(|own| view.apply_pool(Arc::new(own)));
        let claims = must::<NodeClaim>(client).await?.into_iter().filter(NodeClaim::is_ours);
        claims.for_each(|own| view.apply_claim(Arc::new(own)));
        for node in must::<Node>(client).await? {
            view.apply_node(&node);
        }
        for pod in must::<Pod>(client).await? {
            view.apply_pod(&pod);
        }
        Ok(())
    }
}

/// All objects of a kind without which nothing can be said.
async fn must<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    all(client).await.with_context(|| reading::<K>())
}

/// All objects of a kind that not everybody may read; without them it is said.
async fn may<K>(client: &Client, notes: &mut Vec<String>) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    match all(client).await {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            notes.push(format!(
                "{} objects may not be listed by this user: planned without them",
                K::kind(&())
            ));
            Ok(Vec::new())
        }
        answer => answer.with_context(|| reading::<K>()),
    }
}

/// Page after page.
async fn all<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api = Api::<K>::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut out = Vec::new();
    loop {
        let page = api.list(&params).await?;
        out.extend(page.items);
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(out),
        }
    }
}

fn reading<K: Resource<DynamicType = ()>>() -> String {
    let kind = K::kind(&());
    let hint = if K::group(&()).ends_with("karpenter.sh") || K::group(&()).ends_with("sparecores.com") {
        " (where they are missing: scarpenter crds | kubectl apply -f -)"
    } else {
        ""
    };
    format!("list {kind} objects{hint}")
}

async fn events(client: &Client, pod: &Pod) -> anyhow::Result<Vec<Event>> {
    let key = pod::key(pod);
    let uid = pod.uid().unwrap_or_default();
    let api = Api::<Event>::namespaced(client.clone(), &key.namespace);
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let mut events = api.list(&about).await.with_context(|| format!("list events of pod {key}"))?.items;
    events.sort_by_key(super::document::time_of);
    Ok(events)
}
