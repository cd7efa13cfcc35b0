//! The catalog as the controller uses it: the last good one, fetched again from time to time.
//!
//! **Architecture invariant:** nothing here judges a catalog; the store's guard does.

pub(crate) mod live;
mod refresh;
mod shelf;
mod words;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scarpenter_catalog::source::Source;
use scarpenter_catalog::{Catalog, Rates};

pub(crate) use refresh::{Refresh, settle};
pub(crate) use shelf::Shelf;

/// Where the catalog comes from, and where the last good one is kept.
pub struct CatalogSettings {
    /// What is fetched from; `None` uses what is kept, else the built-in sample.
    pub source: Option<Box<dyn Fetch>>,
    /// A catalog that was fetched from it already, to begin with.
    pub first: Option<Catalog>,
    /// A file whose change is a reason to fetch at once.
    pub watched: Option<PathBuf>,
    /// Folder of the last good catalog; `None` keeps it in memory.
    pub folder: Option<PathBuf>,
    /// How often it is fetched.
    pub refresh_every: Duration,
    /// What other currencies are worth.
    pub rates: Rates,
}

impl Default for CatalogSettings {
    fn default() -> Self {
        Self {
            source: None,
            first: None,
            watched: None,
            folder: None,
            refresh_every: Duration::from_secs(3600),
            rates: Rates::default(),
        }
    }
}

impl fmt::Debug for CatalogSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogSettings")
            .field("source", &self.source.as_ref().map(|source| source.name()))
            .field("folder", &self.folder)
            .field("refresh_every", &self.refresh_every)
            .finish_non_exhaustive()
    }
}

/// A [`Source`] whose type need not be known, and which may know that nothing has changed.
pub trait Fetch: Send + Sync + 'static {
    /// As [`Source::name`].
    fn name(&self) -> String;

    /// As [`Source::load`], without telling of progress. `None` when all is as in the state of the hash `known`.
    fn fetch<'a>(&'a self, rates: &'a Rates, known: Option<String>) -> BoxFuture<'a, Fetched>;
}

/// A catalog, `None` when nothing has changed.
pub type Fetched = Result<Option<Catalog>, scarpenter_catalog::Error>;

impl<S: Source + 'static> Fetch for S {
    fn name(&self) -> String {
        Source::name(self)
    }

    fn fetch<'a>(&'a self, rates: &'a Rates, _: Option<String>) -> BoxFuture<'a, Fetched> {
        self.load(rates, &()).map(|loaded| loaded.map(Some)).boxed()
    }
}
