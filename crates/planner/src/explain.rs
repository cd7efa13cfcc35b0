//! What comes of each pod, and why: the rules one after another, and why the nodes that exist did not take it.

use std::collections::BTreeMap;
use std::fmt;

use scarpenter_core::node::Node;
use scarpenter_core::offering::{Arch, OfferingKey, Price};
use scarpenter_core::pod::{Pod, PodKey};

use crate::output::{Plan, PlannedClaim, Refusal};
use crate::pass::Pass;
use crate::refusal::{self, Asked};
use crate::{Caps, Input};

mod after;
mod nodes;

/// For so many pods the rules are worked out again where others of the plan changed what was left for them.
const AGAIN: usize = 100;

/// All there is to say about one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The pod.
    pub pod: PodKey,
    /// Its UID.
    pub uid: String,
    /// What comes of it.
    pub outcome: Outcome,
    /// What each rule leaves, in the order of evaluation; ends with the rule that leaves nothing.
    ///
    /// Empty for a pod that is refused unseen, or that a place is promised to.
    pub rules: Vec<RuleLine>,
    /// About the first rule that took the cheapest offering away, and about each further one that it would help to change;
    /// empty when the cheapest of all is what is left.
    pub advice: Vec<Advice>,
    /// Nodes and claims that exist and did not take it: the few that came nearest.
    pub nodes: Vec<NodeRefusal>,
    /// How many further nodes did not take it.
    pub more_nodes: usize,
}

/// What comes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A machine is bought, which the pod may share.
    Machine {
        /// Pool of its claim.
        pool: String,
        /// What is bought.
        bought: Priced,
        /// The other pods of that machine.
        beside: Vec<PodKey>,
    },
    /// It waits for a place that exists or is being made: the node, or the claim while there is no node.
    Place {
        /// Its name.
        name: String,
        /// Whether the claim was made for this pod.
        promised: bool,
    },
    /// Nothing.
    Refused(Refusal),
    /// It was not looked at, since a pass is bounded.
    Deferred,
}

/// What one rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLine {
    /// The rule: an identifier as in [`Refusal::reason`], or `prefer-no-schedule`, `preferences` or
    /// `nodepool-weight`, which only choose among what is left.
    pub rule: String,
    /// What pod, pool, class or controller ask, in words; empty when they ask nothing.
    pub asked: String,
    /// How many offerings it removed of those that were left.
    pub removed: usize,
    /// How many are left.
    pub left: usize,
    /// The cheapest offering with room for the pod before the rule.
    pub cheapest_before: Option<Priced>,
    /// The cheapest offering with room for the pod after it.
    pub cheapest_after: Option<Priced>,
}

impl RuleLine {
    /// Whether the cheapest offering costs more after the rule than before it, or is gone without another.
    #[must_use]
    pub fn is_dearer(&self) -> bool {
        match (&self.cheapest_before, &self.cheapest_after) {
            (Some(before), Some(after)) => after.price > before.price,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

/// An offering and what it costs, extras included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// Which.
    pub offering: OfferingKey,
    /// Architecture.
    pub arch: Arch,
    /// Price per hour.
    pub price: Price,
}

impl fmt::Display for Priced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.offering, self.price)
    }
}

/// What to change about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The rule.
    pub rule: String,
    /// What to change, and what would come of it.
    pub words: String,
    /// Whether something cheaper would be bought without the rule, or anything at all.
    pub helps: bool,
    /// The cheapest offering that the rule removed.
    pub removed: Priced,
    /// What would be bought for the pod alone without the rule, if anything.
    pub instead: Option<Priced>,
}

/// Why a node, or a claim that will be one, did not take the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRefusal {
    /// Name of the node, or of the claim.
    pub node: String,
    /// `closed`, `label`, `taint`, `volume`, `resource`, `host-port`, `attachments` or `other-pods`.
    pub reason: &'static str,
    /// The reason in words.
    pub message: String,
}

/// Explains one pod of the input; `None` when it is not there.
#[must_use]
pub fn explain(input: &Input<'_>, pod: &PodKey) -> Option<Explanation> {
    let pod = input.pods.iter().find(|own| own.key == *pod)?;
    Explainer::new(input, &crate::plan(input)).run(std::iter::once(pod)).pop()
}

