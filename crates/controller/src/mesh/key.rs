//! A claim's key: made before its join Secret, and written down before it can be lost.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use scarpenter_api::ScarpenterNodeClass;
use scarpenter_api::nodeclass::Mesh as Spec;
use scarpenter_bootstrap::Mesh;
use scarpenter_core::label;
use scarpenter_core::name::{ClaimUid, ClusterId, sha256_hex};
use scarpenter_core::offering::Launch;
use scarpenter_headscale::{KeyId, Kind, MadeKey, NewKey};
use scarpenter_index::ClaimRecord;
use serde_json::json;

use super::{Error, Server, lock, server};
use crate::clock;
use crate::context::Context;
use crate::join::{self, Material};
use crate::lifecycle::{self, annotate};

/// A key outlives the registration deadline by this, so that its end never decides before the deadline does.
const SPARE: Duration = Duration::from_secs(300);
/// Databases keep times to the microsecond or better.
const CREATED_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// What is kept of a key: its id, and when it was made, as `12 2026-11-30T13:02:11.82Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(super) id: KeyId,
    pub(super) created: Timestamp,
}

impl Mark {
    /// As written on a claim.
    pub(crate) fn of(record: &ClaimRecord) -> Option<Self> {
        record.object.annotations().get(label::MESH_KEY).and_then(|text| Self::parse(text))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, created) = text.split_once(' ')?;
        Some(Self { id: KeyId::parse(id)?, created: created.parse().ok()? })
    }

    /// Whether it is this key, and not one of another database that has got the same id.
    pub(super) fn is_of(&self, key: &scarpenter_headscale::Key) -> bool {
        let off = key.created.map(|created| created.duration_since(self.created).abs());
        key.id == self.id && off.is_some_and(|off| off <= CREATED_WITHIN)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.created)
    }
}

/// What the join material of a claim needs of a mesh.
#[derive(Debug)]
pub(crate) enum Key {
    /// Nothing: its class has none.
    NotNeeded,
    /// Nothing new: the join Secret of an earlier look holds a key.
    Stored,
    /// This, which the Secret is going to hold.
    New(Box<Mesh>, Mark),
}

/// Makes the claim's key and writes its id on the claim, unless an earlier look has got further.
///
/// Gives the claim as it was written. A class without a mesh costs nothing.
pub(crate) async fn prepare(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    class: &ScarpenterNodeClass,
) -> Result<(Option<ClaimRecord>, Key), lifecycle::Error> {
    let Some(spec) = &class.spec.mesh else { return Ok((None, Key::NotNeeded)) };
    if let Some(mark) = Mark::of(record) {
        if is_stored(context, &record.claim.uid).await? {
            lock(&context.mesh.unstored).remove(&record.claim.uid);
            return Ok((None, Key::Stored));
        }
        let unstored = lock(&context.mesh.unstored).get(&record.claim.uid).cloned();
        if let Some((_, mesh)) = unstored.filter(|(own, _)| *own == mark) {
            return Ok((None, Key::New(Box::new(mesh), mark)));
        }
        // What it opens with is lost with whoever made it: the next one takes its place on the claim.
    }
    let outcome = make(context, record, launch, class, spec).await;
    let (made, login_server) = outcome.map_err(|error| {
        super::doubt(context, &class.name_any());
        lifecycle::Error::Mesh(Box::new(error))
    })?;
    let created = made.key.created.unwrap_or_else(Timestamp::now);
    let mark = Mark { id: made.key.id, created };
    let annotations = json!({label::MESH_KEY: mark.to_string()});
    match annotate(context, record, "write down the mesh key", annotations).await {
        Ok(written) => {
            let mesh = Mesh {
                login_server,
                auth_key: made.secret,
                tailscale_version: spec.tailscale.version.clone(),
                accept_routes: spec.tailscale.accept_routes,
            };
            lock(&context.mesh.unstored).insert(record.claim.uid.clone(), (mark.clone(), mesh.clone()));
            Ok((Some(ClaimRecord::parse(written)), Key::New(Box::new(mesh), mark)))
        }
        Err(error) => {
            discard(context, &Server::of(&spec.headscale), &mark).await;
            Err(error)
        }
    }
}

/// The stored document decides which key the machine has: the claim is made to say so. They differ only when two leaders
/// made one each.
pub(crate) async fn settle(
    context: &Context,
    record: &ClaimRecord,
    material: &Material,
) -> Result<Option<ClaimRecord>, lifecycle::Error> {
    lock(&context.mesh.unstored).remove(&record.claim.uid);
    let Some(stored) = &material.mesh_key else { return Ok(None) };
    if record.object.annotations().get(label::MESH_KEY) == Some(stored) {
        return Ok(None);
    }
    if let Some(mark) = Mark::parse(stored) {
        let noted = super::note_mark(context, record, mark, false).await;
        noted.map_err(|error| lifecycle::Error::Mesh(Box::new(error)))?;
    }
    let annotations = json!({label::MESH_KEY: stored});
    let written = annotate(context, record, "write down the mesh key", annotations).await?;
    Ok(Some(ClaimRecord::parse(written)))
}

