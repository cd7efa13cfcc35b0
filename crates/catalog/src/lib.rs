//! Reads offerings from a Spare Cores catalog and builds core's snapshot.
//!
//! Two sources: [`open_sqlite`] reads a database in the tables of sparecores-crawler, [`sample`] a small one that is
//! part of the program.
//! Both go the same way: raw rows, read cell by cell, are put together once into a [`Catalog`], where the vendors' ids
//! become the names that pods use and every row that is no offering is left out and counted.
//!
//! **Architecture invariant:** nothing here ranks or chooses, and nothing is guessed: a price in a currency without a
//! rate, an unknown architecture or an unknown place makes no offering.

mod error;
mod rates;

mod rows;

mod assemble;
mod benchmark;
mod place;
mod report;

mod sample;
mod sqlite;

use std::sync::Arc;

use scarpenter_core::snapshot::Snapshot;

pub use error::Error;
pub use rates::{BadRate, Rate, Rates};
pub use report::{Reason, Report};
pub use sample::sample;
pub use sqlite::open_sqlite;

/// A snapshot with what is to be said about it.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// All types and offerings.
    pub snapshot: Arc<Snapshot>,
    /// Where they are from, how old they are, and what was left out.
    pub report: Report,
}

#[cfg(test)]
mod testing;
