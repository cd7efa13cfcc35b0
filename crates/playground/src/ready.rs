//! Whether the API server answers.

use std::time::Duration;

pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The client itself would retry for minutes.
const ONE_LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn answers(client: &kube::Client, path: &str) -> bool {
    let request = http::Request::get(path).body(Vec::new()).expect("a constant path is valid");
    matches!(tokio::time::timeout(ONE_LOOK, client.request_text(request)).await, Ok(Ok(_)))
}
