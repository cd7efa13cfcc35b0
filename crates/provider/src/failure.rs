//! Why a call failed, as it goes over the wire: status code, `ErrorInfo`, `RetryInfo`. Both directions, in one place.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

const DOMAIN: &str = "scarpenter.sparecores.com";
const SCOPE: &str = "scope";
/// A vendor that says "in a year" is not believed: waits are looked at again after a day.
const LONGEST_RETRY: Duration = Duration::from_secs(24 * 3600);
const LONGEST_MESSAGE: usize = 512;

/// Why a call failed. A plugin returns it; the client reads it back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {message}")]
pub struct Failure {
    /// What happened.
    pub cause: Cause,
    /// What it holds for.
    pub scope: Scope,
    /// When the vendor wants to be asked again.
    pub retry_after: Option<Duration>,
    /// What the vendor said, for people: no credentials, no user data.
    pub message: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The vendor has none left; nothing was made.
    SoldOut,
    /// The account may not have more; nothing was made.
    Quota,
    /// Too many calls; this one had no effect.
    RateLimit,
    /// Never acceptable; nothing was made.
    Invalid,
    /// Credentials are missing or wrong; nothing was made.
    Unauthenticated,
    /// Credentials do not suffice; nothing was made.
    PermissionDenied,
    /// A machine with this claim UID and other parameters exists.
    Conflict,
    /// There is no such machine.
    NotFound,
    /// The vendor cannot be reached or says "later".
    Unavailable,
    /// The RPC is optional and not served.
    Unimplemented,
    /// The outcome is not known.
    Unknown,
}

impl Cause {
    /// Reason in `ErrorInfo`, where there is one.
    fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::SoldOut => "SOLD_OUT",
            Self::Quota => "QUOTA",
            Self::RateLimit => "RATE_LIMIT",
            Self::Invalid => "INVALID",
            Self::Unauthenticated | Self::PermissionDenied => "AUTH",
            Self::Conflict => "CONFLICT",
            Self::NotFound | Self::Unavailable | Self::Unimplemented | Self::Unknown => return None,
        })
    }

    fn code(self) -> Code {
        match self {
            Self::SoldOut | Self::Quota | Self::RateLimit => Code::ResourceExhausted,
            Self::Invalid => Code::InvalidArgument,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::PermissionDenied => Code::PermissionDenied,
            Self::Conflict => Code::AlreadyExists,
            Self::NotFound => Code::NotFound,
            Self::Unavailable => Code::Unavailable,
            Self::Unimplemented => Code::Unimplemented,
            Self::Unknown => Code::Aborted,
        }
    }

    /// What a failure of this kind holds for when nothing is said.
    #[must_use]
    pub fn default_scope(self) -> Scope {
        match self {
            Self::Quota => Scope::Region,
            Self::RateLimit | Self::Unauthenticated | Self::PermissionDenied | Self::Unavailable => {
                Scope::Account
            }
            _ => Scope::Offering,
        }
    }

    /// Word for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SoldOut => "sold_out",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::PermissionDenied => "permission_denied",
            Self::Conflict => "conflict",
            Self::NotFound => "not_found",
            Self::Unavailable => "unavailable",
            Self::Unimplemented => "unimplemented",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a refusal holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// This type, place and capacity type.
    Offering,
    /// Everything in the zone.
    Zone,
    /// Everything in the region; of a quota, or the family.
    Region,
    /// Every call to this vendor.
    Account,
}

impl Scope {
    /// Word on the wire, in logs and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offering => "offering",
            Self::Zone => "zone",
            Self::Region => "region",
            Self::Account => "account",
        }
    }

    /// The scope that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Offering, Self::Zone, Self::Region, Self::Account]
            .into_iter()
            .find(|scope| scope.as_str() == text)
    }
}

impl Failure {
    /// A failure with its usual scope.
    #[must_use]
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, scope: cause.default_scope(), retry_after: None, message: message.into() }
    }

    /// The same with another scope.
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// The same with the vendor's word on when to ask again.
    #[must_use]
    pub fn with_retry_after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// Reads a status. A code or reason that the contract does not name is [`Cause::Unknown`] and is logged.
    pub(crate) fn from_status(status: &Status) -> Self {
        let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
        let reason = info.as_ref().map_or("", |info| info.reason.as_str());
        let cause = cause_of(status.code(), reason).unwrap_or_else(|| {
            tracing::warn!(code = ?status.code(), reason, message = %readable(status.message()), "unmapped status");
            Cause::Unknown
        });
        let scope =
            info.as_ref().and_then(|info| info.metadata.get(SCOPE)).and_then(|word| Scope::parse(word));
        let retry = status.get_details_retry_info().and_then(|retry| retry.retry_delay);
        Self {
            cause,
            scope: scope.unwrap_or_else(|| cause.default_scope()),
            retry_after: retry.map(|delay| delay.min(LONGEST_RETRY)),
            message: readable(status.message()),
        }
    }
}

