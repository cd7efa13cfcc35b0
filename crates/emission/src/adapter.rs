//! The providers of Karpenter that can be emitted for: all that differs between them, as data.

use crate::facts::Row;
use crate::glob::Glob;
use crate::spec::Selector;

mod azure;
mod table;

pub use table::ADAPTERS;

/// A provider of Karpenter's.
#[derive(Debug)]
pub struct Adapter {
    /// Its name in the status.
    pub id: &'static str,
    /// Group and kind of its node class.
    pub node_class: (&'static str, &'static str),
    /// Id of the vendor in the data of Spare Cores.
    pub vendor: &'static str,
    /// Architectures that it can launch.
    pub architectures: &'static [&'static str],
    /// A pool must be of exactly one of them.
    pub one_architecture: bool,
    /// How it buys, the default first.
    pub capacity: &'static [&'static str],
    /// A pool must be of exactly one of them.
    pub one_capacity: bool,
    /// It knows only the first and does not check, so nothing else may be written.
    pub pinned_capacity: bool,
    /// How zones are handled.
    pub zones: Zones,
    /// Keys that it does not put on its NodeClaims, so that nodes would drift at once.
    pub unsafe_keys: &'static [&'static str],
    /// Well-known keys besides the universal ones are unsafe all.
    pub universal_keys_only: bool,
    /// Its core is of version 1.8 or older, which refuses more keys.
    pub old_core: bool,
    /// The types that it launches are in a list of its vendor's.
    pub auto_mode: bool,
    /// Types that it cannot launch.
    pub drops: &'static [Drop],
    /// What a user should know.
    pub cautions: &'static [Caution],
}

/// How a provider handles zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// Written where the user asks.
    Asked,
    /// Always written, since it makes zones up otherwise.
    Always,
    /// Never: a region has but one.
    Never,
}

/// Types that a provider cannot launch.
#[derive(Clone, Copy, Debug)]
pub enum Drop {
    /// With fewer vCPUs.
    VcpusBelow(u32),
    /// With less memory, in MiB.
    MemoryBelow(u64),
    /// Whose names match one of these patterns.
    Named(&'static [&'static str]),
    /// Whose names are these.
    Exactly(&'static [&'static str]),
    /// With a GPU by name or count, unless of Azure's list.
    AzureGpus,
    /// That will be gone.
    Retiring,
    /// With GPUs, unless the selector asks for GPUs.
    GpusUnasked,
    /// That are not sold on demand.
    SpotOnly,
}

/// What a user should know, said once.
#[derive(Clone, Copy, Debug)]
pub struct Caution {
    /// When.
    pub when: When,
    /// What.
    pub words: &'static str,
}

/// When a caution is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// `location.zones` is set.
    Zones,
    /// The node class has this name.
    ClassNamed(&'static str),
}

impl Adapter {
    /// The adapter for node classes of a group and kind.
    #[must_use]
    pub fn of(group: &str, kind: &str) -> Option<&'static Self> {
        ADAPTERS.iter().find(|adapter| adapter.node_class == (group, kind))
    }

    /// Why it cannot launch a type.
    pub(crate) fn refuses(&self, row: &Row<'_>, selector: &Selector) -> Option<&'static str> {
        if !self.architectures.contains(&row.of.arch.as_str()) {
            return Some("the provider launches no machines of its architecture");
        }
        self.drops.iter().find_map(|drop| drop.refuses(row, selector))
    }
}

impl Drop {
    fn refuses(self, row: &Row<'_>, selector: &Selector) -> Option<&'static str> {
        let (name, gpus) = (row.name(), row.of.hardware.gpu_ten_thousandths);
        let (dropped, words) = match self {
            Self::VcpusBelow(least) => (row.of.cpu < least, "the provider wants more vCPUs"),
            Self::MemoryBelow(least) => (row.of.memory_mib < least, "the provider wants more memory"),
            Self::Named(patterns) => (
                patterns.iter().any(|pattern| Glob::parse(pattern).is_ok_and(|glob| glob.matches(name))),
                "the provider leaves types of this name out",
            ),
            Self::Exactly(names) => (names.contains(&name), "the provider leaves this type out"),
            Self::AzureGpus => (
                (name.starts_with("Standard_N") || gpus > 0) && !azure::is_known_gpu(name),
                "the provider does not know this GPU type",
            ),
            Self::Retiring => (row.of.hardware.retiring, "its vendor will retire it"),
            Self::GpusUnasked => (
                gpus > 0 && !selector.asks_for_gpus(),
                "it has GPUs, and the provider takes those only where they are asked for",
            ),
            Self::SpotOnly => (!row.on_demand, "the provider needs an on-demand price, and there is none"),
        };
        dropped.then_some(words)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn eleven_providers_are_known_by_their_node_class() {
        assert_eq!(ADAPTERS.len(), 11);
        let mut classes: Vec<_> = ADAPTERS.iter().map(|adapter| adapter.node_class).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), ADAPTERS.len());
        assert_eq!(Adapter::of("karpenter.azure.com", "AKSNodeClass").unwrap().id, "azure");
        assert!(Adapter::of("karpenter.azure.com", "NodeClass").is_none());
    }

    #[test]
    fn each_pattern_of_the_table_can_be_read() {
        for adapter in ADAPTERS {
            assert!(!adapter.capacity.is_empty() && !adapter.architectures.is_empty(), "{}", adapter.id);
            for drop in adapter.drops {
                if let Drop::Named(patterns) = drop {
                    patterns.iter().for_each(|pattern| assert!(Glob::parse(pattern).is_ok(), "{pattern}"));
                }
            }
        }
    }
}
