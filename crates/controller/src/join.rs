//! Join material: the bootstrap token and the rendered document, made once per claim before its first create.
//!
//! Both are owned by the claim, so that Kubernetes removes them with it if everything else fails.

mod config_maps;
mod input;
mod password;
mod preview;
mod probe;
mod secrets;
mod self_test;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use scarpenter_api::ScarpenterNodeClass;
use scarpenter_api::nodeclass::JoinMethod;
use scarpenter_core::lifecycle::Time;
use scarpenter_core::name::{ClaimUid, Secret as Hidden, base36, bootstrap_token_id};
use scarpenter_core::offering::Launch;
use scarpenter_index::ClaimRecord;

pub(crate) use config_maps::ConfigMaps;
pub(crate) use input::writes_addresses;
pub use preview::{PreviewError, Surroundings, preview};
pub(crate) use probe::probe;
pub(crate) use secrets::{TOKEN_NAMESPACE, claim_name_of, claim_of, is_expired, secret_name, token_name};
pub(crate) use self_test::self_test;

use self::input::{Facts, Given};
use crate::context::Context;
use crate::provisioner::chain;
use crate::{clock, mesh};

/// Material younger than this is left alone when tidying.
const TIDY_AFTER_SECONDS: i64 = 30;
/// How many ids a claim's token may have; more clashes than this do not happen by chance.
const CLASHES: usize = 4;

/// What a machine needs to join.
#[derive(Debug)]
pub(crate) struct Material {
    /// The document, byte for byte as it was stored.
    pub(crate) user_data: Vec<u8>,
    /// Which mesh key is in it, as it is written on the claim.
    pub(crate) mesh_key: Option<String>,
}

/// Why the join material cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API server refused or could not be reached.
    #[error("{doing}")]
    Kubernetes {
        /// What we were doing.
        doing: &'static str,
        /// Its words.
        source: Box<kube::Error>,
    },
    /// The document cannot be rendered from this class.
    #[error(transparent)]
    Render(Box<scarpenter_bootstrap::Error>),
    /// The version to run is not known.
    #[error(
        "join.method is K3sAgent, and the API server's version {0} is not one of k3s: set join.kubernetesVersion, such as v1.37.2+k3s1"
    )]
    Version(String),
    /// The CA that the class names cannot be had.
    #[error(
        "key {key} of ConfigMap {name} is neither in namespace {namespace} nor in kube-public: create it, or set join.caCertificate"
    )]
    NoCa {
        /// ConfigMap.
        name: String,
        /// Key.
        key: String,
        /// The controller's namespace.
        namespace: String,
    },
    /// The class's Ignition cannot be had.
    #[error(
        "spec.ignition: there is no ConfigMap {name} in namespace {namespace}: create it with the document under the key ignition"
    )]
    NoIgnition {
        /// ConfigMap.
        name: String,
        /// The controller's namespace.
        namespace: String,
    },
    /// The ConfigMap of the class's Ignition does not say which text it is.
    #[error(
        "spec.ignition: ConfigMap {name} in namespace {namespace} has no text under the key ignition, nor just one key"
    )]
    IgnitionKey {
        /// ConfigMap.
        name: String,
        /// The controller's namespace.
        namespace: String,
    },
    /// The claim's name has a password at the k3s server that is not the claim's.
    #[error(
        "Secret {0} in namespace kube-system holds a password of a node that had this name before: delete it when that node is gone"
    )]
    NameTaken(String),
    /// The join Secret is there but not whole.
    #[error("join Secret of claim {0} is not whole")]
    Broken(ClaimUid),
    /// All ids that the claim's UID gives are taken by other claims.
    #[error("all bootstrap token ids of claim {0} are taken")]
    Clash(ClaimUid),
}

impl Error {
    fn kubernetes(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Kubernetes { doing, source: Box::new(source) }
    }
}

