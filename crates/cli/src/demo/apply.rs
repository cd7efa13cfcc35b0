//! Objects that the demo puts into the cluster, and takes out again where it is not its own.

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use scarpenter_api::{NodePool, crds};

const BOOTSTRAP_RBAC: &str = include_str!("../../../../deploy/rbac/bootstrap.yaml");
const EXAMPLE: &str = include_str!("../../../../deploy/examples/default.yaml");

/// What was not there before, in the order in which it was made.
#[derive(Default)]
pub(super) struct Applied(Vec<(Api<DynamicObject>, String, String)>);

impl Applied {
    /// Creates the definitions, the rights of booting machines, and the example class and pools.
    ///
    /// Definitions and rights that exist are left as they are; a class or pool that exists is somebody's, and refused.
    pub(super) async fn apply(&mut self, client: &Client) -> anyhow::Result<()> {
        self.prepare(client).await?;
        for object in read(EXAMPLE)? {
            self.create_new(client, object).await?;
        }
        Ok(())
    }

    /// Creates the definitions and the rights of booting machines.
    pub(super) async fn prepare(&mut self, client: &Client) -> anyhow::Result<()> {
        for crd in crds::all() {
            let object = serde_json::to_value(&crd).and_then(serde_json::from_value);
            self.create(client, object.context("read the definitions")?).await?;
            wait_until_served(client, &crd).await?;
        }
        for object in read(BOOTSTRAP_RBAC)? {
            self.create(client, object).await?;
        }
        Ok(())
    }

    /// Creates an object, or leaves the one that is there: `false`.
    async fn create(&mut self, client: &Client, object: DynamicObject) -> anyhow::Result<bool> {
        let name = what(&object);
        let api = api_of(client, &object).await.with_context(|| format!("find the kind of {name}"))?;
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => {
                self.0.push((api, object.name_any(), name));
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
            Err(error) => Err(plain(error)).with_context(|| format!("create {name}")),
        }
    }

    /// Creates an object that must not be there.
    pub(super) async fn create_new(&mut self, client: &Client, object: DynamicObject) -> anyhow::Result<()> {
        let taken = taken(&object);
        if self.create(client, object).await? { Ok(()) } else { Err(taken) }
    }

    /// Deletes what was made, the newest first and each until it is gone, and says what could not be deleted.
    pub(super) async fn delete(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        for (api, name, what) in std::mem::take(&mut self.0).into_iter().rev() {
            match tokio::time::timeout(super::STEP_LIMIT, delete_until_gone(&api, &name)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => left.push(format!("{what} ({error})")),
                Err(_) => left.push(format!("{what} (it is being deleted)")),
            }
        }
        left
    }

    /// Names of what was made.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(_, _, what)| what.clone()).collect()
    }
}

async fn delete_until_gone(api: &Api<DynamicObject>, name: &str) -> anyhow::Result<()> {
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        outcome => outcome.map_err(plain)?,
    };
    while api.get_opt(name).await.map_err(plain)?.is_some() {
        tokio::time::sleep(super::LOOK_EVERY).await;
    }
    Ok(())
}

/// What the API server said, without the object around it.
pub(super) fn plain(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::Error::msg(status.message),
        error => error.into(),
    }
}

fn read(text: &str) -> anyhow::Result<Vec<DynamicObject>> {
    serde_saphyr::from_multiple(text).context("read an embedded file")
}

fn what(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("object", |types| types.kind.as_str());
    format!("{kind} {}", object.name_any())
}

/// Refuses a cluster where scarpenter is used, or where something has a name that the demo gives; it changes nothing.
pub(super) async fn refuse_used(client: &Client, namespace: &DynamicObject) -> anyhow::Result<()> {
    refuse_pools_of_others(client).await?;
    for object in read(EXAMPLE)?.iter().chain([namespace]) {
        let found = match api_of(client, object).await {
            Ok(api) => api.get_opt(&object.name_any()).await.map_err(plain)?.is_some(),
            Err(error) if is_unknown_kind(&error) => false,
            Err(error) => {
                return Err(plain(error)).with_context(|| format!("find the kind of {}", what(object)));
            }
        };
        if found {
            return Err(taken(object));
        }
    }
    Ok(())
}

fn taken(object: &DynamicObject) -> anyhow::Error {
    anyhow::anyhow!("the cluster has {} already: the demo would act on what is not its own", what(object))
}

/// Pools of ours mean a controller of ours, perhaps asleep: two would buy side by side.
async fn refuse_pools_of_others(client: &Client) -> anyhow::Result<()> {
    let pools: Api<NodePool> = Api::all(client.clone());
    let pools = match pools.list(&Default::default()).await {
        Ok(pools) => pools,
        Err(error) if is_unknown_kind(&error) => return Ok(()),
        Err(error) => return Err(plain(error)).context("list NodePools"),
    };
    match pools.iter().find(|pool| pool.spec.template.spec.node_class_ref.is_ours()) {
        Some(pool) => bail!(
            "NodePool {} shows that scarpenter is used in this cluster: the demo stays out",
            pool.name_any()
        ),
        None => Ok(()),
    }
}

fn is_unknown_kind(error: &kube::Error) -> bool {
    match error {
        // An unknown path is answered without the reason of a missing object.
        kube::Error::Api(status) => status.code == 404,
        kube::Error::Discovery(_) => true,
        _ => false,
    }
}

async fn api_of(client: &Client, object: &DynamicObject) -> Result<Api<DynamicObject>, kube::Error> {
    let types = object.types.clone().unwrap_or_default();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, _) = kube::discovery::pinned_kind(client, &gvk).await?;
    Ok(match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

async fn wait_until_served(client: &Client, crd: &CustomResourceDefinition) -> anyhow::Result<()> {
    use kube::runtime::{conditions, wait::await_condition};
    let name = crd.name_any();
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let served = await_condition(api, &name, conditions::is_crd_established());
    let waited = tokio::time::timeout(super::STEP_LIMIT, served).await;
    waited.with_context(|| format!("{name} is not served"))?.with_context(|| format!("wait for {name}"))?;
    Ok(())
}
