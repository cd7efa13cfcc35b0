//! Every recorded answer of a real Headscale that concerns one of our calls, through our client, for both versions.
//!
//! The records are not part of this repository: `SCARPENTER_SHARED` names the folder that holds them, in `headscale/`.

#![allow(clippy::unwrap_used)]

mod record;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use scarpenter_core::name::Secret;
use scarpenter_headscale::{Client, Error, Key, KeyId, Limits, NewKey, Node, NodeId};

use record::{Record, Replay};
use table::{Ask, Become, CASES, OTHERS};

/// Folders of the records.
const VERSIONS: [&str; 2] = ["v0.29", "v0.30-dev"];

/// The folder of a version's records; without them nothing can be proved, which must not look like a success.
fn folder(version: &str) -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("SCARPENTER_SHARED") else {
        eprintln!(
            "\n*** SKIPPED: SCARPENTER_SHARED is not set, so the recorded answers of Headscale are not here ***\n"
        );
        return None;
    };
    Some(PathBuf::from(shared).join("headscale").join(version))
}

fn client(replay: &Replay) -> Client {
    Client::new(&replay.url, &Secret::new("hskey-api-x"), Limits::default()).unwrap()
}

/// Makes the call that a record is about, and puts what came of it into one line.
async fn ask(client: &Client, ask: Ask, record: &Record) -> Result<String, Error> {
    let done = |()| "done".to_owned();
    match ask {
        Ask::Health => client.health().await.map(done),
        Ask::User(name) => {
            let user = client.user(name).await?;
            Ok(user.map_or("nobody".to_owned(), |user| format!("{} {}", user.id, user.name)))
        }
        Ask::Create => {
            let made = client.create_key(&record.new_key()).await?;
            assert!(
                made.secret.reveal().starts_with("hskey-auth-") && made.secret.reveal().ends_with("0000")
            );
            assert!(!format!("{made:?}").contains("hskey"), "{made:?}");
            Ok(key(&made.key, record.date))
        }
        Ask::Keys => {
            let keys = client.keys().await?;
            Ok(keys.iter().map(|own| key(own, record.date)).collect::<Vec<_>>().join(" "))
        }
        Ask::Expire(id) => client.expire_key(&KeyId::parse(id).unwrap()).await.map(done),
        Ask::DeleteKey(id) => client.delete_key(&KeyId::parse(id).unwrap()).await.map(done),
        Ask::Nodes => {
            let nodes = client.nodes().await?;
            Ok(nodes.iter().map(|own| node(own, record.date)).collect::<Vec<_>>().join(" "))
        }
        Ask::DeleteNode(id) => client.delete_node(&NodeId::parse(id).unwrap()).await.map(done),
        Ask::Policy => {
            let policy = client.policy().await?;
            Ok(policy.map_or("none".to_owned(), |policy| {
                let tags = ["tag:k8s-node", "tag:k8s-cp", "tag:other"];
                tags.map(|tag| if policy.knows(tag) { tag } else { "-" }).join(" ")
            }))
        }
        Ask::Check => client.check_policy("{}").await.map(done),
    }
}

/// `id/tags`, with `@user`, `+` when used, `!` when expired, `~` when ephemeral.
fn key(key: &Key, now: Timestamp) -> String {
    let user = key.user.as_ref().map(|user| format!("@{}", user.id)).unwrap_or_default();
    let mark = |is, mark| if is { mark } else { "" };
    format!(
        "{}{user}{}{}{}{}",
        key.id,
        key.tags.iter().map(|tag| format!("/{tag}")).collect::<String>(),
        mark(key.used, "+"),
        mark(key.is_expired(now), "!"),
        mark(key.ephemeral, "~"),
    )
}

fn node(node: &Node, now: Timestamp) -> String {
    let joined = node.key.as_ref().map_or("none".to_owned(), |own| key(own, now));
    let addresses: Vec<String> = node.addresses.iter().map(ToString::to_string).collect();
    format!(
        "{}={}({})[{joined}]{}",
        node.id,
        node.name,
        addresses.join(","),
        if node.online { "" } else { "off" }
    )
}

