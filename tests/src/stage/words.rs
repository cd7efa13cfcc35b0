//! What a failure quotes: pods that did not end, claims and nodes that are there, and the end of every log.

use std::path::Path;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use scarpenter_api::NodeClaim;

use super::{LOG_LINES, Stage};

impl Stage {
    /// As much as is to be had; a cluster that does not answer is not worth another failure.
    pub(super) async fn words(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.pods().await);
        words.extend(self.claims().await);
        words.extend(self.nodes().await);
        let controllers = self.controllers.iter().map(|controller| &controller.process);
        words.extend(self.sim.iter().chain(controllers).map(|process| {
            let warnings = warnings(process.log());
            let (name, tail) = (process.name(), process.log_tail(LOG_LINES));
            format!("--- warnings of {name}:\n{warnings}\n--- the last lines of {name}:\n{tail}")
        }));
        words.join("\n")
    }

    async fn pods(&self) -> Vec<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let pods = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        let events = events.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        let living = pods.iter().filter(|pod| self.lives.of(&pod.name_any()).succeeded.is_none());
        let of = |pod: &Pod| {
            let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut lines = vec![format!("--- pod {}", pod.name_any())];
            lines.extend(conditions.map(|c| line(&c.type_, c.reason.as_deref(), c.message.as_deref())));
            let own = events.iter().filter(|event| event.involved_object.name == pod.metadata.name);
            lines.extend(own.map(|event| line("event", event.reason.as_deref(), event.message.as_deref())));
            lines.join("\n")
        };
        let mut words: Vec<String> = living.map(of).collect();
        for name in self.lives.lost() {
            words.push(format!("--- lost pod {name}"));
            let own = events.iter().filter(|event| event.involved_object.name.as_ref() == Some(&name));
            words.extend(own.map(|event| line("event", event.reason.as_deref(), event.message.as_deref())));
        }
        words
    }

    async fn claims(&self) -> Vec<String> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let claims = claims.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        let of = |claim: &NodeClaim| {
            let mut lines = vec![format!("--- claim {}: {:?}", claim.name_any(), claim.annotations())];
            let conditions = claim.conditions().iter();
            lines.extend(conditions.map(|c| line(&c.type_, Some(&c.reason), Some(&c.message))));
            lines.join("\n")
        };
        claims.iter().map(of).collect()
    }

    async fn nodes(&self) -> Vec<String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let nodes = nodes.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        let taints =
            |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        nodes.iter().map(|node| format!("--- node {}: {:?}", node.name_any(), taints(node))).collect()
    }
}

/// The latest of what a process warned of.
fn warnings(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let is_warning =
        |line: &&str| ["WARN", "ERROR"].iter().any(|level| line.contains(&format!(r#""level":"{level}""#)));
    let kept: Vec<&str> = text.lines().rev().filter(is_warning).take(LOG_LINES).collect();
    kept.into_iter().rev().collect::<Vec<_>>().join("\n")
}

fn line(what: &str, reason: Option<&str>, message: Option<&str>) -> String {
    format!("    {what} {} {}", reason.unwrap_or_default(), message.unwrap_or_default())
}
