//! What is known of a type's machine beside what its labels say.

use std::sync::Arc;

/// Facts of an instance type as its vendor states them or as they were measured; `None` or empty where unknown.
///
/// Texts and flag sets that many types share are kept once: make them by one `Arc` and clone it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Physical cores.
    pub cpu_cores: Option<u32>,
    /// Clock in MHz, by the vendor's own claim.
    pub cpu_mhz: Option<u32>,
    /// CPU family, such as `EPYC`.
    pub cpu_family: Arc<str>,
    /// CPU model, such as `9R45`.
    pub cpu_model: Arc<str>,
    /// Flags as `/proc/cpuinfo` names them; empty when not measured.
    pub cpu_flags: CpuFlags,
    /// First-level data cache of a core in KiB.
    pub l1d_kib: Option<u32>,
    /// First-level instruction cache of a core in KiB.
    pub l1i_kib: Option<u32>,
    /// Second-level cache of a core in KiB.
    pub l2_kib: Option<u32>,
    /// Third-level cache of one shared domain in KiB.
    pub l3_kib: Option<u32>,
    /// Third-level cache of all domains in KiB.
    pub l3_total_kib: Option<u32>,
    /// Memory that the machine showed, in MiB.
    pub memory_actual_mib: Option<u64>,
    /// GPUs in ten-thousandths: a third of one is 3333.
    pub gpu_ten_thousandths: u32,
    /// Memory of the smallest GPU in MiB.
    pub gpu_memory_min_mib: Option<u64>,
    /// Memory of all GPUs in MiB.
    pub gpu_memory_total_mib: Option<u64>,
    /// GPU maker, also where the type has only a part of one.
    pub gpu_manufacturer: Arc<str>,
    /// GPU family, such as `Ampere`.
    pub gpu_family: Arc<str>,
    /// GPU model, also where the type has only a part of one.
    pub gpu_model: Arc<str>,
    /// Network that is promised, in Mbit/s.
    pub network_baseline_mbps: Option<u32>,
    /// Network at its best, in Mbit/s.
    pub network_peak_mbps: Option<u32>,
    /// All local storage in GB, whether or not the machine starts from it.
    pub local_storage_gb: u64,
    /// How many local disks are listed; 0 also where the size alone is known.
    pub local_storages: u32,
    /// Kind of local storage, such as `nvme ssd`.
    pub storage_type: Arc<str>,
    /// Public IPv4 addresses in the price.
    pub ipv4: u32,
    /// From asking to the first command on it, on average, in milliseconds.
    pub start_millis: Option<u32>,
    /// Whether its vendor has said that it will be gone.
    pub retiring: bool,
}

/// CPU flags, sorted, each once. A clone shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuFlags(Arc<[Box<str>]>);

impl CpuFlags {
    /// Whether it has this one.
    #[must_use]
    pub fn contains(&self, flag: &str) -> bool {
        self.0.binary_search_by(|own| (**own).cmp(flag)).is_ok()
    }

    /// All of them, in text order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|flag| &**flag)
    }

    /// Whether none are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'t> FromIterator<&'t str> for CpuFlags {
    fn from_iter<I: IntoIterator<Item = &'t str>>(flags: I) -> Self {
        let mut flags: Vec<Box<str>> = flags.into_iter().map(Box::from).collect();
        flags.sort_unstable();
        flags.dedup();
        Self(flags.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_a_set_whatever_the_order_of_the_words() {
        let flags: CpuFlags = ["sha_ni", "avx", "aes", "avx"].into_iter().collect();
        assert_eq!(flags.iter().collect::<Vec<_>>(), ["aes", "avx", "sha_ni"]);
        assert!(flags.contains("avx") && !flags.contains("avx2"));
        assert_eq!(flags, ["aes", "avx", "sha_ni"].into_iter().collect());
        assert!(CpuFlags::default().is_empty());
    }
}
