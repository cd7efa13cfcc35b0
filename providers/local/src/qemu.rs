//! QEMU's programs: the command lines, the versions, and what they say when they refuse.

use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;

use crate::host::Accel;
use crate::image::Image;
use crate::kinds::Kind;
use crate::store::Files;

/// Port of the kubelet.
const KUBELET_PORT: u16 = 10250;
/// Oldest version that knows every option below.
const OLDEST: u32 = 5;
/// A start that takes longer hangs.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Keys under which the user data is offered: upstream's Ignition reads the first, Flatcar's the second.
const FW_CFG: [&str; 2] = ["opt/com.coreos/config", "opt/org.flatcar-linux/config"];

/// The programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The machine.
    pub qemu: PathBuf,
    /// The tool for disks.
    pub qemu_img: PathBuf,
}

impl Default for Programs {
    /// Those on the `PATH`.
    fn default() -> Self {
        Self { qemu: "qemu-system-x86_64".into(), qemu_img: "qemu-img".into() }
    }
}

/// Why a program of QEMU did not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not there.
    #[error("{} cannot be run: install it, by `apt-get install qemu-system-x86 qemu-utils seabios` on Debian", program.display())]
    Missing {
        /// Which.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{} ended ({status}): {words}", program.display())]
    Failed {
        /// Which.
        program: PathBuf,
        /// How.
        status: ExitStatus,
        /// What it said.
        words: String,
    },
    /// It does not end.
    #[error("{} was not done after {} s", program.display(), STARTS_WITHIN.as_secs())]
    Hangs {
        /// Which.
        program: PathBuf,
    },
    /// It is too old.
    #[error("{} is version {version}, and {OLDEST} or newer is needed", program.display())]
    Old {
        /// Which.
        program: PathBuf,
        /// What it says it is.
        version: String,
    },
}

/// One machine to be started.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) image: &'a Image,
    pub(crate) accel: Accel,
    pub(crate) address: Ipv4Addr,
    pub(crate) files: &'a Files,
}

impl Programs {
    /// Both are there and new enough.
    ///
    /// # Errors
    /// Says which is not, and how it is installed.
    pub async fn demand(&self) -> Result<(), Error> {
        self.version().await.map(drop)
    }

