//! Empty nodes: candidates by the planner's rules, looked at again after a while, tainted, looked at through the API,
//! and only then given up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use scarpenter_api::condition::{self, Status};
use scarpenter_api::nodepool::DisruptionReason;
use scarpenter_api::{event, pod, reason};
use scarpenter_core::label;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::ClaimUid;
use scarpenter_index::{ClaimRecord, NodeRecord, View};
use scarpenter_planner::disruption::{Empties, EmptyNode};
use serde_json::json;

use crate::clock;
use crate::context::Context;
use crate::event::Severity;
use crate::lessons::promise;
use crate::lifecycle::{Error, delete_claim, pods_on, taint, write_status};
use crate::provisioner::chain;

/// The loop looks this often.
const EVERY: Duration = Duration::from_secs(1);

/// Disruptions that are under way: by claim, since when its node is tainted.
type UnderWay = BTreeMap<ClaimUid, Time>;

/// Looks for empty nodes for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let mut empties = Empties::default();
    let mut under_way = UnderWay::new();
    loop {
        heal(&context, &under_way).await;
        tokio::time::sleep(EVERY).await;
        let (nodes, budgets) = facts(&context, &under_way);
        let verdict = empties.look(&nodes, &budgets, context.settings.validation_delay, clock::now());
        mark(&context, &verdict.consolidatable).await;
        begin(&context, verdict.disrupt, &mut under_way).await;
        for claim in end(&context, &mut under_way).await {
            empties.spared(&claim, clock::now());
        }
    }
}

