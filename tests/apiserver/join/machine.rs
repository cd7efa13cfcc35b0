//! One machine of a trial: its claim's facts, its token, its document, an approver for its requests, a namespace.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use scarpenter_bootstrap::{Join, render};
use scarpenter_controller::csr::decide::{BOOTSTRAP_GROUP, Candidate, Claims, Decision, decide};
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::{self, ClaimUid, ProviderId};
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, Resources};
use scarpenter_hollow::{Faults, Spec};
use scarpenter_playground::ControlPlane;
use serde_json::{Value, json};

pub(super) const NODE_READY_WITHIN: Duration = Duration::from_secs(120);

/// Polls until `question` says yes.
pub(super) async fn eventually(
    what: &str,
    mut question: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let polling = async {
        while !question().await? {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(NODE_READY_WITHIN, polling).await.with_context(|| format!("waited for {what}"))?
}

pub(super) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// CPU seconds that this process has used.
pub(super) fn cpu_seconds() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

/// Memory that this process holds.
pub(super) fn resident_mib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("VmRSS")?.parse::<u64>()? / 1024)
}

pub(super) struct Machine {
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) provider_id: String,
    pub(super) token_id: String,
    pub(super) token_secret: String,
    namespace: String,
    candidate: Candidate,
    join: Join,
    approver: Option<Approver>,
}

