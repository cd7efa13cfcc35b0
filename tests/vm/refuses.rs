//! A machine that must not become a node.

use std::sync::Arc;
use std::time::Duration;

use scarpenter_playground::ControlPlane;

use crate::host::TURN;
use crate::scene::Scene;

const TOLD_WITHIN: Duration = Duration::from_secs(300);
const GONE_WITHIN: Duration = Duration::from_secs(120);

pub(crate) async fn a_wrong_hash(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let wrong = format!("sha256-{}", "0".repeat(64));
    let scene = Scene::raise(&plane, "wrong-hash", Some(&wrong)).await?;
    scene.pod("never", "true").await?;
    scene
        .until(TOLD_WITHIN, "an event quotes what Ignition printed", async || {
            let events = scene.events().await?;
            let told = events.iter().any(|event| event.contains("Ignition failed") && event.contains("hash"));
            Ok(if told { Ok(()) } else { Err(events.join("; ")) })
        })
        .await?;
    scene.strike(GONE_WITHIN).await
}
