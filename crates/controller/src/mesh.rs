//! The mesh of classes that have one: a key for each claim, the addresses of its node, and the end of both.
//!
//! # What is kept where
//! A claim carries the id of its key and when that was made: with the second, a key of another database under the same
//! URL is not taken for it. ConfigMap `scarpenter-mesh` keeps the same of every claim for when the claim is gone, and
//! the end of each key carries the cluster's mark, by which one is found that was lost before it was written down.
//! Nodes are found by their key alone, never by name, user or tag, so nobody else's are touched.
//!
//! # Guarantees
//! - The key's id is on the claim before the join Secret that holds the key is made, and noted before the machine is.
//! - Nothing of a claim's end waits for Headscale: what it does not answer for is noted and collected later.
//! - A key is deleted only once no node has it; until then it is expired.

mod check;
mod decide;
mod key;
mod notes;
mod server;
mod tidy;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use scarpenter_api::ScarpenterNodeClass;
use scarpenter_core::name::ClaimUid;
use scarpenter_headscale::{Kind, Node};
use scarpenter_index::ClaimRecord;
use tokio::sync::{Notify, watch};

use crate::context::Context;
use check::Checked;
use notes::Note;

pub(crate) use key::{Key, Mark, prepare, settle};
pub(crate) use server::Server;

/// A list of nodes that is younger than this is good enough to find a node in.
const NODES_GOOD_FOR: Duration = Duration::from_secs(2);
/// One that does not hold the node is not asked for again before this.
const NODES_NEW_FOR: Duration = Duration::from_millis(300);
/// Release waits this long for the mesh node to go, so that it usually goes before its claim.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why something cannot be done with a mesh.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API server refused or could not be reached.
    #[error("{doing}")]
    Kubernetes {
        /// What we were doing.
        doing: &'static str,
        /// Its words.
        source: Box<kube::Error>,
    },
    /// The Secret of the API key is not there.
    #[error(
        "there is no Secret {name} in namespace {namespace}: create it with an API key of Headscale under {key}"
    )]
    NoSecret {
        /// Secret.
        name: String,
        /// Key in it.
        key: String,
        /// The controller's namespace.
        namespace: String,
    },
    /// The Secret has no such key.
    #[error(
        "Secret {name} in namespace {namespace} has no text under {key}: put an API key of Headscale there"
    )]
    NoSecretKey {
        /// Secret.
        name: String,
        /// Key in it.
        key: String,
        /// The controller's namespace.
        namespace: String,
    },
    /// Headscale has no such user.
    #[error(
        "Headscale at {url} has no user {user:?}: create it with `headscale users create`, or name another"
    )]
    NoUser {
        /// Its URL.
        url: String,
        /// The user.
        user: String,
    },
    /// Its policy does not know a tag, or it is none.
    #[error("{0}")]
    Tag(String),
    /// The API key is none of Headscale's.
    #[error(
        "Headscale at {url} refuses the API key in Secret {name} (key {key}): it is wrong, expired or revoked; make one with `headscale apikeys create`"
    )]
    ApiKey {
        /// Its URL.
        url: String,
        /// Secret.
        name: String,
        /// Key in it.
        key: String,
    },
    /// The call failed.
    #[error(transparent)]
    Headscale(#[from] scarpenter_headscale::Error),
}

impl Error {
    fn kubernetes(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Kubernetes { doing, source: Box::new(source) }
    }

    /// A fixed word for metrics and logs.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            Self::Kubernetes { .. } => "kubernetes",
            Self::NoSecret { .. } | Self::NoSecretKey { .. } => "secret",
            Self::NoUser { .. } => "user",
            Self::Tag(_) => "tag",
            Self::ApiKey { .. } => Kind::Unauthorized.as_str(),
            Self::Headscale(error) => error.kind().as_str(),
        }
    }
}

/// What is remembered of meshes; all of it may be lost at any time.
#[derive(Default)]
pub(crate) struct Mesh {
    clients: server::Clients,
    /// By class.
    checked: Mutex<BTreeMap<String, Checked>>,
    /// Ids of users, as of the latest check.
    users: Mutex<HashMap<(Server, String), String>>,
    nodes: Mutex<HashMap<Server, Listed>>,
    /// As of the latest pass, and what was written since.
    notes: Mutex<BTreeMap<ClaimUid, Note>>,
    /// Notes that wait for somebody to have the turn.
    unwritten: Mutex<BTreeMap<ClaimUid, Note>>,
    /// Held while notes are read or written, so that what is known here is what is written there.
    writing: tokio::sync::Mutex<()>,
    /// Headscales that did not answer the latest pass.
    down: Mutex<BTreeSet<Server>>,
    /// Classes to check.
    check: Notify,
    /// Keys whose join Secrets are not stored yet, so that a retry does not make another.
    unstored: Mutex<HashMap<ClaimUid, (Mark, scarpenter_bootstrap::Mesh)>>,
    /// Something may have become collectable.
    tidy: Notify,
    /// Counts passes that are done.
    passes: watch::Sender<u64>,
}

