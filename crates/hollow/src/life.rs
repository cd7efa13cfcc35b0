//! One life: boot, open the document, join, run, and the dead-man timers that may end it.

use std::future::pending;
use std::time::Duration;

use kube::Client;
use rcgen::KeyPair;
use scarpenter_bootstrap::Opened;
use tokio::time::{sleep, timeout};

use crate::certificate::{self, Access};
use crate::console::Console;
use crate::lease;
use crate::node::{Shared, State};
use crate::pods::Pods;
use crate::registration::{self, Identity};
use crate::spec::Spec;

/// systemd's pause before it starts a kubelet that ended again, and how long ours grows.
const RESTART_AFTER: Duration = Duration::from_secs(5);
const RESTART_AT_MOST: Duration = Duration::from_secs(60);

/// Returns when the machine powers itself off.
pub(crate) async fn live(spec: Spec, shared: &Shared) {
    sleep(spec.boot_delay).await;
    let console = &shared.console;
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
    within(opened.lifetime, run(spec, &opened, shared), || {
        console.say("scarpenter: lifetime is over, powering off")
    })
    .await;
}

/// Runs `work`, for `seconds` at most.
async fn within<T>(
    seconds: Option<u64>,
    work: impl Future<Output = T>,
    when_over: impl FnOnce(),
) -> Option<T> {
    let Some(seconds) = seconds else { return Some(work.await) };
    let done = timeout(Duration::from_secs(seconds), work).await.ok();
    if done.is_none() {
        when_over();
    }
    done
}

async fn run(spec: Spec, opened: &Opened, shared: &Shared) {
    shared.state.send_replace(State::Joining);
    let console = &shared.console;
    let name = spec.faults.joins_as.clone().unwrap_or_else(|| opened.node_name.clone());
    let joining = join(opened, &name, spec.faults.never_joins, console);
    let never = || console.say("scarpenter: never joined, powering off");
    let Some((access, client)) = within(opened.never_joined_after, joining, never).await else { return };
    let identity = Identity::new(name, opened, &spec);
    let node_uid = registration::register(&client, &identity, console).await;
    shared.state.send_replace(State::Joined);
    registration::become_ready(&client, &identity, console).await;
    serve(&access, &identity, &node_uid, console).await;
}

/// Until it has a client certificate. Each turn asks the next server, with the same key.
async fn join(opened: &Opened, name: &str, never: bool, console: &Console) -> (Access, Client) {
    if never {
        console.say("scarpenter-kubelet.service: Failed to locate executable /usr/bin/kubelet");
        return pending().await;
    }
    let key = KeyPair::generate().expect("the system has random numbers");
    let mut access = Access::new(opened);
    let mut pause = RESTART_AFTER;
    loop {
        console.say(format!("kubelet: bootstrapping as system:node:{name} with {}", access.server()));
        match certificate::client(&access, opened, name, &key).await {
            Ok(certificate) => {
                access.identify(&certificate, &key);
                match access.client().await {
                    Ok(client) => {
                        console.say("kubelet: client certificate issued");
                        return (access, client);
                    }
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

/// Lease, pods and serving certificate. A server that is lost is followed by the next.
async fn serve(access: &Access, identity: &Identity, node_uid: &str, console: &Console) {
    let mut access = access.clone();
    let mut pods = Pods::new(identity);
    let mut has_serving = false;
    loop {
        match access.client().await {
            Ok(client) => tokio::select! {
                () = lease::renew_until_lost(&client, identity, node_uid) => console.say("kubelet: API server lost"),
                () = pods.play(&client, console) => {}
                () = certificate::serving(&client, identity, &mut has_serving, console) => {}
            },
            Err(error) => {
                console.failed("kubelet: no client", &error);
                sleep(RESTART_AFTER).await;
            }
        }
        access.next_server();
    }
}
