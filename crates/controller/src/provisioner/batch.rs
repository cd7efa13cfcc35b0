//! How long to wait for more pods before a pass.

use std::collections::{BTreeSet, HashSet};

use tokio::time::{Instant, timeout_at};

use crate::context::Context;

/// Waits 20 ms while one pod is queued; a burst until it is idle, or for as long as a burst may take.
pub(crate) async fn gather(context: &Context) {
    let opened = Instant::now();
    let mut seen = queued(context);
    if seen.is_empty() {
        return;
    }
    let mut closes = opened + context.settings.batch_single;
    let latest = opened + context.settings.batch_max;
    if seen.len() > 1 {
        closes = opened + context.settings.batch_idle;
    }
    while timeout_at(closes.min(latest), context.wake.pods.notified()).await.is_ok() {
        let now = queued(context);
        if now.len() > 1 && !now.is_subset(&seen) {
            closes = Instant::now() + context.settings.batch_idle;
        }
        seen.extend(now);
    }
}

/// UIDs of pods that want a machine and that no claim was made for.
fn queued(context: &Context) -> BTreeSet<String> {
    let view = context.view();
    let promised: HashSet<&str> = view
        .claims()
        .filter(|record| record.claim.deleted.is_none())
        .flat_map(|record| record.pods.iter().map(String::as_str))
        .collect();
    view.pending_uids().filter(|uid| !promised.contains(uid)).map(str::to_owned).collect()
}
