//! The loop that expires keys that have done their work, and deletes what claims have left in a mesh.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use scarpenter_api::{NodeClaim, event};
use scarpenter_core::name::ClaimUid;
use scarpenter_headscale::{Client, KeyId};

use super::decide::{self, Lists, Remains};
use super::{Error, Mark, Note, Server, lock, notes, server};
use crate::context::Context;
use crate::event::Severity;
use crate::provisioner::chain;

/// Claims that end or join within this time share one look at Headscale.
const GATHER: Duration = Duration::from_millis(200);
/// A pass that could not do everything is repeated after this long.
const AGAIN: Duration = Duration::from_secs(5);
/// Calls to one Headscale at a time.
const CALLS: usize = 8;

/// What a Headscale holds, as it says.
struct Found {
    server: Server,
    client: Arc<Client>,
    lists: Lists,
}

/// Passes for ever: a small one when a claim has joined or ended, a whole one as often as machines are swept.
pub(super) async fn run(context: Arc<Context>) {
    let mut whole_at: Option<Instant> = None;
    let mut failed = false;
    loop {
        let every = context.settings.sweep_every;
        let due = whole_at.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
        let wait = if failed { due.min(AGAIN) } else { due };
        let _ = tokio::time::timeout(wait, context.mesh.tidy.notified()).await;
        tokio::time::sleep(GATHER).await;
        let whole = whole_at.is_none_or(|at| at.elapsed() >= every);
        if whole {
            whole_at = Some(Instant::now());
        }
        failed = match pass(&context, whole).await {
            Ok(complete) => !complete,
            Err(error) => {
                tracing::warn!(error = %chain(&error), "mesh not tidied");
                true
            }
        };
        context.mesh.passes.send_modify(|passes| *passes += 1);
    }
}

/// One pass; whether every Headscale answered for everything.
async fn pass(context: &Context, whole: bool) -> Result<bool, Error> {
    let notes = notes::read(context).await?;
    let servers: BTreeSet<Server> =
        classes(context).chain(notes.values().map(|note| note.server.clone())).collect();
    // Headscale first: a key is written down after it is made, so one that no later list of claims knows is lost.
    let looked = join_all(servers.iter().map(|server| look(context, server))).await;
    let vanished = if whole { vanished(context, &notes).await? } else { BTreeSet::new() };
    let mut complete = true;
    let mut left = 0;
    for (server, looked) in servers.iter().zip(looked) {
        let of_server = |note: &Note| note.server == *server;
        let over: Vec<(&ClaimUid, &Note)> = notes
            .iter()
            .filter(|(uid, note)| of_server(note) && (note.left || vanished.contains(*uid)))
            .collect();
        match looked {
            Ok(found) => {
                set_down(context, server, false);
                let (gone, more) = collect(context, &found, &over, whole.then_some(&notes)).await;
                left += over.len() - gone.len();
                complete &= more && gone.len() == over.len();
                notes::remove(context, &gone).await?;
            }
            Err(error) => {
                complete = false;
                left += over.len();
                set_down(context, server, true);
                tracing::warn!(url = server.url, error = %chain(&error), "mesh not tidied");
                tell(context, server, &over, &chain(&error)).await;
            }
        }
    }
    context.metrics.mesh_left(left);
    Ok(complete)
}

fn set_down(context: &Context, server: &Server, down: bool) {
    let mut all = lock(&context.mesh.down);
    if down {
        all.insert(server.clone())
    } else {
        all.remove(server)
    };
}

/// Headscales that classes name now.
fn classes(context: &Context) -> impl Iterator<Item = Server> {
    let view = context.view();
    let all: Vec<Server> =
        view.classes().filter_map(|class| Some(Server::of(&class.spec.mesh.as_ref()?.headscale))).collect();
    all.into_iter()
}

async fn look(context: &Context, server: &Server) -> Result<Found, Error> {
    let client = server::client(context, server).await?;
    let keys = server::said(context, server, client.keys().await)?;
    let nodes = server::said(context, server, client.nodes().await)?;
    Ok(Found { server: server.clone(), client, lists: Lists { keys, nodes } })
}

/// Claims that are gone without having let go. Those that are there and not noted yet are noted, for the same case.
async fn vanished(context: &Context, notes: &BTreeMap<ClaimUid, Note>) -> Result<BTreeSet<ClaimUid>, Error> {
    let known: Vec<(ClaimUid, Note)> = {
        let view = context.view();
        let fresh = view.claims().filter(|record| !notes.contains_key(&record.claim.uid));
        fresh
            .filter_map(|record| {
                let class = view.class(&record.object.spec.node_class_ref.name)?;
                let server = Server::of(&class.spec.mesh.as_ref()?.headscale);
                let note =
                    Note { server, mark: Mark::of(record)?, node: record.claim.name.clone(), left: false };
                Some((record.claim.uid.clone(), note))
            })
            .collect()
    };
    notes::put(context, known.into_iter().collect()).await?;
    if notes.values().all(|note| note.left) {
        return Ok(BTreeSet::new());
    }
    let claims = Api::<NodeClaim>::all(context.client.clone()).list_metadata(&ListParams::default()).await;
    let claims = claims.map_err(Error::kubernetes("list the claims"))?;
    let live = claims.items.into_iter().filter_map(|claim| claim.metadata.uid).map(ClaimUid::new).collect();
    match decide::vanished(notes, &live) {
        Ok(vanished) => Ok(vanished),
        Err(words) => {
            tracing::error!(words, "mesh sweep braked");
            for server in notes.values().map(|note| &note.server).collect::<BTreeSet<_>>() {
                announce(context, server, event::SWEEP_BRAKED, &words).await;
            }
            Ok(BTreeSet::new())
        }
    }
}

