//! Which of the catalog's scores become labels.

/// A measurement of Spare Cores that becomes a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// Its id there.
    pub id: &'static str,
    /// Value of `cores` in its config, which holds nothing else; `None` where the config is empty.
    pub cores: Option<&'static str>,
    /// Name of [`scarpenter_core::label::BENCHMARKS`].
    pub name: &'static str,
}

/// The measurements that become labels, in the order of [`scarpenter_core::label::BENCHMARKS`].
pub fn benchmarks() -> impl Iterator<Item = Benchmark> {
    NAMES.into_iter().map(|(id, cores, name)| Benchmark { id, cores, name })
}

/// Id, cores, name.
const NAMES: [(&str, Option<&str>, &str); 7] = [
    ("passmark:cpu_single_threaded_test", None, "passmark-single-thread"),
    ("passmark:cpu_mark", None, "passmark-cpu-mark"),
    ("passmark:memory_mark", None, "passmark-memory-mark"),
    ("geekbench:score", Some("single"), "geekbench-single"),
    ("geekbench:score", Some("multi"), "geekbench-multi"),
    ("stress_ng:best1", None, "stress-ng-best1"),
    ("stress_ng:bestn", None, "stress-ng-bestn"),
];

/// The label's name for a score, if there is one.
///
/// `config` is JSON and compared as such: whether it was written with blanks means nothing.
pub(crate) fn name(id: &str, config: &str) -> Option<&'static str> {
    if !NAMES.iter().any(|(known, _, _)| *known == id) {
        return None;
    }
    let cores = cores(config)?;
    NAMES
        .iter()
        .find(|(known, wanted, _)| *known == id && *wanted == cores.as_deref())
        .map(|(_, _, name)| *name)
}

/// A score rounded half up; `None` for what is no measurement.
pub(crate) fn score(score: Option<f64>) -> Option<u64> {
    let rounded = score.filter(|score| *score >= 0.0)?.round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and not negative"
    )]
    let whole = (rounded < 1e15).then_some(rounded as u64);
    whole
}

/// `cores` of a config that holds nothing else, `Some(None)` of an empty one, `None` of any other.
fn cores(config: &str) -> Option<Option<String>> {
    if matches!(config, "" | "{}") {
        return Some(None);
    }
    match serde_json::from_str(config).ok()? {
        serde_json::Value::Null => Some(None),
        serde_json::Value::Object(fields) if fields.is_empty() => Some(None),
        serde_json::Value::Object(fields) if fields.len() == 1 => {
            Some(Some(fields.get("cores")?.as_str()?.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use scarpenter_core::label::BENCHMARKS;

    use super::*;

    #[test]
    fn every_benchmark_that_is_stamped_has_a_source() {
        for wanted in BENCHMARKS {
            assert!(NAMES.iter().any(|(_, _, name)| *name == wanted), "{wanted}");
        }
        assert_eq!(NAMES.len(), BENCHMARKS.len());
    }

    #[test]
    fn a_config_is_compared_as_json_and_not_as_text() {
        for config in [r#"{"cores": "single"}"#, r#"{"cores":"single"}"#, "{ \"cores\" :\n\"single\" }"] {
            assert_eq!(name("geekbench:score", config), Some("geekbench-single"), "{config}");
        }
        assert_eq!(name("geekbench:score", r#"{"cores": "multi"}"#), Some("geekbench-multi"));
        for config in ["{}", r#"{"cores": 1}"#, r#"{"cores": "single", "avx": true}"#, "{", r#"["single"]"#] {
            assert_eq!(name("geekbench:score", config), None, "{config}");
        }
        assert_eq!(name("passmark:cpu_mark", "{ }"), Some("passmark-cpu-mark"));
        assert_eq!(name("passmark:cpu_mark", r#"{"cores": "single"}"#), None);
        assert_eq!(name("bogomips", "{}"), None);
    }

    #[test]
    fn a_score_is_rounded_half_up_and_nonsense_is_not_a_score() {
        for (raw, rounded) in
            [(2897.478, 2897), (0.5, 1), (2.5, 3), (0.49, 0), (0.499_999_999_999_999_94, 0), (0.0, 0)]
        {
            assert_eq!(score(Some(raw)), Some(rounded), "{raw}");
        }
        for raw in [Some(-1.0), Some(f64::NAN), Some(f64::INFINITY), None] {
            assert_eq!(score(raw), None, "{raw:?}");
        }
    }
}
