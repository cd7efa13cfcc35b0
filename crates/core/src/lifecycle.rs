//! The life of a claim: facts and observation in, the next step out.
//!
//! The claim object is the log, there is no other.
//! [`next_step`] looks at facts that were written once and at what is seen now, never at a stored phase, so a
//! controller that dies anywhere and starts again takes up exactly where the facts are.
//!
//! **Architecture invariant:** nothing here decides by the order of events; every row of the table holds alone.

use std::time::Duration;

use crate::name::{ClaimUid, MachineId};
use crate::offering::Launch;

mod step;
pub use step::{AbandonReason, Step, WaitReason, next_step};

#[cfg(test)]
mod tests;

/// Milliseconds since 1970, as an argument and never as a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// So many milliseconds after 1970.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// This much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long it is from here until `later`, zero when that is past.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

/// What is written on a claim, each once, but for `attempt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// UID: key of everything outside Kubernetes.
    pub uid: ClaimUid,
    /// Name of the claim, its node and its host.
    pub name: String,
    /// When it was created; all deadlines count from here.
    pub created: Time,
    /// When its deletion was asked for.
    pub deleted: Option<Time>,
    /// Whether our finalizer holds it.
    pub held: bool,
    /// What it buys; `None` only for claims of users that nobody planned yet.
    pub launch: Option<Launch>,
    /// Time of the latest create, written before it is sent.
    pub attempt: Option<Time>,
    /// The definite refusal, which proves that nothing was made.
    pub refused: Option<String>,
    /// The vendor's id of its machine.
    pub machine_id: Option<MachineId>,
    /// Whether labels and taints were synced to its node, decided once.
    pub registered: bool,
    /// Whether its node was found fit for use, decided once.
    pub initialized: bool,
    /// Whether the vendor has acknowledged a delete, and when.
    pub terminating: Option<Time>,
    /// Life span; `None` is for ever.
    pub expire_after: Option<Duration>,
    /// When draining is over, whatever is left.
    pub drain_deadline: Option<Time>,
}

/// Time limits of a claim, from its class and its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest from creation to a machine id.
    pub launch: Duration,
    /// Longest from creation to a registered node.
    pub registration: Duration,
    /// Longest that a request in flight plus the vendor's list may hide a machine, clock skew included.
    pub settle: Duration,
    /// Shortest from the taint of a node to the end of its machine, so that a scheduler that has not seen the taint yet
    /// does not lose the pod it is just binding; clock skew and the whole seconds of `timeAdded` included.
    pub drain: Duration,
}

/// Longest from writing `attempt` to sending the create.
const SEND_WITHIN: Duration = Duration::from_secs(15);
/// Most that the clocks of two controllers differ.
const CLOCK_SKEW: Duration = Duration::from_secs(5);

/// [`Limits::settle`] for a provider that declares `provider`, which knows nothing of our own delays and clocks.
#[must_use]
pub fn settle(provider: Duration) -> Duration {
    provider + SEND_WITHIN + CLOCK_SKEW
}

/// Whether a create may still go out under the `attempt` that this process wrote; asked right before sending.
///
/// A process that stood still in between (a paused machine, a slow find) must begin anew: by now another controller may
/// take the create for settled, find nothing and send its own.
#[must_use]
pub fn may_send(attempt: Time, now: Time) -> bool {
    now >= attempt && attempt.until(now) <= SEND_WITHIN
}

/// What is seen of the claim's node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeSeen {
    /// No Node has its provider id.
    #[default]
    Absent,
    /// Exactly one.
    One(NodeFacts),
    /// More than one: never right, a person must look.
    Many,
}

/// What counts of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Condition Ready is True.
    pub ready: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Why it may not be called initialized yet, if so: a condition reason and a sentence.
    pub uninitialized: Option<(&'static str, String)>,
    /// When it got the taint that keeps new pods away (its `timeAdded`); `None` without the taint, or without its time.
    pub disrupted: Option<Time>,
    /// Pods that draining must wait for, or that hold the machine by a finalizer; counted after the taint was seen.
    pub pods: usize,
}

/// What is seen of the claim's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MachineSeen {
    /// Nobody asked.
    #[default]
    NotAsked,
    /// The vendor did not answer, or not for the claim's region; why.
    Unknown(String),
    /// A complete answer, begun at the given time, does not hold it.
    Absent(Time),
    /// There is at least one.
    Present {
        /// The vendor says that it is stopped, for all of them.
        stopped: bool,
    },
}

/// All that is seen in one look, read only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its node.
    pub node: NodeSeen,
    /// Its machine.
    pub machine: MachineSeen,
    /// Whether the join Secret is gone; looked at only between `attempt` and `machine-id`.
    pub join_material_lost: bool,
    /// Whether its class (and so its join settings) is there and usable.
    pub class_ready: bool,
    /// Whether its vendor's plugin can be reached.
    pub provider_ready: bool,
}
