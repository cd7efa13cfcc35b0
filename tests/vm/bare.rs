//! How long a machine takes to be a ready node, beside the same image with the same kubelet set up by hand.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use scarpenter_core::offering::{Arch, CapacityType, Place};
use scarpenter_core::resources::Resources;
use scarpenter_playground::ControlPlane;
use scarpenter_provider::request::Settings;
use scarpenter_provider::{CreateMachine, Created, DeleteMachine, Deleted, Image};
use serde_json::json;

use crate::host::{Host, Metal, TURN, free_port};
use crate::scene::Scene;

const READY_WITHIN: Duration = Duration::from_secs(300);
const GONE_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(200);
const NODE: &str = "by-hand";
/// The bar: how many times as long a machine of ours may take.
const AT_MOST: f64 = 1.3;
const UNIT: &str = "[Service]\n\
    ExecStart=/usr/bin/kubelet --config=/etc/kubelet.json --kubeconfig=/etc/kubeconfig.json --hostname-override=by-hand\n\
    Restart=always\n\
    [Unit]\n\
    After=systemd-sysext.service containerd.service\n\
    [Install]\n\
    WantedBy=multi-user.target\n";

pub(crate) async fn as_quick_as_by_hand(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let bare = by_hand(&plane).await.context("by hand")?;
    let ours = ours(&plane).await.context("ours")?;
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    eprintln!(
        "    from CreateMachine to Node Ready: {:.1} s, by hand {:.1} s, ratio {ratio:.2}",
        ours.as_secs_f64(),
        bare.as_secs_f64()
    );
    ensure!(ratio <= AT_MOST, "{ratio:.2} times as long as by hand, and at most {AT_MOST} is the bar");
    Ok(())
}

async fn ours(plane: &ControlPlane) -> anyhow::Result<Duration> {
    let scene = Scene::raise(plane, "timed", None).await?;
    scene.pod("timed", "sleep 1000").await?;
    let deadline = Instant::now() + READY_WITHIN;
    while scene.host.processes().is_empty() {
        ensure!(Instant::now() < deadline, "no machine: {}", scene.host.words());
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let began = Instant::now();
    scene
        .until(READY_WITHIN, "the node is ready", async || {
            let nodes = scene.nodes().list(&Default::default()).await?.items;
            Ok(if nodes.iter().any(is_ready) { Ok(()) } else { Err(String::new()) })
        })
        .await?;
    let took = began.elapsed();
    scene.strike(GONE_WITHIN).await?;
    Ok(took)
}

async fn by_hand(plane: &ControlPlane) -> anyhow::Result<Duration> {
    let metal = Metal::ensure().await?;
    let extensions_port = free_port()?;
    let host = Host::start(&metal, extensions_port, &["--cpus", "2", "--memory", "2048"]).await?;
    let create = CreateMachine {
        cluster: "cluster".into(),
        claim: "by-hand".into(),
        pool: String::new(),
        name: NODE.to_owned(),
        instance_type: "local.medium".to_owned(),
        place: Place { region: "local".to_owned(), zone: None, zone_id: None },
        capacity_type: CapacityType::OnDemand,
        arch: Arch::Amd64,
        image: Image::Flatcar("stable".to_owned()),
        settings: Settings::new(),
        boot_disk_gib: None,
        user_data: document(plane, &metal, extensions_port)?.into_bytes(),
        expected_capacity: Resources::default(),
    };
    let (cluster, claim) = (create.cluster.clone(), create.claim.clone());
    let nodes: kube::Api<Node> = kube::Api::all(plane.client().await?);
    let began = Instant::now();
    let Created::Machine(_) = host.client.create_machine(create).await? else { bail!("refused") };
    while !nodes.get_opt(NODE).await?.is_some_and(|node| is_ready(&node)) {
        ensure!(began.elapsed() < READY_WITHIN, "not ready: {}", host.consoles());
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let took = began.elapsed();
    let delete = DeleteMachine { cluster, claim, machine: None, place: None, only_this_machine: false };
    while host.client.delete_machine(delete.clone()).await? == Deleted::Asked {}
    nodes.delete(NODE, &Default::default()).await?;
    host.demand_nothing_left()?;
    Ok(took)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The least with which a kubelet of this image becomes a node: a certificate made beforehand, and no care.
fn document(plane: &ControlPlane, metal: &Metal, extensions_port: u16) -> anyhow::Result<String> {
    let kubeconfig = plane.kubeconfig_of(&format!("system:node:{NODE}"), &["system:nodes"])?;
    let kubeconfig = std::fs::read_to_string(kubeconfig)?.replace("https://127.0.0.1:", "https://10.0.2.2:");
    let kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "cgroupDriver": "systemd",
        "resolvConf": "/run/systemd/resolve/resolv.conf",
    });
    let file = |path: &str, text: &str| json!({"path": path, "mode": 0o600, "overwrite": true, "contents": {"source": data(text)}});
    let extension = &metal.extension;
    let raw = format!("/opt/extensions/{}", extension.name);
    let fetched = json!({"path": raw, "mode": 0o644, "contents": {
        "source": format!("http://10.0.2.2:{extensions_port}/{}", extension.name),
        "verification": {"hash": extension.hash},
    }});
    let document = json!({
        "ignition": {"version": "3.3.0"},
        "storage": {
            "files": [file("/etc/hostname", NODE), file("/etc/kubeconfig.json", &kubeconfig), file("/etc/kubelet.json", &kubelet.to_string()), fetched],
            "links": [{"path": "/etc/extensions/kubernetes.raw", "target": raw}],
        },
        "systemd": {"units": [{"name": "by-hand.service", "enabled": true, "contents": UNIT}]},
    });
    Ok(document.to_string())
}

fn data(text: &str) -> String {
    text.bytes().fold("data:,".to_owned(), |mut out, byte| {
        write!(out, "%{byte:02X}").expect("a String takes every write");
        out
    })
}
