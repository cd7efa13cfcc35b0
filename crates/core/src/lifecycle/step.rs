//! The table of steps, as one pure function.

use super::{Claim, Limits, MachineSeen, NodeSeen, Seen, Time};

/// What to do with a claim now. Each is one effect, and repeating it is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Add the finalizer.
    Hold,
    /// Write `launch` where it is missing, the join material and `attempt`; create without looking; record the id.
    Launch,
    /// Write `attempt`; find by UID, else create; record the id.
    Create,
    /// Sync labels and taints to the node and take the unregistered taint off.
    Register,
    /// Mark the node as fit for use.
    Initialize,
    /// Delete the claim; the planner makes another where one is still wanted.
    Abandon(AbandonReason),
    /// Taint the node and evict what is left on it.
    Drain,
    /// Delete the machine by UID, and by id where it is known.
    Destroy,
    /// Remove what is left in Kubernetes and drop the finalizer.
    Release,
    /// Nothing to do before `until` (or before the next event where there is none).
    Wait {
        /// When to look again at the latest.
        until: Option<Time>,
        /// What is waited for.
        reason: WaitReason,
    },
}

/// Why a claim is given up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbandonReason {
    /// The vendor refused definitely; its words.
    Refused(String),
    /// No machine id within the launch deadline.
    LaunchTimeout,
    /// No registered node within the registration deadline.
    RegistrationTimeout,
    /// Its join material was lost between the first create and its answer.
    JoinMaterialLost,
    /// The vendor says that the machine is stopped.
    MachineStopped,
    /// The vendor says that there is no such machine, and its node is not Ready.
    MachineGone,
    /// Its node was deleted.
    NodeDeleted,
    /// It has lived as long as it may.
    Expired,
    /// Its class is missing or not usable.
    ClassNotReady,
}

impl AbandonReason {
    /// The word of `karpenter_nodeclaims_disrupted_total{reason}` and of the event.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Refused(_) => "insufficient_capacity",
            Self::LaunchTimeout => "launch_timeout",
            Self::RegistrationTimeout => "registration_timeout",
            Self::JoinMaterialLost => "join_material_lost",
            Self::MachineStopped => "machine_stopped",
            Self::MachineGone => "garbage_collected",
            Self::NodeDeleted => "node_deleted",
            Self::Expired => "expired",
            Self::ClassNotReady => "nodeclass_not_ready",
        }
    }
}

/// What a claim waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// The outcome of the latest create is unknown, and a machine could still be hidden.
    Settling,
    /// Its node has not come.
    NodeNotFound,
    /// More than one node says that it is this claim's.
    MultipleNodesFound,
    /// Its node is not fit for use yet: reason and sentence.
    NotInitialized(&'static str, String),
    /// Its node is tainted and empty; a pod may still be on its way.
    Draining,
    /// The vendor has been asked to delete and has not finished.
    MachineTerminating,
    /// The vendor cannot be asked; why.
    ProviderUnreachable(String),
    /// All is well until it expires.
    Running,
}

/// The next step of a claim.
///
/// # Guarantees
/// A first create is never sent without `attempt` on the claim, and another only after the latest has settled, so that
/// the find before it sees what an earlier one made.
/// The finalizer is dropped only when the latest create has settled (or was refused, or none was sent), the vendor has
/// acknowledged a delete, and a complete list begun after both holds no machine of this claim.
#[must_use]
pub fn next_step(claim: &Claim, seen: &Seen, limits: &Limits, now: Time) -> Step {
    if let Some(deleted) = claim.deleted {
        return leave(claim, seen, limits, now, deleted);
    }
    if !claim.held {
        return Step::Hold;
    }
    if let Some(reason) = abandon(claim, seen, limits, now) {
        return Step::Abandon(reason);
    }
    if claim.machine_id.is_none() {
        return launch(claim, seen, limits, now);
    }
    join(claim, seen, limits)
}

fn abandon(claim: &Claim, seen: &Seen, limits: &Limits, now: Time) -> Option<AbandonReason> {
    if let Some(words) = &claim.refused {
        return Some(AbandonReason::Refused(words.clone()));
    }
    if expiry(claim).is_some_and(|end| now >= end) {
        return Some(AbandonReason::Expired);
    }
    if claim.machine_id.is_none() {
        if !seen.class_ready && claim.attempt.is_none() {
            return Some(AbandonReason::ClassNotReady);
        }
        if claim.attempt.is_some() && seen.join_material_lost {
            return Some(AbandonReason::JoinMaterialLost);
        }
        return (now >= claim.created.after(limits.launch)).then_some(AbandonReason::LaunchTimeout);
    }
    if matches!(seen.machine, MachineSeen::Present { stopped: true }) {
        return Some(AbandonReason::MachineStopped);
    }
    if !claim.registered {
        return (now >= claim.created.after(limits.registration))
            .then_some(AbandonReason::RegistrationTimeout);
    }
    match &seen.node {
        NodeSeen::Absent => Some(AbandonReason::NodeDeleted),
        NodeSeen::One(node) if node.deleting => Some(AbandonReason::NodeDeleted),
        NodeSeen::One(node) if !node.ready && gone(claim, seen, limits) => Some(AbandonReason::MachineGone),
        NodeSeen::One(_) | NodeSeen::Many => None,
    }
}

