//! The whole path on a real control plane: plugin and controller as processes that can be killed, pods that run on
//! simulated machines, and the proof that nothing is left afterwards.
//!
//! ```no_run
//! # use scarpenter_playground::ControlPlane;
//! use scarpenter_tests::stage::{Setting, Stage, Want, play};
//!
//! async fn a_pod_runs(stage: &mut Stage) -> anyhow::Result<()> {
//!     stage.start_controller()?;
//!     stage.until_ready().await?;
//!     stage.create(&[Want::exact("one", 0)]).await?;
//!     stage.until_ran(1).await
//! }
//!
//! # async fn example(plane: &ControlPlane) -> anyhow::Result<()> {
//! let program = std::path::Path::new("target/debug/scarpenter-on-trial");
//! play(plane, program, Setting::default(), a_pod_runs).await
//! # }
//! ```
//!
//! One stage at a time stands on a control plane, since pools, claims and nodes belong to all of it.

mod ledger;
mod left;
mod objects;
mod parts;
mod pods;
mod scrape;
mod words;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use kube::Client;
use scarpenter_core::name::ClusterId;
use scarpenter_playground::{ControlPlane, Folder, Process};
use tokio::sync::Mutex;

pub use ledger::Ledger;
pub use left::Left;
pub use objects::Setting;
pub use pods::{EXACT, Life, Lives, Want};
pub use scrape::{Requests, metrics, peak_memory};

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A start that takes longer hangs.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Log lines of each process that a failure quotes.
const LOG_LINES: usize = 12;

/// Trials of one binary share the control plane, and take turns.
static TURN: Mutex<()> = Mutex::const_new(());

/// What stands on the control plane for one trial.
pub struct Stage {
    client: Client,
    cluster: ClusterId,
    /// Of the controllers, which have no more rights than `deploy/rbac` gives them.
    kubeconfig: PathBuf,
    program: PathBuf,
    setting: Setting,
    namespace: String,
    lives: Lives,
    controllers: Vec<parts::Controller>,
    sim: Option<Process>,
    // Last: the processes end before the folder with their sockets and logs goes.
    folder: Folder,
}

/// Raises a stage, plays a scene on it, and then demands that nothing is left of it; a failure quotes the logs.
///
/// # Errors
/// When the scene fails, or when something is left.
pub async fn play<T>(
    plane: &ControlPlane,
    program: &Path,
    setting: Setting,
    scene: impl AsyncFnOnce(&mut Stage) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let _turn = TURN.lock().await;
    let mut stage = Stage::raise(plane, program, setting).await?;
    let outcome = match scene(&mut stage).await {
        Ok(value) => stage.until_nothing_is_left().await.map(|()| value),
        Err(error) => Err(error),
    };
    let outcome = match outcome {
        Err(error) => Err(error.context(stage.words().await)),
        outcome => outcome,
    };
    let swept = stage.strike().await;
    outcome.and_then(|value| swept.map(|()| value))
}

impl Stage {
    async fn raise(plane: &ControlPlane, program: &Path, setting: Setting) -> anyhow::Result<Self> {
        let client = plane.client().await?;
        let cluster = objects::cluster_id(&client).await?;
        objects::install(&client).await?;
        // What a trial that panicked left behind.
        left::scrub(&client).await?;
        let namespace = objects::fresh_namespace(&client).await?;
        objects::apply(&client, &setting).await?;
        let folder = Folder::make().context("make a temporary folder")?;
        let kubeconfig = folder.path().join("controller.kubeconfig");
        objects::restrict(plane.kubeconfig(), &kubeconfig)?;
        let mut stage = Self {
            lives: Lives::watch(&client, &namespace),
            client,
            cluster,
            kubeconfig,
            program: program.to_owned(),
            setting,
            namespace,
            controllers: Vec::new(),
            sim: None,
            folder,
        };
        stage.start_sim().await?;
        Ok(stage)
    }

    /// A client of the control plane.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where the pods of this trial are.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What has happened to the pods of this trial.
    #[must_use]
    pub fn lives(&self) -> &Lives {
        &self.lives
    }

    /// What the plugin was asked, and the machines that it made.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn ledger(&self) -> anyhow::Result<Ledger> {
        Ledger::read(&self.folder.path().join(parts::AUDIT))
    }

    /// Waits until it is so; the error says what was waited for, and how far it came.
    ///
    /// # Errors
    /// When it is not so in time, or a process ended that nobody killed.
    pub async fn until(
        &self,
        within: Duration,
        what: &str,
        mut look: impl AsyncFnMut() -> anyhow::Result<Result<(), String>>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let seen = look().await?;
            let Err(seen) = seen else { return Ok(()) };
            self.refuse_ended()?;
            if Instant::now() > deadline {
                bail!("not within {} s: {what}; seen: {seen}", within.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until so many pods run, or have run.
    ///
    /// # Errors
    /// As [`until_ran`](Self::until_ran).
    pub async fn until_running(&self, pods: usize) -> anyhow::Result<()> {
        self.until_pods(pods, "every pod runs", |life| life.running.is_some()).await
    }

    /// Waits until so many pods have run to their end.
    ///
    /// # Errors
    /// When one fails or goes before its end, or when they do not end in time.
    pub async fn until_ran(&self, pods: usize) -> anyhow::Result<()> {
        self.until_pods(pods, "every pod ran", |life| life.succeeded.is_some()).await
    }

    async fn until_pods(&self, pods: usize, what: &str, is: impl Fn(&Life) -> bool) -> anyhow::Result<()> {
        self.until(self.setting.pods_run_within, what, async || {
            self.lives.refuse_lost()?;
            let count = self.lives.count(&is);
            Ok(if count >= pods { Ok(()) } else { Err(format!("{count} of {pods}")) })
        })
        .await
    }

    /// Waits until there is no machine, claim, node, token or join Secret any more, and removes the pods.
    ///
    /// # Errors
    /// Says what is left.
    pub async fn until_nothing_is_left(&self) -> anyhow::Result<()> {
        objects::delete_pods(&self.client, &self.namespace).await?;
        self.until(self.setting.all_gone_within, "nothing is left", async || {
            let left = Left::look(self).await?;
            Ok(if left.is_nothing() { Ok(()) } else { Err(left.to_string()) })
        })
        .await
    }

    /// Ends the processes, then removes what the trial put into the cluster.
    async fn strike(mut self) -> anyhow::Result<()> {
        for controller in self.controllers.drain(..) {
            controller.process.stop(parts::STOPS_WITHIN).await;
        }
        if let Some(sim) = self.sim.take() {
            sim.stop(parts::STOPS_WITHIN).await;
        }
        left::scrub(&self.client).await?;
        objects::delete_namespace(&self.client, &self.namespace).await
    }
}
