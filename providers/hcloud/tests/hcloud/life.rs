//! A machine from its making to its end, and what goes with it.

use std::time::Duration;

use scarpenter_provider::error::Error;
use scarpenter_provider::{Coverage, Created, Deleted, Machine, MachineState, RefusalReason};

use crate::fake::Fault;
use crate::stage::{Stage, create, delete, find, settings, stage};

async fn made(stage: &Stage, claim: &str) -> Machine {
    match stage.client.create_machine(create(claim)).await.unwrap() {
        Created::Machine(machine) => machine,
        Created::Refused(refusal) => panic!("{refusal:?}"),
    }
}

async fn gone(stage: &Stage, claim: &str) {
    while stage.client.delete_machine(delete(claim)).await.unwrap() == Deleted::Asked {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_machine_carries_its_tags_boots_the_newest_snapshot_and_has_addresses() {
    let stage = stage().await;
    let mut create = create("c1");
    create.pool =
        "a-pool-whose-name-is-much-too-long-for-the-vendors-labels-of-sixty-three-characters".into();
    create.settings = settings(serde_json::json!({
        "publicIPv4": "false", "networks": "inner", "firewalls": ["wall"], "sshKeys": ["ops"],
        "placementGroup": "apart", "labels": ["team=ops"],
    }));
    let Created::Machine(machine) = stage.client.create_machine(create.clone()).await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (machine.pool.as_str(), machine.region.as_str(), machine.zone.as_deref()),
        ("", "fsn1", Some("fsn1"))
    );
    assert_eq!(machine.addresses.len(), 2, "IPv6 and private: {:?}", machine.addresses);
    let body = stage.fake.world().last_body.clone();
    assert_eq!(body["image"], "502");
    assert_eq!(body["labels"]["scarpenter-params"], create.params());
    assert_eq!(body["labels"]["team"], "ops");
    assert_eq!((&body["networks"][0], &body["firewalls"][0]["firewall"]), (&71.into(), &72.into()));
    assert_eq!((&body["ssh_keys"][0], &body["placement_group"]), (&"ops".into(), &74.into()));
    assert_eq!(body["public_net"], serde_json::json!({"enable_ipv4": false, "enable_ipv6": true}));
    assert!(body.get("datacenter").is_none());
    assert_eq!(stage.fake.world().last_user_data, create.user_data);
    gone(&stage, "c1").await;
}

#[tokio::test]
async fn names_and_images_are_looked_up_once() {
    let stage = stage().await;
    made(&stage, "c1").await;
    made(&stage, "c2").await;
    assert_eq!(stage.fake.calls("GET /images"), 1);
    assert_eq!(stage.fake.calls("POST /servers"), 2, "and nothing else is asked for a create");
    assert_eq!(stage.fake.calls(""), 3);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_next_create_adopts() {
    let stage = stage().await;
    stage.fake.goes_wrong("POST", "/servers", 1, Fault::Lose);
    let error = stage.client.create_machine(create("c1")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    made(&stage, "c1").await;
    assert_eq!(stage.fake.world().servers.len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_unknown() {
    let stage = crate::stage::stage_with(
        scarpenter_provider_hcloud::token::Token::from(None, Some(crate::fake::TOKEN.to_owned())),
        Duration::from_millis(200),
    )
    .await;
    stage.fake.goes_wrong("POST", "/servers", 1, Fault::Late(Duration::from_secs(1)));
    let error = stage.client.create_machine(create("c1")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    assert!(stage.client.get_machine(find("c1")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_name_that_somebody_else_has_is_a_conflict_and_stays_theirs() {
    let stage = stage().await;
    stage.fake.world().add_foreign("default-c1");
    let Created::Refused(refusal) = stage.client.create_machine(create("c1")).await.unwrap() else {
        panic!()
    };
    assert_eq!(refusal.reason, RefusalReason::Conflict);
    assert_eq!(stage.client.delete_machine(delete("c1")).await.unwrap(), Deleted::Gone);
    assert_eq!(stage.fake.world().servers.len(), 1);
}

#[tokio::test]
async fn an_address_that_outlives_its_server_is_deleted_before_the_machine_counts_as_gone() {
    let stage = stage().await;
    stage.fake.world().addresses_stay = true;
    made(&stage, "c1").await;
    gone(&stage, "c1").await;
    let world = stage.fake.world();
    assert!(world.servers.is_empty());
    assert!(world.ips.iter().all(|ip| ip.kind == "ipv6"), "only IPv6, which costs nothing, may stay");
}

#[tokio::test]
async fn an_address_of_a_persons_own_is_left() {
    let stage = stage().await;
    made(&stage, "c1").await;
    for ip in &mut stage.fake.world().ips {
        ip.auto_delete = false;
    }
    gone(&stage, "c1").await;
    assert_eq!(stage.fake.world().ips.len(), 2);
    assert!(stage.fake.world().ips.iter().all(|ip| ip.labels.is_empty()));
}

#[tokio::test]
async fn a_404_that_is_not_the_vendors_word_does_not_call_a_machine_gone() {
    let stage = stage().await;
    let machine = made(&stage, "c1").await;
    stage.fake.goes_wrong("GET", "/servers", 1, Fault::Page(404));
    assert!(stage.client.delete_machine(delete("c1")).await.is_err());
    stage.fake.goes_wrong("GET", "/servers", 1, Fault::Page(404));
    assert!(stage.client.get_machine(find("c1")).await.is_err());
    stage.fake.goes_wrong("GET", "/servers", 1, Fault::Page(404));
    assert!(stage.client.list_machines(&"cluster".into()).await.is_err());
    stage.fake.goes_wrong("DELETE", "/servers", 1, Fault::Page(404));
    assert!(stage.client.delete_machine(delete("c1")).await.is_err());
    assert_eq!(stage.client.get_machine(find("c1")).await.unwrap().map(|found| found.id), Some(machine.id));
}

#[tokio::test]
async fn a_delete_is_asked_for_until_the_vendor_no_longer_knows_the_machine() {
    let stage = stage().await;
    stage.fake.world().delete_takes = Duration::from_secs(3600);
    made(&stage, "c1").await;
    for _ in 0..3 {
        assert_eq!(stage.client.delete_machine(delete("c1")).await.unwrap(), Deleted::Asked);
    }
    assert_eq!(stage.fake.calls("DELETE"), 1, "asking once is enough while it is going");
    let state = stage.client.get_machine(find("c1")).await.unwrap().map(|machine| machine.state);
    assert_eq!(state, Some(MachineState::Stopping));
    stage.fake.world().delete_takes = Duration::ZERO;
    gone(&stage, "c1").await;
}

#[tokio::test]
async fn a_protected_server_is_not_called_gone() {
    let stage = stage().await;
    made(&stage, "c1").await;
    stage.fake.world().servers.values_mut().for_each(|row| row.protected = true);
    let error = stage.client.delete_machine(delete("c1")).await.unwrap_err();
    assert!(error.to_string().contains("protected"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_off_is_dead_once_it_has_had_time_to_start() {
    let stage = stage().await;
    made(&stage, "c1").await;
    stage.fake.world().servers.values_mut().for_each(|row| row.off = true);
    let state = async || stage.client.get_machine(find("c1")).await.unwrap().unwrap().state;
    assert_eq!(state().await, MachineState::Pending);
    let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(10);
    stage.fake.world().servers.values_mut().for_each(|row| row.created = long_ago);
    assert_eq!(state().await, MachineState::Stopped);
}

#[tokio::test]
async fn a_list_is_one_call_a_page_and_covers_every_location() {
    let stage = stage().await;
    for number in 0..51 {
        made(&stage, &format!("c{number}")).await;
    }
    let before = stage.fake.calls("GET /servers");
    let list = stage.client.list_machines(&"cluster".into()).await.unwrap();
    assert_eq!((list.machines.len(), list.covered), (51, Coverage::All));
    assert_eq!(stage.fake.calls("GET /servers") - before, 2);
}

#[tokio::test]
async fn a_page_that_breaks_off_is_no_list() {
    let stage = stage().await;
    made(&stage, "c1").await;
    stage.fake.goes_wrong("GET", "/servers", 1, Fault::Lose);
    assert!(stage.client.list_machines(&"cluster".into()).await.is_err());
}

#[tokio::test]
async fn what_is_sold_is_said_for_every_type_and_location() {
    let stage = stage().await;
    let live = stage.client.list_offerings(Vec::new()).await.unwrap();
    let sold = |kind: &str, at: &str| {
        let row =
            live.offerings.iter().find(|row| row.instance_type == kind && row.place.region == at).unwrap();
        assert_eq!(row.price, None, "the vendor's prices are in euro");
        row.available
    };
    assert_eq!(live.offerings.len(), 9);
    assert!(sold("cx22", "fsn1") && !sold("cx22", "ash") && sold("cpx31", "ash"));
    assert_eq!(stage.client.list_offerings(vec!["ash".into()]).await.unwrap().offerings.len(), 3);
}
