//! Headscale over its REST API: the calls that a claim's way into the mesh and out of it needs, and no more.
//!
//! Written by hand after recorded answers of version 0.29 and of the development of 0.30, which differ in the shape of
//! their errors: plain text, `{code, message}` and `{title, status, detail}` all become one [`Error`].
//!
//! # Guarantees
//! - Every call ends within the time of [`Limits`].
//! - The API key goes only to https or to this machine, and neither it nor a pre-auth key is ever shown.
//! - No field is sent that either version does not know, and every key is made with an end, since Headscale takes a
//!   missing one for the year 1.
//! - What is gone already counts as deleted or expired.
//!
//! It knows nothing of Kubernetes, and does not try again: its callers do.

mod address;
mod client;
mod error;
mod model;
mod policy;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use client::{Client, Limits};
pub use error::{Error, Kind};
pub use model::{Key, KeyId, MadeKey, NewKey, Node, NodeId, User};
pub use policy::{Policy, tag_problem};
