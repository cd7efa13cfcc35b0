//! The contract as generated from `proto/`; `tests/generated.rs` compares and rewrites it.
//!
//! For a plugin's tests and for who must send what the domain types cannot say; everyone else uses the domain types.

#![allow(missing_docs, clippy::all, clippy::unwrap_used, rustdoc::all, unreachable_pub)]

include!("scarpenter.provider.v1.rs");

/// The contract as a `FileDescriptorSet`, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");

// Written by hand since the document holds a join credential.
impl std::fmt::Debug for CreateMachineRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateMachineRequest")
            .field("cluster_id", &self.cluster_id)
            .field("claim_uid", &self.claim_uid)
            .field("name", &self.name)
            .field("offering", &self.offering)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
