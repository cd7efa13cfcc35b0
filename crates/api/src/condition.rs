//! Conditions: their types, and how a new one is merged into a list (CND-1 to CND-4).
//!
//! Pure: the caller gives the generation and the time, and writes the list only when it differs from what it read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::reason;

/// Root condition of claim, pool and class.
pub const READY: &str = "Ready";
/// Claim: the vendor has accepted the machine.
pub const LAUNCHED: &str = "Launched";
/// Claim: its Node is there and labelled.
pub const REGISTERED: &str = "Registered";
/// Claim: its Node may take pods for good.
pub const INITIALIZED: &str = "Initialized";
/// Claim: empty or underused for long enough.
pub const CONSOLIDATABLE: &str = "Consolidatable";
/// Claim: pool or class have changed since.
pub const DRIFTED: &str = "Drifted";
/// Claim: why it is about to go.
pub const DISRUPTION_REASON: &str = "DisruptionReason";
/// Claim: no pod is left to wait for.
pub const DRAINED: &str = "Drained";
/// Claim: no volume is left to wait for.
pub const VOLUMES_DETACHED: &str = "VolumesDetached";
/// Claim: the vendor was asked to delete the machine.
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
/// Claim: the node is as large as it should be.
pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
/// Pool: its spec makes sense.
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
/// Pool: its class is ready.
pub const NODE_CLASS_READY: &str = "NodeClassReady";
/// Pool: most of its last claims joined.
pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
/// Class: machines can join this cluster.
pub const JOIN_READY: &str = "JoinReady";
/// Class: machines can join its mesh.
pub const MESH_READY: &str = "MeshReady";
/// Class: prices are known and as new as can be; False does not keep a class from being used, unless there are none.
pub const CATALOG_READY: &str = "CatalogReady";
/// Pod: whether it has, or will get, a machine, and when it is tried again.
pub const MACHINE_READY: &str = "scarpenter.sparecores.com/MachineReady";

/// What a claim's `Ready` depends on.
pub const CLAIM_DEPENDENTS: [&str; 3] = [LAUNCHED, REGISTERED, INITIALIZED];
/// What a pool's `Ready` depends on.
pub const POOL_DEPENDENTS: [&str; 2] = [VALIDATION_SUCCEEDED, NODE_CLASS_READY];

/// Class: the condition of one vendor, such as `HcloudReady`.
#[must_use]
pub fn vendor_ready(vendor: &str) -> String {
    let mut letters = vendor.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain("Ready".chars()).collect()
}

/// True, False, or not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody can say yet.
    Unknown,
}

impl Status {
    /// The Kubernetes word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One condition, as claims, pools and classes carry it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether.
    pub status: Status,
    /// Why, one word; empty only in claims that others wrote.
    #[serde(default)]
    pub reason: String,
    /// Why, in words.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed, to the second.
    pub last_transition_time: Time,
    /// Generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What was looked at, and when.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// `metadata.generation` of the object.
    pub generation: Option<i64>,
    /// Time of the look.
    pub now: Timestamp,
}

/// The condition of that type.
#[must_use]
pub fn find<'a>(list: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    list.iter().find(|condition| condition.type_ == type_)
}

/// Status of the condition of that type; absent is Unknown.
#[must_use]
pub fn status(list: &[Condition], type_: &str) -> Status {
    find(list, type_).map_or(Status::Unknown, |condition| condition.status)
}

/// Whether the condition of that type is there and True.
#[must_use]
pub fn is_true(list: &[Condition], type_: &str) -> bool {
    status(list, type_) == Status::True
}

/// When the condition of that type last changed status.
#[must_use]
pub fn since(list: &[Condition], type_: &str) -> Option<Timestamp> {
    find(list, type_).map(|condition| condition.last_transition_time.0)
}

/// Merges a condition: its transition time moves only when its status does.
pub fn set(list: &mut Vec<Condition>, look: Look, type_: &str, status: Status, reason: &str, message: &str) {
    let known = list.iter().position(|condition| condition.type_ == type_);
    let unchanged = known.map(|at| &list[at]).filter(|condition| condition.status == status);
    let condition = Condition {
        type_: type_.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: unchanged
            .map_or_else(|| seconds(look.now), |condition| condition.last_transition_time.clone()),
        observed_generation: look.generation,
    };
    match known {
        Some(at) => list[at] = condition,
        None => list.push(condition),
    }
}

