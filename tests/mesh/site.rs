//! A control server with its relay, and machines that have a way to it and none to each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use scarpenter_playground::{Folder, Lifetime, Process};

use crate::namespace::Namespace;
use crate::programs::Programs;

/// Address of the control server and its relay.
pub(crate) const CONTROL: &str = "10.99.0.1";
const STARTS_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// All that a trial needs; it goes when dropped.
pub(crate) struct Site {
    // In the order of their ends.
    server: Process,
    control: Namespace,
    ca_pem: String,
    extensions: PathBuf,
    folder: Folder,
}

impl Site {
    /// Starts the control server, which lets in one machine for each of `keys`.
    pub(crate) fn start(programs: &Programs, keys: &[&str]) -> anyhow::Result<Self> {
        let folder = Folder::make().context("make a temporary folder")?;
        let at = |name: &str| folder.path().join(name);
        let identity = rcgen::generate_simple_self_signed([CONTROL.to_owned()])?;
        let ca_pem = identity.cert.pem();
        fs::write(at("control.crt"), &ca_pem)?;
        fs::write(at("control.key"), identity.signing_key.serialize_pem())?;
        fs::write(at("auth-keys"), keys.join("\n"))?;
        let extensions = at("extensions");
        make_extensions(&extensions, programs)?;

        let control = Namespace::bare(&at("control-namespace.log"))?;
        control.inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "0"))??;
        control.run(&format!("ip address add {CONTROL}/32 dev lo"))?;
        let program = programs.control().display().to_string();
        let (certificate, key, auth_keys) = (at("control.crt"), at("control.key"), at("auth-keys"));
        let files = [certificate, key, auth_keys].map(|path| path.display().to_string());
        let line = [
            program.as_str(),
            "-address",
            CONTROL,
            "-certificate",
            &files[0],
            "-certificate-key",
            &files[1],
            "-auth-keys",
            &files[2],
        ];
        let server =
            Process::spawn("control", &control.command(&[], &line), &at("control.log"), Lifetime::Tied)?;
        let deadline = Instant::now() + STARTS_WITHIN;
        while !server.log_tail(usize::MAX).contains("listening on") {
            if server.exited().is_some() || Instant::now() > deadline {
                bail!("the control server does not start: {}", server.log_tail(4));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Self { server, control, ca_pem, extensions, folder })
    }

    /// Gives a machine its network card, and the control server's side the other end of its cable.
    ///
    /// The card is a macvlan: the kind of a real card is none, but a veth has one, by which pods are known.
    pub(crate) fn plug(&self, number: u8, machine: &Namespace) -> anyhow::Result<()> {
        let (near, far) = (format!("10.99.{number}.1"), outer_address(number));
        let port = format!("port{number}");
        // A machine that was switched off takes a moment to let go of its end.
        self.control.output(&["ip", "link", "delete", &port])?;
        self.control.run(&format!("ip link add {port} type veth peer name cable"))?;
        self.control.give("cable", machine)?;
        self.control.run(&format!("ip address add {near}/30 dev {port}"))?;
        self.control.run(&format!("ip link set {port} up"))?;
        machine.run("ip link set cable up")?;
        machine.run("ip link add link cable name eth0 type macvlan mode passthru")?;
        machine.run(&format!("ip address add {far}/30 dev eth0"))?;
        machine.run("ip link set eth0 up")?;
        machine.run(&format!("ip route add default via {near}"))?;
        Ok(())
    }

    /// The namespaces of the control server.
    pub(crate) fn control(&self) -> &Namespace {
        &self.control
    }

    /// What the control server has said.
    pub(crate) fn said(&self) -> String {
        self.server.log_tail(usize::MAX)
    }

    /// Certificate of the control server, which machines trust.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Folder of the contents of system extensions, by name.
    pub(crate) fn extensions(&self) -> &Path {
        &self.extensions
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Address of a machine on its card.
pub(crate) fn outer_address(number: u8) -> String {
    format!("10.99.{number}.2")
}

/// What the images of the document hold: the programs of the mesh, and in place of a kubelet one that only notes how
/// it was started, and when.
fn make_extensions(folder: &Path, programs: &Programs) -> anyhow::Result<()> {
    const KUBELET: &str = "#!/bin/bash\nprintf '%s\\n' \"$@\" >/run/kubelet.new\nmv /run/kubelet.new /run/kubelet\nexec sleep infinity\n";
    let bin = |extension: &str| folder.join(extension).join("usr/bin");
    for extension in ["tailscale", "kubernetes"] {
        fs::create_dir_all(bin(extension))?;
    }
    let tailscaled = bin("tailscale").join("tailscaled");
    fs::hard_link(programs.tailscaled(), &tailscaled)
        .or_else(|_| fs::copy(programs.tailscaled(), &tailscaled).map(drop))
        .context("put tailscaled into its extension")?;
    std::os::unix::fs::symlink("tailscaled", bin("tailscale").join("tailscale"))?;
    write_program(&bin("kubernetes").join("kubelet"), KUBELET)
}

pub(crate) fn write_program(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
