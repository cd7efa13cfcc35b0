//! What is remembered of keys beyond the life of their claims: a ConfigMap, one line a claim.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use scarpenter_core::name::{ClaimUid, sha256_hex};
use serde_json::{Map, Value, json};

use super::{Error, Mark, Server, lock};
use crate::context::Context;

/// Name of the ConfigMap, in the controller's namespace.
const NAME: &str = "scarpenter-mesh";
/// Before the names of servers, so that every line is short: a ConfigMap holds a MiB.
const SERVER: &str = "server-";
/// Last word of a line whose claim has let go.
const LEFT: &str = "left";

/// One claim's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// Where it was made.
    pub(super) server: Server,
    /// Which it is.
    pub(super) mark: Mark,
    /// Name of the claim, for people.
    pub(super) node: String,
    /// Its machine is gone, whether or not its claim is still to be seen.
    pub(super) left: bool,
}

/// Reads all notes; lines that somebody else wrote are left alone.
pub(super) async fn read(context: &Context) -> Result<BTreeMap<ClaimUid, Note>, Error> {
    let _turn = context.mesh.writing.lock().await;
    let map = api(context).get_opt(NAME).await.map_err(Error::kubernetes("read the notes on mesh keys"))?;
    let notes = map.and_then(|map| map.data).map(|data| parse(&data)).unwrap_or_default();
    lock(&context.mesh.notes).clone_from(&notes);
    Ok(notes)
}

/// Adds notes, or writes them anew; that a claim has left stays said.
///
/// Those that come while others are being written are written together, so that a burst of launches is a few requests.
pub(super) async fn put(context: &Context, notes: BTreeMap<ClaimUid, Note>) -> Result<(), Error> {
    if notes.is_empty() {
        return Ok(());
    }
    add(&mut lock(&context.mesh.unwritten), notes);
    let _turn = context.mesh.writing.lock().await;
    let mut waiting = std::mem::take(&mut *lock(&context.mesh.unwritten));
    waiting.retain(|uid, note| !stays(lock(&context.mesh.notes).get(uid), note));
    // Whoever had the turn before has written these, too.
    if waiting.is_empty() {
        return Ok(());
    }
    let outcome = write(context, &waiting).await;
    let target = if outcome.is_ok() { &context.mesh.notes } else { &context.mesh.unwritten };
    add(&mut lock(target), waiting);
    outcome
}

fn add(to: &mut BTreeMap<ClaimUid, Note>, notes: BTreeMap<ClaimUid, Note>) {
    for (uid, note) in notes {
        if !stays(to.get(&uid), &note) {
            to.insert(uid, note);
        }
    }
}

/// Whether what is known already says as much.
fn stays(known: Option<&Note>, note: &Note) -> bool {
    known.is_some_and(|known| known == note || known.left && !note.left)
}

async fn write(context: &Context, notes: &BTreeMap<ClaimUid, Note>) -> Result<(), Error> {
    let data: BTreeMap<String, String> = notes.iter().flat_map(|(uid, note)| lines(uid, note)).collect();
    let doing = "write the notes on mesh keys";
    let patch = Patch::Merge(json!({"data": data}));
    match api(context).patch(NAME, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            let labels = [("app.kubernetes.io/name".to_owned(), "scarpenter".to_owned())].into();
            let metadata =
                ObjectMeta { name: Some(NAME.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            api(context)
                .create(&PostParams::default(), &map)
                .await
                .map(drop)
                .map_err(Error::kubernetes(doing))
        }
        outcome => outcome.map(drop).map_err(Error::kubernetes(doing)),
    }
}

/// Removes notes of what is gone.
pub(super) async fn remove(context: &Context, claims: &BTreeSet<ClaimUid>) -> Result<(), Error> {
    if claims.is_empty() {
        return Ok(());
    }
    let _turn = context.mesh.writing.lock().await;
    let data: Map<String, Value> = claims.iter().map(|uid| (uid.to_string(), Value::Null)).collect();
    let patch = Patch::Merge(json!({"data": data}));
    match api(context).patch(NAME, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        outcome => {
            outcome.map(drop).map_err(Error::kubernetes("remove notes on mesh keys"))?;
        }
    }
    lock(&context.mesh.notes).retain(|uid, _| !claims.contains(uid));
    Ok(())
}

fn api(context: &Context) -> Api<ConfigMap> {
    Api::namespaced(context.client.clone(), &context.settings.namespace)
}

fn lines(uid: &ClaimUid, note: &Note) -> [(String, String); 2] {
    let server = serde_json::to_string(&note.server).expect("a server is three texts");
    let hash = sha256_hex(server.as_bytes())[..8].to_owned();
    let left = if note.left { format!(" {LEFT}") } else { String::new() };
    let line = format!("{hash} {} {}{left}", note.mark, note.node);
    [(format!("{SERVER}{hash}"), server), (uid.to_string(), line)]
}

fn parse(data: &BTreeMap<String, String>) -> BTreeMap<ClaimUid, Note> {
    let note = |line: &str| {
        let mut words = line.split(' ');
        let server = data.get(&format!("{SERVER}{}", words.next()?))?;
        let server = serde_json::from_str(server).ok()?;
        let mark = Mark::parse(&format!("{} {}", words.next()?, words.next()?))?;
        Some(Note { server, mark, node: words.next()?.to_owned(), left: words.next() == Some(LEFT) })
    };
    let claims = data.iter().filter(|(key, _)| !key.starts_with(SERVER));
    claims.filter_map(|(uid, line)| Some((ClaimUid::new(uid), note(line)?))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn note(left: bool) -> Note {
        let url = "https://mesh.example.com".to_owned();
        let server = Server { url, secret: "headscale".to_owned(), key: "apiKey".to_owned() };
        let mark = Mark::parse("12 2026-11-30T13:02:11.820616523Z").unwrap();
        Note { server, mark, node: "default-0123456789".to_owned(), left }
    }

    #[test]
    fn notes_come_back_as_they_were_written() {
        let notes = BTreeMap::from([(ClaimUid::new("a"), note(false)), (ClaimUid::new("b"), note(true))]);
        let data = notes.iter().flat_map(|(uid, note)| lines(uid, note)).collect();
        assert_eq!(parse(&data), notes);
    }

    #[test]
    fn that_a_claim_has_left_stays_said() {
        let uid = ClaimUid::new("a");
        let mut notes = BTreeMap::from([(uid.clone(), note(false))]);
        add(&mut notes, BTreeMap::from([(uid.clone(), note(true))]));
        add(&mut notes, BTreeMap::from([(uid.clone(), note(false))]));
        assert!(notes[&uid].left);
        // The same key is not written twice, and another one is.
        let other = Note { mark: Mark::parse("13 2026-11-30T13:02:11Z").unwrap(), ..note(false) };
        assert!(stays(Some(&note(false)), &note(false)) && !stays(Some(&note(false)), &other));
    }

    #[test]
    fn a_line_of_somebody_else_is_no_note() {
        let data = [("a", "nonsense"), ("b", "00000000 1 2026-11-30T13:02:11Z x"), ("server-1", "{")];
        let data = data.map(|(key, line)| (key.to_owned(), line.to_owned())).into();
        assert_eq!(parse(&data), BTreeMap::new());
    }

    #[test]
    fn a_config_map_holds_the_notes_of_five_thousand_claims() {
        let uid = ClaimUid::new("0d9f0a4e-0c3f-4a52-9f5c-0d3f1c5a7b11");
        let [_, (key, line)] = lines(&uid, &note(true));
        assert!((key.len() + line.len()) * 5000 < 1 << 20, "{line}");
    }
}
