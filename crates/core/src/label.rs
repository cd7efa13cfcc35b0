//! Label, annotation and taint keys that scarpenter reads or writes, and the rule for label values.

mod short;

pub use short::{full_key, nearest_key, short_key, short_keys};

/// `karpenter.sh/nodepool`: the pool that a claim or node belongs to.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// `karpenter.sh/capacity-type`: `on-demand` or `spot`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// `karpenter.sh/registered`: `true` once labels and taints are synced to the node.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// `karpenter.sh/initialized`: `true` once the node may take pods for good.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// `karpenter.sh/do-not-sync-taints`: on a node, `true` keeps our hands off its taints.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// `topology.kubernetes.io/zone`: the vendor's own zone name.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// `topology.kubernetes.io/region`: the vendor's own region name.
pub const REGION: &str = "topology.kubernetes.io/region";
/// `node.kubernetes.io/instance-type`: the catalog's `api_reference`.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// `kubernetes.io/arch`: `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// `kubernetes.io/os`: always `linux`.
pub const OS: &str = "kubernetes.io/os";
/// `kubernetes.io/hostname`: the claim's name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// `node.kubernetes.io/windows-build`: known to Karpenter, never stamped here.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// Vendor id of the catalog, such as `hcloud`.
pub const VENDOR: &str = "scarpenter.sparecores.com/vendor";
/// `<vendor>.<region>`: unique over vendors.
pub const UNIQUE_REGION: &str = "scarpenter.sparecores.com/region";
/// `<vendor>.<zone>`: unique over vendors.
pub const UNIQUE_ZONE: &str = "scarpenter.sparecores.com/zone";
/// Family of the instance type, such as `c8a`.
pub const INSTANCE_FAMILY: &str = "scarpenter.sparecores.com/instance-family";
/// Number of vCPUs.
pub const INSTANCE_CPU: &str = "scarpenter.sparecores.com/instance-cpu";
/// Memory in MiB as the catalog has it.
pub const INSTANCE_MEMORY: &str = "scarpenter.sparecores.com/instance-memory";
/// Whole GPUs.
pub const INSTANCE_GPU_COUNT: &str = "scarpenter.sparecores.com/instance-gpu-count";
/// GPU model, such as `A100`.
pub const INSTANCE_GPU_MODEL: &str = "scarpenter.sparecores.com/instance-gpu-model";
/// CPU maker.
pub const CPU_MANUFACTURER: &str = "scarpenter.sparecores.com/cpu-manufacturer";
/// `shared`, `burstable` or `dedicated`.
pub const CPU_ALLOCATION: &str = "scarpenter.sparecores.com/cpu-allocation";
/// Price at launch in micro-USD an hour; `Lt` is a price cap.
pub const PRICE: &str = "scarpenter.sparecores.com/price-per-hour-microusd";
/// `shared` or `single-pod`.
pub const TENANCY: &str = "scarpenter.sparecores.com/tenancy";
/// `topology.k8s.aws/zone-id`: AWS zone id, such as `usw2-az1`.
pub const AWS_ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// Prefix of the benchmark keys.
pub const BENCHMARK_PREFIX: &str = "benchmark.scarpenter.sparecores.com/";
/// Names behind [`BENCHMARK_PREFIX`]; no others are stamped.
pub const BENCHMARKS: [&str; 7] = [
    "passmark-single-thread",
    "passmark-cpu-mark",
    "passmark-memory-mark",
    "geekbench-single",
    "geekbench-multi",
    "stress-ng-best1",
    "stress-ng-bestn",
];
/// Class label: the name of the `ScarpenterNodeClass` of a claim or node.
pub const NODE_CLASS: &str = "scarpenter.sparecores.com/scarpenternodeclass";

/// Taint with which a machine registers, `karpenter.sh/unregistered:NoExecute`.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
/// Taint of a node that is about to go, `karpenter.sh/disrupted:NoSchedule`.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Taint of a single-pod machine: `scarpenter.sparecores.com/pod=<pod uid>:NoSchedule`.
pub const POD_TAINT: &str = "scarpenter.sparecores.com/pod";

/// Finalizer on claims and nodes.
pub const FINALIZER: &str = "karpenter.sh/termination";

