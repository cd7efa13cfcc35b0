//! The scarpenter command: arguments and wiring.
