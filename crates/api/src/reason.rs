//! Reasons of conditions, and the words a claim's end is counted under.

/// A dependent condition that nothing has decided yet.
pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
/// Ready is False: a dependent is.
pub const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";
/// Ready is Unknown: a dependent is not True yet.
pub const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";

/// Launched: the provider failed and will be asked again.
pub const LAUNCH_FAILED: &str = "LaunchFailed";
/// Launched: the vendor has none left, or the quota is used up.
pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
/// Launched: the class is missing or not ready.
pub const NODE_CLASS_NOT_READY: &str = "NodeClassNotReady";
/// Registered: no Node with the claim's providerID.
pub const NODE_NOT_FOUND: &str = "NodeNotFound";
/// Registered: more than one Node with the claim's providerID.
pub const MULTIPLE_NODES_FOUND: &str = "MultipleNodesFound";
/// Initialized: the Node is not Ready.
pub const NODE_NOT_READY: &str = "NodeNotReady";
/// Initialized: a startup taint is still there.
pub const STARTUP_TAINTS_EXIST: &str = "StartupTaintsExist";
/// Initialized: a taint of Kubernetes' own start-up is still there.
pub const KNOWN_EPHEMERAL_TAINTS_EXIST: &str = "KnownEphemeralTaintsExist";
/// Initialized: a requested resource is not there yet.
pub const RESOURCE_NOT_REGISTERED: &str = "ResourceNotRegistered";

/// Drained: pods remain.
pub const DRAINING: &str = "Draining";
/// VolumesDetached: volumes remain.
pub const AWAITING_VOLUME_DETACHMENT: &str = "AwaitingVolumeDetachment";
/// VolumesDetached: the grace period was over first.
pub const TERMINATION_GRACE_PERIOD_ELAPSED: &str = "TerminationGracePeriodElapsed";

/// DisruptionReason: no pod is left on it.
pub const EMPTY: &str = "Empty";
/// DisruptionReason: its pool or class has changed.
pub const DRIFTED: &str = "Drifted";
/// DisruptionReason: its pods fit elsewhere, or cheaper.
pub const UNDERUTILIZED: &str = "Underutilized";

/// ValidationSucceeded: the pool contradicts itself.
pub const NODE_POOL_VALIDATION_FAILED: &str = "NodePoolValidationFailed";
/// NodeClassReady: there is no such class.
pub const NODE_CLASS_NOT_FOUND: &str = "NodeClassNotFound";
/// NodeClassReady: the class is being deleted.
pub const NODE_CLASS_TERMINATING: &str = "NodeClassTerminating";
/// NodeClassReady: the class has no Ready condition yet.
pub const NODE_CLASS_READINESS_UNKNOWN: &str = "NodeClassReadinessUnknown";
/// NodeRegistrationHealthy: too many of the last claims never joined.
pub const REGISTRATION_FAILED: &str = "RegistrationFailed";

/// Class: a field asks for something that this version does not do.
pub const NOT_SUPPORTED: &str = "NotSupported";
/// Class: a field cannot be used as it is.
pub const INVALID: &str = "Invalid";
/// Class: this API server takes no bootstrap tokens, or signs no kubelet certificates.
pub const JOIN_NOT_POSSIBLE: &str = "JoinNotPossible";
/// Class, mesh: its Headscale does not answer.
pub const MESH_UNREACHABLE: &str = "MeshUnreachable";
/// Class, mesh: what answers there is no Headscale of a version that is known, or says no.
pub const MESH_MISBEHAVES: &str = "MeshMisbehaves";
/// Class, mesh: its Headscale has no such user.
pub const MESH_USER_NOT_FOUND: &str = "MeshUserNotFound";
/// Class, mesh: the policy of its Headscale does not know a tag, or it is none.
pub const MESH_TAG_REFUSED: &str = "MeshTagRefused";
/// Class, mesh: the Secret of its API key cannot be read for now.
pub const MESH_NOT_CHECKED: &str = "MeshNotChecked";
/// Class: a Secret that it names, or the key in it, is not there.
pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
/// Class, vendor: machines would be sent more user data than the vendor takes.
pub const USER_DATA_TOO_LARGE: &str = "UserDataTooLarge";
/// Class: none of its vendors is usable.
pub const NO_VENDOR_USABLE: &str = "NoVendorUsable";
/// Class, vendor: no plugin was given for it.
pub const NO_PROVIDER: &str = "NoProvider";
/// Class, vendor: the plugin does not answer, or not in time.
pub const PROVIDER_UNAVAILABLE: &str = "ProviderUnavailable";
/// Class, vendor: the plugin answered what it must not.
pub const PROVIDER_MISBEHAVES: &str = "ProviderMisbehaves";
/// Class, vendor: the vendor refuses the credentials.
pub const UNAUTHENTICATED: &str = "Unauthenticated";
/// Class, vendor: the plugin's check of regions, images and settings found problems.
pub const VALIDATION_FAILED: &str = "ValidationFailed";
/// Class, catalog: there is none yet.
pub const NO_CATALOG: &str = "NoCatalog";
/// Class, catalog: the latest fetch failed; an older one is used.
pub const CATALOG_NOT_FETCHED: &str = "CatalogNotFetched";
/// Class, catalog: the latest one was empty, older or shrunken; the one before is used.
pub const CATALOG_REFUSED: &str = "CatalogRefused";
/// Class, catalog: it is used, but cannot be kept on disk.
pub const CATALOG_NOT_KEPT: &str = "CatalogNotKept";
/// A sweep stopped, because it would have deleted too much.
pub const SWEEP_BRAKED: &str = "SweepBraked";

/// Pod, MachineReady: no offering matches, or none is left.
pub const NO_OFFERING: &str = "NoOffering";
/// Pod, MachineReady: a machine has been asked for.
pub const CLAIM_CREATED: &str = "ClaimCreated";
/// Pod, MachineReady: the pod asks for something malformed or not yet decided.
pub const NOT_PLACEABLE: &str = "NotPlaceable";
/// Pod, MachineReady: a limit of the pool or of the controller is reached.
pub const LIMIT_REACHED: &str = "LimitReached";
/// Pod, MachineReady: everything that matches was sold out; tried again later.
pub const SOLD_OUT: &str = "SoldOut";

/// Why claims end, as metrics and events count them (LIF rows).
pub mod end {
    /// The vendor had none left.
    pub const INSUFFICIENT_CAPACITY: &str = "insufficient_capacity";
    /// The class was missing or not ready.
    pub const NODE_CLASS_NOT_READY: &str = "nodeclass_not_ready";
    /// Not launched in time.
    pub const LAUNCH_TIMEOUT: &str = "launch_timeout";
    /// Not registered in time.
    pub const REGISTRATION_TIMEOUT: &str = "registration_timeout";
    /// Older than `expireAfter`.
    pub const EXPIRED: &str = "expired";
    /// Its machine is gone.
    pub const GARBAGE_COLLECTED: &str = "garbage_collected";
    /// Nothing ran on it.
    pub const EMPTY: &str = "empty";
}