async fn is_stored(context: &Context, claim: &ClaimUid) -> Result<bool, lifecycle::Error> {
    join::is_stored(context, claim).await.map_err(|error| lifecycle::Error::Join(Box::new(error)))
}

async fn make(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    class: &ScarpenterNodeClass,
    spec: &Spec,
) -> Result<(MadeKey, String), Error> {
    let server = Server::of(&spec.headscale);
    let client = server::client(context, &server).await?;
    let end = record.claim.created.after(class.registration_deadline(&launch.offering.vendor) + SPARE);
    let new = NewKey {
        user: user(context, &server, &spec.headscale.user).await?,
        tags: spec.headscale.tags.clone(),
        expiration: marked_end(clock::timestamp(end), &context.cluster),
    };
    let outcome = server::said(context, &server, client.create_key(&new).await);
    if let Err(Error::Headscale(error)) = &outcome
        && error.kind() == Kind::Refused
    {
        lock(&context.mesh.users).remove(&(server, spec.headscale.user.clone()));
    }
    Ok((outcome?, client.address().to_owned()))
}

/// Id of a user, as the latest check found it.
async fn user(context: &Context, server: &Server, name: &str) -> Result<String, Error> {
    let key = (server.clone(), name.to_owned());
    if let Some(id) = lock(&context.mesh.users).get(&key).cloned() {
        return Ok(id);
    }
    let client = server::client(context, server).await?;
    find_user(context, server, name, &client).await
}

/// Asks for a user, and remembers its id.
pub(super) async fn find_user(
    context: &Context,
    server: &Server,
    name: &str,
    client: &scarpenter_headscale::Client,
) -> Result<String, Error> {
    let key = (server.clone(), name.to_owned());
    match server::said(context, server, client.user(name).await)? {
        Some(user) => {
            lock(&context.mesh.users).insert(key, user.id.clone());
            Ok(user.id)
        }
        None => {
            lock(&context.mesh.users).remove(&key);
            Err(Error::NoUser { url: server.url.clone(), user: name.to_owned() })
        }
    }
}

/// A key that nobody has; where this fails, the sweep finds it by its end.
async fn discard(context: &Context, server: &Server, mark: &Mark) {
    let Ok(client) = server::client(context, server).await else { return };
    if let Err(error) = client.delete_key(&mark.id).await {
        tracing::debug!(key = %mark, %error, "key that nobody has not deleted yet");
    }
}

/// That end, in a microsecond that tells this cluster's keys from others on the same Headscale.
pub(super) fn marked_end(end: Timestamp, cluster: &ClusterId) -> Timestamp {
    let micros = end.as_second().saturating_mul(1_000_000).saturating_add(i64::from(microsecond(cluster)));
    Timestamp::from_microsecond(micros).unwrap_or(end)
}

/// Whether a key's end is in the cluster's microsecond: true of one key in a million that is not ours.
pub(super) fn is_marked(end: Timestamp, cluster: &ClusterId) -> bool {
    end.subsec_nanosecond() == i32::try_from(microsecond(cluster)).unwrap_or_default() * 1000
}

/// Never 0, in which most other keys end.
fn microsecond(cluster: &ClusterId) -> u32 {
    let digest = sha256_hex(cluster.as_str().as_bytes());
    let word = u32::from_str_radix(&digest[..8], 16).unwrap_or_default();
    word % 999_999 + 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_key_comes_back_as_it_was_written_and_garbage_does_not() {
        let mark = Mark {
            id: KeyId::parse("12").unwrap(),
            created: "2026-11-30T13:02:11.820616523Z".parse().unwrap(),
        };
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        for bad in ["", "12", "12 ", "x 2026-11-30T13:02:11Z", "12 soon", "../1 2026-11-30T13:02:11Z"] {
            assert_eq!(Mark::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_end_of_a_key_tells_its_cluster_and_moves_by_less_than_a_second() {
        let (one, other) = (ClusterId::new("one"), ClusterId::new("other"));
        let end: Timestamp = "2026-11-30T13:02:11.5Z".parse().unwrap();
        let marked = marked_end(end, &one);
        assert!(is_marked(marked, &one) && !is_marked(marked, &other) && !is_marked(end, &one));
        assert_eq!(marked.as_second(), end.as_second());
        // As Headscale gives it back.
        assert!(is_marked(marked.to_string().parse().unwrap(), &one));
        let plain: Timestamp = "2026-11-30T13:02:11Z".parse().unwrap();
        assert!((0..5000).all(|number| !is_marked(plain, &ClusterId::new(number.to_string()))));
    }
}