#[tokio::test]
async fn every_recorded_answer_becomes_what_the_table_says() {
    let mut wrong = Vec::new();
    for (at, version) in VERSIONS.into_iter().enumerate() {
        let Some(folder) = folder(version) else { return };
        for case in CASES.iter().filter(|case| case.becomes[at] != Become::NotRecorded) {
            let record = Record::read(&folder, case.record);
            let replay = Replay::start(&record).await;
            let outcome = ask(&client(&replay), case.ask, &record).await;
            let mismatch = replay.mismatch();
            let fits = match (&outcome, &case.becomes[at]) {
                (Ok(line), Become::Is(expected)) => line == expected,
                (Err(error), Become::Fails(kind, words)) => {
                    error.kind() == *kind && error.to_string().contains(words)
                }
                _ => false,
            };
            if !fits || mismatch.is_some() {
                wrong.push(format!("{version}/{}: {outcome:?}, {mismatch:?}", case.record));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_recorded_answer_is_left_out_unsaid() {
    for (at, version) in VERSIONS.into_iter().enumerate() {
        let Some(folder) = folder(version) else { return };
        let there: BTreeSet<String> = Record::names(&folder).into_iter().collect();
        let cases = CASES.iter().filter(|case| case.becomes[at] != Become::NotRecorded);
        let said: BTreeSet<String> =
            cases.map(|case| case.record).chain(OTHERS.iter().copied()).map(str::to_owned).collect();
        let unsaid: Vec<_> = there.difference(&said).collect();
        assert!(unsaid.is_empty(), "{version}: in no table: {unsaid:?}");
        let lost: Vec<_> = CASES
            .iter()
            .filter(|case| case.becomes[at] != Become::NotRecorded && !there.contains(case.record))
            .map(|case| case.record)
            .collect();
        assert!(lost.is_empty(), "{version}: in the table and not recorded: {lost:?}");
    }
}

/// The recorded keys are ephemeral and ours never are; but for that they are what we ask for.
#[tokio::test]
async fn a_key_as_we_make_it_is_read_with_its_user_and_tags() {
    for (version, id) in VERSIONS.into_iter().zip(["4", "3"]) {
        let Some(folder) = folder(version) else { return };
        let mut record = Record::read(&folder, "036-pak-create-tags-and-user");
        record.answer = record.answer.replace("\"ephemeral\":true", "\"ephemeral\":false");
        let replay = Replay::start(&record).await;
        let line = ask(&client(&replay), Ask::Create, &record).await.unwrap();
        assert_eq!(line, format!("{id}@1/tag:k8s-node"), "{version}");
        assert_eq!(replay.mismatch(), None);
        assert_eq!(replay.fields(), ["aclTags", "ephemeral", "expiration", "reusable", "user"]);
    }
}

#[test]
fn a_key_is_asked_for_with_the_fields_of_the_published_schema_and_no_other() {
    let Some(folder) = folder("v0.30-dev") else { return };
    let schema: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("openapi.json")).unwrap()).unwrap();
    let body = &schema["components"]["schemas"]["CreatePreAuthKeyRequestBody"]["properties"];
    let known: BTreeSet<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(known, BTreeSet::from(["aclTags", "ephemeral", "expiration", "reusable", "user"]));
}

/// Asked for with what the record asks for, as far as our client can.
impl Record {
    fn new_key(&self) -> NewKey {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        let tags =
            [&body["aclTags"], &body["acl_tags"]].into_iter().find_map(|tags| tags.as_array().cloned());
        let end = body["expiration"].as_str().unwrap_or("2026-11-30T14:02:11Z");
        NewKey {
            user: body["user"].as_str().unwrap_or("1").to_owned(),
            tags: tags.unwrap_or_default().iter().map(|tag| tag.as_str().unwrap().to_owned()).collect(),
            expiration: end.parse().unwrap(),
        }
    }
}
