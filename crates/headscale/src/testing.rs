//! A small Headscale with a memory, which answers in the shapes of either version and fails when told to.
//!
//! It keeps users, keys, nodes and a policy, and lets a machine join as Headscale would; it is not a control server.
//! It listens on loopback, and is gone when dropped.

mod answer;
mod state;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use tokio::sync::oneshot;

pub use state::{FakeKey, FakeNode, Fault, State, Version};

/// The API key that it takes until told otherwise. It is no secret.
pub const API_KEY: &str =
    "hskey-api-fakefakefake-0000000000000000000000000000000000000000000000000000000000000000";
/// The user that it has.
pub const USER: &str = "workers";
/// The tag that its policy knows.
pub const TAG: &str = "tag:worker";
/// Longest request that it takes.
const BODY: usize = 1 << 20;

/// A running fake.
pub struct Fake {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
    server: Option<Server>,
}

struct Server {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Fake {
    /// Starts one with the user [`USER`] and a policy that knows [`TAG`].
    ///
    /// # Panics
    /// When this machine has no free port.
    #[must_use]
    pub fn start(version: Version) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound port has an address");
        let state = Arc::new(Mutex::new(State::new(version)));
        let server = Some(serve(listener, Arc::clone(&state)));
        Self { state, address, server }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it knows; never held over an await.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all connections and refuses new ones; what it knows stays.
    pub fn go_down(&mut self) {
        if let Some(Server { stop, thread }) = self.server.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }

    /// Listens again, on the same port.
    ///
    /// # Panics
    /// When somebody has taken the port meanwhile.
    pub fn come_up(&mut self) {
        if self.server.is_none() {
            let listener = TcpListener::bind(self.address).expect("the port is still free");
            self.server = Some(serve(listener, Arc::clone(&self.state)));
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.go_down();
    }
}

/// Serves in a runtime of its own, so that its end takes every connection with it.
fn serve(listener: TcpListener, state: Arc<Mutex<State>>) -> Server {
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a test machine can start a runtime");
        runtime.block_on(async {
            listener.set_nonblocking(true).expect("a socket can be non-blocking");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a bound socket listens");
            let router = axum::Router::new().fallback(reply).with_state(state);
            tokio::select! {
                _ = async { axum::serve(listener, router).await } => {}
                _ = stopped => {}
            }
        });
    });
    Server { stop, thread }
}

async fn reply(Shared(state): Shared<Arc<Mutex<State>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY).await.unwrap_or_default();
    let asked = answer::Asked {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        authorization: parts.headers.get("authorization").and_then(|value| value.to_str().ok()),
        body: &body,
    };
    let delay = state.lock().unwrap_or_else(PoisonError::into_inner).delay();
    if delay > Duration::ZERO {
        tokio::time::sleep(delay).await;
    }
    let answer = answer::answer(&mut state.lock().unwrap_or_else(PoisonError::into_inner), &asked);
    Response::builder()
        .status(answer.status)
        .header("content-type", answer.content_type)
        .body(Body::from(answer.body))
        .expect("status and type of an answer are plain")
}
