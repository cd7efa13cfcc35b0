//! One request at a time: pace, retries, limits, and what may be wrong with an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Response, StatusCode};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::address::{base, is_loopback, is_private};
use super::elements::Broken;
use super::error::Again;
use super::pace::{Budget, Told, back_off};
use super::{Ask, Error, Key};

/// How long and how much is too long and too much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    /// From the request to the last byte of the answer. Half a minute is usual for a heavy one.
    pub(crate) request: Duration,
    /// Bytes of an answer, unpacked.
    pub(crate) body: usize,
    pub(crate) redirects: usize,
    /// The first wait after a failure; later ones double.
    pub(crate) step: Duration,
    /// The window of the Keeper's limit: a 429 does not say when to come back.
    pub(crate) window: Duration,
    pub(crate) tries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(60),
            body: 64 << 20,
            redirects: 5,
            step: Duration::from_secs(1),
            window: Duration::from_secs(60),
            tries: 6,
        }
    }
}

/// Takes an answer's bytes as they come.
pub(crate) trait Sink {
    type Whole;
    fn feed(&mut self, bytes: &[u8]) -> Result<(), Broken>;
    fn end(self) -> Result<Self::Whole, Broken>;
}

impl Sink for Vec<u8> {
    type Whole = Self;

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.extend_from_slice(bytes);
        if self.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<') {
            Err(Broken::Html)
        } else {
            Ok(())
        }
    }

    fn end(self) -> Result<Self, Broken> {
        Ok(self)
    }
}

/// An answer and how many rows the Keeper says it has.
pub(crate) struct Answer<T> {
    pub(crate) whole: T,
    pub(crate) total: Option<usize>,
}

pub(crate) struct Client {
    http: reqwest::Client,
    /// Without a slash at its end.
    base: String,
    key: Option<Key>,
    limits: Limits,
    budget: Mutex<Budget>,
    /// Whether anything was ever answered. Before that, a Keeper that cannot be reached is simply not there.
    reached: AtomicBool,
}

impl Client {
    pub(crate) fn new(address: &str, key: Option<Key>, limits: Limits) -> Result<Self, Error> {
        let url = base(address)?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        if key.is_some() && !is_private(&url) {
            return Err(Error::KeyInClear { address: base });
        }
        // Every program of ours has installed it already; without one, building the client panics.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("scarpenter/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(limits.connect)
            .timeout(limits.request)
            .redirect(Policy::custom(move |attempt| redirect(attempt, limits.redirects)));
        if is_loopback(&url) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|source| Error::Prepare { address: base.clone(), source })?;
        let budget = Mutex::new(Budget::new(limits.window));
        Ok(Self { http, base, key, limits, budget, reached: AtomicBool::new(false) })
    }

    pub(crate) fn address(&self) -> &str {
        &self.base
    }

    pub(crate) fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// Asks until there is an answer or no hope of one. An answer goes into a `new` sink at each try.
    ///
    /// With `in_parts`, one that takes too long is not asked for again, since its parts can be.
    pub(crate) async fn get<S: Sink>(
        &self,
        ask: &Ask,
        in_parts: bool,
        new: impl Fn() -> S,
    ) -> Result<Answer<S::Whole>, Error> {
        let url = ask.url(&self.base);
        let mut failed = 0;
        loop {
            self.wait_for_turn(ask.path).await;
            let error = match self.once(ask.path, &url, new()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let again = match &error {
                Error::Connect { .. } if !self.reached.load(Ordering::Relaxed) => Again::Never,
                error if in_parts && error.is_too_much() => Again::Never,
                error => error.again(),
            };
            if again == Again::Never {
                return Err(error);
            }
            failed += 1;
            if failed >= self.limits.tries {
                return Err(Error::GaveUp { tries: failed, last: Box::new(error) });
            }
            tracing::debug!(%url, failed, error = %error, "asking the Keeper again");
            self.rest(again, failed - 1).await;
        }
    }

    async fn wait_for_turn(&self, path: &'static str) {
        loop {
            let turn = self.budget.lock().await.spend(Instant::now(), path);
            match turn {
                Ok(()) => return,
                Err(wait) => sleep(wait).await,
            }
        }
    }

    async fn rest(&self, again: Again, failed: u32) {
        let short = back_off(self.limits.step, failed, rand::random());
        if again == Again::NextWindow {
            // For all requests, not just this one: they share the credits.
            self.budget.lock().await.close(Instant::now() + self.limits.window + short);
        } else {
            sleep(short).await;
        }
    }

    async fn once<S: Sink>(
        &self,
        path: &'static str,
        url: &str,
        mut sink: S,
    ) -> Result<Answer<S::Whole>, Error> {
        let mut request = self.http.get(url).header(ACCEPT, "application/json");
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.header());
        }
        let mut answer = request.send().await.map_err(|source| self.unsent(url, source))?;
        self.reached.store(true, Ordering::Relaxed);
        self.hear(path, answer.headers()).await;
        if !answer.status().is_success() {
            return Err(self.refusal(url, answer).await);
        }
        let url = || url.to_owned();
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(Error::Html { url: url() });
        }
        let total = number(answer.headers(), "x-total-count");
        let mut bytes = 0;
        let broken = |broken, bytes| wrong(url(), bytes, broken);
        while let Some(chunk) = answer.chunk().await.map_err(|source| self.unread(url(), bytes, source))? {
            bytes += chunk.len();
            if bytes > self.limits.body {
                return Err(Error::TooLong { url: url(), limit: self.limits.body });
            }
            sink.feed(&chunk).map_err(|what| broken(what, bytes))?;
        }
        let whole = sink.end().map_err(|what| broken(what, bytes))?;
        Ok(Answer { whole, total })
    }

    async fn hear(&self, path: &'static str, headers: &HeaderMap) {
        let told = Told {
            limit: number(headers, "x-ratelimit-limit"),
            cost: number(headers, "x-ratelimit-cost"),
            remaining: number(headers, "x-ratelimit-remaining"),
        };
        let mut budget = self.budget.lock().await;
        budget.hear(Instant::now(), path, told);
        // The Keeper sends none, but a proxy before it may.
        if let Some(seconds) = number::<u32>(headers, RETRY_AFTER.as_str()) {
            budget.close(Instant::now() + Duration::from_secs(seconds.into()).min(2 * self.limits.window));
        }
    }

    fn unsent(&self, url: &str, source: reqwest::Error) -> Error {
        let (url, source) = (url.to_owned(), source.without_url());
        if source.is_redirect() {
            Error::Redirect { url, source }
        } else if source.is_timeout() && !source.is_connect() {
            Error::Timeout { url, seconds: self.limits.request.as_secs() }
        } else if source.is_connect() {
            Error::Connect { url, source }
        } else {
            Error::BrokeOff { url, bytes: 0, source }
        }
    }

    fn unread(&self, url: String, bytes: usize, source: reqwest::Error) -> Error {
        if source.is_timeout() {
            return Error::Timeout { url, seconds: self.limits.request.as_secs() };
        }
        Error::BrokeOff { url, bytes, source: source.without_url() }
    }

    async fn refusal(&self, url: &str, mut answer: Response) -> Error {
        let (url, status) = (url.to_owned(), answer.status());
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Error::Denied { url, status: status.as_u16(), keyed: self.key.is_some() };
        }
        let said = answer.chunk().await.ok().flatten().unwrap_or_default();
        let said: String =
            String::from_utf8_lossy(&said).chars().filter(|c| !c.is_control()).take(200).collect();
        let status_code = status.as_u16();
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            Error::Busy { url, status: status_code, said }
        } else {
            Error::Status { url, status: status_code, said }
        }
    }
}