/// Taints nodes that are to go.
async fn begin(context: &Context, claims: Vec<ClaimUid>, under_way: &mut UnderWay) {
    let fresh = claims.into_iter().filter(|claim| !under_way.contains_key(claim));
    let taintings = fresh.map(|claim| async move {
        let tainted = match facts_of(context, &claim) {
            Ok((_, name)) => taint(context, &name).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &tainted {
            tracing::warn!(%claim, error = %chain(error), "empty node not disrupted");
        }
        tainted.is_ok().then(|| (claim, clock::now()))
    });
    let tainted = futures::future::join_all(taintings).await;
    under_way.extend(tainted.into_iter().flatten());
}

/// Gives up the claims whose nodes carried the taint for long enough, and spares those that are in use after all.
///
/// A scheduler that has not heard of the taint may still bind a pod to such a node, and to evict it then would be to
/// lose it. So nothing is given up before the taint is as old as a machine must rest anyway before it goes.
async fn end(context: &Context, under_way: &mut UnderWay) -> Vec<ClaimUid> {
    let now = clock::now();
    let rested = |since: &Time| now >= since.after(context.settings.drain_delay);
    let due = under_way.iter().filter(|(claim, since)| rested(since) || is_occupied(context, claim));
    let due: Vec<ClaimUid> = due.map(|(claim, _)| claim.clone()).collect();
    let endings = due.iter().map(|claim| async move {
        disrupt(context, claim).await.unwrap_or_else(|error| {
            tracing::warn!(%claim, error = %chain(&error), "empty node not disrupted");
            false
        })
    });
    let spared = futures::future::join_all(endings).await;
    under_way.retain(|claim, _| !due.contains(claim));
    due.into_iter().zip(spared).filter(|(_, spared)| *spared).map(|(claim, _)| claim).collect()
}

fn is_occupied(context: &Context, claim: &ClaimUid) -> bool {
    let view = context.view();
    view.nodes_of(claim).any(|node| view.pods_on(&node.name).any(|pod| pod.occupies))
}

/// A node that was tainted for a disruption that never came to its end loses the taint (DIS-2): the process that
/// tainted it was killed or met an error, since between two looks none is under way. It would count against its budget.
async fn heal(context: &Context, under_way: &UnderWay) {
    let stale: Vec<(String, ClaimRecord)> = {
        let view = context.view();
        let tainted = view.nodes().filter(|node| node.is_disrupted() && !node.deleting);
        let of_claim = |node: &NodeRecord| Some((node.name.clone(), view.claim_of_node(node)?.clone()));
        let ours = |record: &ClaimRecord| under_way.contains_key(&record.claim.uid);
        tainted
            .filter_map(of_claim)
            .filter(|(_, record)| record.claim.deleted.is_none() && !ours(record))
            .collect()
    };
    for (node, record) in stale {
        if let Err(error) = spare(context, &record, &node).await {
            tracing::warn!(node, error = %chain(&error), "taint of an earlier disruption not removed");
        }
    }
}

/// Nodes that are empty now, and what each pool's budgets leave.
fn facts(context: &Context, under_way: &UnderWay) -> (Vec<EmptyNode>, BTreeMap<String, u32>) {
    let view = context.view();
    let mut nodes = Vec::new();
    let mut budgets = BTreeMap::new();
    let kept_for = promise::longest(context.settings.unfit_after);
    for record in view.claims().filter(|record| is_empty(&view, record, kept_for)) {
        let Some(pool) = record.pool.as_deref().and_then(|pool| view.pool(pool)) else { continue };
        budgets.entry(pool.name_any()).or_insert_with(|| budget(&view, pool));
        nodes.push(EmptyNode {
            claim: record.claim.uid.clone(),
            pool: pool.name_any(),
            consolidate_after: pool.consolidate_after(),
            going: under_way.contains_key(&record.claim.uid),
        });
    }
    (nodes, budgets)
}

/// Keeps condition `Consolidatable` as it is.
async fn mark(context: &Context, consolidatable: &BTreeSet<ClaimUid>) {
    let changes: Vec<(ClaimRecord, bool)> = {
        let view = context.view();
        let living = view.claims().filter(|record| record.claim.deleted.is_none());
        let change = |record: &ClaimRecord| {
            let wanted = consolidatable.contains(&record.claim.uid);
            let there = condition::is_true(record.object.conditions(), condition::CONSOLIDATABLE);
            (wanted != there).then(|| (record.clone(), wanted))
        };
        living.filter_map(change).collect()
    };
    let writes = changes.iter().map(|(record, wanted)| async {
        let written = write_status(context, record, |status, look| {
            if *wanted {
                condition::set_true(&mut status.conditions, look, condition::CONSOLIDATABLE);
            } else {
                condition::remove(&mut status.conditions, condition::CONSOLIDATABLE);
            }
        });
        if let Err(error) = written.await {
            tracing::debug!(claim = record.claim.name, error = %chain(&error), "condition not written");
        }
    });
    futures::future::join_all(writes).await;
}

/// No pod that occupies it, none that was promised it, initialized, and nobody said hands off.
fn is_empty(view: &View, record: &ClaimRecord, kept_for: Duration) -> bool {
    let claim = &record.claim;
    if claim.deleted.is_some() || !claim.initialized || claim.terminating.is_some() {
        return false;
    }
    let mut nodes = view.nodes_of(&claim.uid);
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return false };
    let occupied = view.pods_on(&node.name).any(|pod| pod.occupies);
    let expected = || is_young(record, kept_for) && view.is_awaited(record);
    node.is_initialized() && !node.deleting && !is_protected(node) && !occupied && !expected()
}

fn is_protected(node: &NodeRecord) -> bool {
    node.annotations.get(label::DO_NOT_DISRUPT).is_some_and(|value| value == "true")
}

/// A machine does not count as empty while it may still be for the pods that it was bought for. That the promise to a
/// pod ends before is `lessons::promise`'s to say.
fn is_young(record: &ClaimRecord, kept_for: Duration) -> bool {
    let since = condition::since(record.object.conditions(), condition::INITIALIZED);
    since.is_some_and(|at| clock::now() < Time::from_millis(at.as_millisecond()).after(kept_for))
}

