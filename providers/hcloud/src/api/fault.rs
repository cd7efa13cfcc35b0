//! Why a request did not end as expected, and what the contract calls that.

use std::time::Duration;

use scarpenter_provider::failure::{Cause, Failure, Scope};

use crate::errors::{bare, row_of, scope_of_fields};

/// Why a request did not end as expected.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no token to send.
    NoToken(String),
    /// The account's calls are used up for so long; nothing was sent.
    OutOfTurn(Duration),
    /// No answer, or not all of it.
    Lost { path: String, sent: bool, why: String },
    /// A status without the vendor's word for it.
    Bare { path: String, status: u16, wait: Option<Duration> },
    /// The vendor says why not.
    Refused(Refused),
    /// An answer that cannot be read.
    Nonsense { path: String, why: String },
    /// A list that changed each time it was read.
    Unsteady(String),
}

/// The vendor's no.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) words: String,
    /// Names of the fields that it finds wrong.
    pub(crate) fields: Vec<String>,
    pub(crate) wait: Option<Duration>,
}

impl Fault {
    pub(super) fn lost(path: &str, error: &reqwest::Error) -> Self {
        let why = if error.is_timeout() {
            "no answer in time".to_owned()
        } else {
            let mut why = "the connection broke".to_owned();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                why = cause.to_string();
                source = cause.source();
            }
            why
        };
        Self::Lost { path: path.to_owned(), sent: !error.is_connect(), why }
    }

    /// Only the vendor's own word counts.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.status == 404 && refused.code == "not_found")
    }

    pub(crate) fn is_taken_name(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.code == "uniqueness_error")
    }

    /// A definite no whose reason the table does not have.
    pub(crate) fn is_unmapped(&self) -> bool {
        matches!(self, Self::Refused(refused) if row_of(&refused.code).is_none())
    }

    /// What it means as the outcome of a create.
    pub(crate) fn of_create(self) -> Failure {
        self.failure(true)
    }

    /// What it means as the outcome of any other call.
    pub(crate) fn of_other(self) -> Failure {
        self.failure(false)
    }

    fn failure(self, creating: bool) -> Failure {
        match self {
            Self::NoToken(words) => Failure::new(Cause::Unauthenticated, words),
            Self::OutOfTurn(wait) => {
                let words = "the calls that the vendor allows this project are used up";
                Failure::new(Cause::RateLimit, words).with_retry_after(wait)
            }
            Self::Lost { path, sent, why } => {
                let cause = if creating && sent { Cause::Unknown } else { Cause::Unavailable };
                Failure::new(cause, format!("{path}: {why}"))
            }
            Self::Bare { path, status, wait } => {
                let failure = Failure::new(bare(status, creating), format!("{path}: status {status}"));
                wait.map_or(failure.clone(), |wait| failure.with_retry_after(wait))
            }
            Self::Refused(refused) => refused.failure(creating),
            Self::Nonsense { path, why } => {
                let cause = if creating { Cause::Unknown } else { Cause::Unavailable };
                Failure::new(cause, format!("{path}: the answer cannot be read: {why}"))
            }
            Self::Unsteady(path) => {
                Failure::new(Cause::Unavailable, format!("{path}: the list changed each time it was read"))
            }
        }
    }
}

impl Refused {
    fn failure(self, creating: bool) -> Failure {
        let Self { path, status, code, words, fields, wait } = self;
        let (cause, scope) = match row_of(&code) {
            Some(row) if creating && code == "invalid_input" => (row.create, scope_of_fields(&fields)),
            Some(row) if creating => (row.create, row.scope),
            Some(row) => (row.other, row.other.default_scope()),
            None => {
                tracing::warn!(code, status, path, creating, "unmapped error code");
                let cause = unmapped(status, creating);
                (cause, if cause == Cause::Invalid { Scope::Offering } else { cause.default_scope() })
            }
        };
        let failure = Failure::new(cause, format!("{code}: {words}")).with_scope(scope);
        wait.map_or(failure.clone(), |wait| failure.with_retry_after(wait))
    }
}

/// A code that the table does not have: a 4xx made nothing, so the next offering is taken.
fn unmapped(status: u16, creating: bool) -> Cause {
    match (status, creating) {
        (401 | 429, _) => bare(status, creating),
        (400..500, true) => Cause::Invalid,
        (_, true) => Cause::Unknown,
        (_, false) => Cause::Unavailable,
    }
}
