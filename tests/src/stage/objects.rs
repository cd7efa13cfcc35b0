//! Objects of a trial: definitions and rights once, and a namespace, a class and two pools of its own.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Resource, ResourceExt};
use scarpenter_api::{NodePool, ScarpenterNodeClass, condition, crds};
use scarpenter_core::name::ClusterId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{LOOK_EVERY, STARTS_WITHIN, Stage};

const EXAMPLE: &str = include_str!("../../../deploy/examples/default.yaml");
const BOOTSTRAP_RBAC: &str = include_str!("../../../deploy/rbac/bootstrap.yaml");
const CONTROLLER_RBAC: &str = include_str!("../../../deploy/rbac/controller.yaml");
/// Whom those rights are for.
const CONTROLLER: &str = "system:serviceaccount:kube-system:scarpenter";
const FIELD_MANAGER: &str = "scarpenter-tests";

/// What a trial changes of the example and of the flags.
#[derive(Clone, Debug)]
pub struct Setting {
    /// `consolidateAfter` of both pools.
    pub consolidate_after: &'static str,
    /// Rules of what goes wrong in the plugin.
    pub faults: Option<String>,
    /// More flags of the plugin.
    pub sim_flags: Vec<String>,
    /// More flags of every controller.
    pub controller_flags: Vec<String>,
    /// `LOG_LEVEL` of all processes.
    pub log_level: String,
    /// How long the pods may take.
    pub pods_run_within: Duration,
    /// How long everything may take to go once the pods have run.
    pub all_gone_within: Duration,
}

impl Default for Setting {
    /// Nothing goes wrong; the waits that a person wants are short.
    fn default() -> Self {
        let quick = ["--validation-delay", "1s", "--drain-delay", "2s"];
        Self {
            consolidate_after: "1s",
            faults: None,
            sim_flags: Vec::new(),
            controller_flags: quick.map(str::to_owned).to_vec(),
            log_level: "info".to_owned(),
            pods_run_within: Duration::from_secs(120),
            all_gone_within: Duration::from_secs(60),
        }
    }
}

impl Stage {
    /// Waits until both pools can be bought for.
    ///
    /// # Errors
    /// When they are not ready in time; with their conditions.
    pub async fn until_ready(&self) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.client.clone());
        self.until(STARTS_WITHIN, "both pools are Ready", async || {
            let list = pools.list(&Default::default()).await?;
            let ready =
                list.items.iter().filter(|pool| condition::is_true(pool.conditions(), condition::READY));
            Ok(if ready.count() == 2 { Ok(()) } else { Err(format!("{:?}", list.items)) })
        })
        .await
    }
}

pub(super) async fn cluster_id(client: &Client) -> anyhow::Result<ClusterId> {
    let system = Api::<Namespace>::all(client.clone()).get("kube-system").await?;
    Ok(ClusterId::new(system.uid().context("a namespace has a UID")?))
}

/// Definitions and the rights of booting machines; those that are there already stay.
pub(super) async fn install(client: &Client) -> anyhow::Result<()> {
    for crd in crds::all() {
        let (api, name) = (Api::all(client.clone()), crd.name_any());
        put(&api, &crd).await?;
        let served = await_condition(api, &name, conditions::is_crd_established());
        let served = tokio::time::timeout(STARTS_WITHIN, served).await;
        served.with_context(|| format!("{name} is not served"))??;
    }
    for object in rights()? {
        let gvk = GroupVersionKind::try_from(object.types.as_ref().context("an object without a kind")?)?;
        let (resource, _) = kube::discovery::pinned_kind(client, &gvk).await?;
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let params = PatchParams::apply(FIELD_MANAGER);
        api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await?;
    }
    Ok(())
}

fn rights() -> anyhow::Result<Vec<DynamicObject>> {
    let mut out = Vec::new();
    for text in [BOOTSTRAP_RBAC, CONTROLLER_RBAC] {
        out.extend(serde_saphyr::from_multiple::<DynamicObject>(text).context("read the rights")?);
    }
    Ok(out)
}

/// A copy of a kubeconfig with which one may do what the controller may, and no more.
pub(super) fn restrict(kubeconfig: &Path, copy: &Path) -> anyhow::Result<()> {
    let mut config = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    for user in &mut config.auth_infos {
        user.auth_info.get_or_insert_default().impersonate = Some(CONTROLLER.to_owned());
    }
    // JSON is YAML, too.
    std::fs::write(copy, serde_json::to_string(&config)?).context("write the controller's kubeconfig")
}

/// The example's class and pools, as the trial wants them.
pub(super) async fn apply(client: &Client, setting: &Setting) -> anyhow::Result<()> {
    for mut object in serde_saphyr::from_multiple::<Value>(EXAMPLE).context("read the example")? {
        if object["kind"] == "NodePool" {
            object["spec"]["disruption"]["consolidateAfter"] = json!(setting.consolidate_after);
            object["spec"]["limits"] = json!({"nodes": "1000"});
            put(&Api::<NodePool>::all(client.clone()), &serde_json::from_value(object)?).await?;
        } else {
            put(&Api::<ScarpenterNodeClass>::all(client.clone()), &serde_json::from_value(object)?).await?;
        }
    }
    Ok(())
}

async fn put<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    match api.create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        outcome => {
            outcome.map(drop).with_context(|| format!("create {} {}", K::kind(&()), object.name_any()))
        }
    }
}

/// A namespace that takes pods: its service account is there.
pub(super) async fn fresh_namespace(client: &Client) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let wanted = serde_json::from_value(json!({"metadata": {"generateName": "stage-"}}))?;
    let name = namespaces.create(&PostParams::default(), &wanted).await?.name_any();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
    let there = async {
        while accounts.get_opt("default").await?.is_none() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok::<_, kube::Error>(())
    };
    tokio::time::timeout(STARTS_WITHIN, there).await.context("the namespace has no service account")??;
    Ok(name)
}

pub(super) async fn delete_pods(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    pods.delete_collection(&DeleteParams::default(), &Default::default()).await.context("delete the pods")?;
    Ok(())
}

pub(super) async fn delete_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), name);
    let now = DeleteParams::default().grace_period(0);
    pods.delete_collection(&now, &Default::default()).await.context("delete the pods")?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete(name, &DeleteParams::default()).await.context("delete the namespace")?;
    Ok(())
}