/// `karpenter.sh/do-not-disrupt` annotation.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Annotation: whether a claim's `minValues` were lowered to what there is.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// Annotation: the offering a claim is bound to, JSON.
pub const LAUNCH: &str = "scarpenter.sparecores.com/launch";
/// Annotation: UIDs of the pods that a claim was made for, by comma; so a restart does not buy for them again.
pub const PODS: &str = "scarpenter.sparecores.com/pods";
/// Annotation: time of the latest create, RFC 3339.
pub const ATTEMPT: &str = "scarpenter.sparecores.com/attempt";
/// Annotation: the definite refusal that proves that no machine was made.
pub const REFUSED: &str = "scarpenter.sparecores.com/refused";
/// Annotation: the vendor's id of the machine.
pub const MACHINE_ID: &str = "scarpenter.sparecores.com/machine-id";
/// Annotation: SHA-256 of the public key whose client certificate was approved.
pub const CLIENT_KEY_SHA256: &str = "scarpenter.sparecores.com/client-key-sha256";
/// Annotation: id of the pre-auth key with which the machine joins its mesh, and when that key was made.
pub const MESH_KEY: &str = "scarpenter.sparecores.com/mesh-key";
/// Annotation: RFC 3339 time after which draining is forced.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";

/// Keys of every machine that a vendor sells, without the benchmark keys.
///
/// A pod may name these without the pool defining them.
pub const WELL_KNOWN: [&str; 21] = [
    NODEPOOL,
    CAPACITY_TYPE,
    ZONE,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    WINDOWS_BUILD,
    VENDOR,
    UNIQUE_REGION,
    UNIQUE_ZONE,
    INSTANCE_FAMILY,
    INSTANCE_CPU,
    INSTANCE_MEMORY,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MODEL,
    CPU_MANUFACTURER,
    CPU_ALLOCATION,
    PRICE,
    TENANCY,
    AWS_ZONE_ID,
];

/// Whether `key` is stamped on machines by us, so that a pool need not define it.
#[must_use]
pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key) || benchmark_of(key).is_some()
}

/// The benchmark that a key names, if it is one of ours.
#[must_use]
pub fn benchmark_of(key: &str) -> Option<&'static str> {
    let name = key.strip_prefix(BENCHMARK_PREFIX)?;
    BENCHMARKS.into_iter().find(|known| *known == name)
}

/// Whether `key` is one of scarpenter's own (any key of its domain or its subdomains).
#[must_use]
pub fn is_ours(key: &str) -> bool {
    let domain = key.split('/').next().unwrap_or_default();
    domain == "scarpenter.sparecores.com" || domain.ends_with(".scarpenter.sparecores.com")
}

/// Old spellings of well-known keys are read as the new ones (API-26).
#[must_use]
pub fn normalize_key(key: &str) -> &str {
    match key {
        "failure-domain.beta.kubernetes.io/zone" => ZONE,
        "failure-domain.beta.kubernetes.io/region" => REGION,
        "beta.kubernetes.io/arch" => ARCH,
        "beta.kubernetes.io/os" => OS,
        "beta.kubernetes.io/instance-type" => INSTANCE_TYPE,
        other => other,
    }
}

/// Turns any text into a label value: runs of other characters become `-`, ends trimmed, cut to 63, case kept.
///
/// The same function is used for the node and for matching, so both sides agree.
#[must_use]
pub fn label_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    let trimmed = out.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let cut: String = trimmed.chars().take(63).collect();
    cut.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_kubernetes_cannot_hold_is_mended() {
        assert_eq!(label_value("Radeon Pro V520 / (AWS)"), "Radeon-Pro-V520-AWS");
        assert_eq!(label_value("c8a.large"), "c8a.large");
        assert_eq!(label_value(&"x".repeat(80)).len(), 63);
        assert_eq!(label_value("__"), "");
    }

    #[test]
    fn only_stamped_benchmarks_are_well_known() {
        assert!(is_well_known("benchmark.scarpenter.sparecores.com/passmark-single-thread"));
        assert!(!is_well_known("benchmark.scarpenter.sparecores.com/other"));
    }
}
