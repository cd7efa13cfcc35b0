//! Runs in which processes die.

use scarpenter_tests::harness::Trials;

pub(crate) fn add(_trials: &mut Trials) {}
