//! What a machine needs to become a node: definitions, rights, a class and a pool of its own, a controller.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use scarpenter_api::{NodeClaim, NodePool, ScarpenterNodeClass, crds};
use scarpenter_core::label;
use scarpenter_playground::{Binaries, ControlPlane, Lifetime, Process, Program};
use scarpenter_provider_local::image::build::POD_IMAGE;
use serde_json::json;

use crate::host::{Host, Metal, free_port, program};

const BOOTSTRAP_RBAC: &str = include_str!("../../deploy/rbac/bootstrap.yaml");
const LOOK_EVERY: Duration = Duration::from_millis(500);
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// One class, pool and namespace of a trial, with a plugin and a controller.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) host: Host,
    pub(crate) name: String,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    controller: Process,
}

impl Scene {
    pub(crate) async fn raise(plane: &ControlPlane, name: &str, hash: Option<&str>) -> anyhow::Result<Self> {
        let metal = Metal::ensure().await?;
        let client = plane.client().await?;
        install(&client).await?;
        let extensions_port = free_port()?;
        let host = Host::start(&metal, extensions_port, &["--cpus", "2", "--memory", "2048"]).await?;
        let api_port = plane.url().rsplit(':').next().context("a URL has a port")?;
        let hash = hash.unwrap_or(&metal.extension.hash);
        let class = json!({
            "apiVersion": "scarpenter.sparecores.com/v1alpha1", "kind": "ScarpenterNodeClass",
            "metadata": {"name": name},
            "spec": {"vendors": {"local": {}}, "join": {
                "servers": [format!("https://10.0.2.2:{api_port}")],
                "sysextBaseURL": format!("http://10.0.2.2:{extensions_port}"),
                "sysextHashes": {(&metal.extension.name): hash},
            }},
        });
        Api::<ScarpenterNodeClass>::all(client.clone())
            .create(&PostParams::default(), &serde_json::from_value(class)?)
            .await?;
        Api::<NodePool>::all(client.clone())
            .create(&PostParams::default(), &serde_json::from_value(pool(name))?)
            .await?;
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let controller = controller(plane, &host)?;
        let kubectl = Binaries::ensure(|_| {}).await?.path(Program::Kubectl);
        let kubeconfig = plane.kubeconfig().to_owned();
        let scene = Self { client, host, name: name.to_owned(), kubectl, kubeconfig, controller };
        let accounts: Api<ServiceAccount> = Api::namespaced(scene.client.clone(), name);
        scene
            .until(STARTS_WITHIN, "the namespace has a service account", async || {
                Ok(accounts.get_opt("default").await?.map(drop).ok_or_else(String::new))
            })
            .await?;
        Ok(scene)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    /// Creates a pod that only this pool's machines can run; more than one CPU, so that they have two.
    pub(crate) async fn pod(&self, name: &str, script: &str) -> anyhow::Result<()> {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "nodeSelector": {label::NODEPOOL: self.name},
                "containers": [{
                    "name": "main", "image": POD_IMAGE, "imagePullPolicy": "Never",
                    "command": ["/bin/sh", "-c", script],
                    "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                    "resources": {"requests": {"cpu": "1100m", "memory": "64Mi"}},
                }],
            },
        });
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }

    /// Runs kubectl in the namespace and returns what it printed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = tokio::process::Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(["--namespace", &self.name]).args(arguments);
        let output = command.kill_on_drop(true).output().await.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// What all events say.
    pub(crate) async fn events(&self) -> anyhow::Result<Vec<String>> {
        let events: Api<Event> = Api::all(self.client.clone());
        let list = events.list(&ListParams::default()).await?;
        Ok(list.items.into_iter().filter_map(|event| event.message).collect())
    }

    /// Waits until it is so; the error says what was waited for and quotes logs.
    pub(crate) async fn until(
        &self,
        within: Duration,
        what: &str,
        mut look: impl AsyncFnMut() -> anyhow::Result<Result<(), String>>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        while let Err(instead) = look().await? {
            if let Some(status) = self.controller.exited() {
                bail!("the controller ended ({status}): {}", self.controller.log_tail(8));
            }
            if Instant::now() > deadline {
                bail!(
                    "not so after {} s: {what}: {instead}\ncontroller: {}\nplugin: {}\nconsoles: {}",
                    within.as_secs(),
                    self.controller.log_tail(8),
                    self.host.words(),
                    self.host.consoles(),
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Deletes the pods, waits until machines, nodes and claims are gone, and demands that nothing is left.
    pub(crate) async fn strike(self, within: Duration) -> anyhow::Result<()> {
        let now = DeleteParams::default().grace_period(0);
        self.pods().delete_collection(&now, &ListParams::default()).await?;
        self.until(within, "claims and nodes are gone", async || {
            let claims = self.claims().list(&ListParams::default()).await?.items;
            let ours = ListParams::default().labels(&format!("{}={}", label::NODEPOOL, self.name));
            let nodes = self.nodes().list(&ours).await?.items;
            let left: Vec<String> = claims
                .iter()
                .map(ResourceExt::name_any)
                .chain(nodes.iter().map(ResourceExt::name_any))
                .collect();
            Ok(if left.is_empty() { Ok(()) } else { Err(left.join(", ")) })
        })
        .await?;
        self.host.demand_nothing_left()?;
        let gone = DeleteParams::default();
        Api::<NodePool>::all(self.client.clone()).delete(&self.name, &gone).await?;
        Api::<ScarpenterNodeClass>::all(self.client.clone()).delete(&self.name, &gone).await?;
        Api::<Namespace>::all(self.client.clone()).delete(&self.name, &gone).await?;
        Ok(())
    }
}

fn pool(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": name},
                "requirements": [{"key": label::VENDOR, "operator": "In", "values": ["local"]}],
            }},
            "disruption": {
                "consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s",
                "budgets": [{"nodes": "100%", "reasons": ["Empty"]}],
            },
        },
    })
}

