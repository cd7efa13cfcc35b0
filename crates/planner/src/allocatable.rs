use scarpenter_core::offering::InstanceType;
use scarpenter_core::pool::Class;
use scarpenter_core::resources::{EPHEMERAL_STORAGE, Resources};

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
