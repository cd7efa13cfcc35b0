//! The plugin against a small Hetzner Cloud that keeps state and fails when told to.

#![allow(clippy::unwrap_used)]

mod fake;
mod openapi;
mod stage;

mod budget;
mod conformance;
mod crowd;
mod life;
mod refusals;
mod validation;
