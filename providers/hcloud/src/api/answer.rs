//! What an answer says beside its body: limits, when to come again, why not.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;

use crate::bucket::{CALLS_AN_HOUR, Told};
use crate::wire::{ErrorBody, ErrorSaid};

use super::fault::{Fault, Refused};

/// So many calls have come back before anybody calls again after a 429: with one, all that wait would meet it at once.
const CALLS_BACK: u32 = 10;

pub(super) fn told(headers: &HeaderMap) -> Told {
    Told { limit: number(headers, "ratelimit-limit"), remaining: number(headers, "ratelimit-remaining") }
}

/// How long nobody may call after this answer, if it is a 429.
pub(super) fn retry_after(headers: &HeaderMap, status: u16, now: SystemTime) -> Option<Duration> {
    if status != 429 {
        return None;
    }
    if let Some(seconds) = number::<u32>(headers, "retry-after") {
        return Some(Duration::from_secs(u64::from(seconds)));
    }
    let limit: u32 = number(headers, "ratelimit-limit").unwrap_or(CALLS_AN_HOUR).max(1);
    let some_back = Duration::from_secs(3600) * CALLS_BACK / limit;
    let reset: Option<u64> = number(headers, "ratelimit-reset");
    let all_back = reset.map(|at| {
        let at = UNIX_EPOCH + Duration::from_secs(at);
        at.duration_since(now).unwrap_or_default()
    });
    Some(all_back.map_or(some_back, |all_back| some_back.min(all_back)))
}

/// Reads the vendor's word for a refusal.
pub(super) fn refused(path: &str, status: u16, body: &[u8], wait: Option<Duration>) -> Fault {
    let Ok(ErrorBody { error: ErrorSaid { code, message, details } }) = serde_json::from_slice(body) else {
        return Fault::Bare { path: path.to_owned(), status, wait };
    };
    let fields: Vec<String> = names(&details, "fields");
    let limits = names(&details, "limits");
    // What is wrong with the user data may be said by quoting it.
    let mut words = if fields.iter().any(|field| field == "user_data") {
        "the vendor does not take this user data".to_owned()
    } else {
        message
    };
    if !limits.is_empty() {
        words = format!("{words} ({})", limits.join(", "));
    }
    Fault::Refused(Refused { path: path.to_owned(), status, code, words, fields, wait })
}

fn names(details: &serde_json::Value, key: &str) -> Vec<String> {
    let items = details.get(key).and_then(serde_json::Value::as_array);
    let named = items.into_iter().flatten().filter_map(|item| item.get("name")?.as_str());
    named.map(str::to_owned).collect()
}

fn number<N: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<N> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn wait(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        retry_after(&headers(pairs), 429, UNIX_EPOCH + Duration::from_secs(1000))
    }

    #[test]
    fn a_429_is_obeyed_with_and_without_headers() {
        assert_eq!(wait(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[]), Some(Duration::from_secs(10)), "ten calls of the usual limit");
        assert_eq!(wait(&[("ratelimit-limit", "36000")]), Some(Duration::from_secs(1)));
        assert_eq!(wait(&[("ratelimit-reset", "1003")]), Some(Duration::from_secs(3)));
        assert_eq!(wait(&[("ratelimit-reset", "4600")]), Some(Duration::from_secs(10)), "not an hour");
        assert_eq!(
            wait(&[("ratelimit-reset", "soon"), ("ratelimit-limit", "0")]),
            Some(Duration::from_secs(36_000))
        );
        assert_eq!(retry_after(&headers(&[]), 200, UNIX_EPOCH), None);
    }

    #[test]
    fn a_refusal_names_the_limit_and_never_the_user_data() {
        let body = br#"{"error":{"code":"resource_limit_exceeded","message":"limit","details":{"limits":[{"name":"server_limit"}]}}}"#;
        let Fault::Refused(refused_) = refused("/servers", 403, body, None) else { panic!() };
        assert_eq!(refused_.words, "limit (server_limit)");
        let body = br#"{"error":{"code":"invalid_input","message":"bad: {secret}","details":{"fields":[{"name":"user_data"}]}}}"#;
        let Fault::Refused(refused_) = refused("/servers", 422, body, None) else { panic!() };
        assert!(!refused_.words.contains("secret"));
    }

    #[test]
    fn a_page_of_a_proxy_is_no_word_of_the_vendor() {
        assert!(matches!(
            refused("/servers/1", 404, b"<html>not found</html>", None),
            Fault::Bare { status: 404, .. }
        ));
    }
}
