//! Short names of keys, as the command line takes them.

use crate::nearest::nearest;

use super::{
    ARCH, BENCHMARK_PREFIX, BENCHMARKS, CAPACITY_TYPE, INSTANCE_TYPE, REGION, WELL_KNOWN, ZONE, normalize_key,
};

/// Keys of our own domain are called what stands behind this.
const PREFIX: &str = "scarpenter.sparecores.com/";

/// Names of keys of other domains. They go before those of ours, so `region` and `zone` are the vendor's own.
const OTHERS: [(&str, &str); 5] = [
    ("arch", ARCH),
    ("region", REGION),
    ("zone", ZONE),
    ("type", INSTANCE_TYPE),
    ("capacity", CAPACITY_TYPE),
];

/// All short names, each with the key that it means.
pub fn short_keys() -> impl Iterator<Item = (&'static str, String)> {
    let others = OTHERS.into_iter().map(|(name, key)| (name, key.to_owned()));
    let ours = WELL_KNOWN.into_iter().filter_map(|key| Some((key.strip_prefix(PREFIX)?, key.to_owned())));
    let ours = ours.filter(|(name, _)| OTHERS.iter().all(|(other, _)| other != name));
    let benchmarks = BENCHMARKS.into_iter().map(|name| (name, format!("{BENCHMARK_PREFIX}{name}")));
    others.chain(ours).chain(benchmarks)
}

/// The key that a name means: a short one is looked up, one with a domain stands for itself.
#[must_use]
pub fn full_key(name: &str) -> Option<String> {
    if name.contains('/') {
        return Some(normalize_key(name).to_owned());
    }
    short_keys().find(|(short, _)| *short == name).map(|(_, key)| key)
}

/// The short name of a key; a key without one is its own.
#[must_use]
pub fn short_key(key: &str) -> &str {
    short_keys().find(|(_, full)| full == key).map_or(key, |(short, _)| short)
}

/// The short name that was probably meant by an unknown one.
///
/// A name of which `word` is the end or the beginning (`cpu`, `price`) goes before one that is a few letters off.
#[must_use]
pub fn nearest_key(word: &str) -> &'static str {
    let names: Vec<(&'static str, String)> = short_keys().collect();
    let last = word.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let (end, start) = (format!("-{last}"), format!("{last}-"));
    let part = names.iter().find(|(name, _)| name.ends_with(&end));
    if let Some((name, _)) = part.or_else(|| names.iter().find(|(name, _)| name.starts_with(&start))) {
        return name;
    }
    let all = names.iter().flat_map(|(name, key)| [*name, key.as_str()]);
    let near = nearest(word, all).unwrap_or_default();
    names.iter().find(|(name, key)| *name == near || key == near).map_or("type", |(name, _)| name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_means_one_key_and_the_key_has_that_name() {
        for (name, key) in short_keys() {
            assert_eq!(full_key(name), Some(key.clone()));
            assert_eq!(short_key(&key), name);
        }
        for (name, key) in [
            ("region", "topology.kubernetes.io/region"),
            ("vendor", "scarpenter.sparecores.com/vendor"),
            ("geekbench-multi", "benchmark.scarpenter.sparecores.com/geekbench-multi"),
        ] {
            assert_eq!(full_key(name).unwrap(), key);
        }
    }

    #[test]
    fn a_key_with_a_domain_stands_for_itself_and_an_old_spelling_for_the_new() {
        let unique = "scarpenter.sparecores.com/region";
        assert_eq!((full_key(unique).unwrap().as_str(), short_key(unique)), (unique, unique));
        assert_eq!(full_key("beta.kubernetes.io/arch").unwrap(), ARCH);
        assert_eq!(short_key("example.com/arch"), "example.com/arch");
        assert_eq!(full_key("architecture"), None);
    }

    #[test]
    fn an_unknown_name_is_near_the_one_that_was_meant() {
        for (word, name) in [
            ("cpu", "instance-cpu"),
            ("memory", "instance-memory"),
            ("price", "price-per-hour-microusd"),
            ("instance-type", "type"),
            ("passmark", "passmark-single-thread"),
            ("vender", "vendor"),
            ("architecture", "arch"),
            ("scarpenter.sparecores.com/vender", "vendor"),
            ("kubernetes.io/archs", "arch"),
        ] {
            assert_eq!(nearest_key(word), name, "{word}");
        }
    }
}
