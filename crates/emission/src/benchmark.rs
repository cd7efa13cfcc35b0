//! From a benchmark's name and config to what was measured.

use serde_json::{Map, Number, Value};

use crate::facts::{Facts, Measurement};
use crate::refusal::{Reason, Refusal};
use crate::spec::{Benchmark, BenchmarkFilter, Intent, Normalize, Objective, Profile, Ranking};

/// Benchmarks where less is better.
const LOWER_IS_BETTER: [&str; 7] = [
    "passmark:memory_latency",
    "membench:latency",
    "redis:latency",
    "static_web:latency",
    "compression_text:ratio",
    "nvbandwidth:slot:latency",
    "nvbandwidth:p2p:latency",
];
/// Not a measure of speed, or not told with their configs.
const UNUSABLE: [&str; 3] = ["bogomips", "stress_ng:div16", "stress_ng:cpu_all"];
/// So many configs are named when one must be chosen.
const NAMED: usize = 10;

/// A bound of a score.
#[derive(Debug)]
pub(crate) struct Bound<'f> {
    pub(crate) selector: &'static str,
    pub(crate) name: String,
    pub(crate) measured: &'f Measurement<'f>,
    pub(crate) normalize: Normalize,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
}

/// Everything that scores are needed for.
#[derive(Debug)]
pub(crate) struct Wanted<'f> {
    pub(crate) bounds: Vec<Bound<'f>>,
    /// What families are ranked by, and whether more of it is better.
    pub(crate) rank: Option<(&'f Measurement<'f>, bool)>,
}

impl<'f> Wanted<'f> {
    /// Finds all that `intent` names in `facts`.
    pub(crate) fn find(intent: &Intent, facts: &'f Facts<'_>) -> Result<Self, Refusal> {
        let selector = &intent.spec.selector;
        let mut bounds = Vec::new();
        for filter in &selector.benchmarks {
            bounds.push(bound(filter, facts)?);
        }
        for profile in &selector.workload_profiles {
            bounds.push(of_profile(profile, facts)?);
        }
        let rank = intent.spec.ranking.as_ref().map(|ranking| rank(ranking, facts)).transpose()?.flatten();
        Ok(Self { bounds, rank })
    }
}

fn bound<'f>(filter: &BenchmarkFilter, facts: &'f Facts<'_>) -> Result<Bound<'f>, Refusal> {
    let BenchmarkFilter { id, config, min, max, normalize } = filter;
    let higher = higher_is_better(id);
    let bad = |what: &str| Err(Reason::InvalidBenchmarkBound.because(format!("benchmark {id}: {what}")));
    if higher && max.is_some() {
        return bad("more of it is better, so it takes min and not max");
    }
    if !higher && min.is_some() {
        return bad("less of it is better, so it takes max and not min");
    }
    if !higher && *normalize != Normalize::None {
        return bad("less of it is better, so a quotient means nothing; set normalize: None");
    }
    let measured = find(id, config.as_ref(), facts)?;
    let name = named(measured);
    Ok(Bound { selector: "benchmarks", name, measured, normalize: *normalize, min: *min, max: *max })
}

fn of_profile<'f>(profile: &Profile, facts: &'f Facts<'_>) -> Result<Bound<'f>, Refusal> {
    let measured = find_profile(&profile.name, facts)?;
    Ok(Bound {
        selector: "workloadProfiles",
        name: profile.name.clone(),
        measured,
        normalize: profile.normalize,
        min: Some(profile.min),
        max: None,
    })
}

fn rank<'f>(ranking: &Ranking, facts: &'f Facts<'_>) -> Result<Option<(&'f Measurement<'f>, bool)>, Refusal> {
    let Some(score) = ranking.score.as_ref().filter(|_| ranking.objective != Objective::Price) else {
        return Ok(None);
    };
    if let Some(name) = &score.workload_profile {
        return Ok(Some((find_profile(name, facts)?, true)));
    }
    let Benchmark { id, config } = score.benchmark.clone().unwrap_or_default();
    let higher = higher_is_better(&id);
    if !higher && (ranking.objective == Objective::ScorePerPrice || ranking.normalize != Normalize::None) {
        return Err(Reason::InvalidRanking.because(format!(
            "spec.ranking: less of {id} is better, so a quotient means nothing; use objective Score and normalize None"
        )));
    }
    Ok(Some((find(&id, config.as_ref(), facts)?, higher)))
}