/// [`set`] to True, with its own type as the reason (CND-2).
pub fn set_true(list: &mut Vec<Condition>, look: Look, type_: &str) {
    set(list, look, type_, Status::True, type_, "");
}

/// Removes a condition that is no longer relevant; whether it was there.
pub fn remove(list: &mut Vec<Condition>, type_: &str) -> bool {
    let before = list.len();
    list.retain(|condition| condition.type_ != type_);
    list.len() != before
}

/// Adds the dependents that are missing, and computes `Ready` from them, stored last.
///
/// `created` is the object's creation time, from which a missing dependent counts as Unknown.
pub fn complete(list: &mut Vec<Condition>, look: Look, created: Timestamp, dependents: &[&str]) {
    for type_ in dependents {
        if find(list, type_).is_none() {
            let born = Look { now: created, ..look };
            set(
                list,
                born,
                type_,
                Status::Unknown,
                reason::AWAITING_RECONCILIATION,
                "object is awaiting reconciliation",
            );
        }
    }
    let (status, reason, message) = root(list, look.generation, dependents);
    let fresh = find(list, READY).is_none();
    set(list, if fresh { Look { now: created, ..look } } else { look }, READY, status, reason, &message);
    if let Some(at) = list.iter().position(|condition| condition.type_ == READY) {
        let ready = list.remove(at);
        list.push(ready);
    }
}

/// Computes a class's `Ready`: join, the mesh if set, a catalog, and at least one vendor of `vendors`; stored last.
pub fn complete_class(
    list: &mut Vec<Condition>,
    look: Look,
    created: Timestamp,
    mesh: bool,
    vendors: &[&str],
) {
    let mut dependents = vec![JOIN_READY];
    dependents.extend(mesh.then_some(MESH_READY));
    let no_catalog = find(list, CATALOG_READY).is_some_and(|own| own.reason == reason::NO_CATALOG);
    dependents.extend(no_catalog.then_some(CATALOG_READY));
    complete(list, look, created, &dependents);
    let states: Vec<(String, Status)> = vendors
        .iter()
        .map(|vendor| vendor_ready(vendor))
        .map(|type_| (status(list, &type_), type_))
        .map(|(status, type_)| (type_, status))
        .collect();
    let usable = states.iter().any(|(_, status)| *status == Status::True);
    if usable || !is_true(list, READY) {
        return;
    }
    let waiting = states.iter().any(|(_, status)| *status == Status::Unknown);
    let words: Vec<String> =
        states.iter().map(|(type_, status)| format!("{type_}={}", status.as_str())).collect();
    let message = if words.is_empty() { "the class names no vendor".to_owned() } else { words.join(", ") };
    let (status, reason) = if waiting {
        (Status::Unknown, reason::RECONCILING_DEPENDENTS)
    } else {
        (Status::False, reason::NO_VENDOR_USABLE)
    };
    set(list, look, READY, status, reason, &message);
}

fn root(list: &[Condition], generation: Option<i64>, dependents: &[&str]) -> (Status, &'static str, String) {
    let mut unhealthy = Vec::new();
    let (mut any_false, mut all_true) = (false, true);
    for type_ in dependents {
        let condition = find(list, type_);
        let current = condition.is_some_and(|condition| condition.observed_generation == generation);
        let status = status(list, type_);
        any_false |= current && status == Status::False;
        if status != Status::True || !current {
            all_true = false;
            unhealthy.push(format!("{type_}={}", if current { status.as_str() } else { "Unknown" }));
        }
    }
    let message = unhealthy.join(", ");
    if any_false {
        (Status::False, reason::UNHEALTHY_DEPENDENTS, message)
    } else if all_true {
        (Status::True, READY, message)
    } else {
        (Status::Unknown, reason::RECONCILING_DEPENDENTS, message)
    }
}

