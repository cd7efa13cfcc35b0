//! The two Secrets of a claim: shapes, and how each is read back.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::{ClaimUid, Secret as Hidden};
use scarpenter_index::ClaimRecord;
use serde_json::json;

use super::Error;
use crate::clock;
use crate::csr::BOOTSTRAP_GROUP;

/// Where Kubernetes looks for bootstrap tokens.
pub(crate) const TOKEN_NAMESPACE: &str = "kube-system";
/// A token outlives the registration deadline by this, so that its end never decides before the deadline does.
pub(super) const SPARE: Duration = Duration::from_secs(300);
/// Label that says whose token it is.
pub(super) const CLAIM: &str = "scarpenter.sparecores.com/claim";
/// Key of a token that says when it ends.
const EXPIRATION: &str = "expiration";
/// Annotation of a token that says when it ends, since its data is not listed.
const EXPIRES: &str = "scarpenter.sparecores.com/expires";
/// Key of the join Secret that says which mesh key the document holds.
const MESH_KEY: &str = "meshKey";
/// Key of the join Secret that holds the password of the node's name at a k3s server.
const NODE_PASSWORD: &str = "nodePassword";

/// What a join Secret keeps beside token and document.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Which mesh key is in the document.
    pub(super) mesh_key: Option<String>,
    /// Password of the node's name at a k3s server.
    pub(super) node_password: Option<Hidden>,
}

impl Kept {
    /// As it was stored.
    pub(super) fn of(secret: &Secret) -> Self {
        let text = |key| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
        Self { mesh_key: text(MESH_KEY), node_password: text(NODE_PASSWORD).map(Hidden::new) }
    }
}

/// Name of a claim's join Secret.
pub(crate) fn secret_name(claim: &ClaimUid) -> String {
    format!("join-{claim}")
}

/// When the token of a claim ends that may wait so long for its node.
pub(super) fn end(record: &ClaimRecord, registration_deadline: Duration) -> Time {
    record.claim.created.after(registration_deadline + SPARE)
}

/// Name of a bootstrap token's Secret.
pub(crate) fn token_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

pub(super) fn token(record: &ClaimRecord, id: &str, secret: &Hidden, expires: Time) -> Secret {
    let data = token_data(id, secret, expires, BOOTSTRAP_GROUP);
    let noted = BTreeMap::from([(EXPIRES.to_owned(), clock::rfc3339(expires))]);
    Secret {
        metadata: ObjectMeta { annotations: Some(noted), ..meta(record, token_name(id)) },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data),
        ..Secret::default()
    }
}

/// What Kubernetes reads of a bootstrap token.
pub(super) fn token_data(id: &str, secret: &Hidden, expires: Time, group: &str) -> BTreeMap<String, String> {
    [
        ("token-id", id.to_owned()),
        ("token-secret", secret.reveal().to_owned()),
        (EXPIRATION, expiration(expires)),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("auth-extra-groups", group.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// As Kubernetes reads it: whole seconds.
fn expiration(at: Time) -> String {
    clock::timestamp(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// When a listed token ends; `None` for what is no token.
pub(super) fn noted_end(listed: &impl ResourceExt) -> Option<Time> {
    let end = listed.annotations().get(EXPIRES)?.parse::<Timestamp>().ok()?;
    Some(Time::from_millis(end.as_millisecond()))
}

/// Makes a token end later. One that is gone has done its work.
pub(super) async fn prolong_token(tokens: &Api<Secret>, name: &str, end: Time) -> Result<(), Error> {
    let patch = json!({
        "metadata": {"annotations": {EXPIRES: clock::rfc3339(end)}},
        "stringData": {EXPIRATION: expiration(end)},
    });
    match tokens.patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(Error::kubernetes("renew the bootstrap token")(error)),
    }
}

pub(super) fn join(record: &ClaimRecord, id: &str, secret: &Hidden, user_data: &[u8], kept: &Kept) -> Secret {
    let data =
        [("tokenID", id.as_bytes()), ("tokenSecret", secret.reveal().as_bytes()), ("userData", user_data)];
    let mesh_key = kept.mesh_key.as_ref().map(|key| (MESH_KEY, key.as_bytes()));
    let password = kept.node_password.as_ref().map(|word| (NODE_PASSWORD, word.reveal().as_bytes()));
    let data = data.into_iter().chain(mesh_key).chain(password);
    let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.to_vec()))).collect();
    Secret { metadata: meta(record, secret_name(&record.claim.uid)), data: Some(data), ..Secret::default() }
}

/// Token id, token secret and document of a join Secret that is whole.
pub(super) fn parts(secret: &Secret) -> Option<(String, Hidden, Vec<u8>)> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some((text("tokenID")?, Hidden::new(text("tokenSecret")?), data.get("userData")?.0.clone()))
}

