//! Pods that want a machine each, and what a watch has seen of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use scarpenter_core::label;
use serde_json::json;
use tokio::task::JoinHandle;

use super::Stage;

/// Exact types with two CPUs, the first eight of one vendor each: a pod that asks for more than one CPU fills it.
pub const EXACT: [(&str, &str); 25] = [
    ("alicloud", "ecs.c8a.large"),
    ("aws", "c7a.large"),
    ("azure", "Standard_F2als_v7"),
    ("gcp", "e2-standard-2"),
    ("hcloud", "cx23"),
    ("ovh", "c3-4"),
    ("upcloud", "2xCPU-4GB"),
    ("vultr", "vc2-2c-4gb"),
    ("alicloud", "ecs.g7.large"),
    ("aws", "c7i.large"),
    ("azure", "Standard_D2s_v6"),
    ("gcp", "c4d-standard-2"),
    ("hcloud", "cpx22"),
    ("ovh", "b3-8"),
    ("upcloud", "PREMIUM-2xCPU-4GB"),
    ("alicloud", "ecs.g8i.large"),
    ("aws", "c8a.large"),
    ("azure", "Standard_B2as_v2"),
    ("hcloud", "ccx13"),
    ("ovh", "r3-16"),
    ("upcloud", "STARTER-2xCPU-8GB"),
    ("alicloud", "ecs.t6-c1m2.large"),
    ("aws", "m7i.large"),
    ("aws", "r7i.large"),
    ("aws", "t3.medium"),
];
const RUN_SECONDS: &str = "sim.scarpenter.sparecores.com/run-seconds";
/// Pods that are created at a time.
const PARALLEL: usize = 16;

/// A pod that fills a machine of an exact type.
#[derive(Clone, Debug)]
pub struct Want {
    name: String,
    vendor: &'static str,
    instance_type: &'static str,
    run_seconds: u32,
}

impl Want {
    /// The `kind`-th of [`EXACT`], around and around; it runs for a second.
    #[must_use]
    pub fn exact(name: &str, kind: usize) -> Self {
        let (vendor, instance_type) = EXACT[kind % EXACT.len()];
        Self { name: name.to_owned(), vendor, instance_type, run_seconds: 1 }
    }

    /// So many, spread over the vendors, which run for one to five seconds.
    #[must_use]
    pub fn many(count: usize) -> Vec<Self> {
        let of = |index: usize| Self::exact(&format!("p{index}"), index).for_seconds(1 + index as u32 % 5);
        (0..count).map(of).collect()
    }

    /// It runs for so long.
    #[must_use]
    pub fn for_seconds(self, run_seconds: u32) -> Self {
        Self { run_seconds, ..self }
    }

    fn pod(&self) -> anyhow::Result<Pod> {
        let pod = json!({
            "metadata": {"name": self.name, "annotations": {RUN_SECONDS: self.run_seconds.to_string()}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "nodeSelector": {label::VENDOR: self.vendor, label::INSTANCE_TYPE: self.instance_type},
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": {"cpu": "1200m", "memory": "256Mi"}},
                }],
            },
        });
        Ok(serde_json::from_value(pod)?)
    }
}

impl Stage {
    /// Creates the pods, some at a time; each gets the time at which the API server had taken it.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub async fn create(&self, wanted: &[Want]) -> anyhow::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let creates = wanted.iter().map(|want| async {
            let pod = want.pod()?;
            api.create(&PostParams::default(), &pod)
                .await
                .with_context(|| format!("create {}", want.name))?;
            let now = microseconds();
            self.lives.note(&want.name, |life| life.created = Some(now));
            anyhow::Ok(())
        });
        futures::stream::iter(creates).buffer_unordered(PARALLEL).try_collect().await
    }
}

