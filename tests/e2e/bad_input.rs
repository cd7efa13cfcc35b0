//! What users and other programs do wrong, each on the running program: a defined outcome, a reason that can be read,
//! and nothing left.

mod catalog;
mod claims;
mod nodes;
mod pods;

use std::sync::Arc;

use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::stage::Setting;

use crate::case::{Case, together};
use crate::faults::busy;
use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("bad_input::what_is_wrong_in_the_cluster_has_an_outcome_and_a_reason", in_the_cluster);
    trials.add("bad_input::the_cap_of_the_controller_holds", capped);
    trials.add("bad_input::a_catalog_file_that_cannot_be_read_is_one_sentence", catalog::play);
}

async fn in_the_cluster(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let setting = Setting { faults: Some(format!("rules:\n{}{}", pods::RULES, nodes::RULES)), ..busy() };
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        let case = Case::new(stage);
        let cases = [pods::cases(case), claims::cases(case), nodes::cases(case)];
        together(cases.into_iter().flatten().collect()).await
    })
    .await
}

async fn capped(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let mut setting = busy();
    setting.controller_flags.extend(["--max-machines", "2"].map(str::to_owned));
    scene(plane, setting, async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        pods::capped(Case::new(stage)).await
    })
    .await
}
