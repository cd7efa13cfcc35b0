//! Watches certificate requests, asks [`decide`](super::decide::decide), and writes the answer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use scarpenter_api::{NodeClaim, event};
use scarpenter_core::label;
use scarpenter_core::name::ClaimUid;
use scarpenter_index::ClaimRecord;
use scarpenter_provider::FindMachine;
use serde_json::json;

use super::decide::{Candidate, Claims, Decision, Reason, SERVING_SIGNER, decide};
use crate::context::Context;
use crate::event::Severity;
use crate::lifecycle::{Error, annotate};
use crate::provisioner::chain;
use crate::{clock, join, mesh};

/// Requests that are decided in parallel.
const PARALLEL: usize = 32;
/// What could not be answered is looked at again after this long.
const AGAIN: Duration = Duration::from_secs(2);
/// After this long a kubelet asks anew.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(900);
const BOOTSTRAP_USER: &str = "system:bootstrap:";
const NODE_USER: &str = "system:node:";

/// Requests that could not be answered yet, and since when.
type Waiting = Mutex<BTreeMap<String, Instant>>;

/// Decides requests for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let waiting = Waiting::default();
    tokio::join!(watch(&context, &waiting), again(&context, &waiting));
}

async fn watch(context: &Context, waiting: &Waiting) {
    let api = Api::<CertificateSigningRequest>::all(context.client.clone());
    let requests = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
    requests
        .filter_map(|request| async move { request.map_err(|error| tracing::warn!(%error, "watch of certificate requests interrupted")).ok() })
        .for_each_concurrent(PARALLEL, |request| async move {
            if let Err(error) = answer(context, &request).await {
                let name = request.name_any();
                tracing::warn!(request = name, error = %chain(&error), "certificate request not answered yet");
                lock(waiting).insert(name, Instant::now());
            }
        })
        .await;
}

/// Answers what could not be answered at first: nothing of a request changes, so no event brings it again.
async fn again(context: &Context, waiting: &Waiting) {
    let api = Api::<CertificateSigningRequest>::all(context.client.clone());
    loop {
        tokio::time::sleep(AGAIN).await;
        let names: Vec<(String, Instant)> = std::mem::take(&mut *lock(waiting)).into_iter().collect();
        futures::stream::iter(names)
            .for_each_concurrent(PARALLEL, |(name, since)| {
                let api = api.clone();
                async move {
                    let outcome = match api.get_opt(&name).await {
                        Ok(Some(request)) => answer(context, &request).await,
                        Ok(None) => Ok(()),
                        Err(error) => Err(Error::kubernetes("read the certificate request")(error)),
                    };
                    if outcome.is_err() && since.elapsed() < GIVEN_UP_AFTER {
                        lock(waiting).insert(name, since);
                    }
                }
            })
            .await;
    }
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, BTreeMap<String, Instant>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(context: &Context, request: &CertificateSigningRequest) -> Result<(), Error> {
    if request.status.as_ref().is_some_and(|status| status.conditions.is_some())
        || is_self_test(context, request)
    {
        return Ok(());
    }
    // A claim that was written by another look meanwhile costs one more round, not a machine.
    for _ in 0..5 {
        let facts = Facts::gather(context, request).await?;
        match decide(request, &facts) {
            Decision::NotOurs => return Ok(()),
            // A denial is for good, and what is not known now may be the very address that it asks for.
            Decision::Deny { reason: Reason::WrongNames, .. } if facts.unsure.is_some() => {
                return Err(facts.unsure.unwrap_or(Error::Stale("the machine's addresses")));
            }
            Decision::Deny { reason: Reason::NoClaim, .. } if is_behind(context, request).await? => {
                return Err(Error::Stale("the claim"));
            }
            Decision::Deny { reason, message, claim } => {
                tracing::warn!(
                    request = request.name_any(),
                    reason = reason.as_str(),
                    message,
                    "certificate denied"
                );
                write(context, request, "Denied", reason.as_str(), &message).await?;
                return tell(context, request, claim.as_ref(), &message).await;
            }
            Decision::Approve { claim, key_sha256 } => match record_key(context, &claim, key_sha256).await {
                Ok(()) => {
                    return write(
                        context,
                        request,
                        "Approved",
                        "Claim",
                        "asked by the machine of a live NodeClaim",
                    )
                    .await;
                }
                Err(error) if error.is_race() => {}
                Err(error) => return Err(error),
            },
        }
    }
    Err(Error::Stale("the claim"))
}

/// Whether the API server has a claim of the requester that the view has not heard of yet: a denial is for good.
async fn is_behind(context: &Context, request: &CertificateSigningRequest) -> Result<bool, Error> {
    let user = request.spec.username.as_deref().unwrap_or_default();
    let name = match user.strip_prefix(BOOTSTRAP_USER) {
        Some(id) => live_token(context, id).await?.and_then(|token| join::claim_name_of(&token)),
        None => user.strip_prefix(NODE_USER).map(str::to_owned),
    };
    let Some(name) = name.filter(|name| context.view().claim(name).is_none()) else { return Ok(false) };
    let claims = Api::<NodeClaim>::all(context.client.clone());
    let claim = claims.get_metadata_opt(&name).await.map_err(Error::kubernetes("read the claim"))?;
    Ok(claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none()))
}

