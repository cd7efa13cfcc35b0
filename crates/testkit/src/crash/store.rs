//! The Kubernetes API as far as a claim's life goes: versions, conflicts, finalizers.

use scarpenter_core::lifecycle::{Claim, Time};
use scarpenter_core::name::ClaimUid;

/// A stored claim.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) claim: Claim,
    pub(super) version: u64,
    /// Its mesh key.
    pub(super) mark: Option<usize>,
}

/// A stored node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) ready: bool,
    pub(super) disrupted: Option<Time>,
    pub(super) pods: usize,
}

/// How a claim's object came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has not.
    There,
    /// The controller released it: nothing may be left.
    Released,
    /// Somebody else let it go.
    Vanished,
}

/// All that the API holds for one claim.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) uid: ClaimUid,
    pub(super) object: Option<Object>,
    pub(super) secret: bool,
    /// The mesh key in the Secret's document.
    pub(super) secret_key: Option<usize>,
    /// Its mesh key, noted while it lived.
    pub(super) noted: Option<usize>,
    /// Mesh keys that were let go of and wait for the pass.
    pub(super) left: Vec<usize>,
    pub(super) token: bool,
    pub(super) node: Option<Node>,
    pub(super) fate: Fate,
    /// When its first create was written; only a broken variant looks at it.
    pub(super) first: Option<Time>,
    /// Set as `drainDeadline` on deletion, after so many milliseconds.
    pub(super) drain: Option<u64>,
}

impl Slot {
    pub(super) fn new(index: usize, drain: Option<u64>) -> Self {
        Self {
            uid: ClaimUid::new(format!("claim-{index}")),
            object: None,
            secret: false,
            secret_key: None,
            noted: None,
            left: Vec::new(),
            token: false,
            node: None,
            fate: Fate::There,
            first: None,
            drain,
        }
    }

    /// Creates the object.
    pub(super) fn create(&mut self, created: Time, held: bool) {
        let claim = Claim {
            uid: self.uid.clone(),
            name: String::new(),
            created,
            deleted: None,
            held,
            launch: None,
            attempt: None,
            refused: None,
            machine_id: None,
            registered: false,
            initialized: false,
            terminating: None,
            expire_after: None,
            drain_deadline: None,
        };
        self.object = Some(Object { claim, version: 1, mark: None });
    }

    /// Changes the object if it still has `version` (`None`: whatever it has), and gives its new version.
    ///
    /// `None` is a conflict, or there is no object any more.
    pub(super) fn patch(&mut self, version: Option<u64>, change: impl FnOnce(&mut Claim)) -> Option<u64> {
        let object = self.object.as_mut()?;
        if version.is_some_and(|version| version != object.version) {
            return None;
        }
        change(&mut object.claim);
        object.version += 1;
        let version = object.version;
        if object.claim.deleted.is_some() && !object.claim.held {
            self.object = None;
            self.fate = Fate::Vanished;
        }
        Some(version)
    }

    /// Asks for the object's deletion; whether anything changed.
    pub(super) fn delete(&mut self, version: Option<u64>, now: Time) -> bool {
        if self.object.as_ref().is_none_or(|object| object.claim.deleted.is_some()) {
            return false;
        }
        let deadline = self.drain.map(|millis| now.after(std::time::Duration::from_millis(millis)));
        self.patch(version, |claim| {
            claim.deleted = Some(now);
            claim.drain_deadline = deadline;
        })
        .is_some()
    }
}