/// Explains every pod of the input, by namespace and name; `plan` is what [`crate::plan`] says of the same input.
#[must_use]
pub fn explain_all(input: &Input<'_>, plan: &Plan) -> Vec<Explanation> {
    let mut out = Explainer::new(input, plan).run(input.pods.iter());
    out.sort_by(|a, b| (&a.pod, &a.uid).cmp(&(&b.pod, &b.uid)));
    out
}

/// Which pods a plan speaks of, by UID.
struct Explainer<'a> {
    input: &'a Input<'a>,
    /// Each with its number.
    claims: BTreeMap<&'a str, (usize, &'a PlannedClaim)>,
    nominated: BTreeMap<&'a str, &'a str>,
    promised: BTreeMap<&'a str, &'a str>,
    unplaced: BTreeMap<&'a str, &'a Refusal>,
    /// What exists when the plan is carried out.
    nodes: Vec<Node>,
    caps: Caps,
}

type Rules = (Vec<RuleLine>, Vec<Advice>);

impl<'a> Explainer<'a> {
    fn new(input: &'a Input<'a>, plan: &'a Plan) -> Self {
        let open = input.nodes.iter().filter(|node| node.open);
        let promised =
            open.flat_map(|node| node.promised.iter().map(|uid| (uid.as_str(), node.name.as_str())));
        let of_claim =
            |own: (usize, &'a PlannedClaim)| own.1.pods.iter().map(move |(_, uid)| (uid.as_str(), own));
        Self {
            input,
            claims: plan.claims.iter().enumerate().flat_map(of_claim).collect(),
            nominated: plan.nominated.iter().map(|own| (own.uid.as_str(), own.node.as_str())).collect(),
            promised: promised.collect(),
            unplaced: plan.unplaced.iter().map(|own| (own.uid.as_str(), &own.refusal)).collect(),
            nodes: after::nodes(input, plan),
            caps: after::caps(input.caps, plan),
        }
    }

    fn run(&self, pods: impl Iterator<Item = &'a Pod>) -> Vec<Explanation> {
        let after = Input { nodes: &self.nodes, caps: &self.caps, ..*self.input };
        let (mut before, mut after) = (Pass::new(self.input), Pass::new(&after));
        let existing = &self.nodes[..self.input.nodes.len()];
        let free = nodes::Free::new(existing, self.input.daemons);
        // Equal pods are worked out once.
        let mut known: Vec<(bool, Pod, Rules)> = Vec::new();
        let mut again = 0;
        let mut explained = |pod: &'a Pod| {
            let outcome = self.outcome(pod);
            let (mut rules, mut advice) = Rules::default();
            if !matches!(outcome, Outcome::Place { promised: true, .. }) {
                let refused = matches!(outcome, Outcome::Refused(_));
                let pass = if refused { &mut after } else { &mut before };
                // What a pod has learned of machines is its own.
                let own = self.input.lessons.unfit.contains_key(&pod.uid);
                (rules, advice) = if own {
                    self.rules(pass, pod)
                } else {
                    remembered(&mut known, (refused, pod), || self.rules(pass, pod))
                };
            }
            if !leads_to(&rules, &outcome) && again < AGAIN {
                again += 1;
                if let Some(better) = self.beside_others(pod).filter(|own| leads_to(&own.0, &outcome)) {
                    (rules, advice) = better;
                }
            }
            let (nodes, more_nodes) = match &outcome {
                Outcome::Place { .. } | Outcome::Deferred => (Vec::new(), 0),
                _ => free.refusals(self.input, pod),
            };
            Explanation {
                pod: pod.key.clone(),
                uid: pod.uid.clone(),
                outcome,
                rules,
                advice,
                nodes,
                more_nodes,
            }
        };
        pods.map(&mut explained).collect()
    }

