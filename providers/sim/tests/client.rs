//! The client against a plugin that refuses, hangs, dies and talks nonsense.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{create, delete, find, stage};
use scarpenter_provider::error::Call;
use scarpenter_provider::request::{ClassCheck, PlacedImage};
use scarpenter_provider::{
    Client, Coverage, Created, Deleted, Error, Image, MachineState, Refusal, RefusalReason, Scope,
};
use tokio::time::{Instant, timeout};

const SOON: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_machine_is_made_found_listed_and_destroyed() {
    let stage = stage("hcloud", "").await;
    let client = &stage.client;
    let can = client.capabilities().await.unwrap();
    assert_eq!((can.user_data_limit.bytes, can.settle), (32 << 10, Duration::from_millis(200)));

    let Created::Machine(machine) = client.create_machine(create("a")).await.unwrap() else {
        panic!("refused")
    };
    assert_eq!((machine.zone.as_deref(), machine.state), (Some("fsn1"), MachineState::Running));
    assert_eq!(machine.params, create("a").params());
    assert_eq!(client.get_machine(find("a")).await.unwrap().as_ref(), Some(&machine));
    let list = client.list_machines(&"cluster".into()).await.unwrap();
    assert_eq!((list.machines, list.covered), (vec![machine], Coverage::All));
    assert!(client.console_output(find("a")).await.unwrap().unwrap().contains("booted"));

    assert_eq!(client.delete_machine(delete("a")).await.unwrap(), Deleted::Asked);
    let gone_by = Instant::now() + LONG;
    while client.delete_machine(delete("a")).await.unwrap() == Deleted::Asked {
        assert!(Instant::now() < gone_by);
    }
    assert_eq!(client.get_machine(find("a")).await.unwrap(), None);
    assert_eq!(stage.cloud.machines(), 0);
}

#[tokio::test]
async fn each_refusal_says_why_for_what_and_until_when() {
    let cases = [
        ("{reason: SOLD_OUT, retryAfter: 30s}", RefusalReason::SoldOut, Scope::Offering, Some(30)),
        ("{reason: SOLD_OUT, scope: zone}", RefusalReason::SoldOut, Scope::Zone, None),
        ("{reason: QUOTA}", RefusalReason::Quota, Scope::Region, None),
        ("{reason: INVALID}", RefusalReason::Invalid, Scope::Offering, None),
        ("{reason: AUTH, scope: region}", RefusalReason::Auth, Scope::Region, None),
        ("{code: PERMISSION_DENIED}", RefusalReason::Auth, Scope::Account, None),
        ("{reason: CONFLICT}", RefusalReason::Conflict, Scope::Offering, None),
    ];
    for (error, reason, scope, retry) in cases {
        let stage = stage("hcloud", &format!("rules: [{{fault: {{error: {error}}}}}]")).await;
        let Created::Refused(refusal) = stage.client.create_machine(create("a")).await.unwrap() else {
            panic!("{error}: made")
        };
        let expected = Refusal {
            reason,
            scope,
            retry_after: retry.map(Duration::from_secs),
            message: "said to fail".to_owned(),
        };
        assert_eq!(refusal, expected, "{error}");
        assert_eq!(refusal.proves_nothing_made(), reason != RefusalReason::Conflict);
    }
}

#[tokio::test]
async fn each_other_code_is_an_error_that_says_what_is_known() {
    for (error, category, no_effect) in [
        ("{reason: RATE_LIMIT, retryAfter: 5s}", "rate_limited", true),
        ("{code: UNAVAILABLE, retryAfter: 5s}", "unavailable", false),
        ("{code: ABORTED}", "unknown", false),
        ("{code: DEADLINE_EXCEEDED}", "unknown", false),
        ("{code: INTERNAL}", "unknown", false),
        ("{code: DATA_LOSS}", "unknown", false),
        ("{code: RESOURCE_EXHAUSTED}", "unknown", false),
        ("{code: RESOURCE_EXHAUSTED, reason: ZONE_EXHAUSTED}", "unknown", false),
        ("{code: NOT_FOUND}", "unknown", false),
    ] {
        let stage = stage("hcloud", &format!("rules: [{{fault: {{error: {error}}}}}]")).await;
        let failure = stage.client.create_machine(create("a")).await.unwrap_err();
        assert_eq!((failure.category(), failure.had_no_effect()), (category, no_effect), "{error}");
        assert_eq!(failure.retry_after().is_some(), error.contains("retryAfter"), "{error}");
    }
    let stage = stage("hcloud", "rules: [{fault: {error: {reason: AUTH, scope: region}}}]").await;
    let denied = stage.client.list_machines(&"cluster".into()).await.unwrap_err();
    assert!(
        matches!(denied, Error::Denied { call: Call::ListMachines, scope: Scope::Region, .. }),
        "{denied}"
    );
}

