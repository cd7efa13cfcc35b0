//! Pending pods in, claims out: gathers a batch, asks the planner, writes what it says.

mod batch;
mod input;
mod looked;
pub(crate) mod tell;
mod write;

pub(crate) use input::gather;
pub(crate) use write::{chain, set_condition};

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use scarpenter_planner::plan;

use self::looked::Looked;
use crate::clock;
use crate::context::Context;

/// Pods that stay pending are looked at again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Plans for ever. One pass at a time: the view holds the claims of a pass before the next begins.
pub(crate) async fn run(context: Arc<Context>) {
    let mut looked = Looked::default();
    let mut more = false;
    loop {
        // Pods that a pass left since it is bounded have waited for long enough.
        if !more {
            let until = context.stock().next_end(clock::now());
            let pause = until.map_or(LOOK_AGAIN, |end| {
                clock::now().until(end).clamp(Duration::from_millis(50), LOOK_AGAIN)
            });
            let _ = tokio::time::timeout(pause, context.wake.pods.notified()).await;
            batch::gather(&context).await;
        }
        more = pass(&context, &mut looked).await;
    }
}

/// One pass over all pending pods; whether it left some that nobody has looked at yet.
async fn pass(context: &Arc<Context>, looked: &mut Looked) -> bool {
    let mut facts = input::gather(context);
    forget_others(context, &facts);
    if facts.pods.is_empty() && facts.given_up.is_empty() {
        return false;
    }
    facts.lessons.hopeless = looked.hopeless(facts.pods.iter());
    let began = std::time::Instant::now();
    let snapshot = context.catalog.snapshot();
    let planned = tokio::task::spawn_blocking(move || {
        let plan = plan(&facts.input(&snapshot));
        (plan, facts)
    });
    // The planner is pure; that it panics would be a bug of ours, and the next pass may still serve others.
    let Ok((mut plan, facts)) = planned.await else {
        tracing::error!("the planner failed; the pass is dropped");
        return false;
    };
    context.metrics.planning(began.elapsed());
    context.metrics.queue(facts.pods.len(), plan.deferred);
    tracing::debug!(
        pods = facts.pods.len(),
        claims = plan.claims.len(),
        nominated = plan.nominated.len(),
        unplaced = plan.unplaced.len(),
        deferred = plan.deferred,
        "planned"
    );
    let more = looked.take_in(facts.wanting(), &plan);
    plan.unplaced.extend(facts.given_up);
    write::write(context, plan, &facts.unready).await;
    more
}

/// What is remembered of pods ends when they no longer wait.
fn forget_others(context: &Context, facts: &input::Facts) {
    let given_up = facts.given_up.iter().map(|unplaced| unplaced.uid.as_str());
    let waiting: HashSet<&str> = facts.pods.iter().map(|pod| pod.uid.as_str()).chain(given_up).collect();
    context.teller.keep(|uid| waiting.contains(uid));
    context.stock().keep_pods(|uid| waiting.contains(uid));
    context.lessons.memory().keep_pods(|uid| waiting.contains(uid));
}
