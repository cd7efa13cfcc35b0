//! What people are told before anything is bought.

use std::time::Duration;

use scarpenter_core::offering::Arch;
use scarpenter_provider::error::Error;
use scarpenter_provider::request::{ClassCheck, PlacedImage, Problem, Severity};
use scarpenter_provider::{Created, Image, RefusalReason};
use scarpenter_provider_hcloud::token::Token;

use crate::fake::{Fault, TOKEN};
use crate::stage::{create, delete, find, settings, stage, stage_with};

const PATIENCE: Duration = Duration::from_secs(2);

fn check(channel: &str) -> ClassCheck {
    let image = PlacedImage { region: None, arch: None, image: Image::Flatcar(channel.to_owned()) };
    ClassCheck {
        cluster: "cluster".into(),
        node_class: "default".into(),
        images: vec![image],
        ..ClassCheck::default()
    }
}

#[tokio::test]
async fn a_class_that_works_has_no_problem() {
    let stage = stage().await;
    let all = settings(serde_json::json!({
        "networks": ["inner", "71"], "firewalls": "wall", "sshKeys": "ops", "placementGroup": "apart",
    }));
    let check = ClassCheck { regions: vec!["fsn1".into()], settings: all, ..check("stable") };
    assert_eq!(stage.client.validate(check).await.unwrap(), []);
}

#[tokio::test]
async fn each_thing_that_a_person_can_put_right_is_named() {
    let stage = stage().await;
    let wrong =
        settings(serde_json::json!({"networks": ["nowhere", "9"], "firewalls": "none", "sshKeys": "nobody"}));
    let check = ClassCheck {
        regions: vec!["fsn1".into(), "mars".into()],
        settings: wrong,
        boot_disk_gib: Some(80),
        ..check("beta")
    };
    let problems = stage.client.validate(check).await.unwrap();
    let errors: Vec<_> = problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    let fields: Vec<_> =
        errors.iter().map(|problem| problem.field.trim_start_matches("vendors.hcloud.")).collect();
    assert_eq!(
        fields,
        [
            "regions",
            "settings.networks",
            "settings.networks",
            "settings.firewalls",
            "settings.sshKeys",
            "image",
            "image"
        ]
    );
    assert!(problems[0].message.contains("fsn1"), "{problems:?}");
    assert!(errors[5].message.contains("flatcar_production_hetzner_image"), "{problems:?}");
    assert!(problems.last().is_some_and(|problem| problem.severity == Severity::Warning), "{problems:?}");
}

#[tokio::test]
async fn a_snapshot_for_one_architecture_alone_is_a_warning() {
    let stage = stage().await;
    stage.fake.world().snapshots.retain(|snapshot| snapshot.arch == "x86");
    let problems = stage.client.validate(check("stable")).await.unwrap();
    let [Problem { severity: Severity::Warning, message, .. }] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert!(message.contains("--architecture arm"), "{message}");
    let mut named = check("stable");
    named.images[0].arch = Some(Arch::Arm64);
    assert_eq!(stage.client.validate(named).await.unwrap()[0].severity, Severity::Error);
}

#[tokio::test]
async fn settings_are_read_as_for_a_create() {
    let stage = stage().await;
    let check =
        ClassCheck { settings: settings(serde_json::json!({"publicIpv4": "false"})), ..check("stable") };
    let problems = stage.client.validate(check).await.unwrap();
    assert_eq!(problems[0].field, "vendors.hcloud.settings.publicIpv4");
}

#[tokio::test]
async fn without_a_token_it_says_so_and_serves_nothing_else() {
    let stage = stage_with(Token::None, PATIENCE).await;
    let problems = stage.client.validate(check("stable")).await.unwrap();
    assert!(problems.len() == 1 && problems[0].message.contains("HCLOUD_TOKEN"), "{problems:?}");
    stage.client.capabilities().await.unwrap();
    let Created::Refused(refusal) = stage.client.create_machine(create("c1")).await.unwrap() else {
        panic!()
    };
    assert_eq!(refusal.reason, RefusalReason::Auth);
    for error in [
        stage.client.get_machine(find("c1")).await.unwrap_err(),
        stage.client.list_machines(&"cluster".into()).await.unwrap_err(),
        stage.client.delete_machine(delete("c1")).await.unwrap_err(),
        stage.client.list_offerings(Vec::new()).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Denied { .. }), "{error}");
    }
    assert_eq!(stage.fake.calls(""), 0);
}

#[tokio::test]
async fn a_token_that_is_replaced_in_its_file_needs_no_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "expired\n").unwrap();
    let stage = stage_with(Token::from(Some(path.clone()), None), PATIENCE).await;
    let problems = stage.client.validate(check("stable")).await.unwrap();
    assert!(problems[0].message.contains("Read & Write"), "{problems:?}");
    assert!(!format!("{problems:?}").contains("expired"));
    std::fs::write(&path, format!("{TOKEN}\n")).unwrap();
    assert_eq!(stage.client.validate(check("stable")).await.unwrap(), []);
}

#[tokio::test]
async fn a_vendor_that_is_away_says_nothing_about_a_class() {
    let stage = stage().await;
    stage.fake.goes_wrong("GET", "/locations", 1, Fault::Refuse(503, "unavailable", Vec::new()));
    let error = stage.client.validate(check("stable")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[test]
fn the_token_goes_only_where_nobody_can_read_it() {
    use scarpenter_provider_hcloud::Api;
    let new = |address: &str| Api::new(address, Token::from(None, Some(TOKEN.to_owned())), PATIENCE);
    assert!(new("http://api.example.com/v1").is_err());
    assert!(new("no address").is_err());
    let api = new(scarpenter_provider_hcloud::api::PUBLIC_API).unwrap();
    assert!(!format!("{api:?}").contains(TOKEN));
}
