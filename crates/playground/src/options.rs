//! What a control plane consists of.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::program::Program;

/// Which programs run, with which flags beside our own, and how long the start may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) controller_manager: bool,
    pub(crate) scheduler: bool,
    pub(crate) flags: BTreeMap<Program, Vec<String>>,
    pub(crate) ready_within: Duration,
    pub(crate) loose: bool,
}

impl Default for Options {
    /// All programs, ready within two minutes, ended with their owner.
    fn default() -> Self {
        Self {
            controller_manager: true,
            scheduler: true,
            flags: BTreeMap::new(),
            ready_within: Duration::from_secs(120),
            loose: false,
        }
    }
}

impl Options {
    /// etcd and the API server only: schemas, admission, watches, conflicts. No service accounts, so no pods.
    #[must_use]
    pub fn api_server_only() -> Self {
        Self { controller_manager: false, scheduler: false, ..Self::default() }
    }

    /// Leaves out the scheduler.
    #[must_use]
    pub fn without_scheduler(mut self) -> Self {
        self.scheduler = false;
        self
    }

    /// Adds a flag such as `--feature-gates=X=true`; given after ours, so it wins.
    #[must_use]
    pub fn flag(mut self, program: Program, flag: impl Into<String>) -> Self {
        self.flags.entry(program).or_default().push(flag.into());
        self
    }

    /// How long the start may take.
    #[must_use]
    pub fn ready_within(mut self, time: Duration) -> Self {
        self.ready_within = time;
        self
    }

    /// Lets the programs outlive this process once [`ControlPlane::leave`](crate::ControlPlane::leave) was called.
    #[must_use]
    pub fn may_be_left(mut self) -> Self {
        self.loose = true;
        self
    }
}