/// Deletes and expires what a Headscale holds in vain. Gives the claims of which nothing is left, and whether all else
/// went well.
async fn collect(
    context: &Context,
    found: &Found,
    over: &[(&ClaimUid, &Note)],
    whole: Option<&BTreeMap<ClaimUid, Note>>,
) -> (BTreeSet<ClaimUid>, bool) {
    let lists = &found.lists;
    let mut gone = BTreeSet::new();
    for some in decide::remains(over.iter().copied(), lists).chunks(CALLS) {
        let removed = join_all(some.iter().map(|remains| remove(context, found, remains))).await;
        gone.extend(
            some.iter().zip(removed).filter(|(_, removed)| *removed).map(|(own, _)| own.claim.clone()),
        );
    }
    let now = Timestamp::now();
    let (joined, known) = written(context);
    let mut well = end(context, found, Deed::Expire, &decide::spent(&joined, &lists.keys, now)).await;
    if let Some(notes) = whole {
        let known = known.into_iter().chain(notes.values().map(|note| note.mark.id.clone())).collect();
        let lost = decide::lost(&known, &lists.keys, &context.cluster, now);
        well &= end(context, found, Deed::Delete, &lost).await;
    }
    (gone, well)
}

/// Marks of claims whose machines have joined, and ids of all keys that are on claims.
fn written(context: &Context) -> (Vec<Mark>, Vec<KeyId>) {
    let view = context.view();
    let marks = view.claims().filter_map(|record| Some((record.claim.registered, Mark::of(record)?)));
    let (mut joined, mut known) = (Vec::new(), Vec::new());
    for (registered, mark) in marks {
        known.push(mark.id.clone());
        joined.extend(registered.then_some(mark));
    }
    (joined, known)
}

/// Deletes what is left of a claim, and says so, or why not; whether nothing is left.
async fn remove(context: &Context, found: &Found, remains: &Remains) -> bool {
    let (claim, url) = (&remains.claim, &found.server.url);
    match server::said(context, &found.server, delete(&found.client, remains).await) {
        Ok(()) => {
            tracing::info!(%claim, url, nodes = ?remains.nodes, key = ?remains.key, "mesh node and key deleted");
            true
        }
        Err(error) => {
            let words = format!("mesh node of claim {claim} is not deleted yet: {}", chain(&error));
            tracing::warn!(%claim, url, error = %chain(&error), "mesh node not deleted yet");
            announce(context, &found.server, event::MESH_LEFT, &words).await;
            false
        }
    }
}

async fn delete(client: &Client, remains: &Remains) -> Result<(), scarpenter_headscale::Error> {
    for node in &remains.nodes {
        client.delete_node(node).await?;
    }
    match &remains.key {
        Some(key) => client.delete_key(key).await,
        None => Ok(()),
    }
}

/// How a key ends.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// A node has it.
    Expire,
    /// Nobody has it.
    Delete,
}

/// Ends keys; whether it went well.
async fn end(context: &Context, found: &Found, deed: Deed, keys: &[KeyId]) -> bool {
    let mut well = true;
    for some in keys.chunks(CALLS) {
        well &= join_all(some.iter().map(|key| end_one(context, found, deed, key)))
            .await
            .into_iter()
            .all(|ended| ended);
    }
    well
}

async fn end_one(context: &Context, found: &Found, deed: Deed, key: &KeyId) -> bool {
    let outcome = match deed {
        Deed::Expire => found.client.expire_key(key).await,
        Deed::Delete => found.client.delete_key(key).await,
    };
    let url = &found.server.url;
    match server::said(context, &found.server, outcome) {
        Ok(()) => tracing::info!(%key, url, ?deed, "mesh key ended"),
        Err(error) => {
            tracing::warn!(%key, url, ?deed, error = %chain(&error), "mesh key not ended yet");
            return false;
        }
    }
    true
}

/// One event for all that waits, so that a long outage is not told of once a claim.
async fn tell(context: &Context, server: &Server, over: &[(&ClaimUid, &Note)], why: &str) {
    let Some((_, first)) = over.first() else { return };
    let words = format!(
        "{} mesh nodes and keys of machines that are gone, such as {}'s, are left until they can be deleted: {why}",
        over.len(),
        first.node
    );
    announce(context, server, event::MESH_LEFT, &words).await;
}

/// An event on the classes that use the Headscale, for a person to look at.
async fn announce(context: &Context, server: &Server, reason: &'static str, words: &str) {
    let is_its = |class: &scarpenter_api::ScarpenterNodeClass| {
        class.spec.mesh.as_ref().is_some_and(|mesh| Server::of(&mesh.headscale) == *server)
    };
    let classes: Vec<_> = context.view().classes().filter(|class| is_its(class)).cloned().collect();
    for class in classes {
        context.events.publish(&context.client, &*class, Severity::Warning, reason, words).await;
    }
}
