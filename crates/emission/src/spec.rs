//! What an SCNodePool says, read once; the fields are those of its definition.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::refusal::{Reason, Refusal};

pub(crate) mod check;
mod selector;

pub use selector::{
    Benchmark, BenchmarkFilter, Caches, Cpu, Flags, Globs, Gpu, Local, Memory, MinGib, Network, Normalize,
    Price, PriceBasis, Profile, Range, Selector, SizeRange, Storage, Unbenchmarked,
};

/// An SCNodePool without its metadata but the name.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// Its name, and that of the NodePool.
    pub name: String,
    /// Its spec, found sound.
    pub spec: Spec,
}

impl Intent {
    /// Reads the spec of an SCNodePool and checks what its definition checks, for where no API server has done so.
    ///
    /// # Errors
    /// [`Refusal`], with the first thing that is wrong.
    pub fn parse(name: &str, spec: Value) -> Result<Self, Refusal> {
        let spec: Spec = serde_json::from_value(spec)
            .map_err(|error| Reason::InvalidSelector.because(format!("spec: {error}")))?;
        check::check(name, &spec)?;
        Ok(Self { name: name.to_owned(), spec })
    }
}

/// See `deploy/crds/scnodepools.karpenter.sparecores.com.yaml`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Spec {
    pub node_pool_template: Template,
    #[serde(default)]
    pub location: Location,
    #[serde(default)]
    pub selector: Selector,
    pub ranking: Option<Ranking>,
    #[serde(default)]
    pub refresh: Value,
    #[serde(default)]
    pub churn: Churn,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub deletion_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Template {
    #[serde(default)]
    pub metadata: Metadata,
    pub spec: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Metadata {
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Location {
    #[serde(default)]
    pub regions: Vec<String>,
    #[serde(default)]
    pub zones: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Ranking {
    pub score: Option<Score>,
    #[serde(default)]
    pub objective: Objective,
    #[serde(default)]
    pub normalize: Normalize,
    pub band: Option<Band>,
    pub families: Option<Families>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Score {
    pub benchmark: Option<Benchmark>,
    pub workload_profile: Option<String>,
}

/// What is best.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Objective {
    /// The best score.
    #[default]
    Score,
    /// The most score for a dollar an hour.
    ScorePerPrice,
    /// The lowest price.
    Price,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Band {
    pub within_percent: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Families {
    #[serde(default = "one")]
    pub min: usize,
    pub max: Option<usize>,
}

impl Default for Families {
    fn default() -> Self {
        Self { min: 1, max: None }
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the definition of the resource says what each field is")]
pub struct Churn {
    pub remove_margin_percent: u32,
    pub remove_after_refreshes: u32,
    pub max_removals_per_refresh: usize,
    pub step_interval: String,
}

impl Default for Churn {
    fn default() -> Self {
        Self {
            remove_margin_percent: 5,
            remove_after_refreshes: 2,
            max_removals_per_refresh: 3,
            step_interval: "1h".to_owned(),
        }
    }
}

fn one() -> usize {
    1
}