/// When what was seen of a pod, in microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// The API server had taken it.
    pub created: Option<u64>,
    /// The scheduler had found no place for it.
    pub unschedulable: Option<u64>,
    /// It ran.
    pub running: Option<u64>,
    /// It ran to its end.
    pub succeeded: Option<u64>,
    /// It failed, or went before its end.
    pub lost: Option<String>,
}

/// What a watch has seen of the pods of a namespace; ends with this value.
#[derive(Debug)]
pub struct Lives {
    seen: Arc<Mutex<BTreeMap<String, Life>>>,
    watch: JoinHandle<()>,
}

impl Drop for Lives {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Lives {
    pub(super) fn watch(client: &Client, namespace: &str) -> Self {
        let seen = Arc::<Mutex<BTreeMap<String, Life>>>::default();
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let taken = Arc::clone(&seen);
        let watch = tokio::spawn(events.for_each(move |event| {
            take(&taken, event);
            std::future::ready(())
        }));
        Self { seen, watch }
    }

    /// All pods.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Life> {
        lock(&self.seen).clone()
    }

    /// One pod.
    #[must_use]
    pub fn of(&self, name: &str) -> Life {
        lock(&self.seen).get(name).cloned().unwrap_or_default()
    }

    /// How many are so.
    #[must_use]
    pub fn count(&self, is: impl Fn(&Life) -> bool) -> usize {
        lock(&self.seen).values().filter(|life| is(life)).count()
    }

    /// A pod that failed, or went before its end.
    ///
    /// # Errors
    /// Says which, and how.
    pub fn refuse_lost(&self) -> anyhow::Result<()> {
        let lost: Vec<String> = lock(&self.seen)
            .iter()
            .filter_map(|(name, life)| Some(format!("{name}: {}", life.lost.as_ref()?)))
            .collect();
        anyhow::ensure!(lost.is_empty(), "pods that did not run to their end: {}", lost.join(", "));
        Ok(())
    }

    /// Names of pods that failed or went before their end.
    pub(super) fn lost(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        seen.iter().filter(|(_, life)| life.lost.is_some()).map(|(name, _)| name.clone()).collect()
    }

    fn note(&self, name: &str, change: impl FnOnce(&mut Life)) {
        change(lock(&self.seen).entry(name.to_owned()).or_default());
    }
}

fn lock(seen: &Mutex<BTreeMap<String, Life>>) -> MutexGuard<'_, BTreeMap<String, Life>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(seen: &Mutex<BTreeMap<String, Life>>, event: watcher::Result<Event<Pod>>) {
    let now = microseconds();
    match event {
        Ok(Event::Apply(pod) | Event::InitApply(pod)) => {
            see(lock(seen).entry(pod.name_any()).or_default(), &pod, now);
        }
        Ok(Event::Delete(pod)) => {
            let mut seen = lock(seen);
            let life = seen.entry(pod.name_any()).or_default();
            see(life, &pod, now);
            if life.succeeded.is_none() {
                life.lost.get_or_insert_with(|| "it was deleted before its end".to_owned());
            }
        }
        Ok(Event::Init | Event::InitDone) | Err(_) => {}
    }
}

fn see(life: &mut Life, pod: &Pod, now: u64) {
    let Some(status) = &pod.status else { return };
    let mut conditions = status.conditions.iter().flatten();
    if conditions.any(|c| c.type_ == "PodScheduled" && c.reason.as_deref() == Some("Unschedulable")) {
        life.unschedulable.get_or_insert(now);
    }
    match status.phase.as_deref() {
        Some("Running") => drop(life.running.get_or_insert(now)),
        Some("Succeeded") => {
            life.running.get_or_insert(now);
            life.succeeded.get_or_insert(now);
        }
        Some("Failed") => {
            let why = [&status.reason, &status.message].map(|words| words.as_deref().unwrap_or_default());
            life.lost.get_or_insert_with(|| format!("it failed {}", why.join(" ")));
        }
        _ => {}
    }
}

/// Wall-clock time in microseconds since 1970, as in the plugin's log.
pub(super) fn microseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}