/// Ends with the machines it serves.
#[derive(Clone)]
struct Approver(#[expect(dead_code, reason = "held for its drop")] Arc<AbortOnDrop>);

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Machine {
    /// Makes what a controller would have made before the machine is bought, and approves its requests.
    pub(super) async fn new(plane: &ControlPlane, case: &str) -> anyhow::Result<Self> {
        Self::several(plane, &[case.to_owned()]).await?.pop().context("one machine")
    }

    /// Several, with one approver.
    pub(super) async fn several(plane: &ControlPlane, cases: &[String]) -> anyhow::Result<Vec<Self>> {
        let client = plane.client().await?;
        apply_rbac(&client).await?;
        let mut machines = Vec::new();
        for case in cases {
            machines.push(Self::unapproved(&client, plane, case).await?);
        }
        let candidates = machines.iter().map(|machine| machine.candidate.clone()).collect();
        let task = tokio::spawn(approve(client, candidates));
        let approver = Approver(Arc::new(AbortOnDrop(task)));
        for machine in &mut machines {
            machine.approver = Some(approver.clone());
        }
        Ok(machines)
    }

    async fn unapproved(client: &Client, plane: &ControlPlane, case: &str) -> anyhow::Result<Self> {
        let client = client.clone();
        let uid = ClaimUid::new(format!("uid-of-{case}"));
        let name = format!("join-{case}-0123456789");
        let token_id = name::bootstrap_token_id(&uid, 0);
        let token_secret = "fedcba9876543210".to_owned();
        let provider_id = ProviderId { vendor: "hcloud".into(), claim: uid.clone() }.to_string();
        let namespace = format!("join-{case}");
        create_token(&client, &token_id, &token_secret).await?;
        create_namespace(&client, &namespace).await?;
        let candidate = Candidate {
            uid,
            name: name.clone(),
            token_id: token_id.clone(),
            live: true,
            registered: false,
            name_taken: false,
            client_key_sha256: None,
            addresses: vec!["10.0.0.7".parse()?],
        };
        let join = Join {
            node_name: name.clone(),
            provider_id: provider_id.clone(),
            servers: vec![plane.url().to_owned()],
            ca_pem: plane.ca_certificate(),
            token_id: token_id.clone(),
            token_secret: name::Secret::new(token_secret.clone()),
            kubernetes_version: "v1.37.2".to_owned(),
            cluster_dns: vec!["10.43.0.10".to_owned()],
            cluster_domain: "cluster.local".to_owned(),
            labels: labels(),
            taints: vec![Taint {
                key: "example.com/dedicated".to_owned(),
                value: "x".to_owned(),
                effect: TaintEffect::NoSchedule,
            }],
            kubelet: Kubelet {
                max_pods: 110,
                kube_reserved: Resources::new().with(CPU, 100),
                ..Kubelet::default()
            },
            sysext_base_url: "https://extensions.flatcar.org/extensions".to_owned(),
            sysext_hashes: Default::default(),
            api_unreachable_after: None,
            method: scarpenter_bootstrap::Method::Kubelet,
            mesh: None,
            firewall: None,
            extra: None,
            external_addresses: false,
            never_joined_after: Some(600),
            lifetime: None,
        };
        Ok(Self {
            client,
            name,
            provider_id,
            token_id,
            token_secret,
            namespace,
            candidate,
            join,
            approver: None,
        })
    }

    pub(super) fn start(&self, faults: Faults) -> scarpenter_hollow::Node {
        self.start_with(faults, |_| ())
    }

    pub(super) fn start_with(
        &self,
        faults: Faults,
        change: impl FnOnce(&mut Join),
    ) -> scarpenter_hollow::Node {
        scarpenter_hollow::Node::start(self.spec(faults, change))
    }

    /// Starts with a disk, or starts again from it.
    pub(super) fn start_from(&self, disk: &Path, boot_delay: Duration) -> scarpenter_hollow::Node {
        let spec = Spec { boot_delay, ..self.spec(Faults::default(), |_| ()) };
        scarpenter_hollow::Node::start_with_disk(spec, Some(disk.to_owned()))
    }

    fn spec(&self, faults: Faults, change: impl FnOnce(&mut Join)) -> Spec {
        let mut join = self.join.clone();
        change(&mut join);
        let capacity =
            Resources::new().with(CPU, 4000).with(MEMORY, 8 << 30).with(EPHEMERAL_STORAGE, 40 << 30);
        Spec {
            user_data: render(&join).unwrap().bytes().to_vec(),
            capacity,
            boot_delay: Duration::ZERO,
            address: Some("10.0.0.7".parse().unwrap()),
            faults,
        }
    }

    pub(super) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(super) async fn ready_node(&self) -> anyhow::Result<Node> {
        let nodes = self.nodes();
        eventually("the node to be ready", async || {
            Ok(nodes.get_opt(&self.name).await?.is_some_and(|node| is_ready(&node)))
        })
        .await?;
        Ok(nodes.get(&self.name).await?)
    }

    /// As the controller does at registration.
    pub(super) async fn clear_taints(&self) -> anyhow::Result<()> {
        eventually("the node to have no taints", async || {
            let node = self.nodes().get(&self.name).await?;
            // The node lifecycle controller puts its own on and takes it off.
            let patch =
                json!({"metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": null}});
            let patched =
                self.nodes().patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            Ok(patched.is_ok_and(|node| is_ready(&node)))
        })
        .await
    }

    /// A pod for this node alone; `annotations` are those of the sim.
    pub(super) fn pod(&self, name: &str, annotations: Value, resources: Value) -> Pod {
        let ours = |(key, value): (&String, &Value)| {
            (format!("sim.scarpenter.sparecores.com/{key}"), value.as_str().unwrap_or_default().to_owned())
        };
        let annotations: std::collections::BTreeMap<String, String> =
            annotations.as_object().into_iter().flatten().map(ours).collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": self.namespace, "annotations": annotations},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": self.name},
                "containers": [{"name": "main", "image": "pause", "resources": resources}],
            },
        }))
        .unwrap()
    }

    pub(super) async fn create(&self, pod: &Pod) -> anyhow::Result<()> {
        // The service account of a new namespace takes a moment.
        eventually("the pod to be admitted", async || {
            match self.pods().create(&PostParams::default(), pod).await {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if status.message.contains("serviceaccount") => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    pub(super) async fn pod_when(&self, name: &str, is: impl Fn(&Pod) -> bool) -> anyhow::Result<Pod> {
        let last = Mutex::new(None);
        let waited = eventually(name, async || {
            let pod = self.pods().get(name).await?;
            let yes = is(&pod);
            *last.lock().unwrap() = Some(pod);
            Ok(yes)
        })
        .await;
        let last = last.into_inner().unwrap();
        waited.with_context(|| format!("{:?}", last.as_ref().and_then(|pod| pod.status.clone())))?;
        last.context("never seen")
    }

    pub(super) async fn pod_gone(&self, name: &str) -> anyhow::Result<()> {
        eventually("the pod to be gone", async || Ok(self.pods().get_opt(name).await?.is_none())).await
    }

    pub(super) async fn lease_renewed(&self) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let renewed = async || {
            let lease = leases.get_opt(&self.name).await?;
            anyhow::Ok(lease.and_then(|lease| lease.spec).and_then(|spec| spec.renew_time))
        };
        let before = renewed().await?;
        eventually("the lease to be renewed", async || Ok(renewed().await? != before)).await
    }

    pub(super) async fn csrs(&self) -> anyhow::Result<Vec<CertificateSigningRequest>> {
        let mut csrs = super::all_csrs(&self.client).await?;
        csrs.retain(|csr| is_of(csr, &self.token_id, &self.name));
        Ok(csrs)
    }

    pub(super) async fn delete_token(&self) -> anyhow::Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "kube-system");
        secrets.delete(&format!("bootstrap-token-{}", self.token_id), &DeleteParams::default()).await?;
        Ok(())
    }
}

