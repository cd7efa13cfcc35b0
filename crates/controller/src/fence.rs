//! Keeps a leader whose lease has run out from writing.
//!
//! A process that stood still (a paused machine, a stopped process) learns only afterwards that another leads; what it
//! had decided before must not go out. So every request that changes something is held against the age of the lease.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{Method, Request};

/// Which lease there is, shared with the client. Without one everything passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fence(Arc<Mutex<Option<Lease>>>);

#[derive(Clone, Copy, Debug)]
struct Lease {
    renewed: Instant,
    holds_for: Duration,
}

/// A request that may not go out.
#[derive(Debug, thiserror::Error)]
#[error("the lease was renewed {} s ago and another may lead: nothing is written", .0.as_secs())]
pub(crate) struct Late(Duration);

impl Fence {
    /// From here on the lease that a request begun at `began` renewed holds for so long.
    pub(crate) fn renewed(&self, began: Instant, holds_for: Duration) {
        let lease = Lease { renewed: began, holds_for };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
    }

    /// Lets a request pass that reads, that is about leases, or that comes in time.
    pub(crate) fn pass<B>(&self, request: Request<B>) -> Result<Request<B>, Late> {
        let reads = request.method() == Method::GET;
        if reads || request.uri().path().starts_with("/apis/coordination.k8s.io/") {
            return Ok(request);
        }
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(lease) if lease.renewed.elapsed() > lease.holds_for => Err(Late(lease.renewed.elapsed())),
            _ => Ok(request),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str) -> Request<()> {
        Request::builder().method(method).uri(path).body(()).unwrap()
    }

    #[test]
    fn a_leader_whose_lease_has_run_out_writes_nothing_but_leases() {
        let fence = Fence::default();
        let claims = "/apis/karpenter.sh/v1/nodeclaims";
        assert!(fence.pass(request("POST", claims)).is_ok(), "nobody asked for a lease");
        fence.renewed(Instant::now(), Duration::from_secs(60));
        assert!(fence.pass(request("POST", claims)).is_ok());
        fence.renewed(Instant::now(), Duration::ZERO);
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert!(fence.pass(request(method, claims)).is_err(), "{method}");
        }
        assert!(fence.pass(request("GET", claims)).is_ok());
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/scarpenter";
        assert!(fence.pass(request("PUT", lease)).is_ok());
    }
}
