//! Where the controller's catalog comes from.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use scarpenter_catalog::keeper::{Keeper, Key};
use scarpenter_catalog::source::{Progress, Source};
use scarpenter_catalog::{Catalog, Error, Rates};
use scarpenter_controller::{CatalogSettings, Fetch, Fetched};

use crate::BadInput;
use crate::catalog_source::RateArgs;

/// The Keeper's API key itself, for where there is no file. It is never an argument, which others could read.
const KEY_VARIABLE: &str = "SCARPENTER_KEEPER_API_KEY";
/// Whatever is asked for, a Keeper is left alone for as long as this.
const SHORTEST_REFRESH: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(super) struct CatalogArgs {
    /// A Spare Cores SQLite database, or a file that `catalog snapshot` wrote; read again when it changes. Without it and
    /// without --keeper what the folder holds, else the built-in sample.
    #[arg(long, value_name = "PATH")]
    catalog: Option<PathBuf>,
    /// Address of a Spare Cores Keeper to fetch from, such as https://keeper.example.com.
    #[arg(long, value_name = "URL", conflicts_with = "catalog")]
    keeper: Option<String>,
    /// A file that holds the Keeper's API key, such as a mounted Secret; read again at each fetch. Without it the variable
    /// SCARPENTER_KEEPER_API_KEY, else no key.
    #[arg(long, value_name = "PATH", requires = "keeper")]
    keeper_api_key_file: Option<PathBuf>,
    /// Folder where the last good catalog is kept, so that it is there after a restart without network.
    #[arg(long, value_name = "DIR")]
    catalog_folder: Option<PathBuf>,
    /// How often the catalog is fetched again.
    #[arg(long, default_value = "1h", value_parser = super::duration)]
    catalog_refresh: Duration,
    #[command(flatten)]
    rates: RateArgs,
}

impl CatalogArgs {
    /// What the controller is to do. A file is read here, so that a mistaken one is told of at once; but one that cannot
    /// be read any more stops nobody who has kept what was in it.
    pub(super) fn settings(&self) -> anyhow::Result<CatalogSettings> {
        let rates = self.rates.rates().context(BadInput)?;
        let mut out = CatalogSettings {
            folder: self.catalog_folder.clone(),
            refresh_every: self.catalog_refresh.max(SHORTEST_REFRESH),
            rates,
            ..CatalogSettings::default()
        };
        if let Some(path) = &self.catalog {
            match scarpenter_catalog::open(path, &out.rates) {
                Ok(catalog) => out.first = Some(catalog),
                Err(error) if self.is_kept() => {
                    tracing::error!(%error, "catalog not read; what is kept is used")
                }
                Err(error) => return Err(error).context(BadInput),
            }
            out.source = Some(Box::new(CatalogFile(path.clone())));
            out.watched = Some(path.clone());
        }
        if let Some(address) = &self.keeper {
            let keeper = KeyedKeeper::new(address, self.keeper_api_key_file.clone()).context(BadInput)?;
            out.source = Some(Box::new(keeper));
        }
        Ok(out)
    }

    fn is_kept(&self) -> bool {
        self.catalog_folder.as_ref().is_some_and(|folder| scarpenter_catalog::store::holds_one(folder))
    }
}

/// A catalog's file of either kind.
struct CatalogFile(PathBuf);

impl Source for CatalogFile {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    async fn load(&self, rates: &Rates, _: &dyn Progress) -> Result<Catalog, Error> {
        let (path, rates) = (self.0.clone(), rates.clone());
        let read = tokio::task::spawn_blocking(move || scarpenter_catalog::open(&path, &rates));
        read.await.expect("reading a catalog does not panic and is not cancelled")
    }
}

/// A Keeper with the key that its file holds now.
struct KeyedKeeper {
    address: String,
    key_file: Option<PathBuf>,
    /// With the key that could be read last.
    keeper: Mutex<Arc<Keeper>>,
}

impl KeyedKeeper {
    fn new(address: &str, key_file: Option<PathBuf>) -> anyhow::Result<Self> {
        let keeper = Mutex::new(Arc::new(keeper(address, key_file.as_deref())?));
        Ok(Self { address: address.to_owned(), key_file, keeper })
    }

    /// A Secret is replaced while we run; one that is half gone must not stop what works.
    fn keeper(&self) -> Arc<Keeper> {
        let mut known = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if self.key_file.is_some() {
            match keeper(&self.address, self.key_file.as_deref()) {
                Ok(fresh) => *known = Arc::new(fresh),
                Err(error) => tracing::warn!(error = format!("{error:#}"), "the key of before is used"),
            }
        }
        Arc::clone(&known)
    }
}

impl Fetch for KeyedKeeper {
    fn name(&self) -> String {
        Source::name(&**self.keeper.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fetch<'a>(&'a self, rates: &'a Rates, known: Option<String>) -> BoxFuture<'a, Fetched> {
        let keeper = self.keeper();
        async move {
            if known.is_some() && keeper.changed(known.as_deref()).await?.is_none() {
                return Ok(None);
            }
            keeper.load(rates, &()).await.map(Some)
        }
        .boxed()
    }
}

fn keeper(address: &str, key_file: Option<&Path>) -> anyhow::Result<Keeper> {
    let text = match key_file {
        Some(path) => {
            Some(std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?)
        }
        None => std::env::var(KEY_VARIABLE).ok(),
    };
    let named = || key_file.map_or_else(|| KEY_VARIABLE.to_owned(), |path| path.display().to_string());
    let key = text.map(|text| Key::new(&text)).transpose().with_context(named)?;
    Ok(Keeper::new(address, key)?)
}
