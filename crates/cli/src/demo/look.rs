//! Looks at everything once: pods, claims, nodes, and what the vendors say.

use std::collections::BTreeSet;

use anyhow::Context;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use scarpenter_api::NodeClaim;
use scarpenter_core::label;
use scarpenter_core::name::{ClaimUid, ClusterId};
use scarpenter_provider::Client as Provider;

use super::pods::NAMESPACE;
use super::story::Seen;

/// Where to look.
pub(super) struct Eyes {
    client: Client,
    cluster: ClusterId,
    providers: Vec<Provider>,
}

impl Eyes {
    /// Learns which cluster it is.
    pub(super) async fn open(client: Client, providers: Vec<Provider>) -> anyhow::Result<Self> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let system = namespaces.get("kube-system").await.context("read Namespace kube-system")?;
        let cluster = ClusterId::new(system.uid().context("Namespace kube-system has no UID")?);
        Ok(Self { client, cluster, providers })
    }

    pub(super) async fn look(&self) -> anyhow::Result<Seen> {
        let all = ListParams::default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let nodes: Api<Node> = Api::all(self.client.clone());
        let ours = ListParams::default().labels(label::NODEPOOL);
        // Machines last: one that is listed after its claim is gone would be a leak, and must not be missed.
        let pods = pods.list(&all).await.context("list pods")?.items;
        let claims = claims.list(&all).await.context("list NodeClaims")?.items;
        let nodes = nodes.list(&ours).await.context("list nodes")?.items;
        let machines = self.machines().await?;
        Ok(Seen {
            pods,
            claims: claims.into_iter().filter(NodeClaim::is_ours).collect(),
            nodes: nodes.into_iter().filter(is_ours).map(|node| node.name_any()).collect(),
            machines,
        })
    }

    async fn machines(&self) -> anyhow::Result<BTreeSet<ClaimUid>> {
        let lists = self.providers.iter().map(|provider| provider.list_machines(&self.cluster));
        let lists = futures::future::try_join_all(lists).await.context("list machines")?;
        Ok(lists.into_iter().flat_map(|list| list.machines).map(|machine| machine.claim).collect())
    }
}

fn is_ours(node: &Node) -> bool {
    let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    id.is_some_and(|id| scarpenter_core::name::ProviderId::parse(id).is_some())
}
