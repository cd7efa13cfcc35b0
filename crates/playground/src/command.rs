//! The command line of each program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::authority::Files;
use crate::binaries::Binaries;
use crate::program::Program;

const SERVICE_RANGE: &str = "10.96.0.0/16";

/// Where everything of one control plane is.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
    pub(crate) files: Files,
    pub(crate) port: String,
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
}

pub(crate) fn of(program: Program, binaries: &Binaries, layout: &Layout) -> Command {
    let mut command = Command::new(binaries.path(program));
    command.current_dir(&layout.folder);
    match program {
        Program::Etcd => etcd(&mut command),
        Program::ApiServer => api_server(&mut command, layout),
        Program::ControllerManager => controller_manager(&mut command, layout),
        Program::Scheduler => scheduler(&mut command, layout),
        Program::Kubectl | Program::Kubelet => {}
    }
    command
}

/// On unix sockets in the folder, which no other user can reach and which need no port.
fn etcd(command: &mut Command) {
    let (client, peer) = ("unix://etcd.sock:0", "unix://peer.sock:0");
    command.arg("--name=playground").arg("--data-dir=etcd").arg("--unsafe-no-fsync").arg("--log-level=warn");
    flag(command, "listen-client-urls", client);
    flag(command, "advertise-client-urls", client);
    flag(command, "listen-peer-urls", peer);
    flag(command, "initial-advertise-peer-urls", peer);
    flag(command, "initial-cluster", format!("playground={peer}"));
}

fn api_server(command: &mut Command, layout: &Layout) {
    let files = &layout.files;
    flag(command, "etcd-servers", "unix://etcd.sock:0");
    flag(command, "bind-address", "127.0.0.1");
    // No node routes to the Service `kubernetes`, and its endpoint may not be on loopback.
    flag(command, "advertise-address", "127.0.0.1");
    flag(command, "endpoint-reconciler-type", "none");
    flag(command, "secure-port", &layout.port);
    flag(command, "service-cluster-ip-range", SERVICE_RANGE);
    flag(command, "authorization-mode", "Node,RBAC");
    flag(command, "enable-admission-plugins", "NodeRestriction");
    command.arg("--enable-bootstrap-token-auth").arg("--allow-privileged");
    path(command, "client-ca-file", &files.authority);
    path(command, "tls-cert-file", &files.server);
    path(command, "tls-private-key-file", &files.server_key);
    // Logs and exec: a kubelet's certificate must be of the same authority, for the address that its node has.
    path(command, "kubelet-certificate-authority", &files.authority);
    path(command, "kubelet-client-certificate", &files.kubelet_client);
    path(command, "kubelet-client-key", &files.kubelet_client_key);
    flag(command, "kubelet-preferred-address-types", "InternalIP,Hostname");
    flag(command, "service-account-issuer", "https://kubernetes.default.svc");
    path(command, "service-account-key-file", &files.service_account_public);
    path(command, "service-account-signing-key-file", &files.service_account);
}

fn controller_manager(command: &mut Command, layout: &Layout) {
    let files = &layout.files;
    path(command, "kubeconfig", &layout.controller_manager);
    flag(command, "controllers", "*,bootstrapsigner,tokencleaner");
    flag(command, "secure-port", "0");
    flag(command, "leader-elect", "false");
    flag(command, "service-cluster-ip-range", SERVICE_RANGE);
    command.arg("--use-service-account-credentials");
    path(command, "root-ca-file", &files.authority);
    path(command, "cluster-signing-cert-file", &files.authority);
    path(command, "cluster-signing-key-file", &files.authority_key);
    path(command, "service-account-private-key-file", &files.service_account);
    client_limits(command);
}

fn scheduler(command: &mut Command, layout: &Layout) {
    path(command, "kubeconfig", &layout.scheduler);
    flag(command, "secure-port", "0");
    flag(command, "leader-elect", "false");
    client_limits(command);
}

/// The defaults, meant for a shared API server, hold up hundreds of pods for a minute.
fn client_limits(command: &mut Command) {
    flag(command, "kube-api-qps", "500");
    flag(command, "kube-api-burst", "1000");
}

fn flag(command: &mut Command, name: &str, value: impl AsRef<str>) {
    command.arg(format!("--{name}={}", value.as_ref()));
}

fn path(command: &mut Command, name: &str, path: &Path) {
    let mut argument = std::ffi::OsString::from(format!("--{name}="));
    argument.push(path);
    command.arg(argument);
}