fn wrong(url: String, bytes: usize, broken: Broken) -> Error {
    match broken {
        Broken::Html => Error::Html { url },
        Broken::CutOff => Error::CutOff { url, bytes },
        Broken::NotAList => Error::NotKeeper { url, why: "it is not a list of rows".to_owned() },
        Broken::Malformed => Error::NotKeeper { url, why: "its list of rows is not JSON".to_owned() },
    }
}

fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// Follows a few redirects, and none that leaves https.
fn redirect(attempt: Attempt<'_>, most: usize) -> reqwest::redirect::Action {
    if attempt.previous().len() > most {
        return attempt.error("too many redirects");
    }
    let protected = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if protected && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to http");
    }
    attempt.follow()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// How long it takes until the next question may be asked, on a clock that stands still but for waiting.
    async fn waited(client: &Client, path: &'static str) -> Duration {
        let before = Instant::now();
        client.wait_for_turn(path).await;
        before.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_429_nobody_asks_for_a_whole_minute_and_after_a_503_only_one_waits_a_little() {
        let client = Client::new("http://127.0.0.1:9", None, Limits::default()).unwrap();
        let before = Instant::now();
        client.rest(Again::Soon, 2).await;
        assert!(before.elapsed() <= Duration::from_secs(4) + Duration::from_millis(1));
        assert_eq!(waited(&client, "/stats").await, Duration::ZERO);
        client.rest(Again::NextWindow, 0).await;
        let (one, other) = tokio::join!(waited(&client, "/stats"), waited(&client, "/servers"));
        for waited in [one, other] {
            let most = Duration::from_millis(61_001);
            assert!((Duration::from_secs(60)..=most).contains(&waited), "{waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_questions_within_the_limit_take_the_minutes_that_they_must() {
        let client = Client::new("http://127.0.0.1:9", None, Limits::default()).unwrap();
        let told = Told { limit: Some(60), cost: Some(5), remaining: None };
        client.budget.lock().await.hear(Instant::now(), "/server_prices", told);
        let before = Instant::now();
        for _ in 0..100 {
            client.wait_for_turn("/server_prices").await;
        }
        // Nine fit into a minute's 48 credits, so the hundredth is asked eleven minutes later.
        let minutes = before.elapsed().as_secs_f64() / 60.0;
        assert!((11.0..11.001).contains(&minutes), "{minutes}");
    }
}
