//! The `scarpenter` binary.
fn main() {}
