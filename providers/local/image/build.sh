#!/bin/sh
# Makes the test image of a machine: a Debian with containerd that the real Ignition sets up at its first boot.
# Run by scarpenter with these set: FILES (the files beside this script), WORK (a folder that goes afterwards), OUT.
# OUT gets disk.raw, vmlinuz, initrd and cmdline. Root is needed: the tree belongs to root and is entered by chroot.
set -eu
step() { echo "step: $*"; }
R=$WORK/root

step "Debian packages into a tree"
mmdebstrap --quiet --mode=root --variant=minbase --aptopt='Apt::Install-Recommends "false"' \
  --include=systemd,systemd-sysv,dbus,udev,kmod,iproute2,iptables,mount,util-linux,linux-image-cloud-amd64,containerd,runc \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  bookworm "$R" </dev/null
K=$(ls "$R/lib/modules" | head -n 1)
cp "$R/boot/vmlinuz-$K" "$WORK/vmlinuz"

step "initramfs with the real Ignition"
I=$WORK/initramfs
mkdir -p "$I/bin" "$I/dev" "$I/proc" "$I/sys" "$I/run" "$I/sysroot" "$I/etc" "$I/modules"
cp "$BUSYBOX" "$I/bin/busybox"
for name in sh mount insmod switch_root cat cut mkdir sleep echo ip chroot poweroff grep tail rm ln; do
  ln -s busybox "$I/bin/$name"
done
cp "$IGNITION" "$I/bin/ignition"
for library in $(ldd "$IGNITION" | grep -oE '/[^ ]+'); do
  mkdir -p "$I$(dirname "$library")"
  cp -L "$library" "$I$library"
done
# Ignition calls these by name: what they would do is done, or not needed in this image.
for name in modprobe setfiles udevadm; do
  printf '#!/bin/sh\nexit 0\n' >"$I/bin/$name"
done
for name in useradd usermod userdel groupadd groupdel; do
  printf '#!/bin/sh\nshift; root=$1; shift; exec chroot "$root" /usr/sbin/%s "$@"\n' "$name" >"$I/bin/$name"
done
# In the order in which they are loaded, with all that they need; what is built into the kernel is not named.
modules() {
  list=$I/modules/$1
  shift
  : >"$list"
  for name in "$@"; do
    chroot "$R" /sbin/modprobe --set-version "$K" --show-depends "$name" | sed -n 's/^insmod //p'
  done | while read -r path; do
    file=$(basename "$path")
    if ! grep -qx "$file" "$list"; then
      cp "$R$path" "$I/modules/$file"
      echo "$file" >>"$list"
    fi
  done
}
modules disk virtio_pci virtio_blk qemu_fw_cfg virtio_rng ext4
modules network virtio_net
cp "$FILES/init" "$I/init"
chmod +x "$I/init" "$I"/bin/*
(cd "$I" && find . | cpio -o -H newc --quiet) >"$WORK/initrd"

step "tree without what a machine does not need"
M=$R/lib/modules/$K/kernel
rm -rf "$R"/boot/* "$R"/usr/share/doc "$R"/usr/share/man "$R"/usr/share/locale "$R"/usr/share/info "$R"/usr/share/zoneinfo \
  "$R"/usr/share/i18n "$R"/usr/share/perl* "$R"/usr/lib/udev/hwdb.* "$R"/usr/lib/x86_64-linux-gnu/perl* \
  "$R"/usr/lib/x86_64-linux-gnu/gconv "$R"/usr/lib/firmware "$R"/var/cache/* "$R"/var/lib/apt/* "$R"/etc/selinux
for name in sound drivers/gpu drivers/infiniband drivers/scsi drivers/media drivers/usb drivers/hid drivers/input \
  drivers/ata drivers/nvme drivers/nvdimm drivers/md drivers/target drivers/cxl drivers/hv drivers/xen drivers/iommu \
  drivers/edac drivers/crypto drivers/hwmon fs/btrfs fs/xfs fs/f2fs fs/nfs fs/nfsd fs/smb fs/cifs fs/ceph fs/gfs2 fs/ocfs2 \
  fs/jfs fs/afs fs/reiserfs fs/ntfs fs/ntfs3 fs/udf fs/hfs fs/hfsplus fs/nilfs2 fs/ufs fs/dlm fs/ubifs fs/orangefs fs/coda; do
  rm -rf "${M:?}/$name"
done
find "$M/drivers/net" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
chroot "$R" /sbin/depmod "$K"

step "settings of the image"
# Without it systemd sees a first boot, and applies the presets that Ignition wrote.
rm -f "$R/etc/machine-id" "$R/var/lib/dbus/machine-id"
for unit in $(cat "$FILES/masked"); do
  ln -sf /dev/null "$R/etc/systemd/system/$unit"
done
install -D -m 644 "$FILES/99-default.preset" "$R/usr/lib/systemd/system-preset/99-default.preset"
install -D -m 644 "$FILES/80-machine.preset" "$R/usr/lib/systemd/system-preset/80-machine.preset"
install -D -m 644 "$FILES/10-machine.network" "$R/usr/lib/systemd/network/10-machine.network"
install -D -m 644 "$FILES/resolv.tmpfiles" "$R/usr/lib/tmpfiles.d/resolv.conf"
install -D -m 644 "$FILES/system.conf" "$R/etc/systemd/system.conf.d/machine.conf"
install -D -m 644 "$FILES/journald.conf" "$R/etc/systemd/journald.conf.d/machine.conf"
install -D -m 644 "$FILES/containerd.toml" "$R/etc/containerd/config.toml"
install -D -m 644 "$FILES/containerd.conf" "$R/etc/systemd/system/containerd.service.d/10-machine.conf"
install -D -m 644 "$FILES/10-machine.conflist" "$R/etc/cni/net.d/10-machine.conflist"
install -D -m 644 "$FILES/time-wait-sync.service" "$R/etc/systemd/system/systemd-time-wait-sync.service"
mkdir -p "$R/opt/cni/bin" "$R/etc/extensions"
: >"$R/etc/fstab"
rm -f "$R/etc/resolv.conf"
ln -s /run/systemd/resolve/resolv.conf "$R/etc/resolv.conf"

step "container images into containerd"
sh "$FILES/container-image.sh" "$BUSYBOX" "$WORK/layers" "$R/machine.tar" scarpenter.local/pause:1 scarpenter.local/busybox:1
sh "$FILES/import.sh" "$R"
rm -f "$R/machine.tar"

step "disk"
truncate -s 10G "$WORK/disk.raw"
mkfs.ext4 -q -F -O ^has_journal,^metadata_csum -E lazy_itable_init=1,nodiscard -m 0 -L ROOT -d "$R" "$WORK/disk.raw"
cp "$FILES/cmdline" "$WORK/cmdline"
for name in vmlinuz initrd cmdline; do
  mv "$WORK/$name" "$OUT/$name"
done
mv "$WORK/disk.raw" "$OUT/disk.raw"
