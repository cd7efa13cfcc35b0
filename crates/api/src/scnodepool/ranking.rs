//! Which families are kept.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BenchmarkRef, schema};

/// Keeps the best families by the median of their sizes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(
    validation = Rule::new("self.objective == 'Price' || has(self.score)").message("ranking needs a score, unless its objective is Price"),
    validation = Rule::new("has(self.band) || (has(self.families) && has(self.families.max))").message("ranking needs a band or families.max, else it leaves nothing out")
)]
pub struct Ranking {
    /// What is compared; may be absent only with objective `Price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// What is best.
    #[serde(default)]
    pub objective: Objective,
    /// What the score, or with objective `Price` the price, is divided by first.
    #[serde(default)]
    pub normalize: RankingNormalize,
    /// How far from the best family a family may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<Band>,
    /// How many families are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub families: Option<FamilyBounds>,
}

/// A benchmark, or a workload profile.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("has(self.benchmark) != has(self.workloadProfile)").message("score is either a benchmark or a workloadProfile"))]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// A benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<BenchmarkRef>,
    /// Name of a workload profile, such as `web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::profile_name")]
    pub workload_profile: Option<String>,
}

/// What is best.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum Objective {
    /// The best score.
    #[default]
    Score,
    /// The most score for a US dollar an hour.
    ScorePerPrice,
    /// The lowest price.
    Price,
}

/// What the objective is divided by first.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[schemars(inline)]
pub enum RankingNormalize {
    /// Nothing.
    #[default]
    None,
    /// The number of vCPUs.
    PerVcpu,
}

/// How far from the best family a family may be.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Band {
    /// In percent of the best.
    #[schemars(range(min = 0, max = 100))]
    pub within_percent: i64,
}

/// How many families are kept.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[x_kube(validation = Rule::new("!has(self.max) || self.min <= self.max").message("families.min may not be above families.max"))]
pub struct FamilyBounds {
    /// At least so many, also from outside the band.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub min: i64,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max: Option<i64>,
}

impl Default for FamilyBounds {
    fn default() -> Self {
        Self { min: one(), max: None }
    }
}

fn one() -> i64 {
    1
}
