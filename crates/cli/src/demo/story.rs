//! What happened to each pod so far; pure, fed with what was seen and when.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use scarpenter_api::{NodeClaim, condition};
use scarpenter_core::label;
use scarpenter_core::name::ClaimUid;
use scarpenter_core::offering::{Launch, Price};

use super::screen::columns;

/// Said once a pod has ended, since nothing happens for a while: the example pools' consolidateAfter, then the controller's
/// defaults.
const WAITS: &str = "an empty machine goes after 5 s, a second look 15 s later, and 5 s of draining";

/// Everything that was there at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) pods: Vec<Pod>,
    pub(super) claims: Vec<NodeClaim>,
    /// Names of nodes of ours.
    pub(super) nodes: Vec<String>,
    /// Claims whose machines the vendors list.
    pub(super) machines: BTreeSet<ClaimUid>,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// No claim yet.
    Waiting,
    /// A claim, no machine yet.
    Buying,
    /// A machine, no node yet.
    Booting,
    /// A node that may not take the pod yet, or has just taken it.
    Joining,
    /// The pod runs.
    Running,
    /// It ran; the machine is still there.
    Leaving,
    /// It ran, and nothing is left.
    Gone,
    /// It ended badly.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Buying => "buying",
            Self::Booting => "booting",
            Self::Joining => "joining",
            Self::Running => "running",
            Self::Leaving => "ran, leaving",
            Self::Gone => "gone",
            Self::Failed => "failed",
        })
    }
}

/// One pod's part.
#[derive(Clone, Debug)]
struct Part {
    pod: String,
    state: State,
    began: Duration,
    ended: Option<Duration>,
    claim: Option<ClaimUid>,
    claim_name: String,
    offering: String,
    price: Option<Price>,
    why: String,
}

/// Whose a machine is, what it costs, and when it was first and last seen.
#[derive(Clone, Debug)]
struct Machine {
    pods: Vec<String>,
    offering: String,
    price: Price,
    from: Duration,
    until: Duration,
}

/// The whole: each pod in the order in which it was first seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    parts: Vec<Part>,
    machines: BTreeMap<ClaimUid, Machine>,
    left: Vec<String>,
    has_told_of_waits: bool,
}

impl Story {
    /// Takes in what was seen, and says in a line each what changed.
    pub(super) fn continue_with(&mut self, seen: &Seen, now: Duration) -> Vec<String> {
        let mut changes = Vec::new();
        for pod in &seen.pods {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let known = self.parts.iter().position(|part| part.pod == name);
            let index = known.unwrap_or_else(|| {
                self.parts.push(Part::new(name, now));
                self.parts.len() - 1
            });
            let part = &mut self.parts[index];
            let before = (part.state, part.reason());
            part.take_in(pod, seen, now);
            if known.is_none() || (part.state, part.reason()) != before {
                changes.push(part.line(now));
            }
        }
        self.take_in_machines(seen, now);
        self.left = leftovers(seen);
        if self.is_leaving() && !self.has_told_of_waits {
            self.has_told_of_waits = true;
            changes.push(WAITS.to_owned());
        }
        changes
    }

    fn take_in_machines(&mut self, seen: &Seen, now: Duration) {
        for claim in &seen.claims {
            let Some((uid, launch)) = uid(claim).zip(launch(claim)) else { continue };
            if seen.machines.contains(&uid) && !self.machines.contains_key(&uid) {
                let pods = seen
                    .pods
                    .iter()
                    .filter(|pod| is_for(claim, pod.metadata.uid.as_deref().unwrap_or_default()));
                let machine = Machine {
                    pods: pods.filter_map(|pod| pod.metadata.name.clone()).collect(),
                    offering: launch.offering.to_string(),
                    price: launch.price_per_hour_micro_usd,
                    from: now,
                    until: now,
                };
                self.machines.insert(uid, machine);
            }
        }
        for (uid, machine) in &mut self.machines {
            if seen.machines.contains(uid) {
                machine.until = now;
            }
        }
    }

    fn is_leaving(&self) -> bool {
        self.parts.iter().any(|part| part.state == State::Leaving)
    }

    /// All `pods` ran, and nothing that was made for them is left.
    pub(super) fn is_over(&self, pods: usize) -> bool {
        self.parts.len() == pods
            && self.parts.iter().all(|part| part.state == State::Gone)
            && self.left.is_empty()
    }

    /// A pod that will not run any more.
    pub(super) fn failed(&self) -> Option<String> {
        let part = self.parts.iter().find(|part| part.state == State::Failed)?;
        Some(format!("pod {} failed", part.pod))
    }

    /// What it still waits for, for the person who has waited long enough.
    pub(super) fn unfinished(&self) -> String {
        let waits = self.parts.iter().filter(|part| part.state != State::Gone).map(|part| {
            let why = part.reason().map(|why| format!(": {why}")).unwrap_or_default();
            format!("pod {} is {}{why}", part.pod, part.state)
        });
        let words: Vec<String> =
            waits.chain(self.left.iter().map(|left| format!("{left} is left"))).collect();
        words.join("; ")
    }

    /// The table as it stands, what says how far a pod is before what may be cut off, and under it why a pod has no machine.
    pub(super) fn table(&self, now: Duration) -> Vec<String> {
        let head = ["POD", "STATE", "SECONDS", "PRICE", "OFFERING", "CLAIM"].map(str::to_owned).to_vec();
        let rows = self.parts.iter().map(|part| part.cells(now).to_vec());
        let mut lines = columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
        lines.extend(self.parts.iter().filter_map(|part| Some(format!("{}: {}", part.pod, part.reason()?))));
        lines.extend(self.is_leaving().then(|| WAITS.to_owned()));
        lines
    }

