#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

const START: Duration = Duration::from_secs(100);

fn pod(phase: &str) -> Pod {
    serde_json::from_value(
        json!({"metadata": {"name": "exact-hcloud", "uid": "p1"}, "status": {"phase": phase}}),
    )
    .unwrap()
}

fn claim() -> NodeClaim {
    let launch = json!({
        "vendor": "hcloud", "region": "fsn1", "zone": "fsn1", "instanceType": "ccx33", "capacityType": "on-demand",
        "arch": "amd64", "pricePerHourMicroUsd": 360_000, "capacity": {}, "allocatable": {}, "labels": {},
    });
    let annotations = json!({label::PODS: "p0,p1", label::LAUNCH: launch.to_string()});
    let mut claim = NodeClaim::new("default-abc", Default::default());
    claim.metadata.uid = Some("c1".to_owned());
    claim.metadata.annotations = serde_json::from_value(annotations).unwrap();
    claim
}

fn seen(phase: &str, has_claim: bool, has_machine: bool) -> Seen {
    Seen {
        pods: vec![pod(phase)],
        claims: has_claim.then(claim).into_iter().collect(),
        nodes: Vec::new(),
        machines: has_machine.then(|| ClaimUid::from("c1")).into_iter().collect(),
    }
}

fn tell(moments: &[Seen]) -> (Story, Vec<String>) {
    let mut story = Story::default();
    let times = (0..).map(|second| START + Duration::from_secs(10 * second));
    let changes = moments.iter().zip(times).flat_map(|(seen, now)| story.continue_with(seen, now)).collect();
    (story, changes)
}

#[test]
fn a_pod_goes_from_waiting_to_gone_and_the_machine_is_billed_while_it_was_there() {
    let moments = [
        seen("Pending", false, false),
        seen("Pending", true, false),
        seen("Pending", true, true),
        seen("Running", true, true),
        seen("Succeeded", true, true),
        seen("Succeeded", false, false),
    ];
    let (story, changes) = tell(&moments);
    let words = ["waiting", "buying", "booting", "running", "ran, leaving", "a second look", "gone"];
    assert_eq!(changes.len(), words.len(), "{changes:?}");
    assert!(changes.iter().zip(words).all(|(line, word)| line.contains(word)), "{changes:?}");
    assert!(story.is_over(1));
    assert_eq!(
        story.table(Duration::from_secs(900)),
        [
            "POD           STATE  SECONDS  PRICE        OFFERING                     CLAIM",
            "exact-hcloud  gone   50.0     $0.360000/h  hcloud/fsn1/ccx33/on-demand  default-abc",
        ]
    );
    assert_eq!(
        story.bill()[1],
        "exact-hcloud  hcloud/fsn1/ccx33/on-demand  $0.360000/h  20.0     $0.002000000"
    );
    assert_eq!(
        story.bill()[2],
        "total                                                            $0.002000000"
    );
}

#[test]
fn the_bill_is_in_the_order_of_the_pods() {
    let mut moment = seen("Running", true, true);
    let mut second = pod("Running");
    (second.metadata.name, second.metadata.uid) = (Some("second".to_owned()), Some("p2".to_owned()));
    let mut other = claim();
    other.metadata.uid = Some("a0".to_owned());
    other.metadata.annotations.as_mut().unwrap().insert(label::PODS.to_owned(), "p2".to_owned());
    moment.pods.push(second);
    moment.claims.push(other);
    moment.machines.insert(ClaimUid::from("a0"));
    let (story, _) = tell(&[moment]);
    let first_words: Vec<String> =
        story.bill().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(first_words, ["POD", "exact-hcloud", "second", "total"]);
}

#[test]
fn what_is_waited_for_is_said_once() {
    let leaving = seen("Succeeded", true, true);
    let (story, changes) = tell(&[leaving.clone(), leaving]);
    assert_eq!(changes.iter().filter(|line| line.as_str() == WAITS).count(), 1, "{changes:?}");
    assert_eq!(story.table(START).last().unwrap(), WAITS);
}

#[test]
fn a_pod_without_a_machine_says_why() {
    let mut moment = seen("Pending", false, false);
    moment.pods[0].status = serde_json::from_value(json!({"phase": "Pending", "conditions": [
        {"type": condition::MACHINE_READY, "status": "False", "message": "sold out until 12:00"},
    ]}))
    .unwrap();
    let (story, _) = tell(&[moment]);
    assert!(!story.is_over(1));
    assert_eq!(story.unfinished(), "pod exact-hcloud is waiting: sold out until 12:00");
}

#[test]
fn it_is_not_over_while_a_machine_or_a_node_is_left() {
    let mut moment = seen("Succeeded", false, false);
    moment.nodes = vec!["default-abc".to_owned()];
    moment.machines = [ClaimUid::from("c9")].into();
    let (story, _) = tell(&[moment]);
    assert!(!story.is_over(1));
    assert_eq!(story.unfinished(), "node default-abc is left; the machine of claim c9 is left");
}

#[test]
fn a_failed_pod_ends_the_wait() {
    let (story, _) = tell(&[seen("Failed", true, true)]);
    assert_eq!(story.failed().as_deref(), Some("pod exact-hcloud failed"));
}
