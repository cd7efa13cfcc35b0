//! Feeds the view from watches, and wakes who waits for what changed.

mod surroundings;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Resource, ResourceExt};
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass, condition};
use scarpenter_core::pod::PodKey;
use scarpenter_index::View;
use serde::de::DeserializeOwned;
use tokio::sync::watch as signal;

use crate::context::Context;

/// One kind's first complete list has arrived.
pub(crate) type Synced = signal::Sender<usize>;

/// How many kinds [`run`] watches.
pub(crate) const KINDS: usize = 5 + surroundings::KINDS;
/// The same and [`claims`].
pub(crate) const KINDS_AND_CLAIMS: usize = KINDS + 1;

fn events<K>(client: &Client) -> impl Stream<Item = watcher::Result<Event<K>>> + use<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let config = watcher::Config::default().streaming_lists();
    watch(Api::<K>::all(client.clone()), config).default_backoff()
}

/// What to do with the events of one kind.
trait Sink<K> {
    fn apply(&mut self, object: K);
    fn remove(&mut self, object: K);
    /// A complete list has been applied; forget what it did not hold.
    fn listed(&mut self, names: BTreeSet<PodKey>);
}

/// Feeds a sink for ever. Objects of a fresh list are applied at once, so nothing waits for the end of a long one.
async fn feed<K>(client: &Client, synced: &Synced, mut sink: impl Sink<K>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut names = BTreeSet::new();
    let mut first = true;
    let mut stream = std::pin::pin!(events::<K>(client));
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => names.clear(),
            Ok(Event::InitApply(object)) => {
                names.insert(PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any()));
                sink.apply(object);
            }
            Ok(Event::InitDone) => {
                sink.listed(std::mem::take(&mut names));
                if std::mem::take(&mut first) {
                    synced.send_modify(|count| *count += 1);
                }
            }
            Ok(Event::Apply(object)) => sink.apply(object),
            Ok(Event::Delete(object)) => sink.remove(object),
            Err(error) => tracing::warn!(kind = %K::kind(&()), %error, "watch interrupted"),
        }
    }
}

struct Pods<'a>(&'a Context);

impl Sink<Pod> for Pods<'_> {
    fn apply(&mut self, object: Pod) {
        let mut view = self.0.view();
        if is_newly_bound(&view, &object) {
            self.0.saw_bound();
        }
        let touched = view.apply_pod(&object);
        drop(view);
        if touched.pending {
            self.0.wake.pods.notify_one();
        }
        touched.claims.iter().for_each(|claim| self.0.wake.claim(claim));
    }

    fn remove(&mut self, object: Pod) {
        let touched = self.0.view().remove_pod(&object);
        touched.claims.iter().for_each(|claim| self.0.wake.claim(claim));
    }

    fn listed(&mut self, names: BTreeSet<PodKey>) {
        self.0.view().keep_pods(&names);
    }
}

fn is_newly_bound(view: &View, object: &Pod) -> bool {
    let key = PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any());
    let node = object.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty()) && view.pod(&key).is_none_or(|known| known.node.is_none())
}

struct Nodes<'a>(&'a Context);

impl Nodes<'_> {
    fn wake(&self, claims: &[String]) {
        claims.iter().for_each(|claim| self.0.wake.claim(claim));
        self.0.wake.orphans.notify_one();
    }
}

impl Sink<Node> for Nodes<'_> {
    fn apply(&mut self, object: Node) {
        let touched = self.0.view().apply_node(&object);
        self.wake(&touched.claims);
    }

    fn remove(&mut self, object: Node) {
        let touched = self.0.view().remove_node(&object);
        self.wake(&touched.claims);
    }

    fn listed(&mut self, names: BTreeSet<PodKey>) {
        let names = names.into_iter().map(|key| key.name).collect();
        let claims = self.0.view().keep_nodes(&names);
        self.wake(&claims);
    }
}

struct Pools<'a>(&'a Context);

