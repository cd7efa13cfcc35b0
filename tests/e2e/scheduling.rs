//! What pods ask for besides a size, and what is learned when a machine does not keep what was promised; each on the
//! running program, with the real kube-scheduler as the judge.

mod crowd;
mod lessons;
mod shapes;

use std::sync::Arc;
use std::time::Duration;

use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::stage::Setting;

use crate::case::{Case, together};
use crate::faults::busy;
use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("scheduling::pods_get_the_machines_that_their_rules_and_volumes_ask_for", of_shapes);
    trials.add("scheduling::a_machine_that_does_not_do_is_bought_once_for_a_pod", of_lessons);
    trials.add("scheduling::what_a_machine_taught_outlives_the_controller", of_memory);
    trials.add("scheduling::two_thousand_hopeless_pods_starve_nobody", of_crowd);
}

async fn of_shapes(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { faults: Some(format!("rules:\n{}", shapes::RULES)), ..busy() };
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        together(shapes::cases(Case::new(stage))).await
    })
    .await
}

async fn of_lessons(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let mut setting = Setting { faults: Some(format!("rules:\n{}", lessons::RULES)), ..busy() };
    setting.controller_flags.extend(["--unfit-after", "3s"].map(str::to_owned));
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        together(lessons::cases(Case::new(stage))).await
    })
    .await
}

async fn of_memory(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { faults: Some(format!("rules:\n{}", lessons::RULES)), ..busy() };
    scene(plane, setting, async |stage| lessons::outlives(stage).await).await
}

async fn of_crowd(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { all_gone_within: Duration::from_secs(180), ..busy() };
    scene(plane, setting, async |stage| crowd::play(stage).await).await
}
