//! What the vendor's no becomes.

use scarpenter_core::offering::Arch;
use scarpenter_provider::error::Error;
use scarpenter_provider::{CreateMachine, Created, Image, Refusal, RefusalReason, Scope};

use crate::fake::Fault;
use crate::stage::{Stage, create, find, settings, stage};

async fn refused(stage: &Stage, create: CreateMachine) -> Refusal {
    let before = stage.fake.world().servers.len();
    let outcome = stage.client.create_machine(create).await.unwrap();
    assert_eq!(stage.fake.world().servers.len(), before, "nothing was made");
    let Created::Refused(refusal) = outcome else { panic!("{outcome:?}") };
    refusal
}

#[tokio::test]
async fn sold_out_quota_bad_type_and_bad_place_are_told_apart() {
    use RefusalReason::{Invalid, Quota, SoldOut};
    let stage = stage().await;
    let at = |kind: &str, place: &str| {
        let mut create = create("c1");
        create.instance_type = kind.to_owned();
        create.place.region = place.to_owned();
        create
    };
    let seen = async |kind, place| {
        let refusal = refused(&stage, at(kind, place)).await;
        (refusal.reason, refusal.scope)
    };
    stage.fake.world().sold_out.insert(("cpx31", "fsn1"));
    assert_eq!(seen("cpx31", "fsn1").await, (SoldOut, Scope::Offering));
    assert_eq!(seen("cx22", "ash").await, (Invalid, Scope::Offering), "not sold there");
    assert_eq!(seen("cx99", "fsn1").await, (Invalid, Scope::Offering));
    assert_eq!(seen("cx22", "mars").await, (Invalid, Scope::Offering));
    stage.fake.world().limit = Some(0);
    let refusal = refused(&stage, at("cx22", "fsn1")).await;
    assert_eq!((refusal.reason, refusal.scope), (Quota, Scope::Region));
    assert!(refusal.message.contains("server_limit"), "{}", refusal.message);
}

#[tokio::test]
async fn a_bad_image_is_refused_and_a_missing_snapshot_says_how_to_make_one() {
    let stage = stage().await;
    let refusal = refused(&stage, CreateMachine { image: Image::Id("9".into()), ..create("c1") }).await;
    assert_eq!((refusal.reason, refusal.scope), (RefusalReason::Invalid, Scope::Account));
    let refusal =
        refused(&stage, CreateMachine { image: Image::Flatcar("beta".into()), ..create("c1") }).await;
    assert!(refusal.message.contains("hcloud-upload-image upload"), "{}", refusal.message);
    assert_eq!(refusal.scope, Scope::Offering, "another architecture may have one");
    assert_eq!(stage.fake.calls("POST"), 1);
}

#[tokio::test]
async fn a_snapshot_that_was_replaced_is_found_at_the_second_try() {
    let stage = stage().await;
    stage.client.create_machine(create("c1")).await.unwrap();
    stage.fake.world().snapshots.retain(|snapshot| snapshot.id != 502);
    refused(&stage, create("c2")).await;
    let again = stage.client.create_machine(create("c2")).await.unwrap();
    assert!(matches!(again, Created::Machine(_)), "{again:?}");
}

#[tokio::test]
async fn another_selector_and_another_architecture_boot_other_snapshots() {
    let stage = stage().await;
    let mut arm = create("c1");
    (arm.instance_type, arm.arch) = ("cax11".into(), Arch::Arm64);
    assert!(matches!(stage.client.create_machine(arm).await.unwrap(), Created::Machine(_)));
    assert_eq!(stage.fake.world().last_body["image"], "503");
    let own = settings(serde_json::json!({"imageSelector": "mine=yes"}));
    let refusal = refused(&stage, CreateMachine { settings: own, ..create("c2") }).await;
    assert!(refusal.message.contains("mine=yes"), "{}", refusal.message);
}

#[tokio::test]
async fn settings_that_name_nothing_stop_before_anything_is_bought() {
    let stage = stage().await;
    for bad in [
        serde_json::json!({"networks": ["elsewhere"]}),
        serde_json::json!({"firewalls": ["none"]}),
        serde_json::json!({"placementGroup": "none"}),
        serde_json::json!({"publicIpv4": "false"}),
    ] {
        let refusal =
            refused(&stage, CreateMachine { settings: settings(bad.clone()), ..create("c1") }).await;
        assert_eq!((refusal.reason, refusal.scope), (RefusalReason::Invalid, Scope::Account), "{bad}");
    }
    assert_eq!(stage.fake.calls("POST"), 0);
}

#[tokio::test]
async fn an_expired_or_read_only_token_stops_the_account() {
    let stage = stage().await;
    stage.fake.world().readonly = true;
    let refusal = refused(&stage, create("c1")).await;
    assert_eq!((refusal.reason, refusal.scope), (RefusalReason::Auth, Scope::Account));
    stage.fake.world().token = "another".to_owned();
    let refusal = refused(&stage, create("c2")).await;
    assert_eq!((refusal.reason, refusal.scope), (RefusalReason::Auth, Scope::Account));
    let error = stage.client.list_machines(&"cluster".into()).await.unwrap_err();
    assert!(matches!(error, Error::Denied { scope: Scope::Account, .. }), "{error}");
}

#[tokio::test]
async fn an_unknown_code_is_tried_once_more_and_then_the_next_offering_is_taken() {
    let stage = stage().await;
    stage.fake.goes_wrong("POST", "/servers", 1, Fault::Refuse(422, "never_heard_of", Vec::new()));
    assert!(matches!(stage.client.create_machine(create("c1")).await.unwrap(), Created::Machine(_)));
    stage.fake.goes_wrong("POST", "/servers", 2, Fault::Refuse(422, "never_heard_of", Vec::new()));
    let refusal = refused(&stage, create("c2")).await;
    assert_eq!((refusal.reason, refusal.scope), (RefusalReason::Invalid, Scope::Offering));
    stage.fake.goes_wrong("POST", "/servers", 2, Fault::Refuse(500, "never_heard_of", Vec::new()));
    let error = stage.client.create_machine(create("c3")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn errors_of_the_vendor_prove_nothing_about_a_create() {
    let stage = stage().await;
    for (status, code) in [(500, "server_error"), (504, "timeout"), (422, "service_error"), (409, "conflict")]
    {
        stage.fake.goes_wrong("POST", "/servers", 1, Fault::Refuse(status, code, Vec::new()));
        let error = stage.client.create_machine(create("c1")).await.unwrap_err();
        assert!(matches!(error, Error::Unknown { .. }), "{code}: {error}");
    }
    stage.fake.goes_wrong("POST", "/servers", 1, Fault::Refuse(503, "unavailable", Vec::new()));
    let error = stage.client.create_machine(create("c1")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && !error.had_no_effect(), "{error}");
    assert!(stage.client.get_machine(find("c1")).await.unwrap().is_none());
}

#[tokio::test]
async fn user_data_is_refused_before_the_vendor_sees_it_and_never_quoted() {
    let stage = stage().await;
    let over = CreateMachine { user_data: vec![b'x'; (32 << 10) + 1], ..create("c1") };
    assert_eq!(refused(&stage, over).await.reason, RefusalReason::Invalid);
    let binary = CreateMachine { user_data: vec![0xff, 0xfe], ..create("c1") };
    assert_eq!(refused(&stage, binary).await.reason, RefusalReason::Invalid);
    assert_eq!(stage.fake.calls("POST"), 0);
}