impl Sink<NodePool> for Pools<'_> {
    fn apply(&mut self, object: NodePool) {
        let known =
            self.0.view().pool(&object.name_any()).map(|known| (known.metadata.generation, is_ready(known)));
        // A larger limit or a mended pool may be what a pod waits for.
        if known != Some((object.metadata.generation, is_ready(&object))) {
            self.0.wake.pods.notify_one();
        }
        self.0.view().apply_pool(Arc::new(object));
        self.0.wake.pools.notify_one();
    }

    fn remove(&mut self, object: NodePool) {
        self.0.view().remove_pool(&object.name_any());
        self.0.wake.pools.notify_one();
    }

    fn listed(&mut self, names: BTreeSet<PodKey>) {
        let mut view = self.0.view();
        let stale: Vec<String> = view
            .pools()
            .map(|pool| pool.name_any())
            .filter(|name| !names.contains(&PodKey::new("", name)))
            .collect();
        stale.iter().for_each(|name| view.remove_pool(name));
    }
}

fn is_ready(pool: &NodePool) -> bool {
    condition::is_true(pool.conditions(), condition::READY)
}

struct Classes<'a>(&'a Context);

impl Sink<ScarpenterNodeClass> for Classes<'_> {
    fn apply(&mut self, object: ScarpenterNodeClass) {
        self.0.view().apply_class(Arc::new(object));
        self.0.wake.classes.notify_one();
        self.0.wake.pools.notify_one();
    }

    fn remove(&mut self, object: ScarpenterNodeClass) {
        self.0.view().remove_class(&object.name_any());
        self.0.wake.classes.notify_one();
        self.0.wake.pools.notify_one();
    }

    fn listed(&mut self, names: BTreeSet<PodKey>) {
        let mut view = self.0.view();
        let stale: Vec<String> = view
            .classes()
            .map(|class| class.name_any())
            .filter(|name| !names.contains(&PodKey::new("", name)))
            .collect();
        stale.iter().for_each(|name| view.remove_class(name));
    }
}

struct Daemons<'a>(&'a Context);

impl Sink<DaemonSet> for Daemons<'_> {
    fn apply(&mut self, object: DaemonSet) {
        self.0.view().apply_daemon(&object);
    }

    fn remove(&mut self, object: DaemonSet) {
        self.0.view().remove_daemon(&object);
    }

    fn listed(&mut self, names: BTreeSet<PodKey>) {
        self.0.view().keep_daemons(&names);
    }
}

/// Watches everything but claims for ever.
pub(crate) async fn run(context: &Context, synced: &Synced) {
    let client = &context.client;
    tokio::join!(
        feed::<Pod>(client, synced, Pods(context)),
        feed::<Node>(client, synced, Nodes(context)),
        feed::<NodePool>(client, synced, Pools(context)),
        feed::<ScarpenterNodeClass>(client, synced, Classes(context)),
        feed::<DaemonSet>(client, synced, Daemons(context)),
        surroundings::run(context, synced),
    );
}

/// A stream of claims that also feeds the view; the controller of claims reads it.
pub(crate) fn claims(
    context: Arc<Context>,
    synced: Synced,
) -> impl Stream<Item = watcher::Result<Event<NodeClaim>>> {
    let mut names = BTreeSet::new();
    let mut first = true;
    events::<NodeClaim>(&context.client).inspect(move |event| match event {
        Ok(Event::Init) => names.clear(),
        Ok(Event::InitApply(claim)) => {
            names.insert(claim.name_any());
            take(&context, claim);
        }
        Ok(Event::InitDone) => {
            context.view().keep_claims(&std::mem::take(&mut names));
            if std::mem::take(&mut first) {
                synced.send_modify(|count| *count += 1);
            }
        }
        Ok(Event::Apply(claim)) => take(&context, claim),
        Ok(Event::Delete(claim)) => {
            context.view().remove_claim(claim);
            context.forget(&claim.metadata.uid.as_deref().unwrap_or_default().into());
            context.wake.pools.notify_one();
            context.wake.pods.notify_one();
            context.wake.orphans.notify_one();
            context.wake.classes.notify_one();
        }
        Err(error) => tracing::warn!(kind = "NodeClaim", %error, "watch interrupted"),
    })
}

fn take(context: &Context, claim: &NodeClaim) {
    if claim.is_ours() {
        let newest = context.newest(Arc::new(claim.clone()));
        context.view().apply_claim(newest);
        context.wake.pools.notify_one();
    }
}
