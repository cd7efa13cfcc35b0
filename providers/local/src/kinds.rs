//! The types that are sold, in one table, and how much of the host is left for them.

use std::collections::BTreeMap;

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{Arch, InstanceType};

/// The vendor of local machines.
pub const VENDOR: &str = "local";
/// The only region.
pub const REGION: &str = "local";
/// The only zone.
pub const ZONE: &str = "local";

/// One type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name, such as `local.small`.
    pub name: &'static str,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory.
    pub memory_mib: u64,
    /// Disk, which takes only as much of the host's as was written to it.
    pub disk_gib: u32,
}

/// All of them.
pub const KINDS: [Kind; 5] = [
    Kind { name: "local.small", cpus: 1, memory_mib: 1024, disk_gib: 10 },
    Kind { name: "local.medium", cpus: 2, memory_mib: 2048, disk_gib: 20 },
    Kind { name: "local.large", cpus: 4, memory_mib: 8192, disk_gib: 40 },
    Kind { name: "local.xlarge", cpus: 8, memory_mib: 16384, disk_gib: 80 },
    Kind { name: "local.2xlarge", cpus: 16, memory_mib: 32768, disk_gib: 160 },
];

impl Kind {
    /// The type of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// What of the host it takes.
    #[must_use]
    pub fn room(&self) -> Room {
        Room { cpus: self.cpus, memory_mib: self.memory_mib }
    }

    /// As the catalog describes it.
    #[must_use]
    pub fn instance_type(&self) -> InstanceType {
        InstanceType {
            vendor: Vendor::from(VENDOR),
            name: self.name.to_owned(),
            arch: Arch::Amd64,
            family: VENDOR.to_owned(),
            cpu: self.cpus,
            memory_mib: self.memory_mib,
            storage_gb: u64::from(self.disk_gib),
            gpu_count: 0,
            gpu_manufacturer: String::new(),
            gpu_model: String::new(),
            cpu_manufacturer: String::new(),
            cpu_allocation: "Shared".to_owned(),
            benchmarks: BTreeMap::new(),
            hardware: Box::default(),
        }
    }
}

/// CPUs and memory of the host: what there is, what is taken, what is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// CPUs, of which each virtual one takes one.
    pub cpus: u32,
    /// Memory.
    pub memory_mib: u64,
}

impl Room {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { cpus: self.cpus + other.cpus, memory_mib: self.memory_mib + other.memory_mib }
    }

    /// What is left of it; nothing where more is taken than there is.
    #[must_use]
    pub fn without(self, taken: Self) -> Self {
        Self {
            cpus: self.cpus.saturating_sub(taken.cpus),
            memory_mib: self.memory_mib.saturating_sub(taken.memory_mib),
        }
    }

    /// Why `wanted` does not fit, in words; `None` when it does.
    #[must_use]
    pub fn lacks(self, wanted: Self) -> Option<String> {
        let Self { cpus, memory_mib } = wanted;
        let cpu = (cpus > self.cpus).then(|| format!("{} of {cpus} CPUs are free", self.cpus));
        let memory = (memory_mib > self.memory_mib)
            .then(|| format!("{} of {memory_mib} MiB of memory are free", self.memory_mib));
        match (cpu, memory) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one),
            (Some(cpu), Some(memory)) => Some(format!("{cpu} and {memory}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_names_of_their_own_and_grow() {
        for pair in KINDS.windows(2) {
            assert!(pair[0].cpus < pair[1].cpus && pair[0].memory_mib < pair[1].memory_mib);
            assert!(pair[0].disk_gib < pair[1].disk_gib);
        }
        for kind in KINDS {
            assert_eq!(Kind::named(kind.name), Some(kind));
            assert!(kind.name.starts_with("local."));
        }
        assert_eq!(Kind::named("local.tiny"), None);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let there = Room { cpus: 4, memory_mib: 4096 };
        let left = there.without(Room { cpus: 3, memory_mib: 1024 });
        assert_eq!(left, Room { cpus: 1, memory_mib: 3072 });
        assert_eq!(left.lacks(Room { cpus: 1, memory_mib: 3072 }), None);
        assert_eq!(
            left.lacks(Room { cpus: 2, memory_mib: 4096 }).as_deref(),
            Some("1 of 2 CPUs are free and 3072 of 4096 MiB of memory are free")
        );
        assert_eq!(there.without(Room { cpus: 9, memory_mib: 0 }).cpus, 0);
    }
}
