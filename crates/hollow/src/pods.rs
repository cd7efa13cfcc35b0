//! Plays the pods that are bound to the node: one watch, one timer, no polling.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::Resources;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::admission::{self, Rejection};
use crate::certificate::CALL_WITHIN;
use crate::console::Console;
use crate::pod::{self, Next, Stage};
use crate::registration::Identity;

const TRY_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The node's pods by UID.
pub(crate) struct Pods {
    node: String,
    address: Option<IpAddr>,
    allocatable: Resources,
    /// Taints that evict, as registered, until they were seen gone.
    evicting: Vec<Taint>,
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    pod: core::Pod,
    stage: Stage,
    /// A call failed: not before then.
    not_before: Option<Timestamp>,
}

impl Pods {
    pub(crate) fn new(identity: &Identity) -> Self {
        let evicts = |taint: &&Taint| taint.effect == TaintEffect::NoExecute;
        Self {
            node: identity.name.clone(),
            address: identity.address,
            allocatable: identity.allocatable.clone(),
            evicting: identity.taints.iter().filter(evicts).cloned().collect(),
            entries: BTreeMap::new(),
        }
    }

    /// Plays them until dropped. What was learned is kept for the next client.
    pub(crate) async fn play(&mut self, client: &Client, console: &Console) {
        let api: Api<core::Pod> = Api::all(client.clone());
        let config = watcher::Config::default().fields(&format!("spec.nodeName={}", self.node));
        let mut events = pin!(watcher(api, config).default_backoff());
        let mut listed = HashSet::new();
        loop {
            let pause = self.act(client, console).await;
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => self.learn(event, &mut listed),
                    Some(Err(error)) => console.failed("kubelet: cannot watch pods", &error),
                    None => return,
                },
                () = sleep(pause) => {}
            }
        }
    }

    fn learn(&mut self, event: Event<core::Pod>, listed: &mut HashSet<String>) {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(pod) => {
                listed.extend(pod.metadata.uid.clone());
                self.see(pod);
            }
            Event::InitDone => self.entries.retain(|uid, _| listed.contains(uid)),
            Event::Apply(pod) => self.see(pod),
            Event::Delete(pod) => {
                self.entries.remove(pod.metadata.uid.as_deref().unwrap_or_default());
            }
        }
    }

    fn see(&mut self, pod: core::Pod) {
        let Some(uid) = pod.metadata.uid.clone() else { return };
        match self.entries.get_mut(&uid) {
            Some(entry) => {
                // Else the stage is ours: an event may be older than what we wrote. An end is nobody's to take back.
                if pod::first_stage(&pod) == Stage::Done && entry.stage != Stage::Removed {
                    entry.stage = Stage::Done;
                }
                entry.pod = pod;
            }
            None => {
                let stage = pod::first_stage(&pod);
                self.entries.insert(uid, Entry { pod, stage, not_before: None });
            }
        }
    }

    /// Does all that is due, and says how long nothing is.
    async fn act(&mut self, client: &Client, console: &Console) -> Duration {
        let mut wake: Option<Timestamp> = None;
        let uids: Vec<String> = self.entries.keys().cloned().collect();
        for uid in uids {
            while let Some(entry) = self.entries.get(&uid) {
                let now = Timestamp::now();
                let held = entry.not_before.filter(|time| *time > now);
                let step = held
                    .map_or_else(|| pod::next(&entry.pod, entry.stage, now), |time| Next::Wait(Some(time)));
                if let Next::Wait(until) = step {
                    wake = wake.into_iter().chain(until).min();
                    break;
                }
                if let Err(error) = self.step(client, &uid, step).await {
                    console.failed("kubelet: cannot sync a pod", &error);
                    if let Some(entry) = self.entries.get_mut(&uid) {
                        entry.not_before = now.checked_add(TRY_AGAIN_AFTER).ok();
                    }
                }
            }
        }
        let pause =
            wake.map(|time| Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default());
        pause.unwrap_or(NEVER)
    }

    async fn step(&mut self, client: &Client, uid: &str, step: Next) -> Result<(), Error> {
        let Some(Entry { pod, stage, .. }) = self.entries.get(uid) else { return Ok(()) };
        let (pod, stage, now) = (pod.clone(), *stage, Timestamp::now());
        let since = if let Stage::Running(since) = stage { since } else { now };
        let next_stage = match step {
            Next::Admit => match self.admit(client, &pod).await? {
                Ok(()) => {
                    write_status(client, &pod, &pod::running(&pod, self.address, now)).await?;
                    Stage::Running(now)
                }
                Err(rejection) => {
                    write_status(client, &pod, &pod::rejected(&pod, &rejection, now)).await?;
                    Stage::Done
                }
            },
            Next::Finish { exit_code } => {
                write_status(client, &pod, &pod::finished(&pod, since, now, exit_code)).await?;
                Stage::Done
            }
            Next::Remove { record } => {
                if let Some(exit_code) = record {
                    write_status(client, &pod, &pod::finished(&pod, since, now, exit_code)).await?;
                }
                remove(client, &pod).await?;
                Stage::Removed
            }
            Next::Wait(_) => stage,
        };
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.stage = next_stage;
        }
        Ok(())
    }

    async fn admit(&mut self, client: &Client, pod: &core::Pod) -> Result<Result<(), Rejection>, Error> {
        if let Err(rejection) = admission::tolerates(pod, &self.evicting) {
            // Registered with them; the controller may have taken them off since.
            let api: Api<core::Node> = Api::all(client.clone());
            let node = answer(api.get(&self.node)).await?;
            let taints = admission::taints_of(&node);
            if admission::tolerates(pod, &taints).is_err() {
                return Ok(Err(rejection));
            }
            self.evicting.retain(|taint| taints.contains(taint));
        }
        Ok(admission::fits(&admission::requests(pod), &self.used(), &self.allocatable))
    }

    fn used(&self) -> Resources {
        let mut used = Resources::new();
        for entry in self.entries.values().filter(|entry| matches!(entry.stage, Stage::Running(_))) {
            used.add(&admission::requests(&entry.pod));
        }
        used
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("no answer")]
    NoAnswer,
    #[error("the API server refused")]
    Call(#[source] kube::Error),
}

async fn answer<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
    timeout(CALL_WITHIN, call).await.map_err(|_| Error::NoAnswer)?.map_err(Error::Call)
}

/// Success also when the pod is gone or another one has its name.
fn or_gone<T>(outcome: Result<T, Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::Call(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}

async fn write_status(client: &Client, pod: &core::Pod, status: &Value) -> Result<(), Error> {
    let (api, name) = place(client, pod);
    let params = PatchParams::default();
    or_gone(answer(api.patch_status(name, &params, &Patch::Strategic(status))).await)
}

async fn remove(client: &Client, pod: &core::Pod) -> Result<(), Error> {
    let (api, name) = place(client, pod);
    let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
    or_gone(answer(api.delete(name, &params)).await)
}

fn place<'a>(client: &Client, pod: &'a core::Pod) -> (Api<core::Pod>, &'a str) {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    (Api::namespaced(client.clone(), namespace), pod.metadata.name.as_deref().unwrap_or_default())
}
