//! Explanations as other programs read them: version 1.
//!
//! Fields are only ever added to a version; a change of meaning makes a new one.
//! Prices are integers in micro-USD an hour. `plan --explain` has the same under `explanations`.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use scarpenter_api::condition;
use scarpenter_planner::{Advice, Explanation, NodeRefusal, Outcome, Priced, RuleLine};
use serde::Serialize;

use super::words;
use crate::plan::contract::OfferingDocument;

/// So many events are told.
const EVENTS: usize = 5;

/// What `explain pod` answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnswerDocument<'a> {
    /// Always 1.
    pub(super) version: u32,
    /// `namespace/name`.
    pub(super) pod: String,
    /// `pending`, `not-unschedulable` or `of-others` where it is explained; else `bound`, `finished`, `daemon-set`,
    /// `static`, `gated`, `making-room` or `awaits-machine`.
    pub(super) state: &'static str,
    /// The state in words.
    pub(super) message: Option<String>,
    /// What would be planned for it now, among all other pending pods.
    pub(super) explanation: Option<ExplanationDocument>,
    /// NodePools that are left out, and why; kinds of objects that could not be read.
    pub(super) notes: &'a [String],
    /// What the pod was told so far.
    #[serde(flatten)]
    pub(super) told: &'a Told,
    /// What the explanation does not know.
    pub(super) not_seen: Option<&'static str>,
}

/// What comes of one pod, and why.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplanationDocument {
    /// `namespace/name`.
    pod: String,
    /// `machine` (one is bought), `node` (it waits for a node or claim that exists), `refused` or `deferred`.
    outcome: &'static str,
    /// The NodePool that the machine is bought for.
    node_pool: Option<String>,
    /// What is bought.
    offering: Option<OfferingDocument>,
    /// Other pods of that machine.
    beside: Vec<String>,
    /// The node or claim that it waits for.
    node: Option<String>,
    /// Of a refusal: the first rule that left nothing, a stable identifier.
    reason: Option<String>,
    /// Of a refusal: what is wrong and what to change.
    message: Option<String>,
    /// The rules in the order of evaluation, up to that which left nothing.
    rules: Vec<RuleDocument>,
    /// About the first rule that took the cheapest offering away, and about each further one that it would help to change.
    advice: Vec<AdviceDocument>,
    /// Nodes and claims that did not take it, those that came nearest first.
    nodes: Vec<NodeDocument>,
    /// How many further ones did not.
    more_nodes: usize,
}

/// One rule.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleDocument {
    /// A stable identifier.
    rule: String,
    /// What is asked, in words; empty when nothing is.
    asked: String,
    /// How many offerings it removed.
    removed: usize,
    /// How many it left.
    left: usize,
    /// The cheapest offering with room for the pod before it.
    cheapest_before: Option<OfferingDocument>,
    /// The same after it.
    cheapest_after: Option<OfferingDocument>,
}

/// What to change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AdviceDocument {
    /// The rule.
    rule: String,
    /// What to change, and what would come of it.
    message: String,
    /// Whether something cheaper, or anything at all, would be bought without the rule.
    helps: bool,
    /// The cheapest offering that the rule removed.
    removed: OfferingDocument,
    /// What would be bought without the rule.
    instead: Option<OfferingDocument>,
}

/// A node that did not take the pod.
#[derive(Debug, Serialize)]
struct NodeDocument {
    /// Node, or claim while there is no node.
    node: String,
    /// A stable identifier.
    reason: &'static str,
    /// For a person.
    message: String,
}

impl ExplanationDocument {
    pub(crate) fn new(explanation: &Explanation) -> Self {
        let mut out = Self {
            pod: explanation.pod.to_string(),
            outcome: "deferred",
            node_pool: None,
            offering: None,
            beside: Vec::new(),
            node: None,
            reason: None,
            message: None,
            rules: explanation.rules.iter().map(RuleDocument::new).collect(),
            advice: explanation.advice.iter().map(AdviceDocument::new).collect(),
            nodes: explanation.nodes.iter().map(NodeDocument::new).collect(),
            more_nodes: explanation.more_nodes,
        };
        match &explanation.outcome {
            Outcome::Machine { pool, bought, beside } => {
                out.outcome = "machine";
                out.node_pool = Some(pool.clone());
                out.offering = Some(offering(bought));
                out.beside = beside.iter().map(ToString::to_string).collect();
            }
            Outcome::Place { name, .. } => {
                out.outcome = "node";
                out.node = Some(name.clone());
            }
            Outcome::Refused(refusal) => {
                out.outcome = "refused";
                out.reason = Some(refusal.reason.clone());
                out.message = Some(refusal.message.clone());
            }
            Outcome::Deferred => {}
        }
        out
    }
}

