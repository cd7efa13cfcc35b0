//! What the controller is told: expected outcomes as values, the rest as [`Error`].

use std::fmt;
use std::time::Duration;

use scarpenter_core::name::Vendor;

use crate::failure::{Cause, Failure, Scope};
use crate::machine::Machine;

/// Outcome of a create that is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one a create, looked at once and taken apart")]
pub enum Created {
    /// The vendor has accepted, now or earlier.
    Machine(Machine),
    /// The vendor has refused.
    Refused(Refusal),
}

/// A definite no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// What it holds for.
    pub scope: Scope,
    /// When the vendor wants to be asked again.
    pub retry_after: Option<Duration>,
    /// What the vendor said, for people.
    pub message: String,
}

impl Refusal {
    /// Whether the refusal proves that no machine was made; a conflict proves the opposite.
    #[must_use]
    pub fn proves_nothing_made(&self) -> bool {
        self.reason != RefusalReason::Conflict
    }
}

/// Why a create was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalReason {
    /// The vendor has none left.
    SoldOut,
    /// The account may not have more.
    Quota,
    /// This request will never be accepted.
    Invalid,
    /// The credentials do not work, or not for this.
    Auth,
    /// A machine of this claim with other parameters exists.
    Conflict,
}

impl RefusalReason {
    /// Word for facts, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SoldOut => "sold_out",
            Self::Quota => "quota",
            Self::Invalid => "invalid",
            Self::Auth => "auth",
            Self::Conflict => "conflict",
        }
    }
}

/// Outcome of a delete that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The vendor was asked: look again until it is gone.
    Asked,
    /// Nothing is there any more.
    Gone,
}

/// The calls of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "named after the RPCs")]
pub enum Call {
    GetCapabilities,
    Validate,
    CreateMachine,
    GetMachine,
    ListMachines,
    DeleteMachine,
    ListOfferings,
    GetConsoleOutput,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::GetCapabilities,
        Self::Validate,
        Self::CreateMachine,
        Self::GetMachine,
        Self::ListMachines,
        Self::DeleteMachine,
        Self::ListOfferings,
        Self::GetConsoleOutput,
    ];

    /// Name of the RPC.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GetCapabilities => "GetCapabilities",
            Self::Validate => "Validate",
            Self::CreateMachine => "CreateMachine",
            Self::GetMachine => "GetMachine",
            Self::ListMachines => "ListMachines",
            Self::DeleteMachine => "DeleteMachine",
            Self::ListOfferings => "ListOfferings",
            Self::GetConsoleOutput => "GetConsoleOutput",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call that did not end as expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The outcome is not known: observe again before anything else.
    #[error("{call}: outcome not known: {message}")]
    Unknown {
        /// Which call.
        call: Call,
        /// What was seen.
        message: String,
    },
    /// The plugin or its vendor is away: back off. Of a create it proves nothing if it was `sent`.
    #[error("{call}: unavailable: {message}")]
    Unavailable {
        /// Which call.
        call: Call,
        /// Whether the request can have reached the plugin.
        sent: bool,
        /// When the vendor wants to be asked again.
        retry_after: Option<Duration>,
        /// What was said.
        message: String,
    },
    /// Too many calls; this one had no effect.
    #[error("{call}: rate limited: {message}")]
    RateLimited {
        /// Which call.
        call: Call,
        /// What is limited.
        scope: Scope,
        /// When the vendor wants to be asked again.
        retry_after: Option<Duration>,
        /// What was said.
        message: String,
    },
    /// The credentials do not work, or not for this: stop using the scope.
    #[error("{call}: denied: {message}")]
    Denied {
        /// Which call.
        call: Call,
        /// Region or account.
        scope: Scope,
        /// What was said.
        message: String,
    },
    /// The request can never succeed: our bug.
    #[error("{call}: invalid: {message}")]
    Invalid {
        /// Which call.
        call: Call,
        /// What was said.
        message: String,
    },
    /// The plugin does not serve this optional call.
    #[error("{call}: not served by this plugin")]
    Unimplemented {
        /// Which call.
        call: Call,
    },
    /// The answer breaks the contract and is not used. Of a create, the outcome is not known either.
    #[error("{call}: the answer breaks the contract: {problem}")]
    Nonsense {
        /// Which call.
        call: Call,
        /// What is wrong with it.
        problem: String,
    },
    /// Another vendor's plugin answers here.
    #[error("expected the plugin of {expected}, found that of {found}")]
    OtherVendor {
        /// Whose it should be.
        expected: Vendor,
        /// Whose it is.
        found: Vendor,
    },
    /// The plugin speaks another contract.
    #[error("the plugin speaks contract version {found}, this is version {expected}")]
    OtherContract {
        /// Ours.
        expected: u32,
        /// Its.
        found: u32,
    },
}

impl Error {
    /// Word for metrics; one of a fixed few.
    #[must_use]
    pub fn category(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown",
            Self::Unavailable { .. } => "unavailable",
            Self::RateLimited { .. } => "rate_limited",
            Self::Denied { .. } => "denied",
            Self::Invalid { .. } => "invalid",
            Self::Unimplemented { .. } => "unimplemented",
            Self::Nonsense { .. } => "nonsense",
            Self::OtherVendor { .. } => "other_vendor",
            Self::OtherContract { .. } => "other_contract",
        }
    }

    /// When the vendor wants to be asked again, if it said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } | Self::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the call certainly had no effect, so that repeating it needs no look first.
    #[must_use]
    pub fn had_no_effect(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Denied { .. }
            | Self::Invalid { .. }
            | Self::Unimplemented { .. } => true,
            Self::Unavailable { sent, .. } => !sent,
            Self::Unknown { .. }
            | Self::Nonsense { .. }
            | Self::OtherVendor { .. }
            | Self::OtherContract { .. } => false,
        }
    }

    /// What a failure means for a call that does not expect it.
    pub(crate) fn from_failure(call: Call, failure: Failure) -> Self {
        let Failure { cause, scope, retry_after, message } = failure;
        match cause {
            Cause::RateLimit => Self::RateLimited { call, scope, retry_after, message },
            Cause::Unauthenticated | Cause::PermissionDenied => Self::Denied { call, scope, message },
            Cause::Invalid => Self::Invalid { call, message },
            Cause::Unavailable => Self::Unavailable { call, sent: true, retry_after, message },
            Cause::Unimplemented => Self::Unimplemented { call },
            Cause::Unknown => Self::Unknown { call, message },
            Cause::SoldOut | Cause::Quota | Cause::Conflict | Cause::NotFound => {
                tracing::warn!(%call, %cause, "status not expected of this call");
                Self::Unknown { call, message: format!("unexpected {cause}: {message}") }
            }
        }
    }
}

/// Splits the failures of a create into definite refusals and errors.
pub(crate) fn refusal_of(failure: Failure) -> Result<Refusal, Error> {
    let reason = match failure.cause {
        Cause::SoldOut => RefusalReason::SoldOut,
        Cause::Quota => RefusalReason::Quota,
        Cause::Invalid => RefusalReason::Invalid,
        Cause::Unauthenticated | Cause::PermissionDenied => RefusalReason::Auth,
        Cause::Conflict => RefusalReason::Conflict,
        Cause::RateLimit | Cause::NotFound | Cause::Unavailable | Cause::Unimplemented | Cause::Unknown => {
            return Err(Error::from_failure(Call::CreateMachine, failure));
        }
    };
    let Failure { scope, retry_after, message, .. } = failure;
    Ok(Refusal { reason, scope, retry_after, message })
}
