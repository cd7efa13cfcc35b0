//! Plays any vendor: machines are hollow nodes, faults are set by file.
//!
//! One process plays several vendors, each on a socket of its own and with that vendor's limits, over one stateful
//! cloud. What goes wrong is said by a [file of rules](faults), read again whenever it changes.

pub mod cloud;

pub mod faults;

pub mod journal;

pub mod market;

pub mod metal;

pub mod vendor;

mod arguments;
mod provider;
mod sold;
mod store;
mod tamper;

use std::sync::Arc;

use anyhow::Context;
use futures::future::try_join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scarpenter_core::name::Vendor;
use scarpenter_provider::Endpoint;
use scarpenter_provider::server::{Listener, Service, serve_on};
use tokio_util::sync::CancellationToken;

pub use arguments::{Args, MetalKind, main};
pub use cloud::{Cloud, Habits};

use provider::Player;
use tamper::Tampered;

/// Serves what the arguments say until SIGTERM or SIGINT.
///
/// # Errors
/// When a file cannot be read or written, or an address cannot be listened on.
pub async fn run(args: Args) -> anyhow::Result<()> {
    raise_file_limit();
    let signal = scarpenter_provider::server::shutdown_signal().context("watch for signals")?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        signal.await;
        stopping.cancel();
    });
    let cloud = args.cloud()?;
    let plays = try_join_all(args.endpoints().into_iter().map(|(vendor, endpoint)| async move {
        let listener = Listener::bind(&endpoint).await?;
        tracing::info!(%vendor, %endpoint, "playing");
        Ok::<_, anyhow::Error>((vendor, listener))
    }))
    .await?;
    try_join_all(plays.into_iter().map(|(vendor, listener)| serve(&cloud, vendor, listener, stop.clone())))
        .await?;
    Ok(())
}

/// Every hollow node holds connections of its own: a thousand of them are more than the usual soft limit allows.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => tracing::debug!(from = limit.current, to = limit.maximum, "limit of open files raised"),
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
}

/// Plays one vendor at one address until told to stop. For tests in this process.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn play(
    cloud: &Arc<Cloud>,
    vendor: Vendor,
    at: &Endpoint,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = Listener::bind(at).await?;
    serve(cloud, vendor, listener, stop).await
}

async fn serve(
    cloud: &Arc<Cloud>,
    vendor: Vendor,
    on: Listener,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let service = Service::new(Player::new(cloud.clone(), vendor.clone()));
    let tampered = Tampered::new(service.clone(), cloud.clone(), vendor, stop.clone());
    serve_on(on, tampered, stop.cancelled_owned()).await?;
    service.quiesce().await;
    Ok(())
}
