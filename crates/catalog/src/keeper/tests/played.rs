//! A Keeper on loopback, for tests: it answers from rows in the shape of the real one's answers, with its limits, and
//! goes wrong when told to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::read::GzEncoder;
use serde_json::{Map, Value, json};

/// The rows that a Keeper answers from. Prices are in the currencies that the vendors charge.
#[derive(Clone, Default)]
pub(super) struct Data {
    pub(super) regions: Vec<Value>,
    pub(super) zones: Vec<Value>,
    pub(super) servers: Vec<Value>,
    pub(super) prices: Vec<Value>,
    pub(super) scores: Vec<Value>,
}

/// How an answer goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Status(u16, &'static str),
    /// 200, and a web page under the name of JSON.
    Page,
    /// The first half of the bytes, as if they were all.
    CutOff,
    /// The connection ends in the middle.
    BrokeOff,
    HalfRows,
    Empty,
    /// To itself.
    Redirect,
    /// Nothing, for ever.
    Silence,
    /// A field under another name.
    Renamed(&'static str),
    /// A field of another type, in every row or in one.
    Typed(&'static str, bool),
    /// The right answer, after which the database is another one.
    NewDatabase,
    /// Does not say how many rows there are.
    Untold,
}

/// The server, until it is dropped.
pub(super) struct Played {
    pub(super) address: String,
    state: Arc<Told>,
    task: tokio::task::JoinHandle<()>,
}

struct Told {
    data: Data,
    key: Option<&'static str>,
    limit: Option<u32>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    databases: u32,
    asked: Vec<String>,
    faults: Vec<(String, usize, Fault)>,
    verbatim: BTreeMap<String, Vec<u8>>,
}

/// USD for one unit, of those currencies that the played Keeper knows.
const RATES: [(&str, f64); 3] = [("USD", 1.0), ("EUR", 2.0), ("CNY", 0.5)];

impl Data {
    /// A few hand-made rows of four vendors with all the traps.
    pub(super) fn small() -> Self {
        let read = |text: &str| serde_json::from_str(text).unwrap();
        Self {
            regions: read(include_str!("fixtures/region.json")),
            zones: read(include_str!("fixtures/zone.json")),
            servers: read(include_str!("fixtures/server.json")),
            prices: read(include_str!("fixtures/server_price.json")),
            scores: read(include_str!("fixtures/benchmark_score.json")),
        }
    }

    /// By the table's name, each with its rows.
    pub(super) fn tables(&self) -> [(&'static str, &Vec<Value>); 5] {
        [
            ("region", &self.regions),
            ("zone", &self.zones),
            ("server", &self.servers),
            ("benchmark_score", &self.scores),
            ("server_price", &self.prices),
        ]
    }
}

impl Played {
    pub(super) async fn of(data: Data) -> Self {
        Self::start(data, None, None).await
    }

    pub(super) async fn small() -> Self {
        Self::of(Data::small()).await
    }

    pub(super) async fn start(data: Data, key: Option<&'static str>, limit: Option<u32>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Told { data, key, limit, inner: Mutex::default() });
        let app = Router::new().fallback(answer).with_state(state.clone());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, state, task }
    }

    /// The next `count` questions in whose address `part` is go wrong.
    pub(super) fn fault(&self, part: &str, count: usize, fault: Fault) {
        self.state.inner.lock().unwrap().faults.push((part.to_owned(), count, fault));
    }

    /// Answers `target` with these bytes.
    pub(super) fn verbatim(&self, target: &str, body: Vec<u8>) {
        self.state.inner.lock().unwrap().verbatim.insert(target.to_owned(), body);
    }

    /// What was asked so far, as paths with their queries.
    pub(super) fn asked(&self) -> Vec<String> {
        self.state.inner.lock().unwrap().asked.clone()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(state): State<Arc<Told>>, request: Request) -> Response {
    let target = request.uri().path_and_query().unwrap().as_str().to_owned();
    let fault = {
        let mut inner = state.inner.lock().unwrap();
        inner.asked.push(target.clone());
        let fault =
            inner.faults.iter_mut().find(|(part, count, _)| *count > 0 && target.contains(part.as_str()));
        fault.map(|(_, count, fault)| {
            *count = count.saturating_sub(1);
            *fault
        })
    };
    let mut out = match fault {
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Redirect) => (StatusCode::FOUND, [(header::LOCATION, target.clone())]).into_response(),
        Some(Fault::Status(status, said)) => (StatusCode::from_u16(status).unwrap(), said).into_response(),
        Some(Fault::Page) => json_bytes(b"<!DOCTYPE html><title>Sign in</title>".to_vec(), None),
        fault => spoiled(state.plain(&target, request.headers()), fault),
    };
    if matches!(fault, Some(Fault::NewDatabase)) {
        state.inner.lock().unwrap().databases += 1;
    }
    if let Some(limit) = state.limit {
        let headers = out.headers_mut();
        headers.insert("x-ratelimit-limit", limit.into());
        headers.insert("x-ratelimit-cost", 1.into());
    }
    out
}

/// A right answer: rows or one object, and how many rows there are where that was asked for; or a refusal.
enum Plain {
    Rows(Vec<Value>, bool),
    Object(Value),
    Verbatim(Vec<u8>),
    Refused(u16, &'static str),
}

fn spoiled(plain: Plain, fault: Option<Fault>) -> Response {
    let (mut rows, told) = match plain {
        Plain::Refused(status, said) => return (StatusCode::from_u16(status).unwrap(), said).into_response(),
        Plain::Verbatim(body) => return json_bytes(body, None),
        Plain::Object(Value::Object(mut object)) => {
            if let Some(Fault::Renamed(field)) = fault {
                object.remove(field);
            }
            return sent(serde_json::to_vec(&object).unwrap(), None, fault);
        }
        Plain::Object(other) => return sent(serde_json::to_vec(&other).unwrap(), None, fault),
        Plain::Rows(rows, told) => (rows, told),
    };
    let total = (told && !matches!(fault, Some(Fault::Untold))).then_some(rows.len());
    match fault {
        Some(Fault::HalfRows) => rows.truncate(rows.len() / 2),
        Some(Fault::Empty) => rows.clear(),
        Some(Fault::Renamed(field)) => rows.iter_mut().for_each(|row| {
            let value = row.as_object_mut().unwrap().remove(field).unwrap();
            row["renamed"] = value;
        }),
        Some(Fault::Typed(field, all)) => {
            let count = if all { rows.len() } else { 1 };
            rows.iter_mut().take(count).for_each(|row| {
                let is_number = row[field].is_number() || row[field].is_null();
                row[field] = if is_number { json!("7") } else { json!(7) };
            });
        }
        _ => {}
    }
    let total = if matches!(fault, Some(Fault::Empty)) { None } else { total };
    sent(serde_json::to_vec(&rows).unwrap(), total, fault)
}

fn sent(body: Vec<u8>, total: Option<usize>, fault: Option<Fault>) -> Response {
    let half = body.len() / 2;
    match fault {
        Some(Fault::CutOff) => json_bytes(body[..half].to_vec(), total),
        Some(Fault::BrokeOff) => {
            let first: Result<Bytes, Infallible> = Ok(Bytes::copy_from_slice(&body[..half]));
            let parts = futures::stream::iter([first]);
            let mut out = Response::new(Body::from_stream(parts));
            out.headers_mut().insert(header::CONTENT_LENGTH, body.len().into());
            out
        }
        _ => json_bytes(body, total),
    }
}

/// Packed, as the real one packs whatever is longer than 100 bytes.
fn json_bytes(body: Vec<u8>, total: Option<usize>) -> Response {
    let mut out = if body.len() > 100 {
        let mut packed = Vec::new();
        GzEncoder::new(body.as_slice(), Compression::fast()).read_to_end(&mut packed).unwrap();
        ([(header::CONTENT_ENCODING, "gzip")], packed).into_response()
    } else {
        body.into_response()
    };
    out.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    if let Some(total) = total {
        out.headers_mut().insert("x-total-count", total.into());
    }
    out
}

/// A question's parameters, which may be given more than once.
struct Query(Vec<(String, String)>);

impl Query {
    fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str()).collect()
    }

    fn one(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    fn allows(&self, name: &str, value: &str) -> bool {
        let all = self.all(name);
        all.is_empty() || all.contains(&value)
    }
}

impl Told {
    fn plain(&self, target: &str, headers: &HeaderMap) -> Plain {
        if let Some(body) = self.inner.lock().unwrap().verbatim.get(target) {
            return Plain::Verbatim(body.clone());
        }
        let key = headers.get(header::AUTHORIZATION).map(|key| key.to_str().unwrap());
        let right = self.key.map(|key| format!("Bearer {key}"));
        if key.is_some() && key != right.as_deref() {
            return Plain::Refused(401, r#"{"detail":"Invalid or expired token"}"#);
        }
        let url = reqwest::Url::parse(&format!("http://x{target}")).unwrap();
        let query = Query(url.query_pairs().into_owned().collect());
        if key.is_none() && query.all("vendor_regions").len() > 3 {
            return Plain::Refused(400, r#"{"detail":"Max 3 regions can be queried at a time"}"#);
        }
        match url.path() {
            "/healthcheck" => Plain::Object(self.health()),
            "/stats" => Plain::Object(self.stats(&query)),
            "/benchmark_configs" => Plain::Rows(self.configs(), false),
            "/table/server_prices" if key.is_none() => {
                Plain::Refused(401, r#"{"detail":"Authentication required"}"#)
            }
            "/table/server_prices" => Plain::Rows(self.bare_prices(&query), false),
            "/server_prices" => limited(self.prices(&query), &query),
            "/servers" => limited(self.servers(&query), &query),
            path => match self.data.tables().iter().find(|(name, _)| path == format!("/table/{name}")) {
                Some((_, rows)) => Plain::Rows((*rows).clone(), false),
                None => Plain::Refused(404, r#"{"detail":"Not Found"}"#),
            },
        }
    }

    fn health(&self) -> Value {
        let databases = self.inner.lock().unwrap().databases;
        json!({"packages": {"sparecores-keeper": "0.3.6"}, "database_last_updated": 1_796_044_581.859_812_3,
            "database_hash": format!("{databases:064x}"), "database_alembic_version": "f97756a9e15f"})
    }

    fn stats(&self, query: &Query) -> Value {
        let active = query.one("only_active") == Some("true");
        let count = |rows: &Vec<Value>| {
            let counts = |row: &&Value| {
                query.allows("vendor", text(row, "vendor_id")) && (!active || text(row, "status") == "active")
            };
            rows.iter().filter(counts).count()
        };
        json!({"total_vendors": 4, "total_regions": count(&self.data.regions), "total_zones": count(&self.data.zones),
            "total_server_types": count(&self.data.servers), "total_server_prices": count(&self.data.prices),
            "total_benchmark_scores": count(&self.data.scores)})
    }

    fn configs(&self) -> Vec<Value> {
        let pairs = self.data.scores.iter().map(|row| (text(row, "benchmark_id"), text(row, "config")));
        let pairs: std::collections::BTreeSet<_> = pairs.collect();
        pairs
            .into_iter()
            .map(|(id, config)| json!({"benchmark_id": id, "config": config, "category": "Other"}))
            .collect()
    }

    fn bare_prices(&self, query: &Query) -> Vec<Value> {
        let chosen =
            self.data.prices.iter().filter(|row| text(row, "status") == "active" && asked_for(row, query));
        chosen.cloned().collect()
    }

    /// With all that belongs to a row, as many times as there are rows.
    fn prices(&self, query: &Query) -> Vec<Value> {
        let servers: BTreeMap<_, _> = self.data.servers.iter().map(|row| (server_of(row), row)).collect();
        let sold = |row: &&Value| {
            servers.get(&server_of(row)).is_some_and(|server| text(server, "status") == "active")
        };
        let mut rows: Vec<&Value> =
            self.data.prices.iter().filter(|row| asked_for(row, query)).filter(sold).collect();
        rows.sort_by(|one, other| number(one, "price").total_cmp(&number(other, "price")));
        if query.one("order_dir") == Some("desc") {
            rows.reverse();
        }
        let currency = query.one("currency").unwrap_or("USD");
        let whole = |row: &Value| {
            let mut row = converted(row, currency);
            row["price_monthly"] = json!(7.17);
            row["vendor"] = json!({"vendor_id": "else", "status": "inactive", "billing_comment": null});
            row["region"] = json!({"region_id": "else", "country": {"country_id": "DE"}, "aliases": ["x"]});
            row["zone"] = json!({"zone_id": "else", "status": "inactive"});
            row["server"] = servers[&server_of(&row)].clone();
            row
        };
        rows.into_iter().map(whole).collect()
    }

    fn servers(&self, query: &Query) -> Vec<Value> {
        let mut best: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for row in &self.data.scores {
            if query.one("benchmark_id") == Some(text(row, "benchmark_id"))
                && query.one("benchmark_config") == Some(text(row, "config"))
            {
                let most = best.entry(server_of(row)).or_insert(0.0);
                *most = most.max(number(row, "score"));
            }
        }
        let servers = self.data.servers.iter().filter(|row| query.allows("vendor", text(row, "vendor_id")));
        let scored = servers.filter_map(|row| {
            let score = best.get(&server_of(row))?;
            Some(json!({"vendor_id": row["vendor_id"], "server_id": row["server_id"], "name": row["name"],
                "selected_benchmark_score": score, "price_breakdown": {"compute_min_price": null}}))
        });
        scored.collect()
    }
}

fn limited(mut rows: Vec<Value>, query: &Query) -> Plain {
    if let Some(limit) = query.one("limit").and_then(|limit| limit.parse::<usize>().ok()) {
        rows.truncate(limit);
    }
    Plain::Rows(rows, query.one("add_total_count_header") == Some("true"))
}

fn asked_for(row: &Value, query: &Query) -> bool {
    let place = format!("{}~{}", text(row, "vendor_id"), text(row, "region_id"));
    query.allows("vendor", text(row, "vendor_id"))
        && query.allows("vendor_regions", &place)
        && query.allows("allocation", text(row, "allocation"))
}

/// The way the real one does it: rounded to four digits, and untouched where nothing is to be converted.
fn converted(row: &Value, currency: &str) -> Value {
    let rate = |of: &str| RATES.iter().find(|(known, _)| *known == of).unwrap().1;
    let mut out = row.clone();
    let from = text(row, "currency");
    if from != currency {
        if let Some(price) = row["price"].as_f64() {
            out["price"] = json!((price * rate(from) / rate(currency) * 1e4).round() / 1e4);
        }
        out["currency"] = json!(currency);
    }
    out
}

fn server_of(row: &Value) -> (&str, &str) {
    (text(row, "vendor_id"), text(row, "server_id"))
}

fn text<'v>(row: &'v Value, field: &str) -> &'v str {
    row[field].as_str().unwrap_or_default()
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_default()
}

/// The rows of a real database in the shape of a Keeper's answers.
///
/// Of prices only those for which `chosen`, a condition of SQL, holds.
pub(super) fn from_database(path: &Path, chosen: &str) -> Data {
    let connection =
        rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let rows = |table: &str| -> Vec<Value> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement.query_map([], |row| {
            let cells =
                names.iter().enumerate().map(|(column, name)| (name.clone(), cell(row, column, name)));
            Ok(Value::Object(cells.collect::<Map<_, _>>()))
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    Data {
        regions: rows("region"),
        zones: rows("zone"),
        servers: rows("server"),
        prices: rows(&format!("server_price WHERE {chosen}")),
        scores: rows("benchmark_score"),
    }
}

fn cell(row: &rusqlite::Row<'_>, column: usize, name: &str) -> Value {
    use rusqlite::types::ValueRef;
    match row.get_ref(column).unwrap() {
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes).unwrap();
            match name {
                "status" | "allocation" | "unit" | "cpu_architecture" | "storage_type" => {
                    json!(text.to_lowercase())
                }
                "config" => json!(text),
                _ if text.starts_with(['[', '{']) => serde_json::from_str(text).unwrap(),
                _ => json!(text),
            }
        }
    }
}
