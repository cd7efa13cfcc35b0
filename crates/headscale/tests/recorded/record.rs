//! A recorded pair of request and answer, and a server that gives that answer.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::task::JoinHandle;

/// A request and its answer as they were sent.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) answer: String,
    /// When it was answered.
    pub(crate) date: Timestamp,
}

impl Record {
    pub(crate) fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let http = files.filter(|path| path.extension().is_some_and(|ext| ext == "http"));
        http.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn read(folder: &Path, name: &str) -> Self {
        let path = folder.join(format!("{name}.http"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (request, response) = text.split_once("### response\n").unwrap();
        let request = request.strip_prefix("### request\n").unwrap();
        let (head, body) = request.split_once("\n\n").unwrap();
        let mut line = head.lines().next().unwrap().split(' ');
        let (method, target) = (line.next().unwrap().to_owned(), line.next().unwrap().to_owned());
        let (head, answer) = response.split_once("\n\n").unwrap_or((response, ""));
        let field = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
        };
        Self {
            method,
            target,
            body: body.trim().to_owned(),
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            content_type: field("Content-Type"),
            answer: answer.trim_end().to_owned(),
            date: rfc2822::parse(&field("Date").unwrap()).unwrap().timestamp(),
        }
    }
}

/// Gives one recorded answer, on loopback, until it is dropped.
pub(crate) struct Replay {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<(String, String)>>>,
    record: Record,
    task: JoinHandle<()>,
}

impl Replay {
    pub(crate) async fn start(record: &Record) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let router = axum::Router::new().fallback(reply).with_state((record.clone(), Arc::clone(&heard)));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, heard, record: record.clone(), task }
    }

    /// How the first request differs from the recorded one; its query counts where the record has one.
    pub(crate) fn mismatch(&self) -> Option<String> {
        let heard = self.heard.lock().unwrap();
        let Some((line, _)) = heard.first() else { return Some("nothing was asked".to_owned()) };
        let asked = if self.record.target.contains('?') { line } else { line.split('?').next().unwrap() };
        let recorded = format!("{} {}", self.record.method, self.record.target);
        (asked != recorded).then(|| format!("asked {line}, recorded {recorded}"))
    }

    /// Fields of the first request's body.
    pub(crate) fn fields(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let body: serde_json::Value = serde_json::from_str(&heard[0].1).unwrap();
        body.as_object().unwrap().keys().cloned().collect()
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Shared = (Record, Arc<Mutex<Vec<(String, String)>>>);

/// The first request gets the recorded answer; what our client sends after it is a deletion of what it did not want.
async fn reply(State((record, heard)): State<Shared>, request: Request) -> Response {
    let line = format!("{} {}", request.method(), request.uri());
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let mut heard = heard.lock().unwrap();
    heard.push((line, String::from_utf8(body.to_vec()).unwrap()));
    if heard.len() > 1 {
        return Response::new(Body::from("{}"));
    }
    let mut answer = Response::builder().status(record.status);
    if let Some(kind) = &record.content_type {
        answer = answer.header("content-type", kind);
    }
    answer.body(Body::from(record.answer.clone())).unwrap()
}
