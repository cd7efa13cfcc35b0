//! One request at a time: time, limits, and what an answer means.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy as Redirects;
use reqwest::{Method, Url};
use scarpenter_core::name::Secret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{base, is_loopback};
use crate::error::refusal;
use crate::model::{Key, KeyId, MadeKey, NewKey, Node, NodeId, User};
use crate::wire::{
    CreateKey, ExpireKey, Health, KeyBody, Keys, NodeBody, Nodes, Nothing, OneKey, PolicyBody, Users,
};
use crate::{Error, Policy};

/// What 0.29 and 0.30 say of a policy that was never set, and of one in a file that their configuration does not name.
const NO_POLICY: [&str; 2] = ["acl policy not found", "reading policy from path \"\""];

/// How long and how much is too long and too much.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the request to the last byte of the answer.
    pub request: Duration,
    /// Bytes of an answer, unpacked. A node takes about one KiB.
    pub body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), request: Duration::from_secs(10), body: 64 << 20 }
    }
}

/// A Headscale at a URL, and a key of its API.
pub struct Client {
    http: reqwest::Client,
    /// Without a slash at its end.
    base: String,
    key: HeaderValue,
    limits: Limits,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Client {
    /// The Headscale at `address`, such as `https://mesh.example.com`. Nothing is asked yet.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::ApiKey`], [`Error::Prepare`].
    pub fn new(address: &str, api_key: &Secret, limits: Limits) -> Result<Self, Error> {
        let url = base(address)?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        let key = header(api_key)?;
        // Every program of ours has installed it already; without one, building the client panics.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("scarpenter/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect)
            .timeout(limits.request)
            // The key must not follow one.
            .redirect(Redirects::none());
        if is_loopback(&url) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|source| Error::Prepare { address: base.clone(), source })?;
        Ok(Self { http, base, key, limits })
    }

