//! The Spare Cores Keeper over HTTP, as of version 0.3.
//!
//! # What is asked
//! `/healthcheck` for the database's hash, `/stats` for how many rows there must be, the tables of regions, zones and
//! servers whole, the scores of each benchmark (where there are many, of those that become labels), and the prices: of a small vendor at once, of a
//! large one three regions at a time, with a key the bare table of each vendor.
//! An answer that is too long or too late is asked for in parts.
//! Then `/healthcheck` again: when the database changed on the way, everything is fetched once anew.
//!
//! # Guarantees
//! - All or nothing: an answer that is cut off, holds fewer rows than the Keeper says there are, or rows of a shape that
//!   is not known, is an error that names its address. Single rows that cannot be read are left out and counted, up to
//!   one in twenty.
//! - At most two questions at once, no more of the Keeper's credits than four fifths, and a whole minute's rest after
//!   it says 429. What may pass is tried six times.
//! - The key goes only to https or to this machine, and nothing is asked without it instead when it is refused.
//!
//! # Currency
//! The Keeper converts every price into one currency, USD unless told otherwise, and rounds it to four digits, which of a
//! price of 0.0088 leaves two. So vendors that charge in EUR are asked for in EUR, which leaves their prices as they
//! are, and the rate is found from the dearest ones, which are asked for in USD as well.
//! A vendor that is not known to charge in another currency is taken in USD, as the Keeper converts it.
//! With a key the prices come as they are stored, whatever the currency.

mod address;
mod ask;
mod client;
mod elements;
mod error;
mod fetch;
mod key;
mod list;
mod pace;
mod rate;

use jiff::Timestamp;
use serde::Deserialize;

use crate::assemble::Assembly;
use crate::rows::{Cells as _, PriceRow, RegionRow, ScoreRow, ServerRow, ZoneRow};
use crate::source::{Progress, Source, blocking};
use crate::{Catalog, Provenance, Rates};

use ask::Ask;
use client::{Client, Limits};
use fetch::{Fetch, Fetched};

pub use error::Error;
pub use key::{BadKey, Key};

/// A Keeper at an address.
pub struct Keeper {
    client: Client,
}

/// What a Keeper says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Hash of its database: equal when nothing has changed.
    pub hash: String,
    /// When it took this database.
    pub updated: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Healthcheck {
    database_hash: String,
    #[serde(default)]
    database_last_updated: Option<f64>,
}

impl Keeper {
    /// The Keeper at `address`, such as `https://keeper.example.com`. Nothing is asked yet.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::KeyInClear`], [`Error::Prepare`].
    pub fn new(address: &str, key: Option<Key>) -> Result<Self, Error> {
        Self::with_limits(address, key, Limits::default())
    }

    fn with_limits(address: &str, key: Option<Key>, limits: Limits) -> Result<Self, Error> {
        Ok(Self { client: Client::new(address, key, limits)? })
    }

    /// What the Keeper says of its database, and `None` when that is `known` already, so that nothing need be fetched.
    ///
    /// # Errors
    /// [`Error`] when it does not answer, or is none.
    pub async fn changed(&self, known: Option<&str>) -> Result<Option<Health>, Error> {
        let health = self.health().await?;
        Ok((known != Some(&health.hash)).then_some(health))
    }

    async fn health(&self) -> Result<Health, Error> {
        let ask = Ask::new("/healthcheck");
        let Healthcheck { database_hash: hash, database_last_updated } =
            fetch::object(&self.client, &ask).await?;
        if hash.trim().is_empty() {
            let url = ask.url(self.client.address());
            return Err(Error::NotKeeper { url, why: "database_hash is empty".to_owned() });
        }
        #[expect(clippy::cast_possible_truncation, reason = "seconds, and what is out of range is no time")]
        let updated = database_last_updated.and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
        Ok(Health { hash, updated })
    }

    /// All rows, of one state of the database unless it changes twice while they are fetched.
    async fn fetch(&self, progress: &dyn Progress) -> Result<(Health, Fetched), Error> {
        let before = self.health().await?;
        let fetched = Fetch::new(&self.client, progress).all().await?;
        let Some(now) = self.changed(Some(&before.hash)).await? else { return Ok((before, fetched)) };
        drop(fetched);
        Ok((now, Fetch::new(&self.client, progress).all().await?))
    }

    async fn catalog(&self, rates: &Rates, progress: &dyn Progress) -> Result<Catalog, Error> {
        let (health, fetched) = self.fetch(progress).await?;
        let rows = fetched.prices.iter().map(|(_, rows)| rows.count).sum();
        let rates = fetched.rates.clone().overridden_by(rates);
        let provenance = Provenance {
            fetched: Some(Timestamp::now()),
            hash: Some(health.hash),
            ..Provenance::new(self.client.address())
        };
        let catalog = blocking(move || assemble(&fetched, &rates, provenance)).await;
        if catalog.report.offerings == 0 {
            return Err(Error::NoOfferings { address: self.client.address().to_owned(), rows });
        }
        Ok(catalog)
    }
}

impl Source for Keeper {
    fn name(&self) -> String {
        self.client.address().to_owned()
    }

    async fn load(&self, rates: &Rates, progress: &dyn Progress) -> Result<Catalog, crate::Error> {
        Ok(self.catalog(rates, progress).await?)
    }

    async fn differs(&self, known: &str) -> Result<bool, crate::Error> {
        Ok(self.changed(Some(known)).await?.is_some())
    }
}

fn assemble(fetched: &Fetched, rates: &Rates, provenance: Provenance) -> Catalog {
    let mut assembly = Assembly::new(rates);
    fetched.regions.iter().for_each(|row| assembly.region(&RegionRow::read(&row)));
    fetched.zones.iter().for_each(|row| assembly.zone(&ZoneRow::read(&row)));
    fetched.servers.iter().for_each(|row| assembly.server(&ServerRow::read(&row)));
    for (of, rows) in &fetched.scores {
        // The Keeper gives null for a server that has a score and no price at all.
        for row in rows.iter().filter(|row| row.number(2).is_some()) {
            assembly.score(&ScoreRow {
                vendor: row.text(0),
                server_id: row.text(1),
                benchmark_id: &of.benchmark,
                config: &of.config,
                score: row.number(2),
                active: true,
            });
        }
    }
    for (_, rows) in &fetched.prices {
        rows.iter().for_each(|row| assembly.price(&PriceRow::read(&row)));
    }
    assembly.unreadable(fetched.unreadable());
    assembly.finish(provenance)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
