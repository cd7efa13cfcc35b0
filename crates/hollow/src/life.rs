//! One life: boot, open the document, join, run, and the dead-man timers that may end it.

use std::future::pending;
use std::time::Duration;

use kube::Client;
use rcgen::KeyPair;
use scarpenter_bootstrap::Opened;
use tokio::time::{sleep, timeout};

use crate::certificate::{self, Access};
use crate::console::Console;
use crate::disk::Disk;
use crate::lease;
use crate::node::{Shared, State};
use crate::pods::Pods;
use crate::registration::{self, Identity};
use crate::spec::Spec;

/// systemd's pause before it starts a kubelet that ended again, and how long ours grows.
const RESTART_AFTER: Duration = Duration::from_secs(5);
const RESTART_AT_MOST: Duration = Duration::from_secs(60);

/// Returns when the machine powers itself off.
pub(crate) async fn live(spec: Spec, mut disk: Disk, shared: &Shared) {
    let console = &shared.console;
    if !disk.is_used() {
        sleep(spec.boot_delay).await;
    }
    let passed = disk.boot(console);
    console.say("Ignition: fetching user data");
    let opened = match scarpenter_bootstrap::open(&spec.user_data) {
        Ok(opened) => opened,
        // As with Ignition: the boot stops here, and the machine stays on, good for nothing.
        Err(error) => {
            console.failed("Ignition failed", &error);
            return pending().await;
        }
    };
    console.say(format!("Hostname set to {}", opened.node_name));
    within(left(opened.lifetime, passed), run(spec, &opened, disk, passed, shared), || {
        console.say("scarpenter: lifetime is over, powering off")
    })
    .await;
}

/// What is left of a time from boot.
fn left(seconds: Option<u64>, passed: Duration) -> Option<Duration> {
    seconds.map(|seconds| Duration::from_secs(seconds).saturating_sub(passed))
}

/// Runs `work`, for `time` at most.
async fn within<T>(
    time: Option<Duration>,
    work: impl Future<Output = T>,
    when_over: impl FnOnce(),
) -> Option<T> {
    let Some(time) = time else { return Some(work.await) };
    let done = timeout(time, work).await.ok();
    if done.is_none() {
        when_over();
    }
    done
}

async fn run(spec: Spec, opened: &Opened, mut disk: Disk, passed: Duration, shared: &Shared) {
    shared.state.send_replace(State::Joining);
    let console = &shared.console;
    let name = spec.faults.joins_as.clone().unwrap_or_else(|| opened.node_name.clone());
    let joining = join(opened, &name, spec.faults.never_joins, &mut disk, console);
    let never = || console.say("scarpenter: never joined, powering off");
    let time = left(opened.never_joined_after, passed);
    let Some((access, client)) = within(time, joining, never).await else { return };
    let identity = Identity::new(name, opened, &spec);
    // Registered before: its Node is there, or somebody has deleted it, and a kubelet that runs does not put it back.
    if disk.node_uid().is_none() {
        let uid = registration::register(&client, &identity, console).await;
        disk.keep_node_uid(console, &uid);
    }
    shared.state.send_replace(State::Joined);
    if !disk.is_ready() {
        registration::become_ready(&client, &identity, console).await;
        disk.keep_ready(console);
    }
    serve(&access, &identity, disk, console).await;
}

/// Until it has a client certificate. Each turn asks the next server, with the same key.
async fn join(
    opened: &Opened,
    name: &str,
    never: bool,
    disk: &mut Disk,
    console: &Console,
) -> (Access, Client) {
    if never {
        console.say("scarpenter-kubelet.service: Failed to locate executable /usr/bin/kubelet");
        return pending().await;
    }
    let key = key(disk, console);
    let mut access = Access::new(opened);
    let mut pause = RESTART_AFTER;
    loop {
        match certified(&access, opened, name, &key, disk, console).await {
            Ok(certificate) => {
                access.identify(&certificate, &key);
                match access.client().await {
                    Ok(client) => return (access, client),
                    Err(error) => console.failed("kubelet: cannot use the client certificate", &error),
                }
            }
            Err(error) => console.failed("kubelet: bootstrap failed", &error),
        }
        access.next_server();
        sleep(pause).await;
        pause = RESTART_AT_MOST.min(pause * 2);
    }
}

/// The client certificate: the one on the disk, else a new one.
async fn certified(
    access: &Access,
    opened: &Opened,
    name: &str,
    key: &KeyPair,
    disk: &mut Disk,
    console: &Console,
) -> Result<Vec<u8>, certificate::Error> {
    if let Some(certificate) = disk.certificate() {
        console.say(format!("kubelet: running on as system:node:{name} with {}", access.server()));
        return Ok(certificate.as_bytes().to_vec());
    }
    console.say(format!("kubelet: bootstrapping as system:node:{name} with {}", access.server()));
    let certificate = certificate::client(access, opened, name, key).await?;
    disk.keep_certificate(console, &certificate);
    console.say("kubelet: client certificate issued");
    Ok(certificate)
}

/// The key on the disk, else a new one, which is kept before anybody is asked to sign it.
fn key(disk: &mut Disk, console: &Console) -> KeyPair {
    if let Some(key) = disk.key().and_then(|pem| KeyPair::from_pem(pem.reveal()).ok()) {
        return key;
    }
    let key = KeyPair::generate().expect("the system has random numbers");
    disk.keep_key(console, key.serialize_pem());
    key
}

/// Lease, pods and serving certificate. A server that is lost is followed by the next.
async fn serve(access: &Access, identity: &Identity, mut disk: Disk, console: &Console) {
    let mut access = access.clone();
    let mut pods = Pods::new(identity);
    let node_uid = disk.node_uid().unwrap_or_default().to_owned();
    loop {
        match access.client().await {
            Ok(client) => tokio::select! {
                () = lease::renew_until_lost(&client, identity, &node_uid) => console.say("kubelet: API server lost"),
                () = pods.play(&client, console) => {}
                () = certificate::serving(&client, identity, &mut disk, console) => {}
            },
            Err(error) => {
                console.failed("kubelet: no client", &error);
                sleep(RESTART_AFTER).await;
            }
        }
        access.next_server();
    }
}
