//! The Kubernetes objects: CRD structs, constants, and their way to and from core.
//!
//! `karpenter.sh/v1` NodePool and NodeClaim are the published objects field by field; `ScarpenterNodeClass` and `SCNodePool` are ours.
//! A wire type becomes a core type here, once; what cannot be read becomes words, never a panic.
//! **Architecture invariant:** no client, no environment, no clock: `now` is an argument.

pub mod nodepool;

pub mod nodeclaim;

pub mod nodeclass;

pub mod scnodepool;

pub mod crds;

pub mod condition;

pub mod reason;

pub mod event;

pub mod requirement;

pub mod duration;

pub mod pod;

pub mod daemon;

pub mod limit_range;

pub mod volume;

pub mod node;

pub mod quantity;

mod cron;

mod schema;

mod selector;

pub use condition::Condition;
pub use nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus};
pub use nodeclass::{ScarpenterNodeClass, ScarpenterNodeClassSpec, ScarpenterNodeClassStatus};
pub use nodepool::{NodePool, NodePoolSpec, NodePoolStatus};
pub use scnodepool::{SCNodePool, SCNodePoolSpec, SCNodePoolStatus};
