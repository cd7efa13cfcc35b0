//! Boots QEMU machines on the host where it runs.
//!
//! A machine is a process with a folder of its own: an overlay over the image, the console, a record. All of it is
//! found again by a restarted plugin and goes when the machine is deleted. Its kubelet is reached through a port
//! forward from a loopback address of its own, which is reported as the machine's address.
//!
//! Guests share QEMU's user network: each has the address 10.0.2.15, none sees another, and each reaches the loopback of
//! this host at 10.0.2.2, with every service that listens there.
//!
//! Never in it: a vendor's API; Kubernetes.

mod arguments;

mod provider;

mod rack;

mod kinds;

pub mod image;

mod qemu;

mod host;

mod store;

mod process;

mod extensions;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::process::getppid;
use tokio_util::sync::CancellationToken;

pub use arguments::{Args, BuildArgs, Command, ServeArgs, main};
pub use host::{Accel, Limits};
pub use kinds::{KINDS, Kind, REGION, Room, VENDOR, ZONE};
pub use provider::Local;
pub use qemu::{Error as QemuError, Programs};
pub use rack::{Rack, Settings};

const TRIM_EVERY: Duration = Duration::from_secs(10);
const LOOK_FOR_PARENT_EVERY: Duration = Duration::from_millis(500);

/// Does what the arguments say: serves until SIGTERM or SIGINT, or makes the image.
///
/// # Errors
/// When a file cannot be read or written, an address cannot be listened on, or the image cannot be made.
pub async fn run(args: Args) -> anyhow::Result<()> {
    match (args.command, args.serve) {
        (Some(Command::BuildImage(build)), _) => build_image(build).await,
        (None, Some(args)) => serve(args).await,
        (None, None) => anyhow::bail!("--listen, --image and --state are missing"),
    }
}

async fn build_image(args: BuildArgs) -> anyhow::Result<()> {
    let cache = image::build::Cache::of_user()?;
    let image = cache.image(|step| eprintln!("{step}")).await?;
    println!("image {}", image.display());
    if let (Some(kubelet), Some(version)) = (args.kubelet, args.kubernetes_version) {
        let extension = cache.extension(&kubelet, &version).await?;
        println!("extensions {}", extension.folder.display());
        println!("sysextHashes {}: {}", extension.name, extension.hash);
    }
    Ok(())
}

async fn serve(args: ServeArgs) -> anyhow::Result<()> {
    let signal = scarpenter_provider::server::shutdown_signal().context("watch for signals")?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_when(signal, args.with_parent, stop.clone()));
    let folder = &args.state;
    let rack = Rack::open(folder, args.settings()).with_context(|| format!("open {}", folder.display()))?;
    let rack = Arc::new(rack);
    let endpoint = args.endpoint();
    tracing::info!(%endpoint, accel = ?args.accel.resolve(), room = ?rack.free(), "serving machines of this host");
    let trimmed = tokio::spawn(trim(rack.clone()));
    let local = Local::new(rack.clone(), args.settle);
    let serving = scarpenter_provider::server::serve(local, &endpoint, stop.clone().cancelled_owned());
    let outcome = match args.extensions() {
        None => serving.await.map_err(anyhow::Error::new),
        Some(extensions) => {
            tokio::pin!(serving);
            tokio::select! {
                outcome = &mut serving => outcome.map_err(anyhow::Error::new),
                outcome = extensions::serve(extensions) => {
                    stop.cancel();
                    serving.await?;
                    outcome
                }
            }
        }
    };
    trimmed.abort();
    if args.with_parent {
        rack.remove_all().await?;
    }
    outcome
}

async fn trim(rack: Arc<Rack>) {
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
        rack.trim_consoles();
    }
}

/// Stops at a signal, and with the parent where that was asked for.
async fn stop_when(signal: impl Future<Output = ()>, with_parent: bool, stop: CancellationToken) {
    let parent = getppid();
    let orphaned = async {
        while !with_parent || getppid() == parent {
            tokio::time::sleep(LOOK_FOR_PARENT_EVERY).await;
        }
    };
    tokio::select! {
        () = signal => {}
        () = orphaned => tracing::info!("the process that started this one has ended"),
    }
    stop.cancel();
}
