//! One SCNodePool and the data of Spare Cores in; one NodePool of Karpenter's out.
//!
//! [`select()`] says which types a pool shall list and why the others not, [`churn()`] how slowly types are taken off,
//! [`emit()`] what the NodePool is then.
//! **Architecture invariant:** pure and synchronous: rows, the live NodePool and the time are arguments, and equal input
//! gives equal output. What is special about a provider of Karpenter's stands in the table of [`adapter`] alone.

mod refusal;

pub mod spec;

pub mod adapter;

mod glob;

mod template;

mod facts;

mod benchmark;

mod filter;

mod rank;

pub mod select;

pub mod churn;

pub mod emit;

pub use adapter::Adapter;
pub use churn::{Outcome, Pass, Pending, churn};
pub use emit::{emit, selection_hash};
pub use facts::{Facts, Fees, Measurement};
pub use filter::{Failure, Step};
pub use rank::{Family, Ranked};
pub use refusal::{Fault, Reason, Refusal};
pub use select::{Excluded, Judged, Selection, Verdict, select};
pub use spec::Intent;

#[cfg(test)]
mod testing;
