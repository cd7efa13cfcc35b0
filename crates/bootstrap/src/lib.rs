//! Turns a claim and its class into the Ignition document that makes a machine a node, and opens it again.
//!
//! What a machine gets is data in `ignition/` at the top of the repository; this crate adds what differs from
//! machine to machine and packs it.
//! Equal input gives equal bytes, so a retried create sends what the first one sent.
//! **Architecture invariant:** no network calls, no clock, no randomness, no Kubernetes client.

mod join;

mod render;

mod parts;

mod k3s_token;

mod extra;

mod data_url;

mod document;

mod open;

mod mask;

pub use document::{Document, Error as SizeError, check_size};
pub use extra::{Error as ExtraError, check as check_extra};
pub use join::{Error as JoinError, Join, Mesh, Method, is_kubelet_label, kubelet_labels};
pub use mask::masked;
pub use open::{Error as OpenError, Opened, open};
pub use render::{Error, render};