fn find_profile<'f>(name: &str, facts: &'f Facts<'_>) -> Result<&'f Measurement<'f>, Refusal> {
    find(&format!("workload_profile:{name}"), Some(&Map::new()), facts)
}

fn higher_is_better(id: &str) -> bool {
    !LOWER_IS_BETTER.contains(&id)
}

/// The measurement of an id and a config; without a config the only one that there is.
fn find<'f>(
    id: &str,
    config: Option<&Map<String, Value>>,
    facts: &'f Facts<'_>,
) -> Result<&'f Measurement<'f>, Refusal> {
    let unknown =
        |what: String| Err(Reason::UnknownBenchmarkConfig.because(format!("benchmark {id}: {what}")));
    if UNUSABLE.contains(&id) {
        return unknown("it is no measure to choose by; take another".to_owned());
    }
    let own: Vec<&Measurement<'_>> = facts.measurements.iter().filter(|measured| measured.id == id).collect();
    let configs = || own.iter().take(NAMED).map(|measured| measured.config).collect::<Vec<_>>().join(", ");
    let found = match (config, own.as_slice()) {
        (_, []) => {
            let ids = facts.measurements.iter().map(|measured| measured.id);
            let hint = scarpenter_core::nearest::nearest(id, ids);
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint} is there"));
            return unknown(format!("the data has no scores of it{hint}"));
        }
        (None, [only]) => Some(*only),
        (None, _) => return unknown(format!("it needs a config, one of {}", configs())),
        (Some(config), own) => own.iter().copied().find(|measured| {
            serde_json::from_str(measured.config).is_ok_and(|stored: Value| same_fields(config, &stored))
        }),
    };
    match found {
        Some(found) => Ok(found),
        None => {
            let config = Value::Object(config.cloned().unwrap_or_default());
            unknown(format!("there is no config {config}; there is {}", configs()))
        }
    }
}

fn named(measured: &Measurement<'_>) -> String {
    if matches!(measured.config, "" | "{}") {
        measured.id.to_owned()
    } else {
        format!("{} {}", measured.id, measured.config)
    }
}

fn same_fields(wanted: &Map<String, Value>, stored: &Value) -> bool {
    let Value::Object(stored) = stored else { return stored.is_null() && wanted.is_empty() };
    wanted.len() == stored.len()
        && wanted.iter().all(|(key, value)| stored.get(key).is_some_and(|own| same(value, own)))
}

/// Whether two values mean the same: numbers by value, all else by type and value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Object(a), Value::Object(_)) => same_fields(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn configs_are_the_same_when_they_mean_the_same() {
        for (wanted, stored, expected) in [
            (r#"{"a": 8, "b": "x"}"#, r#"{"b":"x","a":8.0}"#, true),
            (r#"{"a": 8}"#, r#"{"a": "8"}"#, false),
            (r#"{"a": "8"}"#, r#"{"a": 8}"#, false),
            (r#"{"a": 8}"#, r#"{"a": 8, "b": 1}"#, false),
            (r#"{"a": 8, "b": 1}"#, r#"{"a": 8}"#, false),
            (r#"{"a": {"b": [1, 2.0]}}"#, r#"{"a":{"b":[1.0,2]}}"#, true),
            (r#"{"a": {"b": [1, 2]}}"#, r#"{"a":{"b":[2,1]}}"#, false),
            (r#"{"a": true}"#, r#"{"a": 1}"#, false),
            ("{}", "{}", true),
            ("{}", "null", true),
            (r#"{"a": null}"#, "{}", false),
        ] {
            let Value::Object(wanted) = serde_json::from_str(wanted).unwrap() else { unreachable!() };
            let stored: Value = serde_json::from_str(stored).unwrap();
            assert_eq!(same_fields(&wanted, &stored), expected, "{wanted:?} {stored}");
        }
    }
}
