//! Join material: the bootstrap token and the rendered document, made once per claim before its first create.
//!
//! Both are owned by the claim, so that Kubernetes removes them with it if everything else fails.

mod ca;
mod secrets;
mod self_test;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use scarpenter_api::{ScarpenterNodeClass, node};
use scarpenter_bootstrap::{Join, Method};
use scarpenter_core::name::{ClaimUid, ProviderId, Secret as Hidden, base36, bootstrap_token_id};
use scarpenter_core::offering::Launch;
use scarpenter_index::ClaimRecord;

pub(crate) use ca::Authorities;
pub(crate) use secrets::{TOKEN_NAMESPACE, claim_of, is_expired, secret_name, token_name};
pub(crate) use self_test::self_test;

use crate::context::Context;
use crate::mesh;

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
    #[error("render the Ignition document")]
    Render(#[source] Box<scarpenter_bootstrap::Error>),
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
    let expires =
        record.claim.created.after(class.registration_deadline(&launch.offering.vendor) + secrets::SPARE);
    let (mesh, mesh_key) = match mesh {
        mesh::Key::Stored => return recover(context, record, expires).await,
        mesh::Key::New(mesh, mark) => (Some(*mesh), Some(mark.to_string())),
        mesh::Key::NotNeeded => (None, None),
    };
    let ca = context.authorities.get(context, class).await?;
    for clash in 0..CLASHES {
        let id = bootstrap_token_id(&record.claim.uid, clash);
        let secret = Hidden::new(format!("{}{}", base36(rand::random(), 8), base36(rand::random(), 8)));
        let join = Join { mesh: mesh.clone(), ..join(context, record, launch, class, &ca, (&id, &secret)) };
        let document = scarpenter_bootstrap::render(&join).map_err(|error| Error::Render(Box::new(error)))?;
        let token = secrets::token(record, &id, &secret, expires);
        let stored = secrets::join(record, &id, &secret, document.bytes(), mesh_key.as_deref());
        let (tokens, joins) = apis(context);
        let post = PostParams::default();
        let (token_made, stored_made) =
            tokio::join!(tokens.create(&post, &token), joins.create(&post, &stored));
        match (made(token_made, "store the bootstrap token")?, made(stored_made, "store the join Secret")?) {
            (true, true) => return Ok(Material { user_data: document.bytes().to_vec(), mesh_key }),
            (false, stored_is_ours) if !secrets::is_token_of(&tokens, &id, &record.claim.uid).await? => {
                if stored_is_ours {
                    remove(&joins, &secret_name(&record.claim.uid), "remove the join Secret of a clash")
                        .await?;
                }
            }
            // The document is new, but the token is of an earlier look: the document's wins.
            (false, true) => {
                secrets::replace_token(&tokens, &token).await?;
                return Ok(Material { user_data: document.bytes().to_vec(), mesh_key });
            }
            // The document is of an earlier look: it wins over the token that was just made.
            (_, false) => return recover(context, record, expires).await,
        }
    }
    Err(Error::Clash(record.claim.uid.clone()))
}

/// The stored document decides; the token is made to match it.
async fn recover(
    context: &Context,
    record: &ClaimRecord,
    expires: scarpenter_core::lifecycle::Time,
) -> Result<Material, Error> {
    let (tokens, joins) = apis(context);
    let name = secret_name(&record.claim.uid);
    let stored = joins.get(&name).await.map_err(Error::kubernetes("read the join Secret"))?;
    let (id, secret, user_data) =
        secrets::parts(&stored).ok_or_else(|| Error::Broken(record.claim.uid.clone()))?;
    secrets::replace_token(&tokens, &secrets::token(record, &id, &secret, expires)).await?;
    Ok(Material { user_data, mesh_key: secrets::mesh_key(&stored) })
}

/// Reads the stored document.
pub(crate) async fn read(context: &Context, record: &ClaimRecord) -> Result<Material, Error> {
    let (_, joins) = apis(context);
    let stored = joins
        .get(&secret_name(&record.claim.uid))
        .await
        .map_err(Error::kubernetes("read the join Secret"))?;
    let (_, _, user_data) = secrets::parts(&stored).ok_or_else(|| Error::Broken(record.claim.uid.clone()))?;
    Ok(Material { user_data, mesh_key: secrets::mesh_key(&stored) })
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

/// Removes material that no claim can use any more: its claim has registered, or is gone.
///
/// A leader that stood still may have made it anew after the fact.
pub(crate) async fn tidy(context: &Context) -> Result<(), Error> {
    let (tokens, joins) = apis(context);
    let ours = kube::api::ListParams::default().labels(secrets::CLAIM);
    for api in [tokens, joins] {
        let listed = api.list_metadata(&ours).await.map_err(Error::kubernetes("list the join material"))?;
        for secret in listed.items {
            let Some(uid) = secret.labels().get(secrets::CLAIM).map(|uid| ClaimUid::new(uid.clone())) else {
                continue;
            };
            let needed = context.view().claim_of(&uid).is_some_and(|record| !record.claim.registered);
            if !needed && is_old(&secret) {
                remove(&api, &secret.name_any(), "remove join material that nobody needs").await?;
            }
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

fn join(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    class: &ScarpenterNodeClass,
    ca_pem: &str,
    (token_id, token_secret): (&str, &Hidden),
) -> Join {
    let spec = &class.spec.join;
    let vendor = &launch.offering.vendor;
    let mut labels = launch.labels.clone();
    labels.extend(record.object.metadata.labels.clone().unwrap_or_default());
    let taints = record
        .object
        .spec
        .taints
        .iter()
        .chain(&record.object.spec.startup_taints)
        .cloned()
        .collect::<Vec<_>>();
    let deadline = class.registration_deadline(vendor).as_secs();
    let grace = record.object.spec.termination_grace_period.as_ref().and_then(|grace| grace.get());
    let life = record.claim.expire_after.zip(grace).map(|(life, grace)| (life + grace).as_secs());
    Join {
        node_name: record.claim.name.clone(),
        provider_id: ProviderId { vendor: vendor.clone(), claim: record.claim.uid.clone() }.to_string(),
        servers: if spec.servers.is_empty() {
            vec![context.server.url.clone()]
        } else {
            spec.servers.clone()
        },
        ca_pem: ca_pem.to_owned(),
        token_id: token_id.to_owned(),
        token_secret: token_secret.clone(),
        kubernetes_version: spec.kubernetes_version.clone().unwrap_or_else(|| context.server.version.clone()),
        cluster_dns: spec.cluster_dns.clone(),
        cluster_domain: spec.cluster_domain.clone(),
        labels,
        taints: node::parse_taints(&taints),
        kubelet: class.to_class().kubelet,
        sysext_base_url: spec.sysext_base_url.clone(),
        sysext_hashes: spec.sysext_hashes.clone(),
        never_joined_after: spec.dead_man.never_joined.then_some(deadline),
        lifetime: life.filter(|_| spec.dead_man.lifetime),
        api_unreachable_after: spec
            .dead_man
            .api_unreachable
            .as_ref()
            .and_then(|out| out.get())
            .map(|out| out.as_secs()),
        method: Method::Kubelet,
        mesh: None,
        firewall: spec.firewall.as_ref().map(|firewall| firewall.allow_from.clone()),
        extra: None,
        external_addresses: false,
    }
}
