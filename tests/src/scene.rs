//! Scenes that tests play small and benchmarks play large.

use std::time::{Duration, Instant};

use anyhow::Context;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::stage::{Requests, Stage, Want, peak_memory};

/// How a burst went.
#[derive(Debug)]
pub struct Burst {
    /// From the first create until every pod runs or has run.
    pub all_ran: Duration,
    /// From the first create until nothing is left.
    pub all_gone: Duration,
    /// Machines that were made.
    pub machines: usize,
    /// Most machines at a time.
    pub most: u64,
    /// Requests of the controller to the API server, from the first create until nothing is left.
    pub requests: Requests,
    /// Most memory that the controller held, in bytes.
    pub peak_memory: u64,
}

/// So many pods at once, each for a machine of its own, which run for so long: every one runs, and all machines go.
///
/// # Errors
/// When a pod is lost, a machine doubled, or anything left.
pub async fn burst(stage: &mut Stage, pods: usize, run_seconds: u32) -> anyhow::Result<Burst> {
    stage.start_controller()?;
    stage.until_ready().await?;
    let (process, port) = stage.controller()?;
    let before = Requests::scrape(port).await?;
    let began = Instant::now();
    let wanted: Vec<Want> = Want::many(pods).into_iter().map(|want| want.for_seconds(run_seconds)).collect();
    stage.create(&wanted).await?;
    stage.until_running(pods).await?;
    let all_ran = began.elapsed();
    stage.until_ran(pods).await?;
    stage.until_nothing_is_left().await?;
    let all_gone = began.elapsed();
    let ledger = stage.ledger()?;
    ledger.demand_at_most_one_each(pods)?;
    let requests = Requests::scrape(port).await?.since(&before);
    Ok(Burst {
        all_ran,
        all_gone,
        machines: ledger.machines(),
        most: ledger.most,
        requests,
        peak_memory: peak_memory(process)?,
    })
}

/// Shortest and longest life of a controller that is going to be killed, in milliseconds: from "not yet connected"
/// to "well under way".
const LIFE: std::ops::Range<u64> = 100..4000;

/// Kills the controller so many times while pods keep coming: every one runs, and all machines go. The seed chooses
/// the times.
///
/// # Errors
/// When a pod is lost, a machine doubled, or anything left.
pub async fn chaos(stage: &mut Stage, pods: usize, kills: usize, seed: u64) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut random = StdRng::seed_from_u64(seed);
    let wanted = Want::many(pods);
    for some in wanted.chunks(pods.div_ceil(kills)) {
        stage.start_controller()?;
        stage.create(some).await?;
        tokio::time::sleep(Duration::from_millis(random.random_range(LIFE))).await;
        stage.kill_controller("controller");
    }
    stage.start_controller()?;
    let ran = stage.until_ran(pods).await;
    ran.with_context(|| format!("the times of the kills are those of seed {seed}"))?;
    stage.until_nothing_is_left().await?;
    stage.ledger()?.demand_at_most_one_each(pods)?;
    Ok(began.elapsed())
}