/// Allowed by the pool's budgets, less what is going already or not ready (DIS-6).
fn budget(view: &View, pool: &scarpenter_api::NodePool) -> u32 {
    let name = pool.name_any();
    let (mut base, mut consumed) = (0, 0);
    for record in view.claims().filter(|record| {
        record.pool.as_deref() == Some(&name)
            && record.claim.initialized
            && record.claim.terminating.is_none()
    }) {
        base += 1;
        let node = view.nodes_of(&record.claim.uid).next();
        if record.claim.deleted.is_some() || node.is_none_or(|node| !node.ready || node.is_disrupted()) {
            consumed += 1;
        }
    }
    pool.allowed_disruptions(DisruptionReason::Empty, base, Timestamp::now()).saturating_sub(consumed)
}

fn facts_of(context: &Context, claim: &ClaimUid) -> Result<(ClaimRecord, String), Error> {
    let view = context.view();
    let record = view.claim_of(claim).cloned().ok_or(Error::Stale("the claim"))?;
    let node = view.nodes_of(claim).next().map(|node| node.name.clone());
    Ok((record, node.ok_or(Error::Stale("the node"))?))
}

/// Looks again through the API, and gives the claim up; or takes the taint off again, and says so.
async fn disrupt(context: &Context, claim: &ClaimUid) -> Result<bool, Error> {
    let (record, name) = facts_of(context, claim)?;
    let now = Timestamp::now();
    let pods = pods_on(context, &name).await?;
    let in_use = |object: &&Pod| {
        !pod::is_terminal(object) && !pod::is_daemon(object) || pod::protection(object, now).is_active()
    };
    let busy = pods.iter().find(in_use);
    let busy =
        busy.map(|busy| format!("pod {}/{} is on it", busy.namespace().unwrap_or_default(), busy.name_any()));
    // Somebody may have said hands off while the taint grew old.
    let protected = context.view().node(&name).is_some_and(is_protected);
    let protected = protected.then(|| format!("node {name} has annotation {}", label::DO_NOT_DISRUPT));
    if let Some(note) = busy.or(protected) {
        let blocked = event::DISRUPTION_BLOCKED;
        context.events.publish(&context.client, &*record.object, Severity::Normal, blocked, &note).await;
        spare(context, &record, &name).await?;
        return Ok(true);
    }
    give_up(context, &record).await?;
    Ok(false)
}

async fn give_up(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    let record = ClaimRecord::parse(context.newest(Arc::clone(&record.object)));
    let written = write_status(context, &record, |status, look| {
        let (type_, words) = (condition::DISRUPTION_REASON, "nothing runs on it");
        condition::set(&mut status.conditions, look, type_, Status::True, reason::EMPTY, words);
    })
    .await?;
    let record = ClaimRecord::parse(written);
    let terminating = event::DISRUPTION_TERMINATING;
    let note = "Disrupting NodeClaim: Empty";
    context.events.publish(&context.client, &*record.object, Severity::Normal, terminating, note).await;
    context.metrics.disrupted(reason::end::EMPTY, record.pool.as_deref());
    tracing::info!(claim = record.claim.name, "empty node disrupted");
    delete_claim(context, &record).await
}

/// Takes the taint off again.
async fn spare(context: &Context, record: &ClaimRecord, node: &str) -> Result<(), Error> {
    let api = Api::<k8s_openapi::api::core::v1::Node>::all(context.client.clone());
    let object = api.get(node).await.map_err(Error::kubernetes("read the node"))?;
    let mut taints = object.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    taints.retain(|taint| taint.key != label::DISRUPTED_TAINT);
    let patch =
        json!({"metadata": {"resourceVersion": object.resource_version()}, "spec": {"taints": taints}});
    let written = api
        .patch(node, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::kubernetes("take the taint off"))?;
    context.view().apply_node(&written);
    let record = ClaimRecord::parse(context.newest(Arc::clone(&record.object)));
    write_status(context, &record, |status, _| {
        condition::remove(&mut status.conditions, condition::DISRUPTION_REASON);
    })
    .await
    .map(drop)
}