    /// What is wrong with a URL, without asking it anything.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn check_address(address: &str) -> Result<(), Error> {
        base(address).map(drop)
    }

    /// Its URL, without a slash at the end.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.base
    }

    /// Asks whether it answers, takes the API key and has its database.
    ///
    /// # Errors
    /// [`Error`]; a database that it does not reach is [`Error::Busy`].
    pub async fn health(&self) -> Result<(), Error> {
        let doing = "say how it is";
        let health: Health = self.get(doing, "/api/v1/health", &[]).await?;
        if health.database_connectivity {
            return Ok(());
        }
        let said = "it does not reach its database".to_owned();
        Err(Error::Busy { doing, address: self.base.clone(), status: 200, said })
    }

    /// The user of that name; of several, the local one, since only those names are unique.
    ///
    /// # Errors
    /// [`Error`]; several that none of which is local are [`Error::Refused`].
    pub async fn user(&self, name: &str) -> Result<Option<User>, Error> {
        let doing = "find the user";
        let Users { users } = self.get(doing, "/api/v1/user", &[("name", name)]).await?;
        let mut users: Vec<User> =
            users.into_iter().map(User::from).filter(|user| user.name == name).collect();
        if users.len() > 1 {
            users.retain(|user| user.provider.is_empty());
        }
        match users.len() {
            0 | 1 => Ok(users.pop()),
            _ => {
                let said = format!("it has several users of the name {name:?}");
                Err(Error::Refused { doing, address: self.base.clone(), status: 200, said })
            }
        }
    }

    /// Makes a key that admits one machine, whose node stays until it is deleted.
    ///
    /// # Errors
    /// [`Error`]; a user or a tag that it does not take is [`Error::Refused`] with its words.
    pub async fn create_key(&self, new: &NewKey) -> Result<MadeKey, Error> {
        let doing = "make a pre-auth key";
        let body = CreateKey {
            user: &new.user,
            reusable: false,
            ephemeral: false,
            expiration: new.expiration.to_string(),
            acl_tags: &new.tags,
        };
        let outcome = self.send(doing, Method::POST, "/api/v1/preauthkey", &body).await;
        let OneKey { pre_auth_key } = outcome.map_err(|error| match error {
            // What is missing is the user, not the key: 0.30 says 404 where 0.29 says 500.
            Error::NotFound { doing, address, said } => Error::Refused { doing, address, status: 404, said },
            error => error,
        })?;
        let secret = Secret::new(pre_auth_key.key.clone());
        let key = pre_auth_key.parse().map_err(|why| self.malformed(doing, why))?;
        let Some(why) = unlike(new, &key, &secret) else { return Ok(MadeKey { key, secret }) };
        // Nobody has it, so nobody misses it; where that fails, too, it ends by itself.
        let deleted = self.delete_key(&key.id).await;
        let rest = if deleted.is_ok() { "and is deleted again" } else { "and could not be deleted again" };
        Err(self.malformed(doing, format!("key {} {why}, {rest}", key.id)))
    }

    /// All pre-auth keys, of whomever.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keys(&self) -> Result<Vec<Key>, Error> {
        let doing = "list the pre-auth keys";
        let Keys { pre_auth_keys } = self.get(doing, "/api/v1/preauthkey", &[]).await?;
        let keys: Result<_, _> = pre_auth_keys.into_iter().map(KeyBody::parse).collect();
        keys.map_err(|why| self.malformed(doing, why))
    }

    /// Ends a key; its node stays. One that is not there counts as ended.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn expire_key(&self, id: &KeyId) -> Result<(), Error> {
        let body = ExpireKey { id: id.as_str() };
        let outcome =
            self.send("expire a pre-auth key", Method::POST, "/api/v1/preauthkey/expire", &body).await;
        gone(outcome)
    }

    /// Deletes a key. One that is not there counts as deleted.
    ///
    /// # Caveats
    /// Never while a node that joined with it lives: that node is cut loose when it starts again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_key(&self, id: &KeyId) -> Result<(), Error> {
        let url = self.url("/api/v1/preauthkey", &[("id", id.as_str())])?;
        gone(self.ask("delete a pre-auth key", Method::DELETE, url, None).await)
    }

    /// All nodes, of whomever.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let doing = "list the nodes";
        let Nodes { nodes } = self.get(doing, "/api/v1/node", &[]).await?;
        let nodes: Result<_, _> = nodes.into_iter().map(NodeBody::parse).collect();
        nodes.map_err(|why| self.malformed(doing, why))
    }

    /// Deletes a node. One that is not there counts as deleted.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_node(&self, id: &NodeId) -> Result<(), Error> {
        let url = self.url(&format!("/api/v1/node/{id}"), &[])?;
        gone(self.ask("delete a node", Method::DELETE, url, None).await)
    }

    /// The policy; `None` when there is none, and everybody may do everything.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn policy(&self) -> Result<Option<Policy>, Error> {
        let doing = "read the policy";
        match self.get::<PolicyBody>(doing, "/api/v1/policy", &[]).await {
            Ok(PolicyBody { policy }) if policy.trim().is_empty() => Ok(None),
            Ok(PolicyBody { policy }) => {
                let read = Policy::parse(&policy);
                read.map(Some)
                    .map_err(|why| self.malformed(doing, format!("its policy cannot be read: {why}")))
            }
            Err(error) if is_unset(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks whether it would take a policy, without setting it.
    ///
    /// # Errors
    /// [`Error`]; what it has against the policy is [`Error::Refused`].
    pub async fn check_policy(&self, policy: &str) -> Result<(), Error> {
        let body = PolicyBody { policy: policy.to_owned() };
        let answer = self.send("check a policy", Method::POST, "/api/v1/policy/check", &body).await;
        answer.map(|Nothing {}| ())
    }

    async fn get<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Error> {
        self.ask(doing, Method::GET, self.url(path, query)?, None).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).expect("a request is texts, lists and switches");
        self.ask(doing, method, self.url(path, &[])?, Some(body)).await
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Result<Url, Error> {
        let why = "its path is none";
        let mut url = Url::parse(&format!("{}{path}", self.base))
            .map_err(|_| Error::Address { address: self.base.clone(), why })?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
    ) -> Result<T, Error> {
        let mut request = self
            .http
            .request(method, url)
            .header(ACCEPT, "application/json")
            .header(AUTHORIZATION, self.key.clone());
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let mut answer = request.send().await.map_err(|source| self.unsent(doing, source))?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|source| self.unsent(doing, source))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > self.limits.body {
                let why = format!("its answer is longer than {} bytes", self.limits.body);
                return Err(self.malformed(doing, why));
            }
        }
        if !status.is_success() {
            return Err(refusal(doing, &self.base, status.as_u16(), &bytes));
        }
        // serde's words tell where and what, and quote at most a piece of what was not expected there.
        serde_json::from_slice(&bytes).map_err(|error| self.malformed(doing, unquoted(&error)))
    }

    fn unsent(&self, doing: &'static str, source: reqwest::Error) -> Error {
        let address = self.base.clone();
        if source.is_timeout() && !source.is_connect() {
            return Error::Late { doing, address, seconds: self.limits.request.as_secs() };
        }
        Error::Unreachable { doing, address, source: source.without_url() }
    }

    fn malformed(&self, doing: &'static str, why: String) -> Error {
        Error::Malformed { doing, address: self.base.clone(), why }
    }
}

