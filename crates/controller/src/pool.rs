//! NodePools: whether each can be used, and how much it has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use scarpenter_api::condition::{self, Look, Status};
use scarpenter_api::nodepool::NodePoolStatus;
use scarpenter_api::{NodePool, quantity, reason};
use scarpenter_core::resources::{
    CPU, EPHEMERAL_STORAGE, MEMORY, MICRO_USD_PER_HOUR, NODES, PODS, Resources,
};
use serde_json::json;

use crate::context::Context;
use crate::provisioner::chain;

/// Pools are looked at again after this long, besides by events.
const AGAIN: Duration = Duration::from_secs(5);
/// A burst of changes is written once.
const SETTLE: Duration = Duration::from_millis(500);

/// When the sums of each pool were last written.
type Counted = HashMap<String, Instant>;

/// Looks at all pools for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let mut counted = HashMap::new();
    loop {
        let pools: Vec<_> = context.view().pools().filter(|pool| pool.is_ours()).cloned().collect();
        for pool in pools {
            if let Err(error) = look(&context, &mut counted, &pool).await {
                tracing::warn!(pool = pool.name_any(), error = %chain(&error), "pool not written");
            }
        }
        let _ = tokio::time::timeout(AGAIN, context.wake.pools.notified()).await;
        tokio::time::sleep(SETTLE).await;
    }
}

async fn look(context: &Context, counted: &mut Counted, pool: &NodePool) -> Result<(), kube::Error> {
    let look = Look { generation: pool.metadata.generation, now: Timestamp::now() };
    let mut status = pool.status.clone().unwrap_or_default();
    let created = pool.creation_timestamp().map_or(look.now, |at| at.0);
    match pool.to_pool() {
        Ok(_) => condition::set_true(&mut status.conditions, look, condition::VALIDATION_SUCCEEDED),
        Err(problems) => {
            let words = problems.join("; ");
            condition::set(
                &mut status.conditions,
                look,
                condition::VALIDATION_SUCCEEDED,
                Status::False,
                reason::NODE_POOL_VALIDATION_FAILED,
                &words,
            );
        }
    }
    class_ready(context, pool, &mut status, look);
    condition::complete(&mut status.conditions, look, created, &condition::POOL_DEPENDENTS);
    count(context, pool, &mut status);
    let was_ready = condition::is_true(pool.conditions(), condition::READY);
    let is_ready = condition::is_true(&status.conditions, condition::READY);
    // Sums move with every machine; conditions are news at once (NPL-3).
    let news = status.conditions != pool.conditions();
    let due = counted.get(&pool.name_any()).is_none_or(|at| at.elapsed() >= AGAIN);
    if news || due {
        counted.insert(pool.name_any(), Instant::now());
        write(context, pool, &status).await?;
    }
    if is_ready && !was_ready {
        context.wake.pods.notify_one();
    }
    Ok(())
}

fn class_ready(context: &Context, pool: &NodePool, status: &mut NodePoolStatus, look: Look) {
    let name = &pool.spec.template.spec.node_class_ref.name;
    let class = context.view().class(name).cloned();
    let mut set = |status_: Status, word: &str, words: &str| {
        condition::set(&mut status.conditions, look, condition::NODE_CLASS_READY, status_, word, words);
    };
    let Some(class) = class else {
        return set(
            Status::False,
            reason::NODE_CLASS_NOT_FOUND,
            &format!("ScarpenterNodeClass {name} does not exist"),
        );
    };
    if class.metadata.deletion_timestamp.is_some() {
        return set(
            Status::False,
            reason::NODE_CLASS_TERMINATING,
            &format!("ScarpenterNodeClass {name} is being deleted"),
        );
    }
    match condition::find(class.conditions(), condition::READY) {
        Some(ready) if ready.status == Status::True => {
            condition::set_true(&mut status.conditions, look, condition::NODE_CLASS_READY)
        }
        Some(ready) if ready.status == Status::False => set(Status::False, &ready.reason, &ready.message),
        _ => set(
            Status::Unknown,
            reason::NODE_CLASS_READINESS_UNKNOWN,
            &format!("ScarpenterNodeClass {name} has not been checked yet"),
        ),
    }
}

/// Sums of what the pool has, with the usual names always there (NPL-3).
fn count(context: &Context, pool: &NodePool, status: &mut NodePoolStatus) {
    let name = pool.name_any();
    let mut sum = Resources::new();
    for resource in [CPU, MEMORY, PODS, EPHEMERAL_STORAGE, NODES, MICRO_USD_PER_HOUR] {
        sum.set(resource, 0);
    }
    let view = context.view();
    for record in
        view.claims().filter(|record| record.pool.as_deref() == Some(&name) && record.claim.deleted.is_none())
    {
        sum.add(&record.counted());
    }
    drop(view);
    context.metrics.usage(&name, &sum);
    status.nodes = sum.get(NODES);
    status.resources = quantity::write(&sum);
}

async fn write(context: &Context, pool: &NodePool, status: &NodePoolStatus) -> Result<(), kube::Error> {
    if pool.status.as_ref() == Some(status) {
        return Ok(());
    }
    let patch = json!({"metadata": {"resourceVersion": pool.resource_version()}, "status": status});
    let api = Api::<NodePool>::all(context.client.clone());
    match api.patch_status(&pool.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(written) => {
            context.view().apply_pool(Arc::new(written));
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}
