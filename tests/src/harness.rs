//! The `main` of a test binary whose trials share one control plane.
//!
//! In `Cargo.toml`: `[[test]] name = "apiserver"`, `path = "apiserver/main.rs"`, `harness = false`. Then:
//!
//! ```no_run
//! use std::sync::Arc;
//! use scarpenter_playground::{ControlPlane, Options};
//! use scarpenter_tests::harness::{Trials, run};
//!
//! async fn the_server_says_its_version(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
//!     let version = plane.client().await?.apiserver_version().await?;
//!     assert_eq!(version.major, "1");
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let mut trials = Trials::new(Options::default());
//!     trials.add("the_server_says_its_version", the_server_says_its_version);
//!     run(trials)
//! }
//! ```
//!
//! It takes the arguments of any other test binary: a filter, `--list`, `--exact`, `--test-threads`, …
//! Trials run side by side on the same objects: each uses a namespace and names of its own.
//! Where one must be alone it starts a control plane of its own.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use scarpenter_playground::{Binaries, ControlPlane, Options, Progress};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// A trial that takes longer hangs.
const TRIAL_ENDS_WITHIN: Duration = Duration::from_secs(600);
const TASKS_END_WITHIN: Duration = Duration::from_secs(2);

/// The trials of one binary, and the control plane that they share.
pub struct Trials {
    shared: Arc<Shared>,
    trials: Vec<Trial>,
}

struct Shared {
    runtime: Runtime,
    options: Options,
    plane: OnceCell<Result<Arc<ControlPlane>, String>>,
}

impl Trials {
    /// No trials yet; the control plane starts with the first one that runs.
    ///
    /// # Panics
    /// When the async runtime cannot be started.
    #[must_use]
    pub fn new(options: Options) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = Runtime::new().expect("a test machine can start threads");
        Self { shared: Arc::new(Shared { runtime, options, plane: OnceCell::new() }), trials: Vec::new() }
    }

    /// Adds a trial; it fails by an error or by a panic.
    pub fn add<F, T>(&mut self, name: &str, trial: T)
    where
        F: Future<Output = anyhow::Result<()>>,
        T: FnOnce(Arc<ControlPlane>) -> F + Send + 'static,
    {
        let shared = self.shared.clone();
        self.trials.push(Trial::test(name, move || shared.run(trial)));
    }
}

impl Shared {
    fn run<F>(&self, trial: impl FnOnce(Arc<ControlPlane>) -> F) -> Result<(), Failed>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        self.runtime.block_on(async {
            let plane = self.plane.get_or_init(|| start(self.options.clone())).await.clone()?;
            match tokio::time::timeout(TRIAL_ENDS_WITHIN, trial(plane)).await {
                Ok(outcome) => outcome.map_err(|error| Failed::from(format!("{error:#}"))),
                Err(_) => {
                    Err(Failed::from(format!("hangs: not done after {} s", TRIAL_ENDS_WITHIN.as_secs())))
                }
            }
        })
    }
}

async fn start(options: Options) -> Result<Arc<ControlPlane>, String> {
    let binaries = ensure_binaries().await.map_err(|error| error.to_string())?;
    let plane = ControlPlane::start(&binaries, options).await;
    plane.map(Arc::new).map_err(|error| format!("{:?}", anyhow::Error::new(error)))
}

/// The programs of the control plane; a first build is told of on stderr, so that nobody takes it for a hang.
///
/// # Errors
/// As [`Binaries::ensure`].
pub async fn ensure_binaries() -> anyhow::Result<Binaries> {
    let mut told = None;
    let binaries = Binaries::ensure(|progress| {
        if let Progress::Building { program, number, of, .. } = progress
            && told.replace(*program) != Some(*program)
        {
            eprintln!("building {program} ({number} of {of}), once for this user; it takes minutes");
        }
    });
    Ok(binaries.await?)
}

/// Runs the trials that the arguments select, then ends the control plane.
#[must_use]
pub fn run(trials: Trials) -> ExitCode {
    let Trials { shared, trials } = trials;
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    let shared = Arc::into_inner(shared).expect("the trials, which are done, held the others");
    // What trials left running may hold the control plane: it goes first.
    shared.runtime.shutdown_timeout(TASKS_END_WITHIN);
    drop(shared.plane);
    conclusion.exit_code()
}