fn controller(plane: &ControlPlane, host: &Host) -> anyhow::Result<Process> {
    let mut arguments: Vec<OsString> =
        ["controller", "--no-leader-election", "--bind-address", "127.0.0.1"].map(OsString::from).into();
    arguments.extend(["--kubeconfig".into(), plane.kubeconfig().as_os_str().to_owned()]);
    arguments.extend(["--metrics-port", "0", "--health-port", "0"].map(OsString::from));
    arguments.extend(["--validation-delay", "1s", "--drain-delay", "2s"].map(OsString::from));
    let mut provider = OsString::from("local=unix://");
    provider.push(host.folder.path().join("local.sock"));
    arguments.extend(["--provider".into(), provider]);
    let mut command = Command::new(program());
    command.args(arguments);
    Ok(Process::spawn("controller", &command, &host.folder.path().join("controller.log"), Lifetime::Tied)?)
}

async fn install(client: &Client) -> anyhow::Result<()> {
    for crd in crds::all() {
        let (api, name) = (Api::all(client.clone()), crd.name_any());
        create(&api, &crd).await?;
        let served = await_condition(api, &name, conditions::is_crd_established());
        tokio::time::timeout(STARTS_WITHIN, served).await.context("a definition is not served")??;
    }
    for object in serde_saphyr::from_multiple::<DynamicObject>(BOOTSTRAP_RBAC)? {
        let gvk = GroupVersionKind::try_from(object.types.as_ref().context("an object has a kind")?)?;
        let (resource, _) = kube::discovery::pinned_kind(client, &gvk).await?;
        create(&Api::all_with(client.clone(), &resource), &object).await?;
    }
    Ok(())
}

async fn create<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Clone + serde::Serialize + serde::de::DeserializeOwned + Debug,
{
    match api.create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) => {
            ensure!(status.is_already_exists(), "{}", status.message);
            Ok(())
        }
        outcome => Ok(outcome.map(drop)?),
    }
}
