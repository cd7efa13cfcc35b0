//! Kinds that pods and daemons are read by: volumes, LimitRanges and namespaces.
//!
//! Of each object the view keeps the few fields that it needs, and here is kept a mark of those that may be what a pod
//! waits for: the planner is woken when that mark changes, and not by every write of somebody else.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::api::core::v1::{LimitRange, Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::{Resource, ResourceExt};
use scarpenter_core::pod::PodKey;
use scarpenter_index::View;
use serde::Serialize;

use super::{Sink, Synced, feed};
use crate::context::Context;

/// How many kinds [`run`] watches.
pub(super) const KINDS: usize = 6;

/// How one kind is fed into the view.
struct Kind<K> {
    apply: fn(&mut View, &K),
    remove: fn(&mut View, &K),
    keep: fn(&mut View, &BTreeSet<PodKey>),
    /// Of what a pod may wait for; `None` for kinds that no pod waits for.
    mark: Option<fn(&K) -> u64>,
}

struct Surroundings<'a, K> {
    context: &'a Context,
    kind: Kind<K>,
    marks: BTreeMap<PodKey, u64>,
}

impl<K: Resource<DynamicType = ()>> Sink<K> for Surroundings<'_, K> {
    fn apply(&mut self, object: K) {
        (self.kind.apply)(&mut self.context.view(), &object);
        let Some(mark) = self.kind.mark.map(|mark| mark(&object)) else { return };
        if self.marks.insert(key(&object), mark) != Some(mark) {
            self.context.wake.pods.notify_one();
        }
    }

    fn remove(&mut self, object: K) {
        (self.kind.remove)(&mut self.context.view(), &object);
        self.marks.remove(&key(&object));
    }

    fn listed(&mut self, names: BTreeSet<PodKey>) {
        (self.kind.keep)(&mut self.context.view(), &names);
        self.marks.retain(|key, _| names.contains(key));
    }
}

fn key<K: Resource<DynamicType = ()>>(object: &K) -> PodKey {
    PodKey::new(&object.namespace().unwrap_or_default(), &object.name_any())
}

fn names(keys: &BTreeSet<PodKey>) -> BTreeSet<String> {
    keys.iter().map(|key| key.name.clone()).collect()
}

/// Watches them for ever.
pub(super) async fn run(context: &Context, synced: &Synced) {
    let client = &context.client;
    tokio::join!(
        feed::<PersistentVolumeClaim>(client, synced, sink(context, claims())),
        feed::<PersistentVolume>(client, synced, sink(context, volumes())),
        feed::<StorageClass>(client, synced, sink(context, storage_classes())),
        feed::<CSINode>(client, synced, sink(context, csi_nodes())),
        feed::<LimitRange>(client, synced, sink(context, limit_ranges())),
        feed::<Namespace>(client, synced, sink(context, namespaces())),
    );
}

fn sink<K>(context: &Context, kind: Kind<K>) -> Surroundings<'_, K> {
    Surroundings { context, kind, marks: BTreeMap::new() }
}

fn claims() -> Kind<PersistentVolumeClaim> {
    Kind {
        apply: |view, object| view.apply_volume_claim(object),
        remove: |view, object| view.remove_volume_claim(object),
        keep: |view, keys| view.keep_volume_claims(keys),
        mark: Some(|object| {
            let phase = object.status.as_ref().map(|status| &status.phase);
            mark((&object.spec, phase, object.metadata.deletion_timestamp.is_some()))
        }),
    }
}

fn volumes() -> Kind<PersistentVolume> {
    Kind {
        apply: |view, object| view.apply_volume(object),
        remove: |view, object| view.remove_volume(&object.name_any()),
        keep: |view, keys| view.keep_volumes(&names(keys)),
        mark: Some(|object| mark((&object.spec, object.metadata.deletion_timestamp.is_some()))),
    }
}

fn storage_classes() -> Kind<StorageClass> {
    Kind {
        apply: |view, object| view.apply_storage_class(object),
        remove: |view, object| view.remove_storage_class(&object.name_any()),
        keep: |view, keys| view.keep_storage_classes(&names(keys)),
        mark: Some(|object| mark((&object.allowed_topologies, &object.volume_binding_mode))),
    }
}

fn csi_nodes() -> Kind<CSINode> {
    Kind {
        apply: |view, object| view.apply_csi_node(object),
        remove: |view, object| view.remove_csi_node(&object.name_any()),
        keep: |view, keys| view.keep_csi_nodes(&names(keys)),
        mark: None,
    }
}

fn limit_ranges() -> Kind<LimitRange> {
    Kind {
        apply: |view, object| view.apply_limit_range(object),
        remove: |view, object| view.remove_limit_range(object),
        keep: |view, keys| view.keep_limit_ranges(keys),
        mark: None,
    }
}

fn namespaces() -> Kind<Namespace> {
    Kind {
        apply: |view, object| view.apply_namespace(object),
        remove: |view, object| view.remove_namespace(&object.name_any()),
        keep: |view, keys| view.keep_namespaces(&names(keys)),
        mark: None,
    }
}

fn mark(parts: impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What came from the API as JSON can be written as JSON.
    serde_json::to_string(&parts).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marked(claim: serde_json::Value) -> u64 {
        let mark = claims().mark.unwrap();
        mark(&serde_json::from_value(claim).unwrap())
    }

    #[test]
    fn a_claim_that_is_bound_wakes_and_a_label_does_not() {
        let claim = json!({"metadata": {"name": "c"}, "spec": {}, "status": {"phase": "Pending"}});
        let mut labelled = claim.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(marked(labelled), marked(claim.clone()));
        let mut bound = claim.clone();
        bound["spec"]["volumeName"] = json!("v");
        bound["status"]["phase"] = json!("Bound");
        assert_ne!(marked(bound), marked(claim));
    }
}