/// Makes token and document, or reads what an earlier look made: a retry sends the same bytes.
pub(crate) async fn ensure(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    class: &ScarpenterNodeClass,
    mesh: mesh::Key,
) -> Result<Material, Error> {
    let expires = secrets::end(record, class.registration_deadline(&launch.offering.vendor));
    let (mesh, mesh_key) = match mesh {
        mesh::Key::Stored => return recover(context, record, expires).await,
        mesh::Key::New(mesh, mark) => (Some(*mesh), Some(mark.to_string())),
        mesh::Key::NotNeeded => (None, None),
    };
    let ca_pem = context.config_maps.authority(context, class).await?;
    let extra = context.config_maps.ignition(context, class).await?;
    let node_password = (class.spec.join.method == JoinMethod::K3sAgent).then(password::fresh);
    for clash in 0..CLASHES {
        let id = bootstrap_token_id(&record.claim.uid, clash);
        let secret = Hidden::new(format!("{}{}", base36(rand::random(), 8), base36(rand::random(), 8)));
        let given = Given {
            ca_pem: ca_pem.clone(),
            extra: extra.clone(),
            token: (id.clone(), secret.clone()),
            node_password: node_password.clone(),
            mesh: mesh.clone(),
        };
        let join = input::join(&context.server, class, Facts::of(record, launch), given)?;
        let document = scarpenter_bootstrap::render(&join).map_err(|error| Error::Render(Box::new(error)))?;
        let token = secrets::token(record, &id, &secret, expires);
        let kept = secrets::Kept { mesh_key: mesh_key.clone(), node_password: node_password.clone() };
        let stored = secrets::join(record, &id, &secret, document.bytes(), &kept);
        let (tokens, joins) = apis(context);
        let post = PostParams::default();
        let (token_made, stored_made) =
            tokio::join!(tokens.create(&post, &token), joins.create(&post, &stored));
        match (made(token_made, "store the bootstrap token")?, made(stored_made, "store the join Secret")?) {
            (true, true) => return take(context, record, document.bytes().to_vec(), kept).await,
            (false, stored_is_ours) if !secrets::is_token_of(&tokens, &id, &record.claim.uid).await? => {
                if stored_is_ours {
                    remove(&joins, &secret_name(&record.claim.uid), "remove the join Secret of a clash")
                        .await?;
                }
            }
            // The document is new, but the token is of an earlier look: the document's wins.
            (false, true) => {
                secrets::replace_token(&tokens, &token).await?;
                return take(context, record, document.bytes().to_vec(), kept).await;
            }
            // The document is of an earlier look: it wins over the token that was just made.
            (_, false) => return recover(context, record, expires).await,
        }
    }
    Err(Error::Clash(record.claim.uid.clone()))
}

/// The stored document decides; the token is made to match it.
async fn recover(context: &Context, record: &ClaimRecord, expires: Time) -> Result<Material, Error> {
    let (tokens, joins) = apis(context);
    let name = secret_name(&record.claim.uid);
    let stored = joins.get(&name).await.map_err(Error::kubernetes("read the join Secret"))?;
    let (id, secret, user_data) =
        secrets::parts(&stored).ok_or_else(|| Error::Broken(record.claim.uid.clone()))?;
    secrets::replace_token(&tokens, &secrets::token(record, &id, &secret, expires)).await?;
    take(context, record, user_data, secrets::Kept::of(&stored)).await
}

/// What the stored document needs besides is made before the machine is: the password of its name.
async fn take(
    context: &Context,
    record: &ClaimRecord,
    user_data: Vec<u8>,
    kept: secrets::Kept,
) -> Result<Material, Error> {
    if let Some(password) = &kept.node_password {
        password::put(&apis(context).0, record, password).await?;
    }
    Ok(Material { user_data, mesh_key: kept.mesh_key })
}

/// Reads the stored document.
pub(crate) async fn read(context: &Context, record: &ClaimRecord) -> Result<Material, Error> {
    let (_, joins) = apis(context);
    let stored = joins
        .get(&secret_name(&record.claim.uid))
        .await
        .map_err(Error::kubernetes("read the join Secret"))?;
    let (_, _, user_data) = secrets::parts(&stored).ok_or_else(|| Error::Broken(record.claim.uid.clone()))?;
    take(context, record, user_data, secrets::Kept::of(&stored)).await
}

/// Whether an earlier look has stored the document.
pub(crate) async fn is_stored(context: &Context, claim: &ClaimUid) -> Result<bool, Error> {
    let (_, joins) = apis(context);
    let found = joins.get_metadata_opt(&secret_name(claim)).await;
    found.map(|found| found.is_some()).map_err(Error::kubernetes("read the join Secret"))
}

/// Removes token and document; what is gone is fine. The token comes first: it is what admits.
pub(crate) async fn forget(context: &Context, claim: &ClaimUid) -> Result<(), Error> {
    let (tokens, joins) = apis(context);
    let name = secret_name(claim);
    let stored = joins.get_opt(&name).await.map_err(Error::kubernetes("read the join Secret"))?;
    match stored.as_ref().and_then(secrets::parts) {
        Some((id, _, _)) => remove(&tokens, &token_name(&id), "remove the bootstrap token").await?,
        // The document is lost, so nothing says which of the ids was taken: each that is this claim's goes.
        None => {
            for clash in 0..CLASHES {
                let id = bootstrap_token_id(claim, clash);
                if !secrets::is_token_of(&tokens, &id, claim).await? {
                    break;
                }
                remove(&tokens, &token_name(&id), "remove the bootstrap token").await?;
            }
        }
    }
    if stored.is_some() {
        remove(&joins, &name, "remove the join Secret").await?;
    }
    Ok(())
}