fn labels() -> std::collections::BTreeMap<String, String> {
    let label = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    [
        ("scarpenter.sparecores.com/vendor", "hcloud"),
        ("node.kubernetes.io/instance-type", "ccx33"),
        ("topology.kubernetes.io/region", "fsn1"),
        ("kubernetes.io/arch", "amd64"),
        ("node-restriction.kubernetes.io/team", "a"),
    ]
    .map(label)
    .into()
}

fn is_of(csr: &CertificateSigningRequest, token_id: &str, name: &str) -> bool {
    let user = csr.spec.username.as_deref().unwrap_or_default();
    user == format!("system:bootstrap:{token_id}") || user == format!("system:node:{name}")
}

async fn apply_rbac(client: &Client) -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/rbac/bootstrap.yaml");
    let text = std::fs::read_to_string(path)?;
    let (role, binding) = text.split_once("\n---\n").context("two documents")?;
    let role: ClusterRole = serde_saphyr::from_str(role)?;
    let binding: ClusterRoleBinding = serde_saphyr::from_str(binding)?;
    let params = PatchParams::apply("tests").force();
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.patch(&role.name_any(), &params, &Patch::Apply(&role)).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.patch(&binding.name_any(), &params, &Patch::Apply(&binding)).await?;
    Ok(())
}

async fn create_token(client: &Client, id: &str, secret: &str) -> anyhow::Result<()> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
    let object: Secret = serde_json::from_value(json!({
        "metadata": {"name": format!("bootstrap-token-{id}")},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": BOOTSTRAP_GROUP,
        },
    }))?;
    secrets.create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    namespaces.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// The claims that the approver of a trial knows.
struct Known(Vec<Candidate>);

impl Claims for Known {
    fn by_token(&self, token_id: &str) -> Option<Candidate> {
        self.0.iter().find(|claim| claim.token_id == token_id).cloned()
    }

    fn by_name(&self, name: &str) -> Option<Candidate> {
        self.0.iter().find(|claim| claim.name == name).cloned()
    }

    fn is_our_node(&self, _: &str) -> bool {
        false
    }
}

/// Decides the requests of these claims; those of other trials are theirs.
async fn approve(client: Client, candidates: Vec<Candidate>) {
    let mut known = Known(candidates);
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let mut events = std::pin::pin!(watcher(api.clone(), watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(csr) | watcher::Event::InitApply(csr)) = event else { continue };
        if !known.0.iter().any(|claim| is_of(&csr, &claim.token_id, &claim.name)) {
            continue;
        }
        let condition = match decide(&csr, &known) {
            Decision::NotOurs => continue,
            Decision::Approve { claim, key_sha256 } => {
                if let Some(known) =
                    known.0.iter_mut().find(|known| known.uid == claim && key_sha256.is_some())
                {
                    known.client_key_sha256 = key_sha256;
                }
                json!({"type": "Approved", "status": "True", "reason": "ScarpenterApproved", "message": "a trial"})
            }
            Decision::Deny { reason, message, .. } => {
                json!({"type": "Denied", "status": "True", "reason": reason.as_str(), "message": message})
            }
        };
        let patch = json!({"status": {"conditions": [condition]}});
        api.patch_approval(&csr.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }
}
