//! Builds and runs a throw-away Kubernetes control plane, real in every part: etcd, kube-apiserver,
//! kube-controller-manager with the token and signing controllers, kube-scheduler. Only nodes are missing.
//!
//! Never in it: anything of scarpenter; a cluster of somebody else.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use scarpenter_playground::{Binaries, ControlPlane, Options};
//!
//! let binaries = Binaries::ensure(|progress| eprintln!("{progress:?}")).await?;
//! let plane = ControlPlane::start(&binaries, Options::default()).await?;
//! let client = plane.client().await?; // system:masters
//! let bootstrap = plane.client_of("system:bootstrap:abcdef", &["system:bootstrappers"]).await?;
//! plane.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Expected flow
//!
//! [`Binaries::ensure`] finds the programs or builds them, once for a user and version, with the machine's Go:
//! ten minutes or so on two cores, a moment afterwards. `SCARPENTER_CONTROLPLANE_BIN` names a folder of ready ones.
//! [`ControlPlane::start`] has them running and useful in about six seconds; the parts of [`Options`] leave out what
//! a test does not need. [`ControlPlane::stop`] or dropping it ends everything.
//!
//! # In tests
//!
//! A `static` is never dropped, so a control plane in one would leave its folder behind. Tests that share a control
//! plane are therefore test binaries with `harness = false`, whose `main` is `scarpenter_tests::harness::run`: it
//! starts one when the first trial asks for it, and ends it after the last. A test that needs one for itself starts
//! its own and lets it drop.
//! [`Process`] starts any other program with the same care: a controller, a plugin.
//!
//! # Guarantees
//!
//! - Everything listens on loopback or on sockets in a folder that only this user may read.
//! - No process and no folder is left after `stop`, a drop, a panic, or a dropped future of `start` or `ensure`.
//! - After a SIGKILL no process is left (Linux with util-linux), and the next start removes the folder.
//!
//! # Caveats
//!
//! Only [`Process`]es die with a killed owner, not what they start themselves.
//! The Service `kubernetes` has no endpoint: pods run on paper only.

mod authority;
mod binaries;
mod command;
mod control_plane;
mod folder;
mod kubeconfig;
mod options;
mod process;
mod program;
mod ready;

pub use binaries::{Binaries, BuildError, KUBERNETES_VERSION, Progress};
pub use control_plane::{ControlPlane, StartError};
pub use folder::Folder;
pub use options::Options;
pub use process::{Lifetime, Process, ProcessError};
pub use program::Program;