    /// What each machine cost, in the order of the pods, and all of them.
    pub(super) fn bill(&self) -> Vec<String> {
        let mut rows = vec![["POD", "MACHINE", "PRICE", "SECONDS", "COST"].map(str::to_owned).to_vec()];
        let mut machines: Vec<&Machine> = self.machines.values().collect();
        machines.sort_by_key(|machine| {
            self.parts.iter().position(|part| machine.pods.contains(&part.pod)).unwrap_or(usize::MAX)
        });
        let total = machines.iter().map(|machine| machine.cost_nano_usd()).sum();
        rows.extend(machines.into_iter().map(Machine::cells));
        let [pod, none] = ["total".to_owned(), String::new()];
        rows.push(vec![pod, none.clone(), none.clone(), none, usd(total)]);
        columns(&rows)
    }
}

impl Part {
    fn new(pod: String, now: Duration) -> Self {
        Self {
            pod,
            state: State::Waiting,
            began: now,
            ended: None,
            claim: None,
            claim_name: String::new(),
            offering: String::new(),
            price: None,
            why: String::new(),
        }
    }

    fn take_in(&mut self, pod: &Pod, seen: &Seen, now: Duration) {
        let uid_of_pod = pod.metadata.uid.as_deref().unwrap_or_default();
        let claim = seen.claims.iter().rfind(|claim| is_for(claim, uid_of_pod));
        if let Some((claim, claim_uid)) = claim.and_then(|claim| Some((claim, uid(claim)?))) {
            self.claim = Some(claim_uid);
            self.claim_name = claim.metadata.name.clone().unwrap_or_default();
            if let Some(launch) = launch(claim) {
                self.offering = launch.offering.to_string();
                self.price = Some(launch.price_per_hour_micro_usd);
            }
        }
        self.why = why(pod);
        self.state = self.state_of(pod, claim, seen);
        if self.state == State::Gone && self.ended.is_none() {
            self.ended = Some(now);
        }
    }

    fn state_of(&self, pod: &Pod, claim: Option<&NodeClaim>, seen: &Seen) -> State {
        let has_machine = self.claim.as_ref().is_some_and(|claim| seen.machines.contains(claim));
        match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
            Some("Succeeded") if claim.is_some() || has_machine => return State::Leaving,
            Some("Succeeded") => return State::Gone,
            Some("Failed") => return State::Failed,
            Some("Running") => return State::Running,
            _ => {}
        }
        match claim {
            None => State::Waiting,
            Some(claim) if is_registered(claim) => State::Joining,
            Some(_) if has_machine => State::Booting,
            Some(_) => State::Buying,
        }
    }

    fn cells(&self, now: Duration) -> [String; 6] {
        [
            self.pod.clone(),
            self.state.to_string(),
            seconds(self.ended.unwrap_or(now).saturating_sub(self.began)),
            self.price.map(|price| price.to_string()).unwrap_or_default(),
            self.offering.clone(),
            self.claim_name.clone(),
        ]
    }

    /// For where no table can be redrawn.
    fn line(&self, now: Duration) -> String {
        let [pod, state, seconds, rest @ ..] = self.cells(now);
        let known: Vec<&str> =
            std::iter::once(&pod).chain(&rest).map(String::as_str).filter(|cell| !cell.is_empty()).collect();
        let why = self.reason().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{seconds:>6} s  {state:12}  {}{why}", known.join("  "))
    }

    /// Why it has no machine, as far as anybody has said.
    fn reason(&self) -> Option<String> {
        (self.state == State::Waiting && !self.why.is_empty()).then(|| self.why.clone())
    }
}

impl Machine {
    fn cells(&self) -> Vec<String> {
        let lived = seconds(self.until.saturating_sub(self.from));
        let (pods, offering) = (self.pods.join(","), self.offering.clone());
        vec![pods, offering, self.price.to_string(), lived, usd(self.cost_nano_usd())]
    }

    fn cost_nano_usd(&self) -> u128 {
        let millis = self.until.saturating_sub(self.from).as_millis();
        u128::from(self.price.micro_usd()) * millis / 3_600
    }
}

fn uid(claim: &NodeClaim) -> Option<ClaimUid> {
    claim.metadata.uid.as_deref().map(ClaimUid::from)
}

fn launch(claim: &NodeClaim) -> Option<Launch> {
    serde_json::from_str(claim.annotation(label::LAUNCH)?).ok()
}

fn is_for(claim: &NodeClaim, pod: &str) -> bool {
    claim.annotation(label::PODS).is_some_and(|pods| pods.split(',').any(|uid| uid.trim() == pod))
}

fn is_registered(claim: &NodeClaim) -> bool {
    condition::is_true(claim.conditions(), condition::REGISTERED)
}

/// What the controller says about a pod without a machine.
fn why(pod: &Pod) -> String {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ours = conditions.find(|condition| condition.type_ == condition::MACHINE_READY);
    ours.and_then(|condition| condition.message.clone()).unwrap_or_default()
}

fn leftovers(seen: &Seen) -> Vec<String> {
    let claims = seen.claims.iter().filter_map(|claim| claim.metadata.name.as_ref());
    let claims = claims.map(|name| format!("claim {name}"));
    let nodes = seen.nodes.iter().map(|name| format!("node {name}"));
    let machines = seen.machines.iter().map(|claim| format!("the machine of claim {claim}"));
    claims.chain(nodes).chain(machines).collect()
}

fn seconds(time: Duration) -> String {
    format!("{}.{}", time.as_secs(), time.subsec_millis() / 100)
}

fn usd(nano: u128) -> String {
    format!("${}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000)
}

#[cfg(test)]
mod tests;
