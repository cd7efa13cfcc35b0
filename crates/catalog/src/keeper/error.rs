//! Why a Keeper's catalog could not be fetched. Each names what was asked for, and never the key.

/// A catalog that could not be fetched, in full, from a Keeper.
///
/// Addresses in it are those that were asked, without anything secret: a name or password in an address is refused
/// before anything is asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not the address of a Keeper.
    #[error("{address:?} is not the address of a Keeper: {why}")]
    Address {
        /// What was given, without name and password.
        address: String,
        /// What is wrong and what to write.
        why: &'static str,
    },
    /// The key would be readable on the way.
    #[error(
        "the API key is not sent to {address}, where anyone on the way could read it: use https, or no key"
    )]
    KeyInClear {
        /// The Keeper's address.
        address: String,
    },
    /// The machine's certificates cannot be read, or the like.
    #[error("cannot prepare to ask {address}")]
    Prepare {
        /// The Keeper's address.
        address: String,
        /// What is missing.
        #[source]
        source: reqwest::Error,
    },
    /// Nothing listens there, the name is unknown, or its certificate is not trusted.
    #[error("cannot reach the Keeper at {url}: check its address and that it runs")]
    Connect {
        /// What was asked for.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// No whole answer in time.
    #[error("{url} has not answered in full within {seconds} s")]
    Timeout {
        /// What was asked for.
        url: String,
        /// How long we waited.
        seconds: u64,
    },
    /// The connection broke, or what came cannot be unpacked.
    #[error("the answer of {url} broke off after {bytes} bytes")]
    BrokeOff {
        /// What was asked for.
        url: String,
        /// How much had come.
        bytes: usize,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// More redirects than a sane server needs, or one to an unprotected address.
    #[error("{url} redirects in a loop, or away from https: give the address that the Keeper has in the end")]
    Redirect {
        /// What was asked for.
        url: String,
        /// Where to.
        #[source]
        source: reqwest::Error,
    },
    /// The limit of requests is used up, or the Keeper has too much to do.
    #[error("{url} answers {status}, which means later: {said}")]
    Busy {
        /// What was asked for.
        url: String,
        /// HTTP status, 429 or one of 500 and more.
        status: u16,
        /// The beginning of what it says.
        said: String,
    },
    /// It wants a key, or does not want ours.
    #[error(
        "{url} answers {status}: {}",
        if *keyed { "check the API key; nothing is asked without it instead" } else { "this Keeper wants an API key" }
    )]
    Denied {
        /// What was asked for.
        url: String,
        /// HTTP status, 401 or 403.
        status: u16,
        /// Whether we sent a key.
        keyed: bool,
    },
    /// Any other status than success.
    #[error(
        "{url} answers {status}, so this is no Keeper of version 0.3, or its address is not complete: {said}"
    )]
    Status {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
        /// The beginning of what it says.
        said: String,
    },
    /// A web page.
    #[error(
        "{url} answers with a web page: this is not the address of a Keeper's API, or a proxy stands before it"
    )]
    Html {
        /// What was asked for.
        url: String,
    },
    /// Something else than the JSON that was asked for.
    #[error("{url} does not answer as a Keeper does: {why}")]
    NotKeeper {
        /// What was asked for.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// JSON that ends in the middle.
    #[error("the answer of {url} is cut off after {bytes} bytes")]
    CutOff {
        /// What was asked for.
        url: String,
        /// How long it is.
        bytes: usize,
    },
    /// Longer than any answer should be.
    #[error("the answer of {url} is longer than {limit} bytes")]
    TooLong {
        /// What was asked for.
        url: String,
        /// The most that is read.
        limit: usize,
    },
    /// Rows of another shape than those of version 0.3.
    #[error(
        "{bad} of {rows} rows of {url} cannot be read, such as one where {why}: the Keeper's version is not known to us"
    )]
    Schema {
        /// What was asked for.
        url: String,
        /// How many rows there are.
        rows: usize,
        /// How many of them cannot be read.
        bad: usize,
        /// What is wrong with the first.
        why: String,
    },
    /// Fewer rows than the Keeper says there are.
    #[error("{url} gives {rows} rows of {expected}: this is a part only")]
    Partial {
        /// What was asked for.
        url: String,
        /// How many came.
        rows: usize,
        /// How many there should be.
        expected: usize,
    },
    /// An empty list where there must be rows.
    #[error("{url} gives an empty list: the Keeper's database is not filled")]
    Empty {
        /// What was asked for.
        url: String,
    },
    /// Rows, and none of them an offering.
    #[error(
        "the Keeper at {address} offers nothing that can be bought: of {rows} prices none is an offering"
    )]
    NoOfferings {
        /// The Keeper's address.
        address: String,
        /// How many prices there are.
        rows: usize,
    },
    /// It failed again and again in a way that often passes.
    #[error("gave up after {tries} tries")]
    GaveUp {
        /// How often it was tried.
        tries: u32,
        /// The last failure.
        #[source]
        last: Box<Error>,
    },
}

/// Whether to ask again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The answer would be the same.
    Never,
    /// After a short wait.
    Soon,
    /// Once the minute's credits are new.
    NextWindow,
}

impl Error {
    /// Whether the same request may fare better later.
    pub(crate) fn again(&self) -> Again {
        match self {
            Self::Busy { status: 429, .. } => Again::NextWindow,
            Self::Busy { .. } | Self::Timeout { .. } | Self::BrokeOff { .. } | Self::Connect { .. } => {
                Again::Soon
            }
            _ => Again::Never,
        }
    }

    /// Whether the answer was too much to give, so that parts of it may be asked for instead.
    pub(crate) fn is_too_much(&self) -> bool {
        matches!(self, Self::TooLong { .. } | Self::Timeout { .. })
    }
}
