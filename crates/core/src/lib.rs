//! The words scarpenter thinks in, and the decisions that need nothing else.
//!
//! Everything here is plain data and pure functions.
//! **Architecture invariant:** no async, no I/O, no clock, no randomness, no Kubernetes client, no gRPC.
//! Time and random bits are arguments, so equal input gives equal output.

pub mod name;

pub mod label;

pub mod nearest;

pub mod resources;

pub mod kubelet;

pub mod requirements;

pub mod offering;

pub mod topology;

pub mod pod;

pub mod pool;

pub mod node;

pub mod snapshot;

pub mod lifecycle;

pub mod sweep;