    /// Both can be run, and the version of the machine.
    pub(crate) async fn version(&self) -> Result<String, Error> {
        run(&self.qemu_img, ["--version".into()]).await?;
        let words = run(&self.qemu, ["--version".into()]).await?;
        let version =
            words.split_whitespace().skip_while(|word| *word != "version").nth(1).unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        match major {
            Some(major) if major >= OLDEST => Ok(version.to_owned()),
            _ => Err(Error::Old {
                program: self.qemu.clone(),
                version: words.lines().next().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Makes a machine's disk over the image, at least as large as that.
    pub(crate) async fn make_overlay(&self, image: &Image, overlay: &Path, gib: u32) -> Result<(), Error> {
        let mut arguments: Vec<OsString> =
            ["create", "-q", "-f", "qcow2", "-F", image.format, "-b"].map(OsString::from).into();
        arguments.extend([image.disk.clone().into_os_string(), overlay.as_os_str().to_owned()]);
        run(&self.qemu_img, arguments).await?;
        let grow = ["resize", "-q", "-f", "qcow2"].map(OsString::from);
        let size = OsString::from(format!("{gib}G"));
        match run(&self.qemu_img, grow.into_iter().chain([overlay.as_os_str().to_owned(), size])).await {
            // The image is larger: it stays as large.
            Err(Error::Failed { words, .. }) if words.contains("shrink") => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Starts a machine; it runs on its own when this returns.
    pub(crate) async fn start(&self, start: &Start<'_>) -> Result<(), Error> {
        run(&self.qemu, start.arguments()).await.map(drop)
    }
}

impl Start<'_> {
    /// The whole command line; the user data is in none of it.
    fn arguments(&self) -> Vec<OsString> {
        let mut out: Vec<OsString> =
            ["-nodefaults", "-no-user-config", "-no-reboot", "-daemonize", "-display", "none"]
                .map(OsString::from)
                .into();
        let mut add = |option: &str, value: OsString| out.extend([option.into(), value]);
        add("-name", text(format!("guest={}", self.name)));
        add("-pidfile", self.files.pid_file().into_os_string());
        add("-machine", text("q35,usb=off,vmport=off,sata=off,smbus=off,hpet=off"));
        let (accel, cpu) = match self.accel {
            Accel::Kvm | Accel::Auto => ("kvm", "host"),
            // Containers of today want what this processor has; emulating more is slower.
            Accel::Tcg => ("tcg,thread=multi,tb-size=256", "Nehalem-v1"),
        };
        add("-accel", text(accel));
        add("-cpu", text(cpu));
        add("-smp", text(self.kind.cpus.to_string()));
        add("-m", text(self.kind.memory_mib.to_string()));
        if let Some(kernel) = &self.image.kernel {
            add("-kernel", kernel.image.clone().into_os_string());
            add("-initrd", kernel.initrd.clone().into_os_string());
            add("-append", text(&kernel.command_line));
        }
        // It appends, so that the file may be cut while the machine runs.
        add("-chardev", joined("file,id=console,append=on,path=", &self.files.console()));
        add("-serial", text("chardev:console"));
        // Nothing of a machine outlives the host, so nothing need be on its disk at once.
        add(
            "-drive",
            joined("if=none,id=disk,format=qcow2,cache=unsafe,discard=unmap,file=", &self.files.overlay()),
        );
        // A kernel beside the disk has index 0.
        add("-device", text("virtio-blk-pci,drive=disk,bootindex=1"));
        let forward = format!("user,id=net,hostfwd=tcp:{}:{KUBELET_PORT}-:{KUBELET_PORT}", self.address);
        add("-netdev", text(forward));
        add("-device", text("virtio-net-pci,netdev=net,romfile="));
        add("-device", text("virtio-rng-pci"));
        for key in FW_CFG {
            add("-fw_cfg", joined(&format!("name={key},file="), &self.files.user_data()));
        }
        out
    }
}

fn text(text: impl AsRef<str>) -> OsString {
    text.as_ref().into()
}

/// An option that ends with a path; QEMU ends a value at a comma, unless it is doubled.
fn joined(option: &str, path: &Path) -> OsString {
    format!("{option}{}", path.to_string_lossy().replace(',', ",,")).into()
}

/// Runs a program to its end and returns what it said.
async fn run(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A Ctrl-C on the terminal is for the plugin: machines live on. A start that hangs is killed when it is given up.
    command.process_group(0).kill_on_drop(true).env("LC_ALL", "C");
    let output = tokio::time::timeout(STARTS_WITHIN, command.output())
        .await
        .map_err(|_| Error::Hangs { program: program.to_owned() })?
        .map_err(|source| Error::Missing { program: program.to_owned(), source })?;
    let mut words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.push_str(&String::from_utf8_lossy(&output.stderr));
    match output.status.success() {
        true => Ok(words),
        false => {
            let words = words.trim().lines().map(str::trim).collect::<Vec<_>>().join("; ");
            Err(Error::Failed { program: program.to_owned(), status: output.status, words })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn arguments(accel: Accel) -> Vec<String> {
        let image = Image { disk: "/i/disk".into(), format: "raw", kernel: None };
        let files = Files::at(Path::new("/s,t/u"));
        let kind = Kind::named("local.small").unwrap();
        let address = Ipv4Addr::new(127, 0, 0, 7);
        let start = Start { name: "n", kind, image: &image, accel, address, files: &files };
        start.arguments().into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn a_machine_gets_the_user_data_by_both_keys_and_by_file() {
        let arguments = arguments(Accel::Tcg);
        let given: Vec<&String> =
            arguments.iter().filter(|argument| argument.starts_with("name=opt/")).collect();
        assert_eq!(
            given,
            [
                "name=opt/com.coreos/config,file=/s,,t/u/user-data.ign",
                "name=opt/org.flatcar-linux/config,file=/s,,t/u/user-data.ign"
            ]
        );
    }

    #[test]
    fn a_machine_has_what_its_type_promises() {
        let emulated = arguments(Accel::Tcg).join(" ");
        assert!(emulated.contains("-smp 1 -m 1024 ") && emulated.contains("-accel tcg"), "{emulated}");
        assert!(emulated.contains("hostfwd=tcp:127.0.0.7:10250-:10250"), "{emulated}");
        assert!(emulated.contains("-pidfile /s,t/u/pid "), "{emulated}");
        assert!(!emulated.contains("-kernel"), "{emulated}");
        assert!(arguments(Accel::Kvm).join(" ").contains("-accel kvm -cpu host"));
    }

    #[tokio::test]
    async fn a_program_that_is_missing_fails_or_is_old_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let fine = script("fine", "echo QEMU emulator version 7.2.22 '(Debian)'");
        let old = script("old", "echo QEMU emulator version 2.8.1");
        let broken = script("broken", "echo no such device >&2; exit 1");
        let programs = |qemu: &PathBuf| Programs { qemu: qemu.clone(), qemu_img: fine.clone() };
        assert_eq!(programs(&fine).version().await.unwrap(), "7.2.22");
        let missing = folder.path().join("missing");
        for (program, words) in [(&old, "2.8.1"), (&broken, "no such device"), (&missing, "apt-get install")]
        {
            let error = programs(program).version().await.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
