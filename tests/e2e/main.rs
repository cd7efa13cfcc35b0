//! The whole path: pods, real control plane, controller and plugin as processes, simulated machines.

#![allow(clippy::unwrap_used)]

mod bad_input;
mod case;
mod catalog;
mod crashes;
mod faults;
mod joining;
mod mesh;
mod runs;
mod scheduling;

use std::path::Path;
use std::sync::Arc;

use scarpenter_playground::{ControlPlane, Options};
use scarpenter_tests::harness::{Trials, run};
use scarpenter_tests::stage::{Setting, Stage, play};

fn main() -> std::process::ExitCode {
    let mut trials = Trials::new(Options::default());
    runs::add(&mut trials);
    crashes::add(&mut trials);
    bad_input::add(&mut trials);
    catalog::add(&mut trials);
    faults::add(&mut trials);
    joining::add(&mut trials);
    mesh::add(&mut trials);
    scheduling::add(&mut trials);
    run(trials)
}

/// Plays a scene with the program under test.
async fn scene(
    plane: Arc<ControlPlane>,
    setting: Setting,
    scene: impl AsyncFnOnce(&mut Stage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    play(&plane, Path::new(env!("CARGO_BIN_EXE_scarpenter-on-trial")), setting, scene).await
}
