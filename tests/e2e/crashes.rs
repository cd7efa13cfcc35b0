//! Runs in which processes die.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use scarpenter_core::label;
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::scene::chaos;
use scarpenter_tests::stage::{Setting, Stage, Want};
use serde_json::json;

use crate::scene;

pub(crate) fn add(trials: &mut Trials) {
    trials.add("a_controller_that_is_killed_again_and_again_loses_and_doubles_nothing", killed_controllers);
    trials.add("a_second_controller_takes_over_from_a_killed_leader", killed_leader);
    trials.add("a_leader_that_stood_still_buys_nothing_a_second_time", paused_leader);
    trials.add("what_a_killed_controller_left_of_its_self_test_goes_with_the_next", killed_self_test);
    trials.add("a_node_whose_disruption_never_came_to_its_end_goes_all_the_same", stale_taint);
    trials.add("a_plugin_that_is_killed_and_started_again_has_its_machines", killed_plugin);
}

async fn killed_controllers(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    scene(plane, Setting::default(), async |stage| chaos(stage, 30, 8, rand::random()).await.map(drop)).await
}

async fn killed_leader(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    const PODS: usize = 8;
    scene(plane, Setting::default(), async |stage| {
        start_leader_and_successor(stage).await?;
        stage.create(&Want::many(PODS)).await?;
        stage
            .until(Duration::from_secs(60), "the leader buys", async || {
                let machines = stage.ledger()?.machines();
                Ok(if machines > PODS / 2 { Ok(()) } else { Err(format!("{machines} machines")) })
            })
            .await?;
        stage.kill_controller("first");
        stage.until_ran(PODS).await?;
        until_led_by(stage, "second").await?;
        stage.until_nothing_is_left().await?;
        stage.ledger()?.demand_at_most_one_each(PODS)
    })
    .await
}

async fn paused_leader(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    const PODS: usize = 8;
    scene(plane, Setting::default(), async |stage| {
        start_leader_and_successor(stage).await?;
        stage.create(&Want::many(PODS)).await?;
        // It waits for further pods of the batch now.
        tokio::time::sleep(Duration::from_millis(300)).await;
        stage.pause_controller("first", true)?;
        stage.until_ran(PODS).await?;
        until_led_by(stage, "second").await?;
        stage.pause_controller("first", false)?;
        stage.until_controller_ended("first").await?;
        stage.until_nothing_is_left().await?;
        stage.ledger()?.demand_at_most_one_each(PODS)
    })
    .await
}

async fn start_leader_and_successor(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_controller_with("first", &[])?;
    until_led_by(stage, "first").await?;
    stage.start_controller_with("second", &[])
}

async fn until_led_by(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let leases: Api<Lease> = Api::namespaced(stage.client().clone(), "kube-system");
    stage
        .until(Duration::from_secs(60), &format!("{name} leads"), async || {
            let lease = leases.get_opt("scarpenter").await?;
            let holder = lease.and_then(|lease| lease.spec?.holder_identity);
            let leads = holder.as_ref().is_some_and(|holder| holder.starts_with(&format!("{name}_")));
            Ok(if leads { Ok(()) } else { Err(format!("{holder:?}")) })
        })
        .await
}

async fn killed_plugin(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    const PODS: usize = 16;
    scene(plane, Setting::default(), async |stage| {
        stage.start_controller()?;
        stage.until_ready().await?;
        for wanted in Want::many(PODS).chunks(PODS / 4) {
            stage.create(wanted).await?;
            let before = stage.ledger()?.creates.len();
            stage
                .until(Duration::from_secs(30), "a create is received", async || {
                    let creates = stage.ledger()?.creates.len();
                    Ok(if creates > before { Ok(()) } else { Err(format!("{creates} creates")) })
                })
                .await?;
            stage.kill_sim();
            stage.start_sim().await?;
        }
        stage.until_ran(PODS).await?;
        stage.until_nothing_is_left().await?;
        stage.ledger()?.demand_at_most_one_each(PODS)
    })
    .await
}

/// The test of the way in needs a token of its own, which no claim owns.
async fn killed_self_test(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    scene(plane, Setting::default(), async |stage| {
        let secrets: Api<Secret> = Api::namespaced(stage.client().clone(), "kube-system");
        let version = secrets.list_metadata(&ListParams::default()).await?.metadata.resource_version;
        stage.start_controller()?;
        // From a version on, so that a token that lives for a moment is not missed.
        let version = version.context("the list has no version")?;
        let mut changes = secrets.watch_metadata(&WatchParams::default(), &version).await?.boxed();
        let seen = async {
            while let Some(change) = changes.next().await {
                if let WatchEvent::Added(secret) = change?
                    && secret.name_any().starts_with("bootstrap-token-")
                {
                    return Ok(());
                }
            }
            anyhow::bail!("the watch ended")
        };
        tokio::time::timeout(Duration::from_secs(60), seen).await.context("the self-test has no token")??;
        stage.kill_controller("controller");
        stage.start_controller()?;
        stage.until_ready().await?;
        stage.until_nothing_is_left().await
    })
    .await
}

/// The taint counts against the pool's budget, of which one node is all.
async fn stale_taint(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    scene(plane, Setting::default(), async |stage| {
        stage.start_controller()?;
        stage.create(&[Want::exact("one", 0).for_seconds(3)]).await?;
        stage.until_running(1).await?;
        let nodes: Api<Node> = Api::all(stage.client().clone());
        let node = nodes.list(&ListParams::default()).await?.items.remove(0);
        let taints = json!([{"key": label::DISRUPTED_TAINT, "effect": "NoSchedule"}]);
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await?;
        stage.until_ran(1).await?;
        stage.until_nothing_is_left().await
    })
    .await
}
