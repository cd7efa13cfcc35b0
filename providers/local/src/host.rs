//! What the host has: CPUs, memory, room on the disk, and whether it can run machines natively.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::kinds::Room;

/// Memory that stays with the host.
const SPARE_MIB: u64 = 512;

/// How machines are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Accel {
    /// By the processor where that can be used, else emulated.
    Auto,
    /// By the processor.
    Kvm,
    /// Emulated, about ten times slower.
    Tcg,
}

impl Accel {
    /// What is used here: KVM needs a device that this user may open.
    #[must_use]
    pub fn resolve(self) -> Self {
        let usable = || OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
        match self {
            Self::Auto if usable() => Self::Kvm,
            Self::Auto => Self::Tcg,
            chosen => chosen,
        }
    }
}

/// Limits that the user sets; what is not set is the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Virtual CPUs of all machines together.
    pub cpus: Option<u32>,
    /// Memory of all machines together.
    pub memory_mib: Option<u64>,
}

/// What machines that run have been given, and how much of their memory they have touched so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) given: Room,
    pub(crate) touched_mib: u64,
}

/// What is left for further machines.
pub(crate) fn free(limits: Limits, cpus: u32, available_mib: u64, taken: Taken) -> Room {
    // What machines were given and have not touched yet is still counted as available by the host.
    let promised = taken.given.memory_mib.saturating_sub(taken.touched_mib);
    let memory_mib = match limits.memory_mib {
        Some(limit) => limit.saturating_sub(taken.given.memory_mib),
        None => available_mib.saturating_sub(promised + SPARE_MIB),
    };
    let there = Room { cpus: limits.cpus.unwrap_or(cpus), memory_mib };
    there.without(Room { cpus: taken.given.cpus, memory_mib: 0 })
}

/// CPUs that this process may use.
pub(crate) fn cpus() -> u32 {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Memory that could be taken now without swapping, as the kernel estimates it.
pub(crate) fn available_mib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

/// Bytes that this user may still write where `folder` is.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_machines_have_not_touched_yet_is_not_free() {
        let given = Room { cpus: 2, memory_mib: 2048 };
        let taken = Taken { given, touched_mib: 700 };
        let left = free(Limits::default(), 8, 10_000, taken);
        assert_eq!(left, Room { cpus: 6, memory_mib: 10_000 - (2048 - 700) - SPARE_MIB });
    }

    #[test]
    fn a_limit_goes_before_what_the_host_has() {
        let limits = Limits { cpus: Some(3), memory_mib: Some(4096) };
        let taken = Taken { given: Room { cpus: 2, memory_mib: 1024 }, touched_mib: 0 };
        assert_eq!(free(limits, 64, 1, taken), Room { cpus: 1, memory_mib: 3072 });
        let taken = Taken { given: Room { cpus: 4, memory_mib: 8192 }, touched_mib: 0 };
        assert_eq!(free(limits, 64, 1, taken), Room::default());
    }

    #[test]
    fn this_host_has_a_cpu_some_memory_and_some_disk() {
        assert!(cpus() > 0 && available_mib() > 0);
        assert!(free_bytes(Path::new("/")).is_ok_and(|bytes| bytes > 0));
    }
}