    /// The rules as they hold once all others of the plan are where they go, for a pod with a machine of its own.
    fn beside_others(&self, pod: &Pod) -> Option<Rules> {
        let (number, claim) = self.claims.get(pod.uid.as_str())?;
        let mut nodes = self.nodes.clone();
        nodes.remove(self.input.nodes.len() + number);
        let caps = after::without(self.caps, claim);
        let input = Input { nodes: &nodes, caps: &caps, ..*self.input };
        Some(self.rules(&mut Pass::new(&input), pod))
    }

    fn outcome(&self, pod: &Pod) -> Outcome {
        let uid = pod.uid.as_str();
        if let Some((_, claim)) = self.claims.get(uid) {
            let others = claim.pods.iter().filter(|(_, other)| other != uid);
            return Outcome::Machine {
                pool: claim.pool.clone(),
                bought: Priced {
                    offering: claim.launch.offering.clone(),
                    arch: claim.launch.arch,
                    price: claim.launch.price_per_hour_micro_usd,
                },
                beside: others.map(|(key, _)| key.clone()).collect(),
            };
        }
        let place = |name: &str, promised| Outcome::Place { name: name.to_owned(), promised };
        match (self.promised.get(uid), self.nominated.get(uid), self.unplaced.get(uid)) {
            (Some(name), _, _) => place(name, true),
            (_, Some(name), _) => place(name, false),
            (_, _, Some(refusal)) => Outcome::Refused(Refusal::clone(refusal)),
            _ => Outcome::Deferred,
        }
    }

    fn rules<'p>(&self, pass: &mut Pass<'p>, pod: &'p Pod) -> Rules {
        if refusal::unreadable(pod).is_some() || refusal::nothing_to_look_at(pass).is_some() {
            return Rules::default();
        }
        let Ok((shape, verdicts)) = pass.look(pod) else { return Rules::default() };
        refusal::lines(pass, &Asked::new(self.input, pod, &shape, &verdicts))
    }
}

/// Whether the rules say why a pod that has a machine for itself has this one.
fn leads_to(rules: &[RuleLine], outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Machine { bought, beside, .. } if beside.is_empty() => {
            rules.last().is_none_or(|last| last.cheapest_after.as_ref() == Some(bought))
        }
        _ => true,
    }
}

/// What is known of an equal pod with an equal fate, or worked out for it and kept.
fn remembered(
    known: &mut Vec<(bool, Pod, Rules)>,
    (refused, pod): (bool, &Pod),
    work: impl FnOnce() -> Rules,
) -> Rules {
    let alike = |(own_refused, own, _): &&(bool, Pod, Rules)| *own_refused == refused && is_alike(own, pod);
    if let Some((_, _, rules)) = known.iter().find(alike) {
        return rules.clone();
    }
    let rules = work();
    known.push((refused, pod.clone(), rules.clone()));
    rules
}

/// Whether two pods ask for the same, whatever they are called.
fn is_alike(a: &Pod, b: &Pod) -> bool {
    // All fields are named, so that a new one is not forgotten.
    let Pod {
        key,
        uid: _,
        created: _,
        labels,
        requests,
        node_selector,
        required_terms,
        preferred_terms,
        tolerations,
        priority,
        spread,
        affinity,
        anti_affinity,
        preferred_affinity,
        preferred_anti_affinity,
        host_ports,
        volume_claims,
        volume_terms,
        attachments,
        volume_problems,
        undecided,
        invalid,
    } = a;
    key.namespace == b.key.namespace
        && *requests == b.requests
        && *node_selector == b.node_selector
        && *required_terms == b.required_terms
        && *preferred_terms == b.preferred_terms
        && *tolerations == b.tolerations
        && *priority == b.priority
        && *labels == b.labels
        && (spread, affinity, anti_affinity) == (&b.spread, &b.affinity, &b.anti_affinity)
        && *preferred_affinity == b.preferred_affinity
        && *preferred_anti_affinity == b.preferred_anti_affinity
        && (host_ports, volume_claims, volume_terms) == (&b.host_ports, &b.volume_claims, &b.volume_terms)
        && (attachments, volume_problems) == (&b.attachments, &b.volume_problems)
        && (undecided, invalid) == (&b.undecided, &b.invalid)
}
