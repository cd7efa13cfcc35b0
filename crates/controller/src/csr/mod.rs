//! The approver of kubelet certificates: only a live claim's machine gets one, and only in its own name.

mod approve;
pub mod decide;

pub(crate) use approve::{run, vendor_addresses};
pub(crate) use decide::{BOOTSTRAP_GROUP, CLIENT_SIGNER};