fn is_self_test(context: &Context, request: &CertificateSigningRequest) -> bool {
    let user = request.spec.username.as_deref().unwrap_or_default();
    let running = context.self_tests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    user.strip_prefix(BOOTSTRAP_USER).is_some_and(|id| running.iter().any(|own| own == id))
}

/// The key's hash is on the claim before the approval, so that no second key is ever granted.
async fn record_key(context: &Context, claim: &ClaimUid, key: Option<String>) -> Result<(), Error> {
    let Some(key) = key else { return Ok(()) };
    let record = context.view().claim_of(claim).cloned().ok_or(Error::Stale("the claim"))?;
    let record = ClaimRecord::parse(context.newest(record.object));
    annotate(context, &record, "record the client key", json!({label::CLIENT_KEY_SHA256: key}))
        .await
        .map(drop)
}

async fn write(
    context: &Context,
    request: &CertificateSigningRequest,
    type_: &str,
    reason: &str,
    message: &str,
) -> Result<(), Error> {
    let condition = CertificateSigningRequestCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..CertificateSigningRequestCondition::default()
    };
    let patch = json!({
        "metadata": {"resourceVersion": request.resource_version()},
        "status": {"conditions": [condition]},
    });
    let api = Api::<CertificateSigningRequest>::all(context.client.clone());
    match api.patch_approval(&request.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(Error::kubernetes("answer the certificate request")(error)),
    }
}

async fn tell(
    context: &Context,
    request: &CertificateSigningRequest,
    claim: Option<&ClaimUid>,
    message: &str,
) -> Result<(), Error> {
    let record = claim.and_then(|uid| context.view().claim_of(uid).cloned());
    let note = format!("certificate request {} denied: {message}", request.name_any());
    match record {
        Some(record) => {
            context
                .events
                .publish(
                    &context.client,
                    &*record.object,
                    Severity::Warning,
                    event::CERTIFICATE_DENIED,
                    &note,
                )
                .await
        }
        None => {
            context
                .events
                .publish(&context.client, request, Severity::Warning, event::CERTIFICATE_DENIED, &note)
                .await
        }
    }
    Ok(())
}

/// What one decision may look at.
#[derive(Default)]
struct Facts {
    by_token: BTreeMap<String, Candidate>,
    by_name: BTreeMap<String, Candidate>,
    our_nodes: Vec<String>,
    /// Why some addresses of the machine are not known now.
    unsure: Option<Error>,
}