/// `None` when the contract has no such pair.
fn cause_of(code: Code, reason: &str) -> Option<Cause> {
    Some(match (code, reason) {
        (Code::ResourceExhausted, "SOLD_OUT") => Cause::SoldOut,
        (Code::ResourceExhausted, "QUOTA") => Cause::Quota,
        (Code::ResourceExhausted, "RATE_LIMIT") => Cause::RateLimit,
        (Code::InvalidArgument, _) => Cause::Invalid,
        (Code::Unauthenticated, _) => Cause::Unauthenticated,
        (Code::PermissionDenied, _) => Cause::PermissionDenied,
        (Code::AlreadyExists, _) => Cause::Conflict,
        (Code::NotFound, _) => Cause::NotFound,
        (Code::Unavailable, _) => Cause::Unavailable,
        (Code::Unimplemented, _) => Cause::Unimplemented,
        // A deadline of ours comes as CANCELLED "Timeout expired".
        (Code::Aborted | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown | Code::Internal, _) => {
            Cause::Unknown
        }
        _ => return None,
    })
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let Failure { cause, scope, retry_after, message } = failure;
        let reason = cause.reason();
        status(cause.code(), reason, reason.map(|_| scope), retry_after, message)
    }
}

/// Any status with details, also such as the contract does not name.
#[must_use]
pub fn status(
    code: Code,
    reason: Option<&str>,
    scope: Option<Scope>,
    retry_after: Option<Duration>,
    message: impl Into<String>,
) -> Status {
    let mut details = ErrorDetails::new();
    if let Some(reason) = reason {
        let scope = scope.map(|scope| (SCOPE.to_owned(), scope.as_str().to_owned()));
        details.set_error_info(reason, DOMAIN, scope.into_iter().collect::<HashMap<_, _>>());
    }
    if let Some(delay) = retry_after {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(code, message, details)
}

/// The code that a name such as `RESOURCE_EXHAUSTED` stands for; never `OK`.
#[must_use]
pub fn code_named(name: &str) -> Option<Code> {
    Some(match name {
        "CANCELLED" => Code::Cancelled,
        "UNKNOWN" => Code::Unknown,
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        "DEADLINE_EXCEEDED" => Code::DeadlineExceeded,
        "NOT_FOUND" => Code::NotFound,
        "ALREADY_EXISTS" => Code::AlreadyExists,
        "PERMISSION_DENIED" => Code::PermissionDenied,
        "RESOURCE_EXHAUSTED" => Code::ResourceExhausted,
        "FAILED_PRECONDITION" => Code::FailedPrecondition,
        "ABORTED" => Code::Aborted,
        "OUT_OF_RANGE" => Code::OutOfRange,
        "UNIMPLEMENTED" => Code::Unimplemented,
        "INTERNAL" => Code::Internal,
        "UNAVAILABLE" => Code::Unavailable,
        "DATA_LOSS" => Code::DataLoss,
        "UNAUTHENTICATED" => Code::Unauthenticated,
        _ => return None,
    })
}

/// A message of someone else, fit for an event: one line, bounded.
pub(crate) fn readable(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_survives_the_wire() {
        for cause in [
            Cause::SoldOut,
            Cause::Quota,
            Cause::RateLimit,
            Cause::Invalid,
            Cause::Unauthenticated,
            Cause::PermissionDenied,
            Cause::Conflict,
        ] {
            let sent =
                Failure::new(cause, "why").with_scope(Scope::Zone).with_retry_after(Duration::from_secs(9));
            assert_eq!(Failure::from_status(&Status::from(sent.clone())), sent);
        }
        for cause in [Cause::NotFound, Cause::Unavailable, Cause::Unimplemented, Cause::Unknown] {
            let sent = Failure::new(cause, "why");
            assert_eq!(Failure::from_status(&Status::from(sent.clone())), sent);
        }
    }

    #[test]
    fn what_the_contract_does_not_name_is_an_unknown_outcome() {
        for status in [
            Status::resource_exhausted("message larger than max"),
            Status::data_loss("x"),
            Status::out_of_range("x"),
            Status::failed_precondition("x"),
            Status::cancelled("Timeout expired"),
        ] {
            assert_eq!(Failure::from_status(&status).cause, Cause::Unknown, "{status:?}");
        }
    }

    #[test]
    fn a_reason_of_another_domain_says_nothing() {
        let details = ErrorDetails::with_error_info("SOLD_OUT", "example.com", HashMap::new());
        let status = Status::with_error_details(Code::ResourceExhausted, "x", details);
        assert_eq!(Failure::from_status(&status).cause, Cause::Unknown);
    }

    #[test]
    fn a_wait_of_a_year_and_a_page_of_text_are_cut() {
        let sent =
            Failure::new(Cause::SoldOut, "a\nb".repeat(1000)).with_retry_after(Duration::from_secs(1 << 30));
        let read = Failure::from_status(&Status::from(sent));
        assert_eq!(read.retry_after, Some(LONGEST_RETRY));
        assert!(read.message.len() <= LONGEST_MESSAGE && !read.message.contains('\n'));
    }
}
