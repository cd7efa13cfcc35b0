//! Why a call failed, in Headscale's words where it has some, and never with a key.

use serde::Deserialize;

/// Longest piece of an answer that an error quotes.
const QUOTE: usize = 200;

/// Why a call to Headscale failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not the URL of a Headscale, or one to which no key is sent.
    #[error("{address:?} is not the URL of a Headscale: {why}")]
    Address {
        /// What was given, without name and password.
        address: String,
        /// What is wrong and what to write.
        why: &'static str,
    },
    /// What no API key looks like. Its text is not shown.
    #[error(
        "the API key of Headscale is empty or holds letters that no key has: give the key alone, on one line"
    )]
    ApiKey,
    /// The machine's certificates cannot be read, or the like.
    #[error("cannot prepare to ask Headscale at {address}")]
    Prepare {
        /// Its URL.
        address: String,
        /// What is missing.
        #[source]
        source: reqwest::Error,
    },
    /// Nothing listens there, the name is unknown, its certificate is not trusted, or the connection broke.
    #[error("cannot reach Headscale at {address} to {doing}")]
    Unreachable {
        /// What we were doing.
        doing: &'static str,
        /// Its URL.
        address: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// No whole answer in time.
    #[error("Headscale at {address} has not answered within {seconds} s to {doing}")]
    Late {
        /// What we were doing.
        doing: &'static str,
        /// Its URL.
        address: String,
        /// How long we waited.
        seconds: u64,
    },
    /// Something before it says that it is down, or that it is asked too often.
    #[error("Headscale at {address} answers {status} to {doing}, which means later: {said}")]
    Busy {
        /// What we were doing.
        doing: &'static str,
        /// Its URL.
        address: String,
        /// HTTP status.
        status: u16,
        /// The beginning of what was said.
        said: String,
    },
    /// The API key is none of its keys, or no longer: it does not say which.
    #[error("Headscale at {address} refuses the API key: it is wrong, expired or revoked")]
    Unauthorized {
        /// Its URL.
        address: String,
    },
    /// What the call is about is not there.
    #[error("Headscale at {address} does not find what it takes to {doing}: {said}")]
    NotFound {
        /// What we were doing.
        doing: &'static str,
        /// Its URL.
        address: String,
        /// Its words.
        said: String,
    },
    /// It does not do what it was asked.
    #[error("Headscale at {address} refuses to {doing}: {said}")]
    Refused {
        /// What we were doing.
        doing: &'static str,
        /// Its URL.
        address: String,
        /// HTTP status; version 0.29 says 500 where it means 404 or 409.
        status: u16,
        /// Its words.
        said: String,
    },
    /// An answer of another shape than Headscale's.
    #[error("{address} does not answer as Headscale does when asked to {doing}: {why}")]
    Malformed {
        /// What we were doing.
        doing: &'static str,
        /// Its URL.
        address: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What a failure means to whoever has to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The URL or the key's text is wrong: nothing was asked.
    Invalid,
    /// Nobody answers; later may be better.
    Unreachable,
    /// The API key is wrong, expired or revoked.
    Unauthorized,
    /// Not there.
    NotFound,
    /// It says no, and why.
    Refused,
    /// Not a Headscale, or a version that nobody here knows.
    Malformed,
}

impl Kind {
    /// A fixed word for metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unreachable => "unreachable",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

impl Error {
    /// What it means.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Address { .. } | Self::ApiKey => Kind::Invalid,
            Self::Prepare { .. } | Self::Unreachable { .. } | Self::Late { .. } | Self::Busy { .. } => {
                Kind::Unreachable
            }
            Self::Unauthorized { .. } => Kind::Unauthorized,
            Self::NotFound { .. } => Kind::NotFound,
            Self::Refused { .. } => Kind::Refused,
            Self::Malformed { .. } => Kind::Malformed,
        }
    }

    /// Headscale's own words, where it said some.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        match self {
            Self::NotFound { said, .. } | Self::Refused { said, .. } | Self::Busy { said, .. } => Some(said),
            _ => None,
        }
    }
}

/// The shapes of both versions in one; plain text is neither.
#[derive(Deserialize)]
struct Said {
    /// 0.29.
    message: Option<String>,
    /// 0.30.
    detail: Option<String>,
    title: Option<String>,
    #[serde(default)]
    errors: Option<Vec<Detail>>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    message: String,
}

/// An answer that is no success, from its status and its body.
pub(crate) fn refusal(doing: &'static str, address: &str, status: u16, body: &[u8]) -> Error {
    let (address, said) = (address.to_owned(), words(body));
    match status {
        401 | 403 => Error::Unauthorized { address },
        404 => Error::NotFound { doing, address, said },
        429 | 502 | 503 | 504 => Error::Busy { doing, address, status, said },
        300..=399 => Error::Malformed {
            doing,
            address,
            why: format!("it answers {status}, a redirect: give the URL that it has in the end"),
        },
        405 | 501 => Error::Malformed { doing, address, why: format!("it answers {status}: {said}") },
        _ => Error::Refused { doing, address, status, said },
    }
}

fn words(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Said>(body) {
        Ok(Said { message: Some(message), .. }) => message,
        Ok(Said { detail, title, errors, .. }) if detail.is_some() || title.is_some() => {
            let mut parts = vec![detail.or(title).unwrap_or_default()];
            parts.extend(errors.unwrap_or_default().into_iter().map(|detail| detail.message));
            parts.retain(|part| !part.is_empty());
            parts.join(": ")
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    let text = text.trim();
    if text.starts_with('<') {
        return "a web page".to_owned();
    }
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(QUOTE).collect();
    if plain.is_empty() { "no word".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_shapes_give_their_words() {
        for (body, said) in [
            ("Unauthorized\n", "Unauthorized"),
            (r#"{"code":2,"message":"user not found","details":[]}"#, "user not found"),
            (r#"{"title":"Not Found","status":404,"detail":"node not found"}"#, "node not found"),
            (
                r#"{"title":"x","status":404,"detail":"creating pre-auth key","errors":[{"message":"user not found"}]}"#,
                "creating pre-auth key: user not found",
            ),
            ("<!DOCTYPE html><html>", "a web page"),
            ("", "no word"),
            ("a\nb", "a b"),
        ] {
            assert_eq!(words(body.as_bytes()), said);
        }
        assert_eq!(words("ö".repeat(900).as_bytes()).chars().count(), QUOTE);
    }

    #[test]
    fn a_status_decides_the_kind() {
        for (status, kind) in [
            (401, Kind::Unauthorized),
            (404, Kind::NotFound),
            (400, Kind::Refused),
            (409, Kind::Refused),
            (422, Kind::Refused),
            (500, Kind::Refused),
            (503, Kind::Unreachable),
            (301, Kind::Malformed),
            (501, Kind::Malformed),
        ] {
            assert_eq!(refusal("x", "y", status, b"z").kind(), kind, "{status}");
        }
    }
}