/// What is wrong with an answer, without a piece of it: it may be a key.
fn unquoted(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "holds something else than it should",
        serde_json::error::Category::Eof => "ends too early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "is not JSON",
    };
    format!("its answer {what} (line {}, column {})", error.line(), error.column())
}

fn header(key: &Secret) -> Result<HeaderValue, Error> {
    let text = key.reveal().trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::ApiKey);
    }
    let mut value = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| Error::ApiKey)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What is gone counts as done.
fn gone(outcome: Result<Nothing, Error>) -> Result<(), Error> {
    match outcome {
        Ok(Nothing {}) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_unset(error: &Error) -> bool {
    matches!(error, Error::Refused { said, .. } if NO_POLICY.iter().any(|words| said.contains(words)))
}

/// Where a key is not what was asked for: a version that nobody here knows may take other fields.
fn unlike(new: &NewKey, key: &Key, secret: &Secret) -> Option<&'static str> {
    let sorted = |tags: &[String]| {
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        tags
    };
    let off = key.expiration.map(|end| new.expiration.duration_since(end).abs());
    if key.reusable || key.ephemeral {
        Some("was made reusable or ephemeral, which was not asked for")
    } else if sorted(&key.tags) != sorted(&new.tags) {
        Some("was made with other tags than were asked for")
    } else if off.is_none_or(|off| off > SignedDuration::from_secs(1)) {
        Some("was made with another end than was asked for")
    } else if key.created.is_none_or(|created| created == Timestamp::UNIX_EPOCH) {
        Some("does not say when it was made")
    } else if secret.reveal().is_empty() {
        Some("was made and not shown")
    } else {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_without_the_end_of_its_line_and_is_never_shown() {
        let client =
            Client::new("https://mesh.example.com/", &Secret::new(" s3cret\n"), Limits::default()).unwrap();
        assert_eq!(client.key.to_str().unwrap(), "Bearer s3cret");
        assert!(!format!("{client:?}{:?}", client.key).contains("s3cret"));
        assert_eq!(client.address(), "https://mesh.example.com");
        for bad in ["", " \n", "a b", "kl\u{fc}"] {
            let error = Client::new("https://a", &Secret::new(bad), Limits::default()).unwrap_err();
            assert!(matches!(error, Error::ApiKey), "{error}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_not_quoted() {
        let error = serde_json::from_str::<Nothing>("\"hskey-auth-s3cret\"").unwrap_err();
        assert!(!unquoted(&error).contains("s3cret"), "{error}");
    }

    #[test]
    fn a_name_is_escaped_and_a_path_of_the_address_is_kept() {
        let client = Client::new("http://127.0.0.1:1/hs/", &Secret::new("k"), Limits::default()).unwrap();
        let url = client.url("/api/v1/user", &[("name", "a b&id=1")]).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:1/hs/api/v1/user?name=a+b%26id%3D1");
    }
}
