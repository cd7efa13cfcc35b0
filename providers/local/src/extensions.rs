//! Serves the system extension images of a folder to the machines, on loopback, where guests find it as 10.0.2.2.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::fs::File;
use tokio::net::TcpListener;
use tokio_util::io::ReaderStream;

/// A folder and where it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// Its files are served, its folders are not.
    pub(crate) folder: PathBuf,
    /// An address of this host's loopback.
    pub(crate) at: SocketAddr,
}

/// Serves until the future is dropped.
///
/// # Errors
/// When the address is not loopback, or cannot be listened on.
pub(crate) async fn serve(extensions: Extensions) -> anyhow::Result<()> {
    let Extensions { folder, at } = extensions;
    anyhow::ensure!(
        at.ip().is_loopback(),
        "{at} is no loopback address: only machines of this host are served"
    );
    let listener = TcpListener::bind(at).await.map_err(|error| anyhow::anyhow!("listen on {at}: {error}"))?;
    let router = Router::new().route("/{file}", get(file)).with_state(Arc::from(folder));
    Ok(axum::serve(listener, router).await?)
}

async fn file(State(folder): State<Arc<Path>>, UrlPath(name): UrlPath<String>) -> Response {
    let plain = !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let opened = if plain { File::open(folder.join(&name)).await.ok() } else { None };
    let Some(file) = opened else { return StatusCode::NOT_FOUND.into_response() };
    match file.metadata().await {
        Ok(metadata) if metadata.is_file() => {
            tracing::debug!(name, "extension served");
            let length = [(header::CONTENT_LENGTH, metadata.len().to_string())];
            (length, Body::from_stream(ReaderStream::with_capacity(file, 64 << 10))).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
