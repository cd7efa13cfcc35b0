//! A small Hetzner Cloud: servers, addresses, snapshots, limits; it fails when told to.

mod json;
mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use serde_json::Value;

use crate::openapi::Document;

pub(crate) use world::{Answer, World};

pub(crate) const TOKEN: &str = "a-token-that-must-not-be-seen";

/// What goes wrong, with which calls, how often.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) times: usize,
    pub(crate) fault: Fault,
}

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The vendor's no, with headers.
    Refuse(u16, &'static str, Vec<(&'static str, String)>),
    /// A status and a page of something on the way.
    Page(u16),
    /// It happens, and the answer is lost.
    Lose,
    /// It does not happen, and the connection breaks.
    Drop,
    /// It happens, and the answer comes late.
    Late(Duration),
}

pub(crate) struct Fake {
    pub(crate) address: String,
    state: Arc<Shared>,
    served: tokio::task::JoinHandle<()>,
}

struct Shared {
    world: Mutex<World>,
    document: Document,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Shared { world: Mutex::new(World::new()), document: Document::find() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(state.clone());
        let served = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, state, served }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.state.world.lock().unwrap()
    }

    pub(crate) fn goes_wrong(&self, method: &'static str, path: &'static str, times: usize, fault: Fault) {
        self.world().rules.push(Rule { method, path, times, fault });
    }

    /// Calls so far whose method and path begin so.
    pub(crate) fn calls(&self, beginning: &str) -> usize {
        self.world().journal.iter().filter(|line| line.starts_with(beginning)).count()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.served.abort();
        if !std::thread::panicking() {
            let breaches = self.state.world.lock().unwrap().breaches.clone();
            assert!(breaches.is_empty(), "against the published document:\n{}", breaches.join("\n"));
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path().trim_start_matches("/v1").to_owned();
    let query = query_of(uri.query().unwrap_or_default());
    let (template, _) = split(&path);
    let (made, fault) = {
        let mut world = shared.world.lock().unwrap();
        let breaches = shared.document.request(method.as_str(), &template, &query, &body);
        world.breaches.extend(breaches);
        let fault = world.strike(&method, &path);
        let made = match &fault {
            Some(Fault::Refuse(status, code, headers)) => {
                Some(Answer::refusal(*status, code, "told to").with_headers(headers))
            }
            Some(Fault::Page(status)) => return page(*status),
            Some(Fault::Drop) => None,
            _ => Some(world.answer(&method, &path, &query, &headers, &body)),
        };
        if let Some(made) = &made {
            let breaches = shared.document.answer(method.as_str(), &template, made.status, &made.body);
            world.breaches.extend(breaches);
        }
        (made, fault)
    };
    if let Some(Fault::Late(by)) = fault {
        tokio::time::sleep(by).await;
    }
    match made {
        Some(made) if !matches!(fault, Some(Fault::Lose)) => made.into_response(),
        _ => broken(),
    }
}

impl Answer {
    fn with_headers(mut self, headers: &[(&'static str, String)]) -> Self {
        self.headers.extend(headers.iter().cloned());
        self
    }

    fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status).header("content-type", "application/json");
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body = if self.body.is_null() { String::new() } else { self.body.to_string() };
        response.body(Body::from(body)).unwrap()
    }
}

fn page(status: u16) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    Response::builder().status(status).body(Body::from("<html>nothing of the vendor's</html>")).unwrap()
}

/// Breaks off before the body is complete.
fn broken() -> Response {
    let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("cut")) });
    Response::new(Body::from_stream(broken))
}

/// `/servers/7` is `/servers/{id}` and 7.
pub(crate) fn split(path: &str) -> (String, Option<u64>) {
    match path.rsplit_once('/') {
        Some((front, id)) if id.parse::<u64>().is_ok() => (format!("{front}/{{id}}"), id.parse().ok()),
        _ => (path.to_owned(), None),
    }
}

fn query_of(text: &str) -> Vec<(String, String)> {
    let url = reqwest_url(text);
    url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

fn reqwest_url(query: &str) -> reqwest::Url {
    reqwest::Url::parse(&format!("http://x/?{query}")).unwrap()
}

pub(crate) fn matches(labels: &BTreeMap<String, String>, selector: &str) -> bool {
    selector.split(',').all(|term| match term.split_once("==").or_else(|| term.split_once('=')) {
        Some((key, value)) => labels.get(key).is_some_and(|is| is == value),
        None => labels.contains_key(term),
    })
}

pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
