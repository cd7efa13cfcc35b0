//! The two Secrets of a claim: shapes, and how each is read back.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt};
use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::{ClaimUid, Secret as Hidden};
use scarpenter_index::ClaimRecord;

use super::Error;
use crate::clock;
use crate::csr::BOOTSTRAP_GROUP;

/// Where Kubernetes looks for bootstrap tokens.
pub(crate) const TOKEN_NAMESPACE: &str = "kube-system";
/// A token outlives the registration deadline by this, so that its end never decides before the deadline does.
pub(super) const SPARE: Duration = Duration::from_secs(300);
/// Label that says whose token it is.
pub(super) const CLAIM: &str = "scarpenter.sparecores.com/claim";
/// Key of the join Secret that says which mesh key the document holds.
const MESH_KEY: &str = "meshKey";

/// Name of a claim's join Secret.
pub(crate) fn secret_name(claim: &ClaimUid) -> String {
    format!("join-{claim}")
}

/// Name of a bootstrap token's Secret.
pub(crate) fn token_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

pub(super) fn token(record: &ClaimRecord, id: &str, secret: &Hidden, expires: Time) -> Secret {
    let data = token_data(id, secret, expires, BOOTSTRAP_GROUP);
    Secret {
        metadata: meta(record, token_name(id)),
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
        ("expiration", clock::timestamp(expires).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("auth-extra-groups", group.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

pub(super) fn join(
    record: &ClaimRecord,
    id: &str,
    secret: &Hidden,
    user_data: &[u8],
    mesh_key: Option<&str>,
) -> Secret {
    let data =
        [("tokenID", id.as_bytes()), ("tokenSecret", secret.reveal().as_bytes()), ("userData", user_data)];
    let data = data.into_iter().chain(mesh_key.map(|key| (MESH_KEY, key.as_bytes())));
    let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.to_vec()))).collect();
    Secret { metadata: meta(record, secret_name(&record.claim.uid)), data: Some(data), ..Secret::default() }
}

/// Which mesh key is in the document.
pub(super) fn mesh_key(secret: &Secret) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(MESH_KEY)?.0.clone()).ok()
}

/// Token id, token secret and document of a join Secret that is whole.
pub(super) fn parts(secret: &Secret) -> Option<(String, Hidden, Vec<u8>)> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some((text("tokenID")?, Hidden::new(text("tokenSecret")?), data.get("userData")?.0.clone()))
}

fn meta(record: &ClaimRecord, name: String) -> ObjectMeta {
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

/// Whether a token's time is over.
pub(crate) fn is_expired(token: &Secret) -> bool {
    let text = token.data.as_ref().and_then(|data| data.get("expiration"));
    let end = text
        .and_then(|bytes| std::str::from_utf8(&bytes.0).ok())
        .and_then(|text| text.parse::<Timestamp>().ok());
    end.is_none_or(|end| end < Timestamp::now())
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
