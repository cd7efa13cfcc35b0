use scarpenter_core::offering::InstanceType;
use scarpenter_core::pool::Class;
use scarpenter_core::resources::{EPHEMERAL_STORAGE, MEMORY, Resources};

/// What the system's own partitions take of a disk before the root file system begins.
const SYSTEM_PARTITIONS: i64 = 3 << 30;
/// Of the rest, a fiftieth goes to the file system itself.
const FILE_SYSTEM_SHARE: i64 = 50;

/// What pods can have of a machine of this type, as far as the catalog knows.
///
/// Capacity less all that kubelet keeps back: `kubeReserved`, `systemReserved` and hard eviction, whose own default is
/// 100 MiB of memory and 10 % of the disk. Of the disk, 3 GiB and then 2 % are taken off first for partitions and
/// file system, since a disk sold as 100 GB never shows 100 GB to kubelet.
/// A class whose thresholds cannot be read leaves nothing.
#[must_use]
pub fn allocatable(instance_type: &InstanceType, class: &Class) -> Resources {
    let mut real = instance_type.capacity(class.boot_disk_gib, class.kubelet.max_pods);
    let disk = real.get(EPHEMERAL_STORAGE).saturating_sub(SYSTEM_PARTITIONS).max(0);
    real.set(EPHEMERAL_STORAGE, disk - disk / FILE_SYSTEM_SHARE);
    class.kubelet.allocatable(&real).unwrap_or_default()
}

/// Of the first GiBs of memory a machine shows a twentieth less than what is sold: firmware, kernel and its page tables.
const FIRST_MEMORY: i64 = 16 << 30;
const FIRST_MEMORY_SHARE: i64 = 20;
/// Of the rest, a fiftieth.
const MEMORY_SHARE: i64 = 50;

/// What pods can count on: [`allocatable`] less the part of the memory that a machine never shows.
///
/// Vendors sell 4 GiB and the machine shows about 3.8, 768 and it shows about 757; the true figure is learned from the
/// first machine. Who asks for one type by name is given the benefit of the doubt.
#[must_use]
pub(crate) fn prudent(instance_type: &InstanceType, class: &Class) -> Resources {
    let mut out = allocatable(instance_type, class);
    let sold = i64::try_from(instance_type.memory_mib).unwrap_or(i64::MAX).saturating_mul(1 << 20);
    let hidden = sold.min(FIRST_MEMORY) / FIRST_MEMORY_SHARE + (sold - FIRST_MEMORY).max(0) / MEMORY_SHARE;
    out.set(MEMORY, out.get(MEMORY).saturating_sub(hidden).max(0));
    out
}
