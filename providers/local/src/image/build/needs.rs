//! What the build needs of the machine that it runs on.

use std::fs;
use std::path::Path;

use super::Error;

pub(super) const IGNITION: &str = "/usr/lib/dracut/modules.d/30ignition/ignition";
pub(super) const BUSYBOX: &str = "/bin/busybox";
/// Plugins of a plain pod network.
pub(super) const CNI: [&str; 3] = ["/usr/lib/cni/ptp", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback"];

/// A program or file, and the Debian package that brings it.
const NEEDS: [(&str, &str); 8] = [
    ("mmdebstrap", "mmdebstrap"),
    ("mkfs.ext4", "e2fsprogs"),
    ("cpio", "cpio"),
    ("mksquashfs", "squashfs-tools"),
    ("unshare", "util-linux"),
    (IGNITION, "ignition"),
    (BUSYBOX, "busybox-static"),
    (CNI[0], "containernetworking-plugins"),
];

/// Whether everything is installed that image and extension are made with.
///
/// # Errors
/// Names the Debian packages that are missing.
pub fn demand_packages() -> Result<(), Error> {
    let missing = NEEDS.into_iter().filter(|(need, _)| !is_there(need)).map(|(_, package)| package);
    let packages = missing.collect::<Vec<_>>().join(" ");
    if packages.is_empty() { Ok(()) } else { Err(Error::Packages { packages }) }
}

fn is_there(need: &str) -> bool {
    match need {
        // Package `busybox` brings the same file, and that one does not run without its libraries.
        BUSYBOX => fs::read(BUSYBOX).is_ok_and(|text| !text.windows(10).any(|word| word == b"/ld-linux-")),
        need if need.starts_with('/') => Path::new(need).is_file(),
        need => std::env::split_paths(&path()).any(|folder| folder.join(need).is_file()),
    }
}

/// Administrators' programs are not always on the path of the others.
pub(super) fn path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_no_machine_has_is_missing() {
        assert!(is_there("sh") && is_there("/bin/sh"));
        assert!(!is_there("no-such-program") && !is_there("/no/such/program"));
    }
}
