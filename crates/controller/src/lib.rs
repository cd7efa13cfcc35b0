//! Observes the cluster, asks core and planner what to do, and does it.
//!
//! One process acts at a time (a Lease decides); everything durable is in the Kubernetes API, and whatever a process that
//! dies leaves half done is taken up by the facts on the claims.

mod catalog;
mod class;
mod clock;
mod connect;
mod context;
pub mod csr;
mod disruption;
mod event;
mod fence;
mod join;
mod leader;
mod lessons;
mod lifecycle;
mod mesh;
mod metrics;
mod orphans;
mod pods;
mod pool;
mod provisioner;
mod serve;
mod settings;
mod stock;
mod sweep;
mod user_claim;
mod vendors;
mod watch;

use std::sync::Arc;

use kube::Config;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

pub use catalog::{CatalogSettings, Fetch, Fetched};
pub use connect::Error;
pub use join::{PreviewError, Surroundings, preview};
pub use settings::Settings;
pub use sweep::Swept;

use crate::catalog::{Refresh, Shelf};
use crate::context::Context;
use crate::leader::Leader;

/// Runs the controller until `shutdown` is cancelled, and returns when what it had in flight is done.
///
/// # Errors
/// When the cluster or a port cannot be used at the start, or when leadership is lost.
pub async fn run(
    config: Config,
    settings: Settings,
    catalog: CatalogSettings,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let (ready, readiness) = signal::channel(Err("not connected yet".to_owned()));
    let (refresh, begin) = Refresh::open(catalog).await;
    let (context, woken) = connect::connect(&config, settings, Shelf::new(refresh.source())).await?;
    let context = Arc::new(context);
    catalog::settle(&context, begin).await;
    let settings = &context.settings;
    serve::start(
        settings.bind,
        settings.metrics_port,
        settings.health_port,
        Arc::clone(&context.metrics),
        readiness,
    )
    .await?;
    connect::wait_for_crds(&context, &ready, &shutdown).await?;
    let leader = settings.lease.as_ref().map(|lease| Leader::new(&context, lease, &identity()));
    // A candidate is ready once it has a catalog: it holds its place warm.
    let mut warm = tokio::task::JoinSet::new();
    warm.spawn(refresh.run(Arc::clone(&context)));
    warm.spawn(say_what_is_missing(Arc::clone(&context), ready));
    if let Some(leader) = &leader {
        tokio::select! {
            () = leader.acquire() => tracing::info!("leading"),
            () = shutdown.cancelled() => return Ok(()),
        }
    }
    let outcome = lead(&context, config, woken, leader.as_ref(), shutdown).await;
    if let Some(leader) = leader.filter(|_| outcome.is_ok()) {
        leader.release().await;
    }
    outcome
}

/// Without a catalog nothing can be bought; with the first one that is over for good.
async fn say_what_is_missing(context: Arc<Context>, ready: signal::Sender<Result<(), String>>) {
    let mut missing = context.catalog.missing();
    loop {
        let words = missing.borrow_and_update().clone();
        let Some(words) = words else { break };
        tracing::warn!("{words}");
        let _ = ready.send(Err(words));
        if missing.changed().await.is_err() {
            return;
        }
    }
    let _ = ready.send(Ok(()));
}

/// One pass of the sweep, without the rest of the controller.
///
/// # Errors
/// When the cluster cannot be reached.
pub async fn sweep(config: Config, settings: Settings, dry_run: bool) -> Result<Vec<Swept>, Error> {
    let (context, _woken) = connect::connect(&config, settings, Shelf::new(None)).await?;
    connect::capabilities_once(&context).await;
    Ok(sweep::pass(&context, dry_run).await)
}

/// All loops of the leader. They end with `shutdown`; creates in flight are waited for.
async fn lead(
    context: &Arc<Context>,
    config: Config,
    woken: tokio::sync::mpsc::UnboundedReceiver<String>,
    leader: Option<&Leader>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let mut tasks = tokio::task::JoinSet::new();
    let (synced, mut all_synced) = signal::channel(0usize);
    tasks.spawn({
        let (context, synced) = (Arc::clone(context), synced.clone());
        async move { watch::run(&context, &synced).await }
    });
    for vendor in context.vendors.names() {
        tasks.spawn(vendors::watch_health(Arc::clone(context), vendor.clone()));
        tasks.spawn(vendors::watch_machines(Arc::clone(context), vendor.clone()));
        tasks.spawn(catalog::live::watch(Arc::clone(context), vendor));
    }
    // No claim is looked at before every other kind has been listed once.
    tokio::select! {
        _ = all_synced.wait_for(|count| *count == watch::KINDS) => {}
        () = shutdown.cancelled() => return Ok(()),
    }
    let stopped = shutdown.clone().cancelled_owned();
    let lives = tokio::spawn(lifecycle::run(Arc::clone(context), woken, synced, stopped));
    // Without the claims that are in flight, a pass would buy them again.
    tokio::select! {
        _ = all_synced.wait_for(|count| *count == watch::KINDS_AND_CLAIMS) => {}
        () = shutdown.cancelled() => {}
    }
    tracing::info!("caches synced");
    lessons::load(context).await;
    tasks.spawn(class::run(Arc::clone(context), config));
    tasks.spawn(pool::run(Arc::clone(context)));
    tasks.spawn(csr::run(Arc::clone(context)));
    tasks.spawn(provisioner::run(Arc::clone(context)));
    tasks.spawn(provisioner::tell::run(Arc::clone(context)));
    tasks.spawn(lessons::run(Arc::clone(context)));
    tasks.spawn(lessons::promise::run(Arc::clone(context)));
    tasks.spawn(disruption::run(Arc::clone(context)));
    tasks.spawn(orphans::run(Arc::clone(context)));
    tasks.spawn(mesh::run(Arc::clone(context)));
    tasks.spawn(pods::run(Arc::clone(context)));
    tasks.spawn(sweep::run(Arc::clone(context)));
    let lost = async {
        match leader {
            Some(leader) => leader.keep().await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        () = lost => Err(Error::LeadershipLost),
    };
    shutdown.cancel();
    let _ = lives.await;
    context.inflight.wait().await;
    tasks.abort_all();
    outcome
}

/// Holder of the lease: the pod's (or host's) name and something random.
fn identity() -> String {
    let name = std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .unwrap_or_else(|_| "scarpenter".to_owned());
    format!("{name}_{}", scarpenter_core::name::base36(rand::random(), 8))
}
