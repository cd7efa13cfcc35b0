#![allow(clippy::unwrap_used)]

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> Limits {
    Limits { launch: 300 * SECOND, registration: 900 * SECOND, settle: 10 * SECOND, drain: 5 * SECOND }
}

fn at(seconds: u64) -> Time {
    Time::from_millis(1_000_000).after(Duration::from_secs(seconds))
}

fn claim() -> Claim {
    Claim {
        uid: "uid".into(),
        name: "default-0123456789".to_owned(),
        created: at(0),
        deleted: None,
        held: true,
        launch: None,
        attempt: None,
        refused: None,
        machine_id: None,
        registered: false,
        initialized: false,
        terminating: None,
        expire_after: None,
        drain_deadline: None,
    }
}

fn running() -> Claim {
    Claim {
        attempt: Some(at(1)),
        machine_id: Some("1".into()),
        registered: true,
        initialized: true,
        ..claim()
    }
}

fn seen() -> Seen {
    Seen { class_ready: true, provider_ready: true, ..Seen::default() }
}

fn with_node(node: NodeFacts) -> Seen {
    Seen { node: NodeSeen::One(node), ..seen() }
}

fn step(claim: &Claim, seen: &Seen, seconds: u64) -> Step {
    next_step(claim, seen, &limits(), at(seconds))
}

#[test]
fn a_new_claim_is_held_before_anything_is_bought() {
    assert_eq!(step(&Claim { held: false, ..claim() }, &seen(), 0), Step::Hold);
    assert_eq!(step(&claim(), &seen(), 0), Step::Launch);
}

#[test]
fn a_create_with_an_unknown_end_is_repeated_only_when_it_has_settled() {
    let claim = Claim { attempt: Some(at(1)), ..claim() };
    assert_eq!(step(&claim, &seen(), 5), Step::Wait { until: Some(at(11)), reason: WaitReason::Settling });
    assert_eq!(step(&claim, &seen(), 11), Step::Create);
}

#[test]
fn a_create_goes_out_soon_after_it_was_written_or_not_at_all() {
    assert!(may_send(at(1), at(1)) && may_send(at(1), at(16)));
    assert!(!may_send(at(1), at(17)), "another controller may be at it");
    assert!(!may_send(at(2), at(1)), "a clock that went back says nothing");
    assert_eq!(settle(10 * SECOND), 30 * SECOND);
}

#[test]
fn a_refused_claim_is_abandoned_and_released_without_waiting() {
    let claim = Claim { refused: Some("sold out".to_owned()), ..claim() };
    assert_eq!(step(&claim, &seen(), 1), Step::Abandon(AbandonReason::Refused("sold out".to_owned())));
    assert_eq!(step(&Claim { deleted: Some(at(1)), ..claim }, &seen(), 1), Step::Release);
}

#[test]
fn an_empty_machine_id_never_means_no_machine() {
    let claim = Claim { deleted: Some(at(2)), attempt: Some(at(1)), ..claim() };
    assert_eq!(step(&claim, &seen(), 60), Step::Destroy);
    let asked = Claim { terminating: Some(at(3)), ..claim };
    let absent = |seconds| Seen { machine: MachineSeen::Absent(at(seconds)), ..seen() };
    let wait = Step::Wait { until: Some(at(11)), reason: WaitReason::MachineTerminating };
    assert_eq!(step(&asked, &absent(5), 6), wait, "the create may still be on its way");
    assert_eq!(step(&asked, &absent(11), 12), Step::Release);
}

#[test]
fn a_list_begun_before_the_delete_proves_nothing() {
    let claim = Claim { deleted: Some(at(100)), terminating: Some(at(110)), ..running() };
    let looked = Seen { machine: MachineSeen::Absent(at(109)), ..seen() };
    assert!(matches!(step(&claim, &looked, 111), Step::Wait { .. }));
}

#[test]
fn an_unreachable_vendor_never_lets_a_claim_go() {
    let claim = Claim { deleted: Some(at(100)), terminating: Some(at(110)), ..running() };
    let unknown = Seen { machine: MachineSeen::Unknown("no answer".to_owned()), ..seen() };
    assert!(matches!(step(&claim, &unknown, 9_999), Step::Wait { .. }));
}

