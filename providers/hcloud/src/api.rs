//! The vendor's API: one request at a time, its limits, and what an answer means.

mod answer;
mod fault;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy as Redirects;
use reqwest::{Method, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bucket::{Bucket, Urgency};
use crate::token::Token;
use crate::wire::{Identified, Labels, Meta, NewLabels, NewServer, OneServer, PrimaryIp, Server, ServerType};

pub(crate) use fault::Fault;

/// Where the vendor's API is.
pub const PUBLIC_API: &str = "https://api.hetzner.cloud/v1";

/// Most that the vendor puts on a page.
const PAGE: &str = "50";
/// A list that changes while it is read is read again so often.
const READINGS: usize = 4;
const CONNECT: Duration = Duration::from_secs(5);

/// One project of the vendor.
///
/// Clones share connections and the account's budget of calls.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    token: Token,
    bucket: Arc<Bucket>,
    /// What looking is for.
    urgency: Urgency,
}

/// An address that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(pub String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("base", &self.base).field("token", &self.token).finish_non_exhaustive()
    }
}

impl Api {
    /// The API at `address`, such as [`PUBLIC_API`]. Nothing is asked yet. An answer that takes longer than `patience`
    /// is not waited for: of a create the outcome is then not known.
    ///
    /// # Errors
    /// When the token could be read by others on the way: only https, or http on this host.
    pub fn new(address: &str, token: Token, patience: Duration) -> Result<Self, BadAddress> {
        let bad = |why: &str| BadAddress(format!("{address:?} is no address of an API: {why}"));
        let url = Url::parse(address).map_err(|error| bad(&error.to_string()))?;
        let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && loopback) {
            return Err(bad("expected https://, or http:// on this host"));
        }
        // Every program of ours has installed it already; without one, building the client panics.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("scarpenter/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .timeout(patience)
            // The token must not follow one.
            .redirect(Redirects::none());
        if loopback {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| bad(&error.to_string()))?;
        Ok(Self {
            http,
            base: address.trim_end_matches('/').to_owned(),
            token,
            bucket: Arc::new(Bucket::new()),
            urgency: Urgency::Read,
        })
    }

    /// The same for looking that is a part of making or deleting.
    pub(crate) fn urgently(&self) -> Self {
        Self { urgency: Urgency::Write, ..self.clone() }
    }

    /// Asks for nothing but whether there is a token.
    pub(crate) async fn has_token(&self) -> Result<(), Fault> {
        self.token.read().await.map(drop).map_err(Fault::NoToken)
    }

    /// Every server with these labels.
    pub(crate) async fn servers(&self, selector: &str) -> Result<Vec<Server>, Fault> {
        self.list("/servers", "servers", &[("label_selector", selector)], |server: &Server| server.id).await
    }

    pub(crate) async fn server_named(&self, name: &str) -> Result<Option<Server>, Fault> {
        let found = self.list("/servers", "servers", &[("name", name)], |server: &Server| server.id).await?;
        Ok(found.into_iter().find(|server| server.name == name))
    }

    pub(crate) async fn server(&self, id: u64) -> Result<Option<Server>, Fault> {
        let found = self.get(&format!("/servers/{id}"), &[]).await;
        Ok(present(found)?.map(|OneServer { server }| server))
    }

    pub(crate) async fn create_server(&self, new: &NewServer) -> Result<Server, Fault> {
        let OneServer { server } = self.send(Method::POST, "/servers", Some(new)).await?;
        Ok(server)
    }

    /// Asks for the end of a server; one that is not there is no error.
    pub(crate) async fn delete_server(&self, id: u64) -> Result<(), Fault> {
        self.delete(&format!("/servers/{id}")).await
    }

    pub(crate) async fn primary_ip(&self, id: u64) -> Result<Option<PrimaryIp>, Fault> {
        let found = self.get(&format!("/primary_ips/{id}"), &[]).await;
        Ok(present(found)?.map(|crate::wire::OnePrimaryIp { primary_ip }| primary_ip))
    }

    pub(crate) async fn primary_ips(&self, selector: &str) -> Result<Vec<PrimaryIp>, Fault> {
        self.list("/primary_ips", "primary_ips", &[("label_selector", selector)], |ip: &PrimaryIp| ip.id)
            .await
    }

    pub(crate) async fn label_primary_ip(&self, id: u64, labels: Labels) -> Result<(), Fault> {
        let body = NewLabels { labels };
        let path = format!("/primary_ips/{id}");
        present(self.send::<serde_json::Value>(Method::PUT, &path, Some(&body)).await).map(drop)
    }

    pub(crate) async fn delete_primary_ip(&self, id: u64) -> Result<(), Fault> {
        self.delete(&format!("/primary_ips/{id}")).await
    }

    /// Names of all locations.
    pub(crate) async fn locations(&self) -> Result<Vec<String>, Fault> {
        let found = self.list("/locations", "locations", &[], |place: &Identified| place.id).await?;
        Ok(found.into_iter().filter_map(|location| location.name).collect())
    }

    pub(crate) async fn server_types(&self) -> Result<Vec<ServerType>, Fault> {
        let keyed = |kind: &ServerType| kind.name.clone();
        // Unlike the others, this list cannot be sorted by id.
        self.pages("/server_types", "server_types", &[], keyed).await
    }

    /// Id of the newest snapshot with these labels for an architecture, in the vendor's words (`x86`, `arm`).
    pub(crate) async fn newest_snapshot(&self, selector: &str, arch: &str) -> Result<Option<u64>, Fault> {
        let query = [
            ("type", "snapshot"),
            ("status", "available"),
            ("architecture", arch),
            ("label_selector", selector),
            ("sort", "created:desc"),
        ];
        let found: Vec<Identified> = self.page("/images", "images", &query, "1").await?.0;
        Ok(found.first().map(|image| image.id))
    }

    /// Id of what the vendor keeps under `path`, such as `/networks`, by its name.
    pub(crate) async fn id_of(&self, path: &str, name: &str) -> Result<Option<u64>, Fault> {
        let key = path.trim_start_matches('/');
        let found: Vec<Identified> = self.page(path, key, &[("name", name)], "1").await?.0;
        Ok(found.into_iter().find(|item| item.name.as_deref() == Some(name)).map(|item| item.id))
    }

    /// Whether something of that id is under `path`.
    pub(crate) async fn has(&self, path: &str, id: u64) -> Result<bool, Fault> {
        let found = self.get::<serde_json::Value>(&format!("{path}/{id}"), &[]).await;
        Ok(present(found)?.is_some())
    }

    /// Newest first: what comes while the pages are read goes to the front and pushes things to a later page, where
    /// they are met twice; only what goes can hide something, and that shows in the number of entries.
    async fn list<T: DeserializeOwned, K: Ord>(
        &self,
        path: &str,
        key: &str,
        query: &[(&str, &str)],
        id: impl Fn(&T) -> K,
    ) -> Result<Vec<T>, Fault> {
        let query = [query, &[("sort", "id:desc")]].concat();
        self.pages(path, key, &query, id).await
    }

    /// All pages, each thing once, complete or an error.
    async fn pages<T: DeserializeOwned, K: Ord>(
        &self,
        path: &str,
        key: &str,
        query: &[(&str, &str)],
        id: impl Fn(&T) -> K,
    ) -> Result<Vec<T>, Fault> {
        for _ in 0..READINGS {
            let mut found = std::collections::BTreeMap::new();
            let (mut page, mut totals) = ("1".to_owned(), std::collections::BTreeSet::new());
            loop {
                let (items, meta) = self.page(path, key, query, &page).await?;
                found.extend(items.into_iter().map(|item| (id(&item), item)));
                totals.extend(meta.pagination.total_entries);
                let Some(next) = meta.pagination.next_page else { break };
                page = next.to_string();
            }
            let steady = match (totals.len(), totals.first()) {
                (0, _) => true,
                (1, Some(total)) => usize::try_from(*total) == Ok(found.len()),
                _ => false,
            };
            if steady {
                return Ok(found.into_values().collect());
            }
        }
        Err(Fault::Unsteady(path.to_owned()))
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        key: &str,
        query: &[(&str, &str)],
        page: &str,
    ) -> Result<(Vec<T>, Meta), Fault> {
        let query = [query, &[("page", page), ("per_page", PAGE)]].concat();
        let mut body: serde_json::Map<String, serde_json::Value> = self.get(path, &query).await?;
        let nonsense = |why: String| Fault::Nonsense { path: path.to_owned(), why };
        let items = body.remove(key).ok_or_else(|| nonsense(format!("it has no field {key}")))?;
        let meta = body.remove("meta").unwrap_or_else(|| serde_json::json!({}));
        let items = serde_json::from_value(items).map_err(|error| nonsense(error.to_string()))?;
        let meta = serde_json::from_value(meta).map_err(|error| nonsense(error.to_string()))?;
        Ok((items, meta))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Fault> {
        let request = self.http.get(format!("{}{path}", self.base)).query(query);
        self.call(path, request, self.urgency).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Fault> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            let bytes = serde_json::to_vec(body).expect("bodies are plain structs with text keys");
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(bytes);
        }
        self.call(path, request, Urgency::Write).await
    }

    async fn delete(&self, path: &str) -> Result<(), Fault> {
        let request = self.http.delete(format!("{}{path}", self.base));
        match self.bytes(path, request, Urgency::Write).await {
            Ok(_) => Ok(()),
            Err(fault) if fault.is_not_found() => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        request: reqwest::RequestBuilder,
        urgency: Urgency,
    ) -> Result<T, Fault> {
        let bytes = self.bytes(path, request, urgency).await?;
        // serde's words name fields and positions, never the text itself: an answer may hold a root password.
        serde_json::from_slice(&bytes).map_err(|error| Fault::Nonsense {
            path: path.to_owned(),
            why: format!("line {}, column {}: {}", error.line(), error.column(), words(&error)),
        })
    }

    async fn bytes(
        &self,
        path: &str,
        request: reqwest::RequestBuilder,
        urgency: Urgency,
    ) -> Result<Vec<u8>, Fault> {
        let token = self.token.read().await.map_err(Fault::NoToken)?;
        self.bucket.turn(urgency).await.map_err(Fault::OutOfTurn)?;
        let lost = |error: reqwest::Error| Fault::lost(path, &error);
        let answer = request.bearer_auth(token.reveal()).send().await.map_err(lost)?;
        let (status, told) = (answer.status().as_u16(), answer::told(answer.headers()));
        self.bucket.told(told);
        let wait = answer::retry_after(answer.headers(), status, std::time::SystemTime::now());
        if let Some(wait) = wait {
            self.bucket.close_for(wait);
        }
        let success = answer.status().is_success();
        let bytes = answer.bytes().await.map_err(lost)?;
        if success { Ok(bytes.to_vec()) } else { Err(answer::refused(path, status, &bytes, wait)) }
    }
}

/// What kind of thing does not fit; the full text of serde could quote the answer.
fn words(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Data => "a field is missing or of another kind",
        _ => "it is no JSON",
    }
}

/// Not found, in the vendor's own words, is an answer.
fn present<T>(found: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.is_not_found() => Ok(None),
        Err(fault) => Err(fault),
    }
}
