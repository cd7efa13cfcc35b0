//! Classes with a mesh, whose Headscale is a small one that fails when told to.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use scarpenter_api::{NodeClaim, condition as types, event, reason};
use scarpenter_core::label;
use scarpenter_headscale::testing::{API_KEY, Fake, TAG, USER, Version};
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use scarpenter_tests::scene::chaos;
use scarpenter_tests::stage::{Setting, Stage, Want};
use serde_json::{Value, json};

use crate::case::{Case, condition, never};
use crate::scene;

const SECRET: &str = "trial-headscale";
const SOON: Duration = Duration::from_secs(60);

pub(crate) fn add(trials: &mut Trials) {
    trials.add("mesh::a_machine_has_a_key_of_its_own_and_leaves_no_node_behind", joins_and_leaves);
    trials.add("mesh::without_its_headscale_nothing_is_bought_and_everything_goes", outage);
    trials.add("mesh::with_a_revoked_key_nothing_is_bought_and_with_a_new_one_everything_goes_on", revoked);
    trials.add("mesh::a_controller_that_is_killed_again_and_again_leaves_no_mesh_node", killed);
    trials.add("mesh::what_keeps_machines_from_joining_is_said_and_nothing_is_bought", bad_input);
}

/// What a class says of its mesh.
fn mesh(url: &str) -> Value {
    let reference = json!({"name": SECRET, "key": "apiKey"});
    json!({"headscale": {"url": url, "user": USER, "tags": [TAG], "apiKeySecretRef": reference}})
}

/// Plays a scene in which the class of both pools has a mesh.
async fn with_mesh(
    plane: Arc<ControlPlane>,
    play: impl AsyncFnOnce(&mut Stage, &mut Fake) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut fake = Fake::start(Version::V029);
    scene(plane, Setting::default(), async |stage| {
        let case = Case::new(stage);
        secret(case, json!({"apiKey": API_KEY})).await?;
        case.patch(&case.classes(), "default", json!({"spec": {"mesh": mesh(&fake.url())}})).await?;
        let played = play(stage, &mut fake).await;
        let case = Case::new(stage);
        case.delete(&case.secrets(), SECRET).await?;
        played
    })
    .await
}

async fn secret(case: Case<'_>, data: Value) -> anyhow::Result<()> {
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": SECRET}, "stringData": data}))?;
    // A trial that failed may have left its own.
    let _ = case.delete(&case.secrets(), SECRET).await;
    case.secrets().create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// The only claim once its key is written on it, and the id of that key.
async fn marked_claim(stage: &Stage) -> anyhow::Result<(NodeClaim, u64)> {
    let claims: Api<NodeClaim> = Api::all(stage.client().clone());
    let mut found = None;
    stage
        .until(SOON, "a claim with a mesh key", async || {
            let list = claims.list(&Default::default()).await?.items;
            found = list.into_iter().find(|claim| claim.annotations().contains_key(label::MESH_KEY));
            Ok(if found.is_some() { Ok(()) } else { Err("none".to_owned()) })
        })
        .await?;
    let claim = found.context("it was there a moment ago")?;
    let id = claim.annotations()[label::MESH_KEY].split(' ').next().context("a mark has an id")?.parse()?;
    Ok((claim, id))
}

/// The machine joins its mesh, which a simulated one cannot do by itself.
async fn one_joins(stage: &Stage, fake: &Fake) -> anyhow::Result<u64> {
    let (claim, key) = marked_claim(stage).await?;
    let joined = fake.state().join_with(key, &claim.name_any());
    joined.map_err(anyhow::Error::msg)
}

async fn until_mesh_is_empty(stage: &Stage, fake: &Fake, within: Duration) -> anyhow::Result<()> {
    stage
        .until(within, "no key and no mesh node is left", async || {
            let state = fake.state();
            let empty = state.keys.is_empty() && state.nodes.is_empty();
            Ok(if empty { Ok(()) } else { Err(format!("{:?} {:?}", state.keys.keys(), state.nodes)) })
        })
        .await
}

async fn joins_and_leaves(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    with_mesh(plane, async |stage, fake| {
        stage.start_controller()?;
        stage.until_ready().await?;
        // Of somebody else, in everything like ours but for how it was made.
        let (other, other_node) = {
            let mut state = fake.state();
            let end = in_seconds(3600);
            let key = state.make_key(Some(1), &[TAG], end);
            (
                state.make_key(Some(1), &[TAG], end),
                state.join_with(key, "somebody-else").map_err(anyhow::Error::msg)?,
            )
        };
        stage.create(&[Want::exact("one", 0).for_seconds(8)]).await?;
        let (claim, id) = marked_claim(stage).await?;
        let key = fake.state().keys[&id].clone();
        ensure!(key.tags == [TAG] && key.user == Some(1) && !key.reusable && !key.ephemeral, "{key:?}");
        let life = key.expiration.duration_since(key.created).as_secs();
        // The registration deadline is a quarter of an hour, and five minutes are to spare.
        ensure!((1100..=1201).contains(&life), "the key lives for {life} s");
        one_joins(stage, fake).await?;
        stage.until_running(1).await?;
        stage
            .until(SOON, "the key is expired while its node lives", async || {
                let state = fake.state();
                let expired = state.keys[&id].expiration < in_seconds(0);
                Ok(if expired && state.nodes.len() == 2 { Ok(()) } else { Err(format!("{state:?}")) })
            })
            .await?;
        stage.until_ran(1).await?;
        stage.until_nothing_is_left().await?;
        let state = fake.state();
        // Its claim waited for it.
        ensure!(state.nodes.keys().eq([&other_node]), "{:?}", state.nodes);
        ensure!(state.keys.len() == 2 && state.keys.contains_key(&other), "{:?}", state.keys);
        ensure!(state.unknown_fields.is_empty(), "{:?}", state.unknown_fields);
        let made = state.requests.iter().filter(|line| *line == "POST /api/v1/preauthkey").count();
        ensure!(made == 1, "{made} keys were made");
        let log = std::fs::read_to_string(stage.log("controller"))?;
        ensure!(!log.contains("hskey-"), "a key is in the log");
        ensure!(claim.annotations().values().all(|value| !value.contains("hskey-")), "a key is on the claim");
        Ok(())
    })
    .await
}

async fn outage(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let go_down = async |_: Case<'_>, fake: &mut Fake| {
        fake.go_down();
        Ok(())
    };
    let come_up = async |_: Case<'_>, fake: &mut Fake| {
        fake.come_up();
        Ok(())
    };
    trouble(plane, reason::MESH_UNREACHABLE, "cannot reach Headscale", go_down, come_up).await
}

