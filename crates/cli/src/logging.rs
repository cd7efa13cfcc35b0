//! Log lines: JSON on stderr for the long-running commands.

use tracing_subscriber::EnvFilter;

/// Starts logging; `LOG_LEVEL` (or `RUST_LOG`) sets the filter, `info` by default.
pub(crate) fn start() {
    let filter = std::env::var("LOG_LEVEL").or_else(|_| std::env::var("RUST_LOG"));
    let filter = EnvFilter::try_new(filter.unwrap_or_else(|_| "info".to_owned()))
        .unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
