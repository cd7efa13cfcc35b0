//! Reads offerings from a Spare Cores catalog and builds core's snapshot.
//!
//! [`open`] reads a file, which is a database in the tables of sparecores-crawler ([`open_sqlite`]) or a snapshot of our
//! own ([`mod@file`]); [`sample`] reads the small snapshot that is part of the program.
//! Rows of whatever source are put together once into a [`Catalog`], where the vendors' ids become the names that pods
//! use and every row that is no offering is left out and counted.
//!
//! **Architecture invariant:** nothing here ranks or chooses, and nothing is guessed: a price in a currency without a
//! rate, an unknown architecture or an unknown place makes no offering.

mod error;
mod rates;

mod rows;

mod assemble;
mod benchmark;
mod offers;
mod place;
mod report;
mod scores;

pub mod file;
pub mod keeper;
mod look;
mod sample;
pub mod source;
mod sqlite;

pub mod store;

use std::sync::Arc;

use scarpenter_core::snapshot::Snapshot;

pub use benchmark::{Benchmark, benchmarks};
pub use error::Error;
pub use look::open;
pub use rates::{BadRate, Rate, Rates};
pub use report::{Provenance, Reason, Report};
pub use sample::sample;
pub use scores::{Measurement, Scores};
pub use sqlite::open_sqlite;

/// A snapshot with what is to be said about it.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// All types and offerings.
    pub snapshot: Arc<Snapshot>,
    /// Where they are from, how old they are, and what was left out.
    pub report: Report,
    /// All measurements, those that are no labels too.
    pub scores: Arc<Scores>,
    /// Prices that become offerings once their rate is given.
    pub(crate) unpriced: Arc<offers::Unpriced>,
}

#[cfg(test)]
mod testing;