async fn revoked(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    const NEXT: &str = "hskey-api-next-0000";
    let revoke = async |_: Case<'_>, fake: &mut Fake| {
        fake.state().api_key = NEXT.to_owned();
        Ok(())
    };
    let renew = async |case: Case<'_>, _: &mut Fake| {
        case.patch(&case.secrets(), SECRET, json!({"stringData": {"apiKey": NEXT}})).await
    };
    trouble(plane, reason::UNAUTHENTICATED, "wrong, expired or revoked", revoke, renew).await
}

/// Headscale fails while a machine runs: nothing is bought, the machine goes, and what it leaves goes later.
async fn trouble(
    plane: Arc<ControlPlane>,
    reason: &str,
    said: &str,
    begin: impl AsyncFn(Case<'_>, &mut Fake) -> anyhow::Result<()>,
    end: impl AsyncFn(Case<'_>, &mut Fake) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    with_mesh(plane, async |stage, fake| {
        stage.start_controller()?;
        stage.until_ready().await?;
        stage.create(&[Want::exact("one", 0).for_seconds(600)]).await?;
        one_joins(stage, fake).await?;
        stage.until_running(1).await?;
        let case = Case::new(stage);
        begin(case, fake).await?;
        stage.create(&[Want::exact("two", 1)]).await?;
        let words = until_mesh_is(case, "default", reason).await?;
        ensure!(words.contains(&fake.url()) && !words.contains("hskey"), "{words}");
        // The one that is there goes all the same, and what it leaves is said.
        case.delete(&case.pods(), "one").await?;
        let bought = async || Ok(stage.ledger()?.machines() > 1);
        never(Duration::from_secs(3), "a machine that cannot join is bought", bought).await?;
        stage.until_nothing_is_left().await?;
        case.event("default", event::MESH_LEFT, &[said]).await?;
        {
            let state = fake.state();
            let left = (state.keys.len(), state.nodes.len());
            ensure!(left == (1, 1), "{left:?} keys and nodes are left");
        }
        end(case, fake).await?;
        until_mesh_is_empty(stage, fake, Duration::from_secs(30)).await?;
        stage.until_ready().await?;
        stage.create(&[Want::exact("three", 2)]).await?;
        case.ran("three").await?;
        stage.until_nothing_is_left().await?;
        until_mesh_is_empty(stage, fake, Duration::from_secs(5)).await?;
        let notes = Api::<ConfigMap>::namespaced(stage.client().clone(), "kube-system");
        let notes = notes.get("scarpenter-mesh").await?.data.unwrap_or_default();
        ensure!(notes.keys().all(|key| key.starts_with("server-")), "{notes:?}");
        stage.ledger()?.demand_at_most_one_each(2)
    })
    .await
}

