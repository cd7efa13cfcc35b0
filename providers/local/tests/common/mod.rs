//! The plugin as a process, with a stand-in for QEMU: real processes and folders, no machines.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scarpenter_core::offering::{Arch, CapacityType, Place};
use scarpenter_core::resources::Resources;
use scarpenter_provider::request::Settings;
use scarpenter_provider::{Client, CreateMachine, DeleteMachine, Deleted, Endpoint, FindMachine, Image};
use tempfile::TempDir;

/// Starts as QEMU does: says its version, or writes its id and lives on by itself, with all its arguments to be seen.
/// It ends when a line comes through a pipe that nobody writes to.
const QEMU: &str = r#"#!/bin/sh
[ "$1" != --version ] || { echo "QEMU emulator version 7.2.0"; exit 0; }
case " $* " in *" guest=refused "*) echo "no such machine" >&2; exit 1;; esac
for argument in "$@"; do
  case $previous in
    -pidfile) pidfile=$argument;;
    -chardev) console=${argument#*path=};;
    -fw_cfg) document=${argument#*file=};;
  esac
  previous=$argument
done
[ -r "$document" ] || { echo "no user data" >&2; exit 1; }
printf 'booting\n' >>"$console"
mkfifo "${pidfile%pid}pipe"
# It writes its id itself, since while a process becomes another its arguments cannot be read.
setsid sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; read line <"${0%pid}pipe"' "$pidfile" "$@" >/dev/null 2>&1 </dev/null &
until [ -e "$pidfile" ]; do sleep 0.01; done
"#;
const QEMU_IMG: &str = r#"#!/bin/sh
case $1 in
  --version) echo "qemu-img version 7.2.0";;
  create) for last in "$@"; do :; done; : >"$last";;
esac
"#;

pub struct Plugin {
    child: Child,
    pub client: Client,
}

/// A folder with stand-ins, an image, and the state of a plugin that may be killed and started again.
pub struct Host(TempDir);

impl Host {
    pub fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        for (name, text) in [("qemu", QEMU), ("qemu-img", QEMU_IMG)] {
            let path = host.path(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(host.path("image"), "image").unwrap();
        host
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn machines(&self) -> PathBuf {
        self.path("state/machines")
    }

    pub async fn start(&self, more: &[&str]) -> Plugin {
        let socket = self.path("local.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_scarpenter-provider-local"));
        command.arg("--listen").arg(format!("unix://{}", socket.display()));
        for (name, file) in
            [("--image", "image"), ("--state", "state"), ("--qemu", "qemu"), ("--qemu-img", "qemu-img")]
        {
            command.arg(name).arg(self.path(file));
        }
        command.args(["--settle", "0.2"]).args(more).stdin(Stdio::null());
        command.stderr(std::fs::File::options().create(true).append(true).open(self.path("log")).unwrap());
        let child = command.spawn().unwrap();
        let client = Client::connect("local".into(), &Endpoint::Unix(socket)).unwrap();
        let mut plugin = Plugin { child, client };
        let by = Instant::now() + Duration::from_secs(60);
        while let Err(error) = plugin.client.capabilities().await {
            let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(Instant::now() < by && plugin.child.try_wait().unwrap().is_none(), "{error}: {log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        plugin
    }

    /// Ids of the processes that belong to machines of this host.
    pub fn processes(&self) -> Vec<i32> {
        processes(&self.machines())
    }
}

/// Ids of the living processes whose arguments name something in `folder`.
pub fn processes(folder: &Path) -> Vec<i32> {
    let folder = folder.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(folder)
    })
    .collect()
}

impl Drop for Host {
    /// Machines, and a plugin that a failed test has left.
    fn drop(&mut self) {
        for pid in processes(&self.path("")) {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}

impl Plugin {
    /// As a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub async fn delete_until_gone(&self, create: &CreateMachine) {
        while self.client.delete_machine(delete(create)).await.unwrap() == Deleted::Asked {}
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub fn create(claim: &str) -> CreateMachine {
    CreateMachine {
        cluster: "cluster".into(),
        claim: claim.into(),
        pool: "pool".to_owned(),
        name: format!("node-{claim}"),
        instance_type: "local.small".to_owned(),
        place: Place { region: "local".to_owned(), zone: Some("local".to_owned()), zone_id: None },
        capacity_type: CapacityType::OnDemand,
        arch: Arch::Amd64,
        image: Image::Flatcar("stable".to_owned()),
        settings: Settings::new(),
        boot_disk_gib: None,
        user_data: b"{\"secret\":\"a-token\"}".to_vec(),
        expected_capacity: Resources::default(),
    }
}

pub fn find(create: &CreateMachine) -> FindMachine {
    FindMachine { cluster: create.cluster.clone(), claim: create.claim.clone(), machine: None, place: None }
}

pub fn delete(create: &CreateMachine) -> DeleteMachine {
    let FindMachine { cluster, claim, machine, place } = find(create);
    DeleteMachine { cluster, claim, machine, place, only_this_machine: false }
}