/// Whether a list that must hold the machine does not. One that is Ready is believed more than its vendor.
fn gone(claim: &Claim, seen: &Seen, limits: &Limits) -> bool {
    match seen.machine {
        MachineSeen::Absent(asked) => {
            claim.attempt.is_none_or(|attempt| asked >= attempt.after(limits.settle))
        }
        _ => false,
    }
}

fn launch(claim: &Claim, seen: &Seen, limits: &Limits, now: Time) -> Step {
    let Some(attempt) = claim.attempt else {
        return if seen.provider_ready { Step::Launch } else { unreachable(claim, limits) };
    };
    let settled = attempt.after(limits.settle);
    if now < settled {
        Step::Wait { until: Some(settled), reason: WaitReason::Settling }
    } else if seen.provider_ready {
        Step::Create
    } else {
        unreachable(claim, limits)
    }
}

fn unreachable(claim: &Claim, limits: &Limits) -> Step {
    let reason = WaitReason::ProviderUnreachable("the provider of its vendor cannot be reached".to_owned());
    Step::Wait { until: Some(claim.created.after(limits.launch)), reason }
}

fn join(claim: &Claim, seen: &Seen, limits: &Limits) -> Step {
    let wait = |until, reason| Step::Wait { until, reason };
    let deadline = Some(claim.created.after(limits.registration));
    match &seen.node {
        NodeSeen::Absent => wait(deadline, WaitReason::NodeNotFound),
        NodeSeen::Many => {
            wait(if claim.registered { expiry(claim) } else { deadline }, WaitReason::MultipleNodesFound)
        }
        NodeSeen::One(_) if !claim.registered => Step::Register,
        NodeSeen::One(_) if claim.initialized => wait(expiry(claim), WaitReason::Running),
        NodeSeen::One(node) => match &node.uninitialized {
            Some((reason, words)) => wait(expiry(claim), WaitReason::NotInitialized(reason, words.clone())),
            None => Step::Initialize,
        },
    }
}

/// When the claim has lived long enough.
fn expiry(claim: &Claim) -> Option<Time> {
    claim.expire_after.map(|life| claim.created.after(life))
}

/// The last three rows, whatever else holds.
fn leave(claim: &Claim, seen: &Seen, limits: &Limits, now: Time, deleted: Time) -> Step {
    if !claim.held {
        return Step::Wait { until: None, reason: WaitReason::MachineTerminating };
    }
    if let Some(step) = drain(claim, seen, limits, now) {
        return step;
    }
    // Nothing was ever sent, or the vendor has proved that nothing was made.
    if claim.attempt.is_none() && claim.machine_id.is_none() {
        return Step::Release;
    }
    let Some(asked) = claim.terminating else {
        return if seen.provider_ready { Step::Destroy } else { unreachable_while_leaving() };
    };
    let settled = claim.attempt.map_or(deleted, |attempt| attempt.after(limits.settle));
    match &seen.machine {
        MachineSeen::Present { .. } => Step::Destroy,
        MachineSeen::Absent(looked) if *looked >= asked && *looked >= settled => Step::Release,
        MachineSeen::Unknown(why) => {
            Step::Wait { until: None, reason: WaitReason::ProviderUnreachable(why.clone()) }
        }
        MachineSeen::Absent(_) | MachineSeen::NotAsked => {
            Step::Wait { until: (now < settled).then_some(settled), reason: WaitReason::MachineTerminating }
        }
    }
}

fn unreachable_while_leaving() -> Step {
    let reason = WaitReason::ProviderUnreachable("the provider of its vendor cannot be reached".to_owned());
    Step::Wait { until: None, reason }
}

/// Draining comes before the first delete and never after it; past the deadline it is over.
fn drain(claim: &Claim, seen: &Seen, limits: &Limits, now: Time) -> Option<Step> {
    let NodeSeen::One(node) = &seen.node else { return None };
    let over = claim.drain_deadline.is_some_and(|deadline| now >= deadline);
    if !claim.registered || claim.terminating.is_some() || over {
        return None;
    }
    // Counted from the taint: a controller that was away when the claim was deleted taints much later.
    let rested = node.disrupted.filter(|_| node.pods == 0).map(|tainted| tainted.after(limits.drain));
    match rested {
        None => Some(Step::Drain),
        Some(rested) if now < rested => {
            Some(Step::Wait { until: Some(rested), reason: WaitReason::Draining })
        }
        Some(_) => None,
    }
}
