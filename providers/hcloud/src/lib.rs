//! Machines of Hetzner Cloud behind the provider contract.
//!
//! One process serves all locations of one project: the token decides which. What it asks of the vendor is in
//! [`api`], what the vendor's error codes mean in [`errors`], what a class may set in [`settings`].
//!
//! It keeps no state but caches of a few minutes; a restart loses nothing. It buys nothing that the vendor does not
//! take away again with the server.

pub mod api;

pub mod errors;

pub mod settings;

pub mod token;

mod arguments;
mod bucket;
mod lookup;
mod machine;
mod offerings;
mod provider;
mod validate;
mod wire;

pub use api::Api;
pub use arguments::{Args, main, run};
pub use provider::Hcloud;

/// The vendor's id in the catalog.
pub const VENDOR: &str = "hcloud";
