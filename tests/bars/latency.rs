//! How long a pod waits until its machine is asked for.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use scarpenter_tests::stage::{Requests, Stage, Want};

const ASKED_WITHIN: Duration = Duration::from_secs(30);

/// Times of many pods, and what they cost the API server.
pub(crate) struct Latency {
    /// From the moment at which a watch of this process showed the pod as Unschedulable, which is what makes the
    /// controller act; its own watch is served at the same time.
    pub(crate) from_unschedulable: Sample,
    /// From the moment at which this process knew that the API server had taken the pod: the scheduler is in it.
    pub(crate) from_created: Sample,
    pub(crate) requests: Requests,
}

/// Durations, sorted.
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    fn new(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self(durations)
    }

    /// The smallest that so many of a hundred do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// Creates a pod, waits until it ran, and only then creates the next.
pub(crate) async fn one_after_another(stage: &mut Stage, pods: usize) -> anyhow::Result<Latency> {
    stage.start_controller()?;
    stage.until_ready().await?;
    let (_, port) = stage.controller()?;
    let before = Requests::scrape(port).await?;
    let (mut from_unschedulable, mut from_created) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::new();
    for index in 0..pods {
        let name = format!("p{index}");
        stage.create(&[Want::exact(&name, index)]).await?;
        stage.until_ran(index + 1).await?;
        let received = received(stage, &mut known).await?;
        let life = stage.lives().of(&name);
        let since = |at: Option<u64>, what: &str| {
            let at = at.with_context(|| format!("{name} was not seen {what}"))?;
            anyhow::Ok(Duration::from_micros(received.saturating_sub(at)))
        };
        from_unschedulable.push(since(life.unschedulable, "Unschedulable")?);
        from_created.push(since(life.created, "created")?);
    }
    stage.until_nothing_is_left().await?;
    stage.ledger()?.demand_at_most_one_each(pods)?;
    let requests = Requests::scrape(port).await?.since(&before);
    Ok(Latency {
        from_unschedulable: Sample::new(from_unschedulable),
        from_created: Sample::new(from_created),
        requests,
    })
}

/// When the create of the one claim was received that is not known yet.
async fn received(stage: &Stage, known: &mut BTreeSet<String>) -> anyhow::Result<u64> {
    let mut at = None;
    stage
        .until(ASKED_WITHIN, "a create is received", async || {
            let creates = stage.ledger()?.creates;
            let fresh = creates.into_iter().find(|(claim, _)| !known.contains(claim));
            let Some((claim, times)) = fresh else { return Ok(Err("none".to_owned())) };
            known.insert(claim);
            at = times.first().copied();
            Ok(Ok(()))
        })
        .await?;
    at.context("a create has a time")
}