/// When nodes were listed, and which.
type Listed = (Instant, Arc<Vec<Node>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks and tidies for ever.
pub(crate) async fn run(context: Arc<Context>) {
    tokio::join!(check::run(Arc::clone(&context)), tidy::run(context));
}

/// What the latest check says of a class's mesh; asks for one when there is none of this mesh.
pub(crate) fn verdict(context: &Context, class: &ScarpenterNodeClass) -> Option<check::Verdict> {
    let spec = class.spec.mesh.as_ref()?;
    let found = lock(&context.mesh.checked).get(&class.name_any()).filter(|own| own.is_of(spec)).cloned();
    if found.is_none() {
        context.mesh.check.notify_one();
    }
    found.map(|own| own.verdict)
}

/// Something failed that the latest check did not foresee: it is made again at once.
pub(crate) fn doubt(context: &Context, class: &str) {
    if let Some(checked) = lock(&context.mesh.checked).get_mut(class) {
        checked.doubt();
    }
    context.mesh.check.notify_one();
}

/// Notes the claim's key for when the claim is gone, however it goes. Without a mesh it is nothing.
///
/// # Errors
/// When the API server does not take the note.
pub(crate) async fn note(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    match Mark::of(record) {
        Some(mark) => note_mark(context, record, mark, false).await.map(drop),
        None => Ok(()),
    }
}

/// Notes a key of a claim; gives where it was made.
async fn note_mark(
    context: &Context,
    record: &ClaimRecord,
    mark: Mark,
    left: bool,
) -> Result<Option<Server>, Error> {
    let Some(server) = server_of(context, record) else { return Ok(None) };
    let note = Note { server: server.clone(), mark, node: record.claim.name.clone(), left };
    notes::put(context, BTreeMap::from([(record.claim.uid.clone(), note)])).await?;
    Ok(Some(server))
}

/// The claim's key has done its work.
pub(crate) fn joined(context: &Context, record: &ClaimRecord) {
    if Mark::of(record).is_some() {
        context.mesh.tidy.notify_one();
    }
}

/// Mesh addresses of the claim's node, found by the claim's key; empty while it has not joined, and without a mesh.
///
/// # Errors
/// [`Error`] when Headscale does not say.
pub(crate) async fn addresses(context: &Context, record: &ClaimRecord) -> Result<Vec<IpAddr>, Error> {
    let (Some(mark), Some(server)) = (Mark::of(record), server_of(context, record)) else {
        return Ok(Vec::new());
    };
    let of_claim = |nodes: &[Node]| -> Vec<IpAddr> {
        let own = nodes.iter().filter(|node| node.key.as_ref().is_some_and(|key| mark.is_of(key)));
        own.flat_map(|node| node.addresses.iter().copied()).collect()
    };
    let known = lock(&context.mesh.nodes).get(&server).cloned();
    if let Some((at, nodes)) = known.filter(|(at, _)| at.elapsed() < NODES_GOOD_FOR) {
        let found = of_claim(&nodes);
        if !found.is_empty() || at.elapsed() < NODES_NEW_FOR {
            return Ok(found);
        }
    }
    let client = server::client(context, &server).await?;
    let nodes = Arc::new(server::said(context, &server, client.nodes().await)?);
    let found = of_claim(&nodes);
    lock(&context.mesh.nodes).insert(server, (Instant::now(), nodes));
    Ok(found)
}

/// Says that the claim's mesh node and key may go. Headscale has a moment for it; after that, it is collected later.
///
/// # Errors
/// When it cannot be noted: the API server does not answer, and nothing of the claim's end goes without it.
pub(crate) async fn leave(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    lock(&context.mesh.unstored).remove(&record.claim.uid);
    let Some(mark) = Mark::of(record) else { return Ok(()) };
    let uid = record.claim.uid.clone();
    let Some(server) = note_mark(context, record, mark, true).await? else {
        tracing::warn!("mesh node of a claim without a class is left; its key ends by itself");
        return Ok(());
    };
    let mut passes = context.mesh.passes.subscribe();
    context.mesh.tidy.notify_one();
    if !lock(&context.mesh.down).contains(&server) {
        let done = passes.wait_for(|_| !lock(&context.mesh.notes).contains_key(&uid));
        if tokio::time::timeout(PATIENCE, done).await.is_err() {
            tracing::warn!(url = server.url, "mesh node not deleted yet; its claim does not wait for it");
        }
    }
    Ok(())
}

/// Where the claim's key was made: as noted, since its class may have changed, else as its class says.
fn server_of(context: &Context, record: &ClaimRecord) -> Option<Server> {
    let noted = lock(&context.mesh.notes).get(&record.claim.uid).map(|note| note.server.clone());
    noted.or_else(|| {
        let view = context.view();
        let class = view.class(&record.object.spec.node_class_ref.name)?;
        class.spec.mesh.as_ref().map(|mesh| Server::of(&mesh.headscale))
    })
}