fn offering(priced: &Priced) -> OfferingDocument {
    OfferingDocument::new(&priced.offering, priced.arch, priced.price)
}

impl RuleDocument {
    fn new(line: &RuleLine) -> Self {
        Self {
            rule: line.rule.clone(),
            asked: line.asked.clone(),
            removed: line.removed,
            left: line.left,
            cheapest_before: line.cheapest_before.as_ref().map(offering),
            cheapest_after: line.cheapest_after.as_ref().map(offering),
        }
    }
}

impl AdviceDocument {
    fn new(advice: &Advice) -> Self {
        Self {
            rule: advice.rule.clone(),
            message: advice.words.clone(),
            helps: advice.helps,
            removed: offering(&advice.removed),
            instead: advice.instead.as_ref().map(offering),
        }
    }
}

impl NodeDocument {
    fn new(refusal: &NodeRefusal) -> Self {
        Self { node: refusal.node.clone(), reason: refusal.reason, message: refusal.message.clone() }
    }
}

/// What a pod was told: its condition, and its latest events.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told {
    /// Its condition `scarpenter.sparecores.com/MachineReady`.
    machine_ready: Option<ConditionDocument>,
    /// Its latest events, oldest first.
    events: Vec<EventDocument>,
}

#[derive(Debug, Serialize)]
struct ConditionDocument {
    status: String,
    reason: String,
    message: String,
    since: Option<String>,
}

#[derive(Debug, Serialize)]
struct EventDocument {
    time: Option<String>,
    #[serde(rename = "type")]
    type_: String,
    reason: String,
    message: String,
    count: i32,
}

impl Told {
    pub(super) fn of(pod: &Pod, events: &[Event]) -> Self {
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let own = conditions.find(|own| own.type_ == condition::MACHINE_READY);
        let machine_ready = own.map(|own| ConditionDocument {
            status: own.status.clone(),
            reason: own.reason.clone().unwrap_or_default(),
            message: own.message.clone().unwrap_or_default(),
            since: own.last_transition_time.as_ref().map(|at| at.0.to_string()),
        });
        let latest = &events[events.len().saturating_sub(EVENTS)..];
        Self { machine_ready, events: latest.iter().map(EventDocument::new).collect() }
    }

    /// For a person.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        if let Some(own) = &self.machine_ready {
            let since = own.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
            let words =
                format!("told: MachineReady is {}{since} ({}): {}", own.status, own.reason, own.message);
            out.push_str(&words::paragraph("  ", &words));
        }
        for event in &self.events {
            let time = event.time.as_deref().unwrap_or("some time");
            let times = if event.count > 1 { format!(", {} times", event.count) } else { String::new() };
            let words = format!("event {time}{times}: {}: {}", event.reason, event.message);
            out.push_str(&words::paragraph("  ", &words));
        }
        out
    }
}

impl EventDocument {
    fn new(event: &Event) -> Self {
        Self {
            time: time_of(event).map(|at| at.to_string()),
            type_: event.type_.clone().unwrap_or_default(),
            reason: event.reason.clone().unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
            count: event.series.as_ref().and_then(|series| series.count).or(event.count).unwrap_or(1),
        }
    }
}

/// When an event happened last.
pub(super) fn time_of(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| Some(series.last_observed_time.as_ref()?.0));
    let last = event.last_timestamp.as_ref().map(|at| at.0);
    let made = event.event_time.as_ref().map(|at| at.0);
    series.or(last).or(made).or_else(|| event.metadata.creation_timestamp.as_ref().map(|at| at.0))
}
