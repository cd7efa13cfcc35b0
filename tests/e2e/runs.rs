//! Runs in which nothing goes wrong.

use std::sync::Arc;

use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::stage::{Setting, Want};

use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("a_pod_that_names_a_type_gets_that_machine_and_it_goes", exact);
}

async fn exact(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    scene(plane, Setting::default(), async |stage| {
        stage.start_controller()?;
        stage.create(&[Want::exact("one", 0)]).await?;
        stage.until_ran(1).await?;
        stage.until_nothing_is_left().await?;
        stage.ledger()?.demand_one_each(1)
    })
    .await
}
