//! Many pods for which there is nothing, and a few for which there is.

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use scarpenter_tests::stage::{Requests, Stage, metrics};
use serde_json::{Value, json};

use crate::case::{Case, and, exactly};

const HOPELESS: usize = 2000;
const GOOD: usize = 10;
/// Pods that are created at a time.
const PARALLEL: usize = 32;
/// Writes to the API server that ten machines may cost, events included.
const OF_THE_GOOD: u64 = 45 * GOOD as u64;

pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_controller()?;
    stage.until_ready().await?;
    let (_, port) = stage.controller()?;
    let before = Requests::scrape(port).await?;
    create(stage, HOPELESS).await?;
    let case = Case::new(stage);
    let good: Vec<String> = (0..GOOD).map(|number| format!("good-{number}")).collect();
    for pod in &good {
        case.pod(pod, and(exactly("hcloud", "ccx13"), json!({}))).await?;
    }
    for pod in &good {
        case.ran(pod).await?;
    }
    case.until("every hopeless pod was told why", async || {
        let left = gauge(&metrics(port).await?, "scarpenter_untold_pods ")?;
        let told = Requests::scrape(port).await?.since(&before);
        let events = count(&told, "POST", "events");
        let done = left == 0.0 && events >= HOPELESS as u64;
        Ok(if done { Ok(()) } else { Err(format!("{left} left, {events} events")) })
    })
    .await?;
    case.until_sold_is_gone("ccx13").await?;
    let told = Requests::scrape(port).await?.since(&before);
    // One condition and one event each.
    let patches = count(&told, "PATCH", "pods");
    let events = count(&told, "POST", "events");
    ensure!(patches <= HOPELESS as u64 + OF_THE_GOOD, "{patches} patches of pods: {:?}", told.rows());
    ensure!(events <= HOPELESS as u64 + OF_THE_GOOD, "{events} events: {:?}", told.rows());
    let sold = case.sold("ccx13")?;
    ensure!(sold.made <= GOOD, "{sold:?}");
    Ok(())
}

async fn create(stage: &Stage, pods: usize) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::namespaced(stage.client().clone(), stage.namespace());
    let api = &api;
    futures::stream::iter(0..pods)
        .map(|number| async move {
            let pod: Pod = serde_json::from_value(hopeless(number))?;
            api.create(&PostParams::default(), &pod).await.context("create a hopeless pod")?;
            anyhow::Ok(())
        })
        .buffer_unordered(PARALLEL)
        .try_collect::<Vec<_>>()
        .await
        .map(drop)
}

/// Larger than everything that is sold.
fn hopeless(number: usize) -> Value {
    json!({
        "metadata": {"name": format!("hopeless-{number}"), "labels": {"number": number.to_string()}},
        "spec": {"containers": [{
            "name": "main", "image": "none", "resources": {"requests": {"cpu": "100000"}},
        }]},
    })
}

fn count(requests: &Requests, method: &str, resource: &str) -> u64 {
    requests.rows().iter().filter(|row| (row.0, row.1) == (method, resource)).map(|row| row.2).sum()
}

fn gauge(text: &str, name: &str) -> anyhow::Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("the gauge is there")?;
    Ok(line.trim().parse()?)
}
