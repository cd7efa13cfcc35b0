//! The provider contract: generated types, client, server scaffold and conformance suite.
//!
//! The contract itself is `proto/scarpenter/provider/v1`; this crate turns it into domain types once, for both sides.
//! The controller calls [`Client`]; a plugin implements [`Provider`] and calls [`server::serve`].
//!
//! **Architecture invariant:** no vendor is named here, and nothing of Kubernetes.

pub mod endpoint;

pub mod machine;

pub mod request;

pub mod capabilities;

pub mod failure;

pub mod error;

pub mod client;

pub mod server;

pub mod conformance;

pub mod pb;

mod wire;

pub use capabilities::Capabilities;
pub use client::Client;
pub use endpoint::{Endpoint, TlsFiles};
pub use error::{Created, Deleted, Error, Refusal, RefusalReason};
pub use failure::{Failure, Scope};
pub use machine::{Coverage, Image, Machine, MachineList, MachineState};
pub use request::{CreateMachine, DeleteMachine, FindMachine};
pub use server::Provider;
