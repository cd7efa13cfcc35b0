//! The selector's fields.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Selector {
    pub instance_types: Option<Globs>,
    pub families: Option<Globs>,
    pub vcpus: Option<Range>,
    pub architectures: Vec<String>,
    pub cpu: Cpu,
    pub memory: Memory,
    pub gpu: Gpu,
    pub network: Network,
    pub storage: Storage,
    pub price: Price,
    pub benchmarks: Vec<BenchmarkFilter>,
    pub workload_profiles: Vec<Profile>,
    pub unbenchmarked: Unbenchmarked,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Globs {
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Range {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Cpu {
    pub manufacturers: Vec<String>,
    pub allocations: Vec<String>,
    #[serde(rename = "clockSpeedMinGHz")]
    pub clock_speed_min_ghz: Option<f64>,
    pub hyperthreading: Option<bool>,
    pub flags: Option<Flags>,
    pub caches: Caches,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Flags {
    pub all_of: Vec<String>,
    pub any_of: Vec<String>,
    pub none_of: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Caches {
    #[serde(rename = "l1dPerCoreMinKiB")]
    pub l1d: Option<f64>,
    #[serde(rename = "l1iPerCoreMinKiB")]
    pub l1i: Option<f64>,
    #[serde(rename = "l2PerCoreMinKiB")]
    pub l2: Option<f64>,
    #[serde(rename = "l3MinMiB")]
    pub l3: Option<f64>,
    #[serde(rename = "l3TotalMinMiB")]
    pub l3_total: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Memory {
    #[serde(rename = "minGiB")]
    pub min_gib: Option<f64>,
    #[serde(rename = "maxGiB")]
    pub max_gib: Option<f64>,
    pub per_vcpu: SizeRange,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct SizeRange {
    #[serde(rename = "minGiB")]
    pub min_gib: Option<f64>,
    #[serde(rename = "maxGiB")]
    pub max_gib: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Gpu {
    pub count: Option<Range>,
    pub memory_per_gpu: Option<MinGib>,
    pub memory_total: Option<MinGib>,
    pub manufacturers: Vec<String>,
    pub models: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct MinGib {
    #[serde(rename = "minGiB")]
    pub min_gib: f64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Network {
    pub baseline_min_gbps: Option<f64>,
    pub peak_min_gbps: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Storage {
    pub local: Local,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Local {
    #[serde(rename = "minGB")]
    pub min_gb: Option<f64>,
    pub count_min: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Price {
    pub basis: Option<PriceBasis>,
    pub max_hourly: Option<String>,
    pub max_hourly_per_vcpu: Option<String>,
    pub include_managed_fee: Option<bool>,
}

/// Which price counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum PriceBasis {
    /// On demand.
    OnDemand,
    /// Spot.
    Spot,
}

impl PriceBasis {
    /// The word in the SCNodePool.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "OnDemand",
            Self::Spot => "Spot",
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Benchmark {
    pub id: String,
    pub config: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct BenchmarkFilter {
    pub id: String,
    pub config: Option<Map<String, Value>>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    #[serde(default)]
    pub normalize: Normalize,
}

/// What a score is divided by.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Normalize {
    /// Nothing.
    #[default]
    None,
    /// The number of vCPUs.
    PerVcpu,
    /// The price in US dollars an hour.
    PerPrice,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Profile {
    pub name: String,
    pub min: f64,
    #[serde(default)]
    pub normalize: Normalize,
}

/// What becomes of types without a score that is needed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Unbenchmarked {
    /// They are left out.
    #[default]
    Exclude,
    /// They are kept where another size of their family was measured and passes.
    IncludeIfFamilyQualifies,
    /// They are kept.
    Include,
}

impl Selector {
    /// Whether it wants machines with GPUs.
    pub(crate) fn asks_for_gpus(&self) -> bool {
        let least = self.gpu.count.and_then(|count| count.min).unwrap_or(0.0);
        least > 0.0 || !self.gpu.models.is_empty() || !self.gpu.manufacturers.is_empty()
    }
}
