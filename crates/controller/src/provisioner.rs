//! Pending pods in, claims out: gathers a batch, asks the planner, writes what it says.

mod batch;
mod input;
mod write;

pub(crate) use input::gather;
pub(crate) use write::{chain, set_condition};

use std::sync::Arc;
use std::time::Duration;

use scarpenter_planner::plan;

use crate::clock;
use crate::context::Context;

/// Pods that stay pending are looked at again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Plans for ever. One pass at a time: the view holds the claims of a pass before the next begins.
pub(crate) async fn run(context: Arc<Context>) {
    let mut told = write::Told::default();
    loop {
        let until = context.stock().next_end(clock::now());
        let pause = until
            .map_or(LOOK_AGAIN, |end| clock::now().until(end).clamp(Duration::from_millis(50), LOOK_AGAIN));
        let _ = tokio::time::timeout(pause, context.wake.pods.notified()).await;
        batch::gather(&context).await;
        pass(&context, &mut told).await;
    }
}

/// One pass over all pending pods.
async fn pass(context: &Arc<Context>, told: &mut write::Told) {
    let facts = input::gather(context);
    told.keep(&facts.pods);
    context.stock().keep_pods(|uid| facts.pods.iter().any(|pod| pod.uid == uid));
    if facts.pods.is_empty() {
        return;
    }
    let began = std::time::Instant::now();
    let snapshot = context.catalog.snapshot();
    let planned = tokio::task::spawn_blocking(move || {
        let plan = plan(&facts.input(&snapshot));
        (plan, facts)
    });
    // The planner is pure; that it panics would be a bug of ours, and the next pass may still serve others.
    let Ok((plan, facts)) = planned.await else {
        tracing::error!("the planner failed; the pass is dropped");
        return;
    };
    context.metrics.planning(began.elapsed());
    tracing::debug!(
        pods = facts.pods.len(),
        claims = plan.claims.len(),
        nominated = plan.nominated.len(),
        unplaced = plan.unplaced.len(),
        "planned"
    );
    write::write(context, plan, &facts.unready, told).await;
}
