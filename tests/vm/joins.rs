//! One machine from a pending pod to nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use scarpenter_playground::ControlPlane;

use crate::host::TURN;
use crate::scene::Scene;

/// On two cores that do nothing else it takes a quarter of this.
const RUNS_WITHIN: Duration = Duration::from_secs(240);
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
const GONE_WITHIN: Duration = Duration::from_secs(90);

pub(crate) async fn a_pod_runs(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let scene = Scene::raise(&plane, "real", None).await?;
    let began = Instant::now();
    scene.pod("printer", "echo printed on $NODE; sleep 1000").await?;
    let mut node = String::new();
    scene
        .until(RUNS_WITHIN, "the pod runs", async || {
            let pod = scene.pods().get("printer").await?;
            node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
            let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
            Ok(if phase == "Running" { Ok(()) } else { Err(phase) })
        })
        .await?;
    eprintln!("    the pod runs after {:.1} s", began.elapsed().as_secs_f64());
    let seen = scene.nodes().get(&node).await?;
    let info = seen.status.and_then(|status| status.node_info).context("a node says what it is")?;
    ensure!(info.container_runtime_version.starts_with("containerd://"), "{info:?}");
    ensure!(info.kernel_version.contains("cloud-amd64"), "a kernel of its own: {info:?}");

    // The serving certificate may come a moment after the pod.
    let printed = format!("printed on {node}\n");
    scene
        .until(ANSWERS_WITHIN, "its log is read by the API", async || {
            Ok(scene
                .kubectl(&["logs", "printer"])
                .await
                .and_then(|log| if log == printed { Ok(()) } else { Err(log) }))
        })
        .await?;
    let entered =
        scene.kubectl(&["exec", "printer", "--", "/bin/sh", "-c", "echo entered; cat /etc/hostname"]).await;
    ensure!(entered.as_deref() == Ok("entered\nprinter\n"), "{entered:?}");
    scene.strike(GONE_WITHIN).await?;
    eprintln!("    all is gone after {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}