/// Gives up the password of the claim's name. Only k3s clusters have any, so others are not asked.
pub(crate) async fn forget_name(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    let class = context.view().class(&record.object.spec.node_class_ref.name).cloned();
    let is_agent = class.is_none_or(|class| class.spec.join.method == JoinMethod::K3sAgent);
    if !is_agent && !context.server.version.contains("+k3s") {
        return Ok(());
    }
    password::remove(&apis(context).0, record).await
}

/// Removes material that no claim can use any more: its claim has registered, or is gone. What a claim still waits with
/// is kept alive: its token for as long as it may wait by now, and the password of its name.
///
/// A leader that stood still may have made it anew after the fact.
pub(crate) async fn tidy(context: &Context) -> Result<(), Error> {
    let (tokens, joins) = apis(context);
    let ours = kube::api::ListParams::default().labels(secrets::CLAIM);
    let (mut waiting, mut named) = (BTreeMap::new(), BTreeSet::new());
    for api in [&tokens, &joins] {
        let listed = api.list_metadata(&ours).await.map_err(Error::kubernetes("list the join material"))?;
        for secret in listed.items {
            let Some(uid) = secret.labels().get(secrets::CLAIM).map(|uid| ClaimUid::new(uid.clone())) else {
                continue;
            };
            let record = context.view().claim_of(&uid).cloned();
            let is_password = secret.name_any().ends_with(password::SUFFIX);
            match record.filter(|record| is_password || !record.claim.registered) {
                Some(_) if is_password => drop(named.insert(uid)),
                Some(record) => {
                    if let Some(end) = secrets::noted_end(&secret) {
                        waiting.insert(uid, (record, secret.name_any(), end));
                    }
                }
                None if is_old(&secret) => {
                    remove(api, &secret.name_any(), "remove join material that nobody needs").await?
                }
                None => {}
            }
        }
    }
    for (uid, (record, token, end)) in waiting {
        keep_alive(context, &record, &token, end, named.contains(&uid)).await?;
    }
    Ok(())
}

/// The class may let machines take longer than when the claim was launched, and a k3s server that was started meanwhile
/// may have taken the password for one of a node that never came.
async fn keep_alive(
    context: &Context,
    record: &ClaimRecord,
    token: &str,
    end: Time,
    is_named: bool,
) -> Result<(), Error> {
    let class = context.view().class(&record.object.spec.node_class_ref.name).cloned();
    let (Some(class), Some(launch), None) = (class, &record.claim.launch, record.claim.deleted) else {
        return Ok(());
    };
    let due = secrets::end(record, class.registration_deadline(&launch.offering.vendor));
    if due > end && due > clock::now() {
        secrets::prolong_token(&apis(context).0, token, due).await?;
        tracing::info!(claim = record.claim.name, until = clock::rfc3339(due), "bootstrap token renewed");
    }
    if !is_named && class.spec.join.method == JoinMethod::K3sAgent {
        // Where its join Secret was deleted, its own life says so.
        if let Err(error) = read(context, record).await {
            tracing::warn!(claim = record.claim.name, error = %chain(&error), "node password not written again");
        }
    }
    Ok(())
}

/// The view may be behind a claim that was just made.
fn is_old(secret: &impl ResourceExt) -> bool {
    let made = secret.creation_timestamp().map(|at| at.0);
    made.is_some_and(|made| jiff::Timestamp::now().as_second() - made.as_second() > TIDY_AFTER_SECONDS)
}

async fn remove(api: &Api<Secret>, name: &str, doing: &'static str) -> Result<(), Error> {
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(Error::kubernetes(doing)(error)),
    }
}

fn apis(context: &Context) -> (Api<Secret>, Api<Secret>) {
    let tokens = Api::namespaced(context.client.clone(), TOKEN_NAMESPACE);
    (tokens, Api::namespaced(context.client.clone(), &context.settings.namespace))
}

/// Whether it was made just now; false when it was there before.
fn made(outcome: Result<Secret, kube::Error>, doing: &'static str) -> Result<bool, Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
        Err(error) => Err(Error::kubernetes(doing)(error)),
    }
}
