//! Tests that need more than one crate: the real control plane, crashes, scenarios.

pub mod harness;

pub mod scene;

pub mod stage;
