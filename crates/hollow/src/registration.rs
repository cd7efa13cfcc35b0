//! The Node object: what the kubelet knows of itself when it registers, and the one time it says Ready.
//!
//! Nothing is written to it afterwards: conditions, taints and labels that somebody else wrote stay.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use scarpenter_bootstrap::Opened;
use scarpenter_core::label;
use scarpenter_core::name::sha256_hex;
use scarpenter_core::pod::Taint;
use scarpenter_core::resources::{MEMORY, Resources};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::certificate::CALL_WITHIN;
use crate::console::Console;
use crate::spec::{Faults, Spec};

/// The kubelet's own steps between two tries to register.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);
const TRY_AGAIN_AT_MOST: Duration = Duration::from_secs(7);

/// What the kubelet is, and will say of itself.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) address: Option<IpAddr>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) allocatable: Resources,
    capacity: Resources,
    labels: BTreeMap<String, String>,
    provider_id: String,
    arch: String,
    version: String,
    never_ready: bool,
}

impl Identity {
    pub(crate) fn new(name: String, opened: &Opened, spec: &Spec) -> Self {
        let Faults { memory_percent, drop_labels, drop_taints, never_ready, .. } = spec.faults.clone();
        let mut capacity = spec.capacity.clone();
        if let Some(memory) = capacity.find(MEMORY) {
            let found = i128::from(memory) * i128::from(memory_percent) / 100;
            capacity.set(MEMORY, i64::try_from(found).unwrap_or(i64::MAX));
        }
        let pods = scarpenter_core::resources::PODS;
        capacity.set(pods, i64::from(opened.kubelet.max_pods));
        // A kubelet with a threshold that it cannot read does not start; ours takes nothing off.
        let allocatable = opened.kubelet.allocatable(&capacity).unwrap_or_else(|_| capacity.clone());
        let arch = opened.labels.get(label::ARCH).map_or("amd64", String::as_str).to_owned();
        let mut labels = if drop_labels { BTreeMap::new() } else { opened.labels.clone() };
        for (key, value) in [(label::HOSTNAME, name.as_str()), (label::OS, "linux"), (label::ARCH, &arch)] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        Self {
            name,
            address: spec.address,
            taints: if drop_taints { Vec::new() } else { opened.taints.clone() },
            allocatable,
            capacity,
            labels,
            provider_id: opened.provider_id.clone(),
            arch,
            version: opened.kubernetes_version.clone(),
            never_ready,
        }
    }

    fn object(&self, now: Timestamp) -> core::Node {
        let taint = |taint: &Taint| core::Taint {
            key: taint.key.clone(),
            value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
            effect: taint.effect.as_str().to_owned(),
            time_added: None,
        };
        let detach = ("volumes.kubernetes.io/controller-managed-attach-detach".to_owned(), "true".to_owned());
        core::Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.labels.clone()),
                annotations: Some(BTreeMap::from([detach])),
                ..Default::default()
            },
            spec: Some(core::NodeSpec {
                provider_id: Some(self.provider_id.clone()),
                taints: Some(self.taints.iter().map(taint).collect()),
                ..Default::default()
            }),
            status: Some(core::NodeStatus {
                addresses: Some(self.addresses()),
                allocatable: Some(quantities(&self.allocatable)),
                capacity: Some(quantities(&self.capacity)),
                conditions: Some(conditions(now)),
                node_info: Some(self.info()),
                ..Default::default()
            }),
        }
    }

    fn addresses(&self) -> Vec<core::NodeAddress> {
        let hostname = core::NodeAddress { type_: "Hostname".to_owned(), address: self.name.clone() };
        let internal =
            |ip: IpAddr| core::NodeAddress { type_: "InternalIP".to_owned(), address: ip.to_string() };
        self.address.map(internal).into_iter().chain([hostname]).collect()
    }

    fn info(&self) -> core::NodeSystemInfo {
        let id = sha256_hex(self.name.as_bytes())[..32].to_owned();
        core::NodeSystemInfo {
            architecture: self.arch.clone(),
            boot_id: id.clone(),
            container_runtime_version: "hollow://1".to_owned(),
            kernel_version: "0.0.0-hollow".to_owned(),
            kubelet_version: self.version.clone(),
            machine_id: id.clone(),
            operating_system: "linux".to_owned(),
            os_image: "hollow node, no machine behind it".to_owned(),
            system_uuid: id,
            ..Default::default()
        }
    }
}

fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    resources.to_quantities().into_iter().map(|(name, text)| (name, Quantity(text))).collect()
}

fn conditions(now: Timestamp) -> Vec<core::NodeCondition> {
    let condition = |type_: &str, status: &str, reason: &str, message: &str| core::NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    let none = "kubelet has enough of it";
    vec![
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", none),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", none),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", none),
        condition("Ready", "False", "KubeletNotReady", "the container network is not ready"),
    ]
}

/// Creates the Node, for ever if it is refused (an admission policy may end). Returns its UID.
pub(crate) async fn register(client: &Client, identity: &Identity, console: &Console) -> String {
    let api: Api<core::Node> = Api::all(client.clone());
    let mut pause = TRY_AGAIN_AFTER;
    loop {
        let object = identity.object(Timestamp::now());
        let outcome = match timeout(CALL_WITHIN, api.create(&PostParams::default(), &object)).await {
            Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => {
                timeout(CALL_WITHIN, api.get(&identity.name)).await
            }
            other => other,
        };
        match outcome {
            Ok(Ok(node)) => {
                console.say(format!("kubelet: registered node {}", identity.name));
                return node.metadata.uid.unwrap_or_default();
            }
            Ok(Err(error)) => console.failed("kubelet: unable to register node", &error),
            Err(_) => console.say("kubelet: unable to register node: no answer"),
        }
        sleep(pause).await;
        pause = TRY_AGAIN_AT_MOST.min(pause * 2);
    }
}

/// Says Ready, once.
pub(crate) async fn become_ready(client: &Client, identity: &Identity, console: &Console) {
    if identity.never_ready {
        console.say("kubelet: the container network is not ready");
        return;
    }
    let api: Api<core::Node> = Api::all(client.clone());
    let mut pause = TRY_AGAIN_AFTER;
    loop {
        let now = Time(Timestamp::now());
        let ready = json!({"status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]}});
        let patch = Patch::Strategic(&ready);
        match timeout(CALL_WITHIN, api.patch_status(&identity.name, &PatchParams::default(), &patch)).await {
            Ok(Ok(_)) => return console.say("kubelet: node is ready"),
            // Deleted by hand in between: a kubelet does not register a second time.
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => return,
            Ok(Err(error)) => console.failed("kubelet: cannot update the node's status", &error),
            Err(_) => console.say("kubelet: cannot update the node's status: no answer"),
        }
        sleep(pause).await;
        pause = TRY_AGAIN_AT_MOST.min(pause * 2);
    }
}
