//! `/healthz`, `/readyz` and `/metrics`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::metrics::Metrics;

/// Why the ports cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("listen on port {port} for {what}: another port can be set with --{what}-port")]
pub struct ServeError {
    /// The port.
    port: u16,
    /// What it is for.
    what: &'static str,
    /// The system's words.
    source: std::io::Error,
}

/// What `/readyz` says: `Err` names what is missing.
pub(crate) type Readiness = watch::Receiver<Result<(), String>>;

/// Binds both ports, then serves for ever in the background.
pub(crate) async fn start(
    address: IpAddr,
    metrics_port: u16,
    health_port: u16,
    metrics: Arc<Metrics>,
    ready: Readiness,
) -> Result<(), ServeError> {
    let metrics_listener = bind(address, metrics_port, "metrics").await?;
    let health_listener = bind(address, health_port, "health").await?;
    let scrape = Router::new().route("/metrics", get(move || std::future::ready(metrics.render())));
    let health = Router::new()
        .route("/healthz", get(|| std::future::ready("ok")))
        .route("/readyz", get(move || std::future::ready(readyz(&ready))));
    for (listener, router) in [(metrics_listener, scrape), (health_listener, health)] {
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "port no longer served");
            }
        });
    }
    Ok(())
}

async fn bind(address: IpAddr, port: u16, what: &'static str) -> Result<TcpListener, ServeError> {
    let listener =
        TcpListener::bind((address, port)).await.map_err(|source| ServeError { port, what, source })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(what, port = address.port(), "listening");
    }
    Ok(listener)
}

fn readyz(ready: &Readiness) -> (StatusCode, String) {
    match &*ready.borrow() {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why.clone()),
    }
}