pub(super) fn meta(record: &ClaimRecord, name: String) -> ObjectMeta {
    let owner = record.object.owner_ref(&()).map(|owner| vec![OwnerReference { controller: None, ..owner }]);
    let labels = BTreeMap::from([(CLAIM.to_owned(), record.claim.uid.to_string())]);
    ObjectMeta { name: Some(name), owner_references: owner, labels: Some(labels), ..ObjectMeta::default() }
}

/// Whether the token with that id is there and is this claim's.
pub(super) async fn is_token_of(tokens: &Api<Secret>, id: &str, claim: &ClaimUid) -> Result<bool, Error> {
    let found = tokens
        .get_metadata_opt(&token_name(id))
        .await
        .map_err(Error::kubernetes("read the bootstrap token"))?;
    Ok(found.is_some_and(|token| token.labels().get(CLAIM).is_some_and(|owner| owner == claim.as_str())))
}

/// The claim that a token was made for.
pub(crate) fn claim_of(token: &Secret) -> Option<ClaimUid> {
    token.labels().get(CLAIM).map(|uid| ClaimUid::new(uid.clone()))
}

/// Name of the claim that a token was made for.
pub(crate) fn claim_name_of(token: &Secret) -> Option<String> {
    token.owner_references().first().map(|owner| owner.name.clone())
}

/// Whether a token's time is over.
pub(crate) fn is_expired(token: &Secret, now: Time) -> bool {
    let text = token.data.as_ref().and_then(|data| data.get(EXPIRATION));
    let end = text
        .and_then(|bytes| std::str::from_utf8(&bytes.0).ok())
        .and_then(|text| text.parse::<Timestamp>().ok());
    end.is_none_or(|end| end < clock::timestamp(now))
}

/// Makes the token be as given, whatever was there.
pub(super) async fn replace_token(tokens: &Api<Secret>, token: &Secret) -> Result<(), Error> {
    let name = token.name_any();
    match tokens.replace(&name, &PostParams::default(), token).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => tokens
            .create(&PostParams::default(), token)
            .await
            .map(drop)
            .map_err(Error::kubernetes("store the bootstrap token")),
        Err(error) => Err(Error::kubernetes("replace the bootstrap token")(error)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn claim() -> ClaimRecord {
        let object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "slow-1", "uid": "u-1", "creationTimestamp": "2026-11-30T12:00:00Z"},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "c"}},
        });
        ClaimRecord::parse(Arc::new(serde_json::from_value(object).unwrap()))
    }

    /// As the API server stores it.
    fn stored(token: Secret) -> Secret {
        let data = token.string_data.clone().unwrap_or_default().into_iter();
        let data = data.map(|(key, value)| (key, ByteString(value.into_bytes()))).collect();
        Secret { data: Some(data), string_data: None, ..token }
    }

    #[test]
    fn the_token_of_a_machine_that_boots_for_25_minutes_lasts_where_it_may_take_40() {
        let record = claim();
        let deadline = 40 * MINUTE;
        let token = stored(token(&record, "abcdef", &Hidden::new("0"), end(&record, deadline)));
        let created = record.claim.created;
        for minutes in [0, 1, 25, 40, 44] {
            assert!(!is_expired(&token, created.after(minutes * MINUTE)), "after {minutes} minutes");
        }
        // A clock that is five minutes off does not end it before the claim is given up.
        assert!(end(&record, deadline) >= created.after(deadline + 5 * MINUTE));
        assert!(is_expired(&token, created.after(46 * MINUTE)));
    }

    #[test]
    fn a_listed_token_says_when_it_ends() {
        let record = claim();
        let until = end(&record, 15 * MINUTE);
        let token = token(&record, "abcdef", &Hidden::new("0"), until);
        assert_eq!(noted_end(&token), Some(until));
        assert!(end(&record, 40 * MINUTE) > until, "a longer deadline is seen to be due");
        assert_eq!(noted_end(&join(&record, "abcdef", &Hidden::new("0"), b"", &Kept::default())), None);
    }

    #[test]
    fn what_a_join_secret_keeps_is_read_back() {
        let kept = Kept { mesh_key: Some("12".to_owned()), node_password: Some(Hidden::new("word")) };
        let read = Kept::of(&join(&claim(), "abcdef", &Hidden::new("0"), b"{}", &kept));
        assert_eq!((read.mesh_key, read.node_password), (kept.mesh_key, kept.node_password));
        let bare = Kept::of(&join(&claim(), "abcdef", &Hidden::new("0"), b"{}", &Kept::default()));
        assert_eq!((bare.mesh_key, bare.node_password), (None, None));
    }
}