/// The API keeps whole seconds; what is compared must have been cut alike.
fn seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn look(second: i64, generation: i64) -> Look {
        Look { generation: Some(generation), now: Timestamp::from_second(second).unwrap() }
    }

    fn created() -> Timestamp {
        Timestamp::from_second(100).unwrap()
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut list = Vec::new();
        set(&mut list, look(200, 1), LAUNCHED, Status::Unknown, "LaunchFailed", "first");
        set(&mut list, look(300, 2), LAUNCHED, Status::Unknown, "LaunchFailed", "second");
        assert_eq!(since(&list, LAUNCHED), Some(look(200, 1).now));
        assert_eq!((list[0].message.as_str(), list[0].observed_generation), ("second", Some(2)));
        set_true(&mut list, look(400, 2), LAUNCHED);
        assert_eq!(since(&list, LAUNCHED), Some(look(400, 1).now));
        assert_eq!(list[0].reason, LAUNCHED);
    }

    #[test]
    fn missing_dependents_are_unknown_since_creation() {
        let mut list = Vec::new();
        complete(&mut list, look(500, 1), created(), &CLAIM_DEPENDENTS);
        assert_eq!(
            list.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(),
            ["Launched", "Registered", "Initialized", "Ready"]
        );
        assert!(
            list.iter().all(|condition| condition.status == Status::Unknown
                && condition.last_transition_time.0 == created())
        );
        assert_eq!(list[3].message, "Launched=Unknown, Registered=Unknown, Initialized=Unknown");
    }

    #[test]
    fn ready_is_the_sum_of_its_dependents_and_comes_last() {
        let mut list = Vec::new();
        complete(&mut list, look(200, 1), created(), &CLAIM_DEPENDENTS);
        for type_ in CLAIM_DEPENDENTS {
            set_true(&mut list, look(300, 1), type_);
        }
        set_true(&mut list, look(300, 1), CONSOLIDATABLE);
        complete(&mut list, look(300, 1), created(), &CLAIM_DEPENDENTS);
        assert!(is_true(&list, READY));
        assert_eq!(list.last().unwrap().type_, READY);
        assert_eq!(since(&list, READY), Some(look(300, 1).now));
        set(&mut list, look(400, 1), REGISTERED, Status::False, reason::MULTIPLE_NODES_FOUND, "two");
        complete(&mut list, look(400, 1), created(), &CLAIM_DEPENDENTS);
        let ready = list.last().unwrap();
        assert_eq!(
            (ready.status, ready.reason.as_str(), ready.message.as_str()),
            (Status::False, "UnhealthyDependents", "Registered=False")
        );
    }

    #[test]
    fn a_condition_of_an_older_generation_does_not_make_ready() {
        let mut list = Vec::new();
        for type_ in POOL_DEPENDENTS {
            set_true(&mut list, look(200, 1), type_);
        }
        complete(&mut list, look(300, 2), created(), &POOL_DEPENDENTS);
        assert_eq!(status(&list, READY), Status::Unknown);
    }

    #[test]
    fn one_bad_vendor_stops_no_class_but_all_do() {
        let mut list = Vec::new();
        set_true(&mut list, look(200, 1), JOIN_READY);
        set(&mut list, look(200, 1), &vendor_ready("aws"), Status::False, reason::NO_PROVIDER, "no plugin");
        complete_class(&mut list, look(200, 1), created(), false, &["aws", "hcloud"]);
        assert_eq!(status(&list, READY), Status::Unknown);
        set_true(&mut list, look(200, 1), "HcloudReady");
        complete_class(&mut list, look(200, 1), created(), false, &["aws", "hcloud"]);
        assert!(is_true(&list, READY));
        set(&mut list, look(200, 1), "HcloudReady", Status::False, reason::UNAUTHENTICATED, "401");
        complete_class(&mut list, look(300, 1), created(), false, &["aws", "hcloud"]);
        assert_eq!(list.last().unwrap().reason, reason::NO_VENDOR_USABLE);
    }

    #[test]
    fn an_old_catalog_stops_no_class_but_none_does() {
        let mut list = Vec::new();
        set_true(&mut list, look(200, 1), JOIN_READY);
        set_true(&mut list, look(200, 1), "AwsReady");
        set(&mut list, look(200, 1), CATALOG_READY, Status::False, reason::CATALOG_NOT_FETCHED, "down");
        complete_class(&mut list, look(200, 1), created(), false, &["aws"]);
        assert!(is_true(&list, READY));
        set(&mut list, look(300, 1), CATALOG_READY, Status::False, reason::NO_CATALOG, "none yet");
        complete_class(&mut list, look(300, 1), created(), false, &["aws"]);
        let ready = list.last().unwrap();
        assert_eq!((ready.status, ready.message.as_str()), (Status::False, "CatalogReady=False"));
    }

    #[test]
    fn a_claims_condition_without_reason_is_read() {
        let text = r#"{"type":"Launched","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}"#;
        let condition: Condition = serde_json::from_str(text).unwrap();
        assert_eq!(condition.reason, "");
    }
}
