//! Classes whose machines could not join: one condition says why, nothing is bought, and mending it is enough.

use std::sync::Arc;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, ResourceExt};
use scarpenter_api::ScarpenterNodeClass;
use scarpenter_playground::ControlPlane;
use serde_json::{Value, json};

use crate::case::{Case, and, condition, of_pool};
use crate::faults::busy;
use crate::scene;

/// Class, what differs, and what JoinReady says.
fn cases() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let join = |join: Value| json!({"join": join});
    let ignition = |name: &str| json!({"ignition": {"configMapRef": {"name": name}}});
    vec![
        ("ca-not-pem", join(json!({"caCertificate": ca("trial-no-pem")})), &["no PEM certificate"]),
        ("ca-missing", join(json!({"caCertificate": ca("trial-nowhere")})), &["trial-nowhere", "create it"]),
        ("not-https", join(json!({"servers": ["http://10.0.0.1:6443"]})), &["spec.join.servers", "https://"]),
        ("not-k3s", join(json!({"method": "K3sAgent"})), &["K3sAgent", "join.kubernetesVersion"]),
        ("no-map", ignition("trial-nowhere"), &["spec.ignition", "trial-nowhere", "kube-system"]),
        ("two-keys", ignition("trial-two-keys"), &["spec.ignition", "under the key ignition"]),
        ("not-ignition", ignition("trial-not-ignition"), &["not an Ignition document"]),
        ("other-version", ignition("trial-other-version"), &["ignition.version", "3.4.0"]),
        ("in-conflict", ignition("trial-in-conflict"), &["/etc/hostname", "conflict"]),
        (
            "unverified",
            join(json!({"sysextBaseURL": "http://mirror.example.com"})),
            &["not https", "join.sysextHashes"],
        ),
        ("bad-hash", join(json!({"sysextHashes": {"a.raw": "md5-0"}})), &["spec.join.sysextHashes", "md5-0"]),
        ("bad-range", join(json!({"firewall": {"allowFrom": ["home"]}})), &["allowFrom", "home"]),
    ]
}

fn ca(name: &str) -> Value {
    json!({"configMapKeyRef": {"name": name, "key": "ca.crt"}})
}

fn maps() -> Vec<(&'static str, Value)> {
    let file = |path: &str, source: &str| {
        json!({"ignition": {"version": "3.3.0"}, "storage": {"files": [
            {"path": path, "contents": {"source": source}},
        ]}})
        .to_string()
    };
    // What does not repeat itself is not packed shorter.
    let large: Vec<u8> = (0..16_000).map(|_| rand::random()).collect();
    let large = file("/etc/large", &format!("data:;base64,{}", STANDARD.encode(large)));
    vec![
        ("trial-no-pem", json!({"ca.crt": "not a certificate"})),
        ("trial-two-keys", json!({"a": "{}", "b": "{}"})),
        ("trial-not-ignition", json!({"ignition": "variant: flatcar"})),
        ("trial-other-version", json!({"ignition": r#"{"ignition": {"version": "3.4.0"}}"#})),
        ("trial-in-conflict", json!({"config.ign": file("/etc/hostname", "data:,other")})),
        ("trial-large", json!({"ignition": large})),
    ]
}

pub(super) async fn play(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    scene(plane, busy(), async |stage| {
        let case = Case::new(stage);
        let api: Api<ConfigMap> = Api::namespaced(stage.client().clone(), "kube-system");
        for (name, data) in maps() {
            let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": data}))?;
            let _ = case.delete(&api, name).await;
            api.create(&PostParams::default(), &map).await?;
        }
        stage.start_controller()?;
        stage.until_ready().await?;
        let case = Case::new(stage);
        let outcome = said_and_mended(case, &api).await;
        for (name, _) in maps() {
            case.delete(&api, name).await?;
        }
        outcome
    })
    .await
}

async fn said_and_mended(case: Case<'_>, maps: &Api<ConfigMap>) -> anyhow::Result<()> {
    unknown_method(case).await?;
    for (name, spec, _) in cases() {
        case.class(name, and(json!({"spec": {"vendors": {"aws": {}}}}), json!({"spec": spec}))).await?;
        case.pool(name, name, json!({})).await?;
        case.pod(name, of_pool(name)).await?;
    }
    for (name, _, words) in cases() {
        let said = case
            .until_object(&case.classes(), name, &format!("JoinReady is False and says {words:?}"), |class| {
                condition(class.conditions(), "JoinReady").is_some_and(|said| {
                    said.starts_with("False") && words.iter().all(|word| said.contains(word))
                })
            })
            .await?;
        let ready = condition(said.conditions(), "Ready").context("it has a condition Ready")?;
        ensure!(ready.starts_with("False"), "{name}: Ready is {ready}");
    }
    too_large_for_one(case).await?;
    for (name, ..) in cases() {
        let claims = case.claims_of(name).await?;
        ensure!(
            claims.is_empty(),
            "{name} bought {:?}",
            claims.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        );
    }
    mended(case, maps).await?;
    for (name, ..) in cases() {
        case.delete(&case.pods(), name).await?;
    }
    Ok(())
}

/// The definition knows which methods there are.
async fn unknown_method(case: Case<'_>) -> anyhow::Result<()> {
    let resource = ApiResource::erase::<ScarpenterNodeClass>(&());
    let spec = json!({"vendors": {"aws": {}}, "join": {"method": "Magic"}});
    let class = DynamicObject::new("magic", &resource).data(json!({"spec": spec}));
    let api = Api::<DynamicObject>::all_with(case.stage.client().clone(), &resource);
    let refused = api.create(&PostParams::default(), &class).await.expect_err("no such method");
    ensure!(refused.to_string().contains("spec.join.method"), "{refused}");
    Ok(())
}

/// Another vendor takes more, so it is only that vendor's condition.
async fn too_large_for_one(case: Case<'_>) -> anyhow::Result<()> {
    let spec =
        json!({"vendors": {"aws": {}, "hcloud": {}}, "ignition": {"configMapRef": {"name": "trial-large"}}});
    case.class("large", json!({"spec": spec})).await?;
    let class = case
        .until_object(&case.classes(), "large", "aws does not take so much", |class| {
            condition(class.conditions(), "AwsReady")
                .is_some_and(|said| said.starts_with("False UserDataTooLarge") && said.contains("16384"))
        })
        .await?;
    for type_ in ["JoinReady", "HcloudReady", "Ready"] {
        let said = condition(class.conditions(), type_).context("it has this condition")?;
        ensure!(said.starts_with("True"), "{type_} is {said}");
    }
    Ok(())
}

async fn mended(case: Case<'_>, maps: &Api<ConfigMap>) -> anyhow::Result<()> {
    let fine = json!({"data": {"ignition": r#"{"ignition": {"version": "3.2.0"}}"#}});
    case.patch(maps, "trial-not-ignition", fine).await?;
    case.until_object(&case.classes(), "not-ignition", "it is Ready", |class| {
        condition(class.conditions(), "Ready").is_some_and(|said| said.starts_with("True"))
    })
    .await?;
    case.ran("not-ignition").await.map(drop)
}
