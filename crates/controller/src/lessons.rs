//! What machines teach: what of a kind is left for pods, and which kind did not take which pod.
//!
//! The memory may be lost at any time: kinds are then learned again from the nodes that are there, and the rest costs at
//! most one machine more for each pod. So that a restart does not cost even that, it is kept in a ConfigMap, which is
//! written when something new is learned and at no other time.

mod boots;
mod file;
mod gap;
mod memory;
pub(crate) mod promise;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use scarpenter_core::resources::Resources;
use scarpenter_index::ClaimRecord;
use scarpenter_planner::Kind;
use serde_json::json;
use tokio::sync::Notify;

pub(crate) use boots::{ANNOTATION as BOOTS, mark as boots};
pub(crate) use memory::Memory;

use crate::clock;
use crate::context::Context;
use crate::provisioner::chain;

/// The ConfigMap, in the controller's namespace.
const NAME: &str = "scarpenter-lessons";
/// Its one key.
const KEY: &str = "lessons.json";
/// Several lessons of a burst are written at once.
const GATHER: Duration = Duration::from_secs(1);
/// A write that failed is tried again after this long.
const RETRY: Duration = Duration::from_secs(10);

/// The memory, and whether all of it is written.
#[derive(Debug, Default)]
pub(crate) struct Lessons {
    memory: Mutex<Memory>,
    news: Notify,
    /// One write at a time, so that the last one holds all.
    writing: tokio::sync::Mutex<()>,
}

impl Lessons {
    /// What is remembered; never held over an await.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Remembers what was written, then what the nodes show that are there.
pub(crate) async fn load(context: &Context) {
    match api(context).get_opt(NAME).await {
        Ok(Some(map)) => recall(context, &map),
        Ok(None) => {}
        Err(error) => tracing::warn!(error = %chain(&error), "lessons of earlier runs are not known"),
    }
    let nodes: Vec<(ClaimRecord, Resources)> = {
        let view = context.view();
        let of_claim = |record: &ClaimRecord| {
            let node = view.nodes_of(&record.claim.uid).next()?;
            Some((record.clone(), node.allocatable.clone()))
        };
        view.claims().filter(|record| record.claim.initialized).filter_map(of_claim).collect()
    };
    for (record, allocatable) in nodes {
        learn(context, &record, &allocatable);
    }
}

fn recall(context: &Context, map: &ConfigMap) {
    let text = map.data.as_ref().and_then(|data| data.get(KEY));
    match text.map(|text| file::read(text)) {
        Some(Ok(memory)) => context.lessons.memory().recall(memory),
        Some(Err(error)) => {
            tracing::warn!(configmap = map.name_any(), %error, "lessons of earlier runs are not used");
        }
        None => {}
    }
}

/// Takes in what the initialized node of a claim shows. Right before it is called initialized, so that what is planned
/// from then on knows it.
pub(crate) fn learn(context: &Context, record: &ClaimRecord, found: &Resources) {
    let Some((kind, launch)) = kind(record).zip(record.claim.launch.as_ref()) else { return };
    let Some(boots) = record.object.annotations().get(BOOTS) else { return };
    let class = context.view().class(&kind.class).cloned();
    if class.is_none_or(|class| self::boots(&class.spec) != *boots) {
        return;
    }
    let now = clock::now().millis().div_euclid(1000);
    let mut memory = context.lessons.memory();
    if memory.learn(kind, boots, &launch.allocatable, found, now) {
        context.metrics.kinds_learned(memory.machines().len());
        context.lessons.news.notify_one();
        tracing::info!(offering = %launch.offering, allocatable = %found, "learned what a machine has");
    }
}

/// What the planner calls the machine of a claim.
pub(crate) fn kind(record: &ClaimRecord) -> Option<Kind> {
    let offering = &record.claim.launch.as_ref()?.offering;
    Some(Kind {
        class: record.object.spec.node_class_ref.name.clone(),
        vendor: offering.vendor.clone(),
        instance_type: offering.instance_type.clone(),
    })
}

/// What the planner is told. Classes are given by the mark of what they boot now.
pub(crate) fn taught(context: &Context, boots: &BTreeMap<String, String>) -> scarpenter_planner::Lessons {
    let memory = context.lessons.memory();
    scarpenter_planner::Lessons {
        allocatable: memory.allocatable(boots),
        unfit: memory.all_unfit().clone(),
        ..scarpenter_planner::Lessons::default()
    }
}

/// Writes for ever, whenever something was learned.
pub(crate) async fn run(context: Arc<Context>) {
    loop {
        context.lessons.news.notified().await;
        tokio::time::sleep(GATHER).await;
        while let Err(error) = write(&context).await {
            tracing::warn!(error = %chain(&error), "lessons not written yet");
            tokio::time::sleep(RETRY).await;
        }
    }
}

async fn write(context: &Context) -> Result<(), kube::Error> {
    let _turn = context.lessons.writing.lock().await;
    let text = file::write(&context.lessons.memory());
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": "scarpenter"}},
        "data": {KEY: text},
    });
    let params = PatchParams::apply("scarpenter").force();
    api(context).patch(NAME, &params, &Patch::Apply(map)).await.map(drop)
}

fn api(context: &Context) -> Api<ConfigMap> {
    Api::namespaced(context.client.clone(), &context.settings.namespace)
}