#[test]
fn a_deletion_drains_first_and_gives_a_late_binding_time() {
    let claim = Claim { deleted: Some(at(100)), ..running() };
    let node =
        |disrupted, pods| with_node(NodeFacts { ready: true, disrupted, pods, ..NodeFacts::default() });
    assert_eq!(step(&claim, &node(None, 0), 100), Step::Drain);
    assert_eq!(step(&claim, &node(Some(at(100)), 1), 100), Step::Drain);
    let wait = Step::Wait { until: Some(at(105)), reason: WaitReason::Draining };
    assert_eq!(step(&claim, &node(Some(at(100)), 0), 101), wait);
    assert_eq!(step(&claim, &node(Some(at(100)), 0), 105), Step::Destroy);
    let late = Claim { drain_deadline: Some(at(160)), ..claim };
    assert_eq!(step(&late, &node(Some(at(100)), 3), 160), Step::Destroy);
}

#[test]
fn a_late_binding_has_its_time_from_the_taint_and_not_from_the_deletion() {
    let claim = Claim { deleted: Some(at(100)), ..running() };
    let tainted =
        |seconds| with_node(NodeFacts { ready: true, disrupted: Some(at(seconds)), ..NodeFacts::default() });
    let wait = Step::Wait { until: Some(at(205)), reason: WaitReason::Draining };
    assert_eq!(step(&claim, &tainted(200), 201), wait, "the controller was away for a while");
    assert_eq!(step(&claim, &tainted(95), 100), Step::Destroy, "tainted and looked at again before");
}

#[test]
fn deadlines_count_from_the_creation() {
    assert_eq!(step(&claim(), &seen(), 300), Step::Abandon(AbandonReason::LaunchTimeout));
    let booted = Claim { attempt: Some(at(1)), machine_id: Some("1".into()), ..claim() };
    assert!(matches!(step(&booted, &seen(), 899), Step::Wait { reason: WaitReason::NodeNotFound, .. }));
    assert_eq!(step(&booted, &seen(), 900), Step::Abandon(AbandonReason::RegistrationTimeout));
}

#[test]
fn a_node_is_registered_then_initialized() {
    let booted = Claim { registered: false, initialized: false, ..running() };
    let unfit =
        NodeFacts { uninitialized: Some(("NodeNotReady", "not yet".to_owned())), ..NodeFacts::default() };
    assert_eq!(step(&booted, &with_node(unfit.clone()), 2), Step::Register);
    let registered = Claim { registered: true, ..booted };
    assert!(matches!(
        step(&registered, &with_node(unfit), 2),
        Step::Wait { reason: WaitReason::NotInitialized(..), .. }
    ));
    assert_eq!(step(&registered, &with_node(NodeFacts::default()), 2), Step::Initialize);
}

#[test]
fn a_vendor_that_denies_a_machine_is_believed_only_when_its_node_is_not_ready() {
    let absent = |ready| Seen {
        machine: MachineSeen::Absent(at(50)),
        ..with_node(NodeFacts { ready, ..NodeFacts::default() })
    };
    assert!(matches!(step(&running(), &absent(true), 60), Step::Wait { .. }));
    assert_eq!(step(&running(), &absent(false), 60), Step::Abandon(AbandonReason::MachineGone));
}

#[test]
fn a_stopped_machine_is_dead() {
    let stopped = Seen { machine: MachineSeen::Present { stopped: true }, ..with_node(NodeFacts::default()) };
    assert_eq!(step(&running(), &stopped, 60), Step::Abandon(AbandonReason::MachineStopped));
}

#[test]
fn join_material_lost_after_a_create_ends_the_claim_and_later_does_nothing() {
    let lost = Seen { join_material_lost: true, ..seen() };
    assert_eq!(step(&claim(), &lost, 1), Step::Launch);
    let sent = Claim { attempt: Some(at(1)), ..claim() };
    assert_eq!(step(&sent, &lost, 2), Step::Abandon(AbandonReason::JoinMaterialLost));
    let known = Claim { machine_id: Some("1".into()), ..sent };
    assert!(matches!(step(&known, &lost, 2), Step::Wait { .. }));
}

#[test]
fn a_claim_expires() {
    let short = Claim { expire_after: Some(60 * SECOND), ..running() };
    let fine = with_node(NodeFacts { ready: true, ..NodeFacts::default() });
    assert_eq!(step(&short, &fine, 59), Step::Wait { until: Some(at(60)), reason: WaitReason::Running });
    assert_eq!(step(&short, &fine, 60), Step::Abandon(AbandonReason::Expired));
}

#[test]
fn a_deleted_node_ends_its_claim() {
    assert_eq!(step(&running(), &seen(), 60), Step::Abandon(AbandonReason::NodeDeleted));
}
