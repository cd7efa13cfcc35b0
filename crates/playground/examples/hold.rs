//! Starts a control plane, prints its folder and the process ids, and holds it until killed.

use scarpenter_playground::{Binaries, ControlPlane, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let binaries = Binaries::ensure(|progress| eprintln!("{progress:?}")).await?;
    let started = std::time::Instant::now();
    let plane = ControlPlane::start(&binaries, Options::default()).await?;
    eprintln!("ready after {:.1} s", started.elapsed().as_secs_f32());
    let ids: Vec<String> = plane.process_ids().iter().map(ToString::to_string).collect();
    println!("{}\n{}", plane.folder().display(), ids.join(" "));
    tokio::signal::ctrl_c().await?;
    plane.stop().await;
    Ok(())
}