impl Facts {
    /// Collects the claims that the request could be about.
    async fn gather(context: &Context, request: &CertificateSigningRequest) -> Result<Self, Error> {
        let user = request.spec.username.as_deref().unwrap_or_default();
        let mut facts = Self::default();
        if let Some(id) = user.strip_prefix(BOOTSTRAP_USER) {
            facts.by_token.extend(by_token(context, id).await?.map(|candidate| (id.to_owned(), candidate)));
        }
        if let Some(name) = user.strip_prefix(NODE_USER) {
            let record = context.view().claim(name).cloned();
            let mut addresses = Vec::new();
            if let Some(record) = record.as_ref().filter(|_| request.spec.signer_name == SERVING_SIGNER) {
                let (of_mesh, of_vendor) =
                    tokio::join!(mesh::addresses(context, record), vendor_addresses(context, record));
                let of_mesh = of_mesh.map_err(|error| Error::Mesh(Box::new(error)));
                for found in [of_mesh, of_vendor] {
                    match found {
                        Ok(found) => addresses.extend(found),
                        Err(error) => facts.unsure = Some(error),
                    }
                }
            }
            let view = context.view();
            if let Some(record) = &record {
                let candidate = Candidate { addresses, ..candidate(&view, record, String::new()) };
                facts.by_name.insert(name.to_owned(), candidate);
            }
            let ours = view.claim(name).is_some()
                || context.had(name)
                || view.node(name).is_some_and(|node| {
                    node.provider_id.is_some() || node.labels.contains_key(label::NODE_CLASS)
                });
            facts.our_nodes.extend(ours.then(|| name.to_owned()));
        }
        Ok(facts)
    }
}

/// The claim of a token, as the token's own Secret names it.
async fn by_token(context: &Context, id: &str) -> Result<Option<Candidate>, Error> {
    let Some(uid) = live_token(context, id).await?.as_ref().and_then(join::claim_of) else { return Ok(None) };
    let view = context.view();
    Ok(view.claim_of(&uid).map(|record| candidate(&view, record, id.to_owned())))
}

async fn live_token(context: &Context, id: &str) -> Result<Option<Secret>, Error> {
    let tokens = Api::<Secret>::namespaced(context.client.clone(), join::TOKEN_NAMESPACE);
    let token =
        tokens.get_opt(&join::token_name(id)).await.map_err(Error::kubernetes("read the bootstrap token"))?;
    Ok(token.filter(|token| !join::is_expired(token, clock::now())))
}

/// Addresses that the provider reports now; a list may be older than the machine.
///
/// # Errors
/// When the plugin does not say.
pub(crate) async fn vendor_addresses(context: &Context, record: &ClaimRecord) -> Result<Vec<IpAddr>, Error> {
    let Some(launch) = &record.claim.launch else { return Ok(Vec::new()) };
    let vendor = &launch.offering.vendor;
    let slot = context.vendors.get(vendor).ok_or(Error::Missing("the vendor's plugin"))?;
    let find = FindMachine {
        cluster: context.cluster.clone(),
        claim: record.claim.uid.clone(),
        machine: record.claim.machine_id.clone(),
        place: None,
    };
    let machine = slot.client.get_machine(find).await.map_err(Error::provider("find the machine"))?;
    let addresses = machine.into_iter().flat_map(|machine| machine.addresses);
    Ok(addresses.filter_map(|address| address.parse().ok()).collect())
}

fn candidate(view: &scarpenter_index::View, record: &ClaimRecord, token_id: String) -> Candidate {
    let claim = &record.claim;
    let other = view
        .node(&claim.name)
        .is_some_and(|node| node.provider_id.as_ref().is_none_or(|id| id.claim != claim.uid));
    Candidate {
        uid: claim.uid.clone(),
        name: claim.name.clone(),
        token_id,
        live: claim.deleted.is_none(),
        registered: claim.registered,
        name_taken: other,
        client_key_sha256: record.object.annotation(label::CLIENT_KEY_SHA256).map(str::to_owned),
        addresses: Vec::new(),
    }
}

impl Claims for Facts {
    fn by_token(&self, token_id: &str) -> Option<Candidate> {
        self.by_token.get(token_id).cloned()
    }

    fn by_name(&self, name: &str) -> Option<Candidate> {
        self.by_name.get(name).cloned()
    }

    fn is_our_node(&self, name: &str) -> bool {
        self.our_nodes.iter().any(|own| own == name)
    }
}