#[tokio::test]
async fn nonsense_is_never_believed() {
    for how in ["wrongClaim", "wrongCluster", "emptyId", "unknownState", "noMachine"] {
        let stage = stage("hcloud", &format!("rules: [{{fault: {{nonsense: {how}}}}}]")).await;
        let made = stage.client.create_machine(create("a")).await.unwrap_err();
        assert!(matches!(made, Error::Nonsense { call: Call::CreateMachine, .. }), "{how}: {made}");
        let got = stage.client.get_machine(find("a")).await.unwrap_err();
        assert!(matches!(got, Error::Nonsense { call: Call::GetMachine, .. }), "{how}: {got}");
    }
    for how in ["wrongCluster", "emptyId", "unknownState", "listedTwice"] {
        let stage =
            stage("hcloud", &format!("rules: [{{call: ListMachines, fault: {{nonsense: {how}}}}}]")).await;
        stage.client.create_machine(create("a")).await.unwrap();
        let listed = stage.client.list_machines(&"cluster".into()).await.unwrap_err();
        assert!(matches!(listed, Error::Nonsense { call: Call::ListMachines, .. }), "{how}: {listed}");
    }
}

#[tokio::test]
async fn the_plugin_of_another_vendor_or_contract_is_not_used() {
    let other = stage("hcloud", "rules: [{fault: {nonsense: otherVendor}}]").await;
    let error = other.client.capabilities().await.unwrap_err();
    assert!(matches!(error, Error::OtherVendor { .. }), "{error}");
    let newer = stage("hcloud", "rules: [{fault: {nonsense: otherContract}}]").await;
    let error = newer.client.capabilities().await.unwrap_err();
    assert!(matches!(error, Error::OtherContract { found: 99, .. }), "{error}");
}

