//! What each type must be.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::schema;

/// What each type must be; all that is set must hold. Bounds are inclusive.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TypeSelector {
    /// Names of types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_types: Option<Globs>,
    /// Families as Spare Cores names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub families: Option<Globs>,
    /// Number of vCPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<VcpuRange>,
    /// Architectures; empty is both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::architectures")]
    pub architectures: Vec<String>,
    /// Processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceFilter>,
    /// Bounds of measured scores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub benchmarks: Vec<BenchmarkFilter>,
    /// Bounds of scores for kinds of work, where 1.0 is the median server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workload_profiles: Vec<WorkloadProfile>,
    /// What becomes of types without a score that is needed.
    #[serde(default)]
    pub unbenchmarked: Unbenchmarked,
}

/// Patterns of names: `*`, `?`, `[a-z]`, `[!x]`, over the whole name.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs {
    /// One of these must match; empty is any name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::globs")]
    pub include: Vec<String>,
    /// None of these may match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::globs")]
    pub exclude: Vec<String>,
}

/// Number of vCPUs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(validation = Rule::new("!has(self.min) || !has(self.max) || self.min <= self.max").message("min may not be above max"))]
pub struct VcpuRange {
    /// At least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min: Option<i64>,
    /// At most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max: Option<i64>,
}

/// Processor.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// Makers: `Intel`, `AMD`, `AWS`, `Ampere` and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub manufacturers: Vec<String>,
    /// How vCPUs are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::allocations")]
    pub allocations: Vec<String>,
    /// Clock in GHz by the vendor's own claim; for speed use a benchmark.
    #[serde(default, rename = "clockSpeedMinGHz", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub clock_speed_min_ghz: Option<f64>,
    /// True: more vCPUs than cores; false: one vCPU a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<bool>,
    /// Flags as `/proc/cpuinfo` names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<Flags>,
    /// Caches as the machine sees them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<Caches>,
}

/// Flags as `/proc/cpuinfo` names them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Flags {
    /// Each of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::flags")]
    pub all_of: Vec<String>,
    /// At least one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::flags")]
    pub any_of: Vec<String>,
    /// None of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::flags")]
    pub none_of: Vec<String>,
}

/// Caches, lower bounds.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// First-level data cache of a core in KiB.
    #[serde(default, rename = "l1dPerCoreMinKiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub l1d: Option<i64>,
    /// First-level instruction cache of a core in KiB.
    #[serde(default, rename = "l1iPerCoreMinKiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub l1i: Option<i64>,
    /// Second-level cache of a core in KiB.
    #[serde(default, rename = "l2PerCoreMinKiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub l2: Option<i64>,
    /// Third-level cache of one shared domain in MiB.
    #[serde(default, rename = "l3MinMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub l3: Option<i64>,
    /// Third-level cache of all domains in MiB.
    #[serde(default, rename = "l3TotalMinMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub l3_total: Option<i64>,
}

/// Memory.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("!has(self.minGiB) || !has(self.maxGiB) || self.minGiB <= self.maxGiB").message("minGiB may not be above maxGiB"))]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// At least, in GiB.
    #[serde(default, rename = "minGiB", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub min_gib: Option<f64>,
    /// At most, in GiB.
    #[serde(default, rename = "maxGiB", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_gib: Option<f64>,
    /// For each vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_vcpu: Option<SizeRange>,
}

/// A range of GiB.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("!has(self.minGiB) || !has(self.maxGiB) || self.minGiB <= self.maxGiB").message("minGiB may not be above maxGiB"))]
pub struct SizeRange {
    /// At least, in GiB.
    #[serde(default, rename = "minGiB", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub min_gib: Option<f64>,
    /// At most, in GiB.
    #[serde(default, rename = "maxGiB", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_gib: Option<f64>,
}

/// GPUs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// How many; fractions exist, and a `max` of 0 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<NumberRange>,
    /// Memory of the smallest one.
    #[serde(default, rename = "memoryPerGpu", skip_serializing_if = "Option::is_none")]
    pub memory_per_gpu: Option<GpuMemory>,
    /// Memory of all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_total: Option<GpuMemory>,
    /// Makers, as Spare Cores writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub manufacturers: Vec<String>,
    /// Models, as Spare Cores writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub models: Vec<String>,
}

/// A range of numbers.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("!has(self.min) || !has(self.max) || self.min <= self.max").message("min may not be above max"))]
pub struct NumberRange {
    /// At least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::not_negative")]
    pub min: Option<f64>,
    /// At most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::not_negative")]
    pub max: Option<f64>,
}

/// Memory of GPUs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct GpuMemory {
    /// At least, in GiB.
    #[serde(rename = "minGiB")]
    #[schemars(schema_with = "schema::positive")]
    pub min_gib: f64,
}

/// Network in Gbit/s.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// What is promised, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub baseline_min_gbps: Option<f64>,
    /// What is reached at best, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub peak_min_gbps: Option<f64>,
}

/// Disks.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Disks that come with the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalStorage>,
}

/// Disks that come with the machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LocalStorage {
    /// All together at least, in GB of 10^9 bytes.
    #[serde(default, rename = "minGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_gb: Option<i64>,
    /// At least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count_min: Option<i64>,
}

/// Price.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PriceFilter {
    /// Which price is meant; absent: spot where the template allows only spot, else on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<PriceBasis>,
    /// At most, in US dollars an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::dollars")]
    pub max_hourly: Option<String>,
    /// At most for each vCPU, in US dollars an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::dollars")]
    pub max_hourly_per_vcpu: Option<String>,
    /// Whether the fee of EKS Auto Mode is part of the price; absent is yes, and elsewhere there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_managed_fee: Option<bool>,
}

/// Which price is meant.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[schemars(inline)]
pub enum PriceBasis {
    /// On demand.
    OnDemand,
    /// Spot.
    Spot,
}

/// A benchmark and what it was run with.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct BenchmarkRef {
    /// Its id, such as `geekbench:score`.
    #[schemars(schema_with = "schema::benchmark_id")]
    pub id: String,
    /// Its config, such as `{cores: single}`; may be absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::free_form")]
    pub config: Option<Map<String, Value>>,
}

/// A bound of a measured score: `min` where more is better, `max` where less is.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("has(self.min) != has(self.max)").message("a benchmark has either min or max"))]
pub struct BenchmarkFilter {
    /// Id of the benchmark.
    #[schemars(schema_with = "schema::benchmark_id")]
    pub id: String,
    /// Its config; may be absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::free_form")]
    pub config: Option<Map<String, Value>>,
    /// At least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// At most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What the score is divided by first.
    #[serde(default)]
    pub normalize: Normalize,
}

/// What a score is divided by.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum Normalize {
    /// Nothing.
    #[default]
    None,
    /// The number of vCPUs.
    PerVcpu,
    /// The price in US dollars an hour.
    PerPrice,
}

/// A bound of a score for a kind of work.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct WorkloadProfile {
    /// `web`, `compute`, `cache`, `data_analysis`, `llm`, `cicd`, or a newer one.
    #[schemars(schema_with = "schema::profile_name")]
    pub name: String,
    /// At least; 1.0 is the median server.
    pub min: f64,
    /// What the score is divided by first.
    #[serde(default)]
    pub normalize: Normalize,
}

/// What becomes of types without a score that is needed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum Unbenchmarked {
    /// They are left out.
    #[default]
    Exclude,
    /// They are kept where another size of their family was measured and passes.
    IncludeIfFamilyQualifies,
    /// They are kept.
    Include,
}
