//! Reasons of events: Karpenter's, and ours.

/// `source.component` of Karpenter's events, which its suites filter on (EVT-1).
pub const COMPONENT_KARPENTER: &str = "karpenter";
/// `reportingController` of our events.
pub const COMPONENT: &str = "scarpenter";

/// Declares constants that equal their event reason.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*
        /// Every reason of this module.
        pub const ALL: &[&str] = &[$($text),*];
    };
}

reasons! {
    /// Node: the volumes of its pods are not detached yet.
    AWAITING_VOLUME_DETACHMENT = "AwaitingVolumeDetachment";
    /// A consolidation scored high enough.
    CONSOLIDATION_APPROVED = "ConsolidationApproved";
    /// A consolidation was found.
    CONSOLIDATION_CANDIDATE = "ConsolidationCandidate";
    /// A consolidation no longer held when looked at again.
    CONSOLIDATION_REJECTED = "ConsolidationRejected";
    /// Why a node, claim or pool is not disrupted.
    DISRUPTION_BLOCKED = "DisruptionBlocked";
    /// Claim: a replacement is being launched.
    DISRUPTION_LAUNCHING = "DisruptionLaunching";
    /// Node and claim: now going.
    DISRUPTION_TERMINATING = "DisruptionTerminating";
    /// Claim: a replacement is not ready yet.
    DISRUPTION_WAITING_READINESS = "DisruptionWaitingReadiness";
    /// Pod: deleted to meet its node's deadline.
    DISRUPTED = "Disrupted";
    /// Pod: protected for a time.
    DO_NOT_DISRUPT_UNTIL = "DoNotDisruptUntil";
    /// Pod: the time of its protection is over.
    DO_NOT_DISRUPT_GRACE_PERIOD_ELAPSED = "DoNotDisruptGracePeriodElapsed";
    /// Pod: evicted.
    EVICTED = "Evicted";
    /// Claim: the node is smaller than it should be.
    FAILED_CONSISTENCY_CHECK = "FailedConsistencyCheck";
    /// Node: a pod could not be evicted.
    FAILED_DRAINING = "FailedDraining";
    /// Pod: no machine, and why.
    FAILED_SCHEDULING = "FailedScheduling";
    /// Claim or node: the machine could not be deleted.
    FAILED_TERMINATION = "FailedTermination";
    /// Claim: the vendor has none left.
    INSUFFICIENT_CAPACITY_ERROR = "InsufficientCapacityError";
    /// Pod: `karpenter.sh/do-not-disrupt` cannot be read.
    INVALID_DO_NOT_DISRUPT_ANNOTATION = "InvalidDoNotDisruptAnnotation";
    /// Pool: its own requirements leave no type.
    NO_COMPATIBLE_INSTANCE_TYPES = "NoCompatibleInstanceTypes";
    /// Claim: its class is missing or not ready.
    NODE_CLASS_NOT_READY = "NodeClassNotReady";
    /// Pool: too many nodes are unhealthy to repair any.
    NODE_REPAIR_BLOCKED = "NodeRepairBlocked";
    /// Pod: which claim or node it will get.
    NOMINATED = "Nominated";
    /// Node and claim: the time by which they go.
    TERMINATION_GRACE_PERIOD_EXPIRING = "TerminationGracePeriodExpiring";
    /// Node and claim: why they are not consolidated.
    UNCONSOLIDATABLE = "Unconsolidatable";
    /// Claim: its node joined without the taint it should carry.
    UNREGISTERED_TAINT_MISSING = "UnregisteredTaintMissing";
    /// A finalizer of ours is gone (CND-5).
    FINALIZED = "Finalized";

    /// Claim: the vendor refused for good, or time ran out; another claim follows.
    ABANDONED = "Abandoned";
    /// Claim: a machine that never joined, with the end of its console.
    NEVER_JOINED = "NeverJoined";
    /// Claim: a certificate request was denied, and why.
    CERTIFICATE_DENIED = "CertificateDenied";
    /// Claim: two machines carry its UID; one is removed.
    DUPLICATE_MACHINE = "DuplicateMachine";
    /// Node: it looks like one of ours and no live claim owns it.
    FOREIGN_NODE = "ForeignNode";
    /// Class: what a plugin did wrong.
    PROVIDER_FAILED = "ProviderFailed";
    /// A machine without a claim was deleted.
    ORPHAN_DELETED = "OrphanDeleted";
    /// The sweep stopped before it deleted too much.
    SWEEP_BRAKED = "SweepBraked";
    /// Pod and claim: the machine is there and does not take the pod that it was bought for.
    MACHINE_UNFIT = "MachineUnfit";
    /// A limit of the pool or of the controller holds a machine back.
    LIMIT_REACHED = "LimitReached";
    /// Class: mesh nodes or keys of machines that are gone could not be deleted yet.
    MESH_LEFT = "MeshLeft";
    /// Claim: its join Secret is gone.
    JOIN_SECRET_LOST = "JoinSecretLost";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ALL;

    #[test]
    fn no_two_constants_share_a_reason() {
        assert_eq!(ALL.iter().collect::<BTreeSet<_>>().len(), ALL.len());
    }
}