#[tokio::test]
async fn a_plugin_that_hangs_costs_a_deadline_and_no_more() {
    let stage = stage("hcloud", "rules: [{fault: hang}]").await;
    let client = stage.client.clone().with_deadline(SOON);
    for call in [
        client.capabilities().await.map(drop),
        client.get_machine(find("a")).await.map(drop),
        client.list_machines(&"cluster".into()).await.map(drop),
        client.delete_machine(delete("a")).await.map(drop),
        client.validate(ClassCheck { cluster: "cluster".into(), ..ClassCheck::default() }).await.map(drop),
    ] {
        assert_eq!(call.unwrap_err().category(), "unknown");
    }
    // What hangs does not keep the plugin from ending.
    stage.stop.cancel();
    timeout(LONG, stage.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_create_outlives_the_patience_and_the_future_of_its_caller() {
    let stage = stage("hcloud", "rules: [{call: CreateMachine, fault: {delay: 300ms}}]").await;
    let hasty = stage.client.clone().with_create_patience(Duration::from_millis(20)).with_deadline(SOON);
    let error = hasty.create_machine(create("a")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    let dropped = timeout(Duration::from_millis(20), stage.client.create_machine(create("b"))).await;
    assert!(dropped.is_err());
    assert_eq!((stage.cloud.machines(), stage.client.creates_in_flight()), (0, 2));
    timeout(LONG, stage.client.quiesce()).await.unwrap();
    assert_eq!(stage.cloud.machines(), 2);
}

#[tokio::test]
async fn creates_that_hang_keep_nothing_else_out() {
    let stage = stage("hcloud", "rules: [{call: CreateMachine, fault: hang}]").await;
    let hasty = stage.client.clone().with_create_patience(Duration::from_millis(1));
    for number in 0..500 {
        assert!(hasty.create_machine(create(&number.to_string())).await.is_err());
    }
    timeout(LONG, stage.client.list_machines(&"cluster".into())).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_plugin_that_is_away_is_unavailable_and_found_again_when_it_is_back() {
    let first = stage("hcloud", "").await;
    first.client.capabilities().await.unwrap();
    first.stop.cancel();
    first.served.await.unwrap();
    let away = first.client.create_machine(create("a")).await.unwrap_err();
    assert!(away.had_no_effect(), "{away:?}");
    assert!(matches!(away, Error::Unavailable { sent: false, .. }), "{away}");
    let again = tokio_util::sync::CancellationToken::new();
    let served = tokio::spawn({
        let (cloud, endpoint, again) = (first.cloud.clone(), first.endpoint.clone(), again.clone());
        async move { scarpenter_provider_sim::play(&cloud, "hcloud".into(), &endpoint, again).await.unwrap() }
    });
    let back_by = Instant::now() + LONG;
    while first.client.capabilities().await.is_err() {
        assert!(Instant::now() < back_by);
        tokio::task::yield_now().await;
    }
    again.cancel();
    served.await.unwrap();
}

#[tokio::test]
async fn problems_of_a_class_come_as_they_were_said() {
    let stage = stage("hcloud", "rules: [{fault: {problem: no such network}}]").await;
    let image = PlacedImage { region: None, arch: None, image: Image::Flatcar("nightly".into()) };
    let check = ClassCheck { cluster: "cluster".into(), images: vec![image], ..ClassCheck::default() };
    let problems = stage.client.validate(check).await.unwrap();
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["no such network", "Flatcar has no channel \"nightly\""]);
}

#[tokio::test]
async fn a_double_shows_in_the_list_and_one_of_it_can_be_deleted_alone() {
    let stage = stage("hcloud", "rules: [{fault: double}]").await;
    let Created::Machine(first) = stage.client.create_machine(create("a")).await.unwrap() else {
        panic!("refused")
    };
    let list = stage.client.list_machines(&"cluster".into()).await.unwrap().machines;
    let other = list.iter().find(|machine| machine.id != first.id).unwrap();
    assert_eq!((list.len(), &other.claim), (2, &first.claim));
    let alone = scarpenter_provider::DeleteMachine {
        machine: Some(other.id.clone()),
        only_this_machine: true,
        ..delete("a")
    };
    assert_eq!(stage.client.delete_machine(alone).await.unwrap(), Deleted::Asked);
    assert!(stage.cloud.is_alive(&first.id) && !stage.cloud.is_alive(&other.id));
}

#[tokio::test]
async fn an_optional_call_that_is_not_served_says_so() {
    let stage = stage("hcloud", "").await;
    let error = stage.client.list_offerings(Vec::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unimplemented { .. }), "{error}");
}

#[tokio::test]
async fn one_vendor_does_not_see_the_machines_of_another() {
    let stage = stage("hcloud", "").await;
    let folder = tempfile::tempdir().unwrap();
    let endpoint = scarpenter_provider::Endpoint::Unix(folder.path().join("aws.sock"));
    let (cloud, at, stop) = (stage.cloud.clone(), endpoint.clone(), stage.stop.clone());
    tokio::spawn(
        async move { scarpenter_provider_sim::play(&cloud, "aws".into(), &at, stop).await.unwrap() },
    );
    let aws = Client::connect("aws".into(), &endpoint).unwrap();
    stage.client.create_machine(create("a")).await.unwrap();
    let seen_by = Instant::now() + LONG;
    let list = loop {
        match aws.list_machines(&"cluster".into()).await {
            Ok(list) => break list,
            Err(error) => assert!(Instant::now() < seen_by, "{error}"),
        }
    };
    assert_eq!(list.machines, []);
    assert_eq!(aws.delete_machine(delete("a")).await.unwrap(), Deleted::Gone);
    assert_eq!(stage.cloud.machines(), 1);
}