/// Whatever dies in between: every node goes, and a key that was made for nobody is one that this cluster finds.
async fn killed(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    const PODS: usize = 12;
    const KILLS: usize = 6;
    with_mesh(plane, async |stage, fake| {
        let client = stage.client().clone();
        let joining = async {
            let claims: Api<NodeClaim> = Api::all(client);
            loop {
                let mut list = claims.list(&Default::default()).await?.items;
                // Before there is a machine, nobody has the key.
                list.retain(|claim| claim.annotations().contains_key(label::MACHINE_ID));
                for claim in list {
                    let mark =
                        claim.annotations().get(label::MESH_KEY).and_then(|mark| mark.split(' ').next());
                    if let Some(id) = mark {
                        // All but the first time it says that the key was used.
                        let _ = fake.state().join_with(id.parse()?, &claim.name_any());
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let seed = rand::random();
        tokio::select! {
            outcome = chaos(stage, PODS, KILLS, seed) => outcome.map(drop),
            outcome = joining => outcome,
        }?;
        // What was noted by a controller that died is collected by the next.
        let within = Duration::from_secs(90);
        stage
            .until(within, "no mesh node is left", async || {
                let state = fake.state();
                let used = state.keys.values().filter(|key| key.used).count();
                let clean = state.nodes.is_empty() && used == 0;
                Ok(if clean { Ok(()) } else { Err(format!("{:?} {:?}", state.nodes, state.keys)) })
            })
            .await
            .with_context(|| format!("the times of the kills are those of seed {seed}"))?;
        let state = fake.state();
        let lost: Vec<_> = state.keys.values().map(|key| key.expiration.subsec_nanosecond()).collect();
        ensure!(lost.len() <= PODS && lost.windows(2).all(|two| two[0] == two[1]), "{:?}", state.keys);
        ensure!(lost.iter().all(|mark| *mark != 0), "{lost:?}");
        Ok(())
    })
    .await
}

/// Words of a class's condition MeshReady, once it is False for that reason, and the class not Ready.
async fn until_mesh_is(case: Case<'_>, class: &str, reason: &str) -> anyhow::Result<String> {
    let begin = format!("False {reason} ");
    let class = case
        .until_object(&case.classes(), class, &begin, |class| {
            let words = condition(class.conditions(), types::MESH_READY).unwrap_or_default();
            words.starts_with(&begin) && !types::is_true(class.conditions(), types::READY)
        })
        .await?;
    let words = condition(class.conditions(), types::MESH_READY).unwrap_or_default();
    let words = words.strip_prefix(&begin).unwrap_or_default().to_owned();
    ensure!(!words.contains('\n'), "{words}");
    Ok(words)
}

async fn bad_input(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    with_mesh(plane, async |stage, fake| {
        let case = Case::new(stage);
        secret(case, json!({"apiKey": API_KEY, "revoked": "hskey-api-revoked-0000", "broken": "two\nlines"}))
            .await?;
        let with = |field: &str, value: Value| {
            let mut mesh = mesh(&fake.url());
            mesh["headscale"][field] = value;
            mesh
        };
        let secret_key = |key: &str| with("apiKeySecretRef", json!({"name": SECRET, "key": key}));
        let no_secret = with("apiKeySecretRef", json!({"name": "nosuch", "key": "apiKey"}));
        let cases = [
            ("in-clear", with("url", json!("http://mesh.example.com")), reason::INVALID, "use https"),
            ("no-url", with("url", json!("mesh")), reason::INVALID, "\"mesh\" is not the URL"),
            (
                "nobody-there",
                with("url", json!("http://127.0.0.1:1")),
                reason::MESH_UNREACHABLE,
                "cannot reach",
            ),
            ("no-secret", no_secret, reason::SECRET_NOT_FOUND, "no Secret nosuch in namespace kube-system"),
            ("no-key", secret_key("nosuch"), reason::SECRET_NOT_FOUND, "no text under nosuch"),
            ("revoked", secret_key("revoked"), reason::UNAUTHENTICATED, "wrong, expired or revoked"),
            ("broken", secret_key("broken"), reason::INVALID, "on one line"),
            ("no-user", with("user", json!("nosuch")), reason::MESH_USER_NOT_FOUND, "no user \"nosuch\""),
            (
                "unknown-tag",
                with("tags", json!([TAG, "tag:x"])),
                reason::MESH_TAG_REFUSED,
                "does not know \"tag:x\"",
            ),
            ("no-tag", with("tags", json!(["Worker"])), reason::MESH_TAG_REFUSED, "\"Worker\" is not a tag"),
        ];
        for (name, mesh, ..) in &cases {
            let spec = json!({"spec": {"vendors": {"hcloud": {}}, "mesh": mesh}});
            case.class(name, spec).await?;
        }
        stage.start_controller()?;
        let case = Case::new(stage);
        for (name, _, reason, words) in &cases {
            let said = until_mesh_is(case, name, reason).await?;
            ensure!(said.contains(words) && !said.contains("hskey"), "{name}: {said}");
        }
        // Another's mistakes are not its own.
        stage.until_ready().await?;
        ensure!(fake.state().keys.is_empty() && stage.ledger()?.machines() == 0, "something was made");
        Ok(())
    })
    .await
}

fn in_seconds(seconds: i64) -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now() + k8s_openapi::jiff::SignedDuration::from_secs(seconds)
}
