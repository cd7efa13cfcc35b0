//! Asks the plugins that can tell what their vendor sells now, and at what price.

use std::sync::Arc;
use std::time::Duration;

use scarpenter_core::name::Vendor;
use scarpenter_core::snapshot::Overlaid;
use scarpenter_provider::Error;
use tokio::time::{Instant, sleep};

use crate::context::Context;
use crate::vendors::Slot;

/// How often a plugin is asked.
const ASK_EVERY: Duration = Duration::from_secs(180);
/// One that did not answer is asked again after this long.
const ASK_AGAIN: Duration = Duration::from_secs(20);
/// Whether a plugin can tell is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The last answer counts for this long when no further one comes; then the catalog alone does.
const GOOD_FOR: Duration = Duration::from_secs(900);

/// Asks one vendor's plugin for ever.
pub(crate) async fn watch(context: Arc<Context>, vendor: Vendor) {
    let Some(slot) = context.vendors.get(&vendor) else { return };
    let mut heard = Instant::now();
    loop {
        let tells = slot.capabilities().map(|can| can.lists_offerings);
        let pause = match tells {
            Some(true) => ask(&context, slot, &mut heard).await,
            Some(false) => {
                forget(&context, &vendor).await;
                LOOK_EVERY
            }
            // It does not work at present, and nothing can be bought of it either.
            None => LOOK_EVERY,
        };
        sleep(pause).await;
    }
}

/// Asks once. How long to wait before the next time.
async fn ask(context: &Context, slot: &Slot, heard: &mut Instant) -> Duration {
    let vendor = &slot.vendor;
    match slot.client.list_offerings(Vec::new()).await {
        Ok(live) => {
            *heard = Instant::now();
            context.metrics.live_refreshed(vendor, "answered", Some(live.offerings.len()));
            let laid = context.catalog.hear(vendor, Some(live)).await;
            tell(context, vendor, laid, None);
            ASK_EVERY
        }
        Err(Error::Unimplemented { .. }) => {
            context.metrics.live_refreshed(vendor, "unimplemented", Some(0));
            forget(context, vendor).await;
            ASK_EVERY
        }
        Err(error) => {
            context.metrics.live_refreshed(vendor, error.category(), None);
            let stale = heard.elapsed() >= GOOD_FOR;
            let laid = if stale { context.catalog.hear(vendor, None).await } else { None };
            let used = if stale { "the catalog's prices are used" } else { "its last answer is used" };
            tell(context, vendor, laid, Some(format!("{error}; {used}")));
            ASK_AGAIN
        }
    }
}

/// The catalog alone counts.
async fn forget(context: &Context, vendor: &Vendor) {
    let laid = context.catalog.hear(vendor, None).await;
    tell(context, vendor, laid, None);
}

fn tell(context: &Context, vendor: &Vendor, laid: Option<Overlaid>, why: Option<String>) {
    if let Some(Overlaid { repriced, withdrawn, added, unknown }) = laid {
        tracing::info!(%vendor, repriced, withdrawn, added, unknown, "live offerings changed");
        context.wake.pods.notify_one();
    }
    let words = why.clone();
    if context.catalog.unheard(vendor, why) {
        match words {
            Some(problem) => tracing::warn!(%vendor, problem, "live offerings not known"),
            None => tracing::info!(%vendor, "live offerings known again"),
        }
        context.wake.classes.notify_one();
    }
}
