//! The handle of a hollow node.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::console::Console;
use crate::disk::Disk;
use crate::life;
use crate::spec::Spec;

/// Where a hollow node is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Power is on, nothing of the document runs yet.
    Booting,
    /// The kubelet tries to become a node.
    Joining,
    /// The Node object exists.
    Joined,
    /// Power is off, for good.
    Off,
}

/// A hollow node, running until [`stop`](Self::stop) or drop.
///
/// # Guarantees
/// A stopped node does nothing more; what it wrote stays in the cluster, its Node among it, as with a real machine.
pub struct Node {
    task: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) console: Console,
    pub(crate) state: watch::Sender<State>,
    power_off: CancellationToken,
}

impl Node {
    /// Turns the machine on. Needs a tokio runtime, and rustls' ring provider installed by the process.
    #[must_use]
    pub fn start(spec: Spec) -> Self {
        Self::start_with_disk(spec, None)
    }

    /// Turns the machine on with a file as its disk, or takes up the life that the file tells of.
    ///
    /// A machine that has joined before is the same node again: no boot delay, no certificate request, no second
    /// registration; pods whose time is over end. The file holds the node's key and is the caller's to remove.
    #[must_use]
    pub fn start_with_disk(spec: Spec, disk: Option<PathBuf>) -> Self {
        let state = watch::Sender::new(State::Booting);
        let shared = Arc::new(Shared { console: Console::new(), state, power_off: CancellationToken::new() });
        let task = tokio::spawn(powered(spec, disk, shared.clone()));
        Self { task: Some(task), shared }
    }

    /// Turns the machine off, wherever it is, and returns when nothing of it runs.
    pub async fn stop(mut self) {
        self.shared.power_off.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "hollow node panicked");
        }
    }

    /// What a serial console would have shown. Holds no secrets.
    #[must_use]
    pub fn console(&self) -> String {
        self.shared.console.text()
    }

    /// Where it is in its life, and each change.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.power_off.cancel();
    }
}

async fn powered(spec: Spec, disk: Option<PathBuf>, shared: Arc<Shared>) {
    let disk = Disk::read(disk, &shared.console);
    tokio::select! {
        () = shared.power_off.cancelled() => shared.console.say("power was cut"),
        () = life::live(spec, disk, &shared) => {}
    }
    shared.state.send_replace(State::Off);
}
