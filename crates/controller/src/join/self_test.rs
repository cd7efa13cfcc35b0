//! Whether this API server takes bootstrap tokens and signs kubelet client certificates; managed clouds may not.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use scarpenter_core::name::{ClaimUid, Secret as Hidden, base36, bootstrap_token_id};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::secrets::{TOKEN_NAMESPACE, token_data, token_name};
use crate::clock;
use crate::context::Context;
use crate::csr::{BOOTSTRAP_GROUP, CLIENT_SIGNER};

/// How long the signer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Joins as far as a machine would, with a token and a key of its own that are gone afterwards.
///
/// # Errors
/// What does not work, in words.
pub(crate) async fn self_test(context: &Context, config: &Config) -> Result<(), String> {
    // One id for all starts: what a killed process left of its test goes with the next one.
    let id = bootstrap_token_id(&ClaimUid::new(format!("{}/self-test", context.cluster)), 0);
    let secret = Hidden::new(format!("{}{}", base36(rand::random(), 8), base36(rand::random(), 8)));
    let tokens = Api::<Secret>::namespaced(context.client.clone(), TOKEN_NAMESPACE);
    let data = token_data(&id, &secret, clock::now().after(Duration::from_secs(120)), BOOTSTRAP_GROUP);
    let token = Secret {
        metadata: ObjectMeta { name: Some(token_name(&id)), ..ObjectMeta::default() },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data),
        ..Secret::default()
    };
    context.self_tests.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(id.clone());
    let outcome = match remove(&tokens, &token_name(&id)).await {
        Ok(()) => tokens.create(&PostParams::default(), &token).await,
        Err(error) => Err(error),
    };
    let outcome = match outcome {
        Ok(_) => ask(context, config, &id, &secret).await,
        Err(error) => Err(format!("a bootstrap token cannot be made: {error}")),
    };
    let removed = remove(&tokens, &token_name(&id)).await;
    context.self_tests.lock().unwrap_or_else(std::sync::PoisonError::into_inner).retain(|own| *own != id);
    if let Err(error) = removed {
        tracing::warn!(%error, "token of the self-test not removed; it ends by itself within two minutes");
    }
    outcome
}

async fn remove<K>(api: &Api<K>, name: &str) -> Result<(), kube::Error>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}

async fn ask(context: &Context, config: &Config, id: &str, secret: &Hidden) -> Result<(), String> {
    let name = format!("scarpenter-self-test-{id}");
    let requests = Api::<CertificateSigningRequest>::all(joining_client(config, id, secret)?);
    let request = request(&name)?;
    let ours = Api::<CertificateSigningRequest>::all(context.client.clone());
    remove(&ours, &name).await.map_err(|error| format!("an earlier request cannot be removed: {error}"))?;
    tokio::time::timeout(PATIENCE, requests.create(&PostParams::default(), &request))
        .await
        .map_err(|_| "the API server does not answer a bootstrap token".to_owned())?
        .map_err(|error| format!("the API server does not take a bootstrap token: {error}; does it run with --enable-bootstrap-token-auth, and is deploy/rbac/bootstrap.yaml applied?"))?;
    let outcome = sign(&ours, &name).await;
    if let Err(error) = remove(&ours, &name).await {
        tracing::debug!(%error, "request of the self-test not removed");
    }
    outcome
}

async fn sign(ours: &Api<CertificateSigningRequest>, name: &str) -> Result<(), String> {
    let approved = CertificateSigningRequestCondition {
        type_: "Approved".to_owned(),
        status: "True".to_owned(),
        reason: Some("SelfTest".to_owned()),
        message: Some("scarpenter tests whether machines can join".to_owned()),
        ..CertificateSigningRequestCondition::default()
    };
    let status = CertificateSigningRequestStatus {
        conditions: Some(vec![approved]),
        ..CertificateSigningRequestStatus::default()
    };
    let patch = json!({"status": status});
    ours.patch_approval(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(|error| format!("a kubelet certificate cannot be approved: {error}"))?;
    let signed = kube::runtime::wait::await_condition(
        ours.clone(),
        name,
        |object: Option<&CertificateSigningRequest>| {
            object.and_then(|object| object.status.as_ref()?.certificate.as_ref()).is_some()
        },
    );
    tokio::time::timeout(PATIENCE, signed)
        .await
        .map_err(|_| format!("nobody signs for {CLIENT_SIGNER}: is the controller manager's signer on?"))?
        .map(drop)
        .map_err(|error| format!("the certificate cannot be read: {error}"))
}

/// A client that has nothing but the token.
fn joining_client(config: &Config, id: &str, secret: &Hidden) -> Result<Client, String> {
    let mut config = config.clone();
    let token = format!("{id}.{}", secret.reveal());
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    Client::try_from(config).map_err(|error| format!("a client for the self-test cannot be made: {error}"))
}

fn request(name: &str) -> Result<CertificateSigningRequest, String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{name}"));
    let pem = KeyPair::generate()
        .and_then(|key| params.serialize_request(&key))
        .and_then(|request| request.pem())
        .map_err(|error| format!("a key cannot be made: {error}"))?;
    let spec = CertificateSigningRequestSpec {
        request: ByteString(pem.into_bytes()),
        signer_name: CLIENT_SIGNER.to_owned(),
        usages: Some(vec!["digital signature".to_owned(), "client auth".to_owned()]),
        expiration_seconds: Some(600),
        ..CertificateSigningRequestSpec::default()
    };
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Ok(CertificateSigningRequest { metadata, spec, status: None })
}
