//! Events: what happened and why, on the object that it happened to.
//!
//! kube's recorder keeps the first note of equal events and drops later ones; a "why" that changes would be lost.
//! So these are written here, and equal ones (object, reason, note) at most once in [`AGAIN`].

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, Resource, ResourceExt};

/// The same event is not written again within this time.
const AGAIN: Duration = Duration::from_secs(120);
/// Longest note that the API server takes.
const NOTE: usize = 1024;

/// Whether somebody should worry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

/// Writes events; clones share the memory of what was written.
#[derive(Debug)]
pub(crate) struct Events {
    component: String,
    seen: Mutex<HashMap<(String, &'static str, String), Instant>>,
}

impl Events {
    pub(crate) fn new(component: &str) -> Self {
        Self { component: component.to_owned(), seen: Mutex::default() }
    }

    /// Publishes about `object`; a failure is logged, since an event is never worth failing for.
    pub(crate) async fn publish<K>(
        &self,
        client: &Client,
        object: &K,
        severity: Severity,
        reason: &'static str,
        note: &str,
    ) where
        K: Resource<DynamicType = ()>,
    {
        let about = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            name: Some(object.name_any()),
            namespace: object.namespace(),
            uid: object.uid(),
            ..ObjectReference::default()
        };
        self.publish_about(client, about, severity, reason, note).await;
    }

    /// Publishes about an object of which only the reference is at hand.
    pub(crate) async fn publish_about(
        &self,
        client: &Client,
        about: ObjectReference,
        severity: Severity,
        reason: &'static str,
        note: &str,
    ) {
        let note = cut(note);
        if !self.is_new(about.uid.as_deref().unwrap_or_default(), reason, note) {
            return;
        }
        let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let event = self.event(about, severity, reason, note, &namespace);
        if let Err(error) =
            Api::namespaced(client.clone(), &namespace).create(&PostParams::default(), &event).await
        {
            tracing::debug!(%error, reason, "event not written");
        }
    }

    fn event(
        &self,
        about: ObjectReference,
        severity: Severity,
        reason: &str,
        note: &str,
        namespace: &str,
    ) -> Event {
        let now = Time(Timestamp::now());
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}.", about.name.as_deref().unwrap_or("scarpenter"))),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: about,
            reason: Some(reason.to_owned()),
            message: Some(note.to_owned()),
            type_: Some(if severity == Severity::Normal { "Normal" } else { "Warning" }.to_owned()),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            count: Some(1),
            ..Event::default()
        }
    }

    fn is_new(&self, uid: &str, reason: &'static str, note: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        seen.retain(|_, at| now.duration_since(*at) < AGAIN);
        seen.insert((uid.to_owned(), reason, note.to_owned()), now).is_none()
    }
}

fn cut(note: &str) -> &str {
    let mut end = note.len().min(NOTE);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    &note[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_event_is_written_once_and_a_new_note_at_once() {
        let events = Events::new("scarpenter");
        assert!(events.is_new("u", "FailedScheduling", "a"));
        assert!(!events.is_new("u", "FailedScheduling", "a"));
        assert!(events.is_new("u", "FailedScheduling", "b"));
    }

    #[test]
    fn a_long_note_is_cut_at_a_letter() {
        assert_eq!(cut(&"ö".repeat(600)).len(), 1024);
    }
}
