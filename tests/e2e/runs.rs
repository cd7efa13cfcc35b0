//! Runs in which nothing goes wrong.

use std::sync::Arc;

use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::scene::burst;
use scarpenter_tests::stage::{Setting, Want};

use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("a_pod_that_names_a_type_gets_that_machine_and_it_goes", exact);
    trials.add("thirty_pods_at_once_get_one_machine_each_within_the_budget_of_requests", thirty_at_once);
}

async fn exact(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    scene(plane, Setting::default(), async |stage| {
        stage.start_controller()?;
        stage.create(&[Want::exact("one", 0)]).await?;
        stage.until_ran(1).await?;
        stage.until_nothing_is_left().await?;
        stage.ledger()?.demand_at_most_one_each(1)
    })
    .await
}

/// Requests of the controller to the API server over the life of one machine, events included.
const REQUESTS_PER_MACHINE: u64 = 45;

async fn thirty_at_once(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    const PODS: u64 = 30;
    scene(plane, Setting::default(), async |stage| {
        let burst = burst(stage, PODS as usize, 10).await?;
        let requests = &burst.requests;
        assert!(
            requests.total() <= REQUESTS_PER_MACHINE * PODS,
            "{} requests: {requests:?}",
            requests.total()
        );
        Ok(())
    })
    .await
}
