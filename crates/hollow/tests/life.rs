//! What a machine does when nobody answers it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use scarpenter_bootstrap::{Join, render};
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use scarpenter_core::resources::{CPU, MEMORY, Resources};
use scarpenter_hollow::{Faults, Node, Spec, State};
use tokio::time::Instant;

const TOKEN_SECRET: &str = "0123456789abcdef";

fn spec(change: impl FnOnce(&mut Join)) -> Spec {
    rustls::crypto::ring::default_provider().install_default().ok();
    let ca = CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap();
    let mut join = Join {
        node_name: "default-0123456789".to_owned(),
        provider_id: "scarpenter://hcloud/u-1".to_owned(),
        // Nobody listens on port 1.
        servers: vec!["https://127.0.0.1:1".to_owned()],
        ca_pem: ca.pem(),
        token_id: "abc123".to_owned(),
        token_secret: Secret::new(TOKEN_SECRET),
        kubernetes_version: "v1.37.2".to_owned(),
        cluster_dns: vec!["10.43.0.10".to_owned()],
        cluster_domain: "cluster.local".to_owned(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        kubelet: Kubelet { max_pods: 110, ..Kubelet::default() },
        sysext_base_url: "https://extensions.flatcar.org/extensions".to_owned(),
        sysext_hashes: Default::default(),
        api_unreachable_after: None,
        method: scarpenter_bootstrap::Method::Kubelet,
        mesh: None,
        firewall: None,
        extra: None,
        external_addresses: false,
        never_joined_after: None,
        lifetime: None,
    };
    change(&mut join);
    Spec {
        user_data: render(&join).unwrap().bytes().to_vec(),
        capacity: Resources::new().with(CPU, 2000).with(MEMORY, 4 << 30),
        boot_delay: Duration::from_secs(20),
        address: None,
        faults: Faults::default(),
    }
}

async fn wait_for(node: &Node, state: State) {
    node.state().wait_for(|now| *now == state).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_never_joined_powers_itself_off_at_its_deadline() {
    for never_joins in [true, false] {
        let mut spec = spec(|join| join.never_joined_after = Some(900));
        spec.faults.never_joins = never_joins;
        let on = Instant::now();
        let node = Node::start(spec);
        assert_eq!(*node.state().borrow(), State::Booting);
        wait_for(&node, State::Joining).await;
        assert_eq!(on.elapsed().as_secs(), 20);
        wait_for(&node, State::Off).await;
        assert_eq!(on.elapsed().as_secs(), 920);
        assert!(node.console().contains("never joined, powering off"), "{}", node.console());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_ends_whatever_the_machine_is_doing() {
    let on = Instant::now();
    let node = Node::start(spec(|join| join.lifetime = Some(3600)));
    wait_for(&node, State::Off).await;
    assert_eq!(on.elapsed().as_secs(), 3620);
    assert!(node.console().contains("lifetime is over"), "{}", node.console());
}

#[tokio::test]
async fn the_console_tells_what_failed_and_no_secret() {
    let mut spec = spec(|_| ());
    spec.boot_delay = Duration::ZERO;
    let printed = format!("{spec:?}");
    let node = Node::start(spec);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !node.console().contains("bootstrap failed") && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    let console = node.console();
    assert!(console.contains("bootstrapping as system:node:default-0123456789"), "{console}");
    assert!(console.contains("bootstrap failed") && console.contains("refused"), "{console}");
    assert!(!console.contains(TOKEN_SECRET) && !printed.contains(TOKEN_SECRET), "{console} {printed}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_document_that_does_not_open_stops_the_boot() {
    let mut spec = spec(|_| ());
    spec.user_data = b"#cloud-config".to_vec();
    let node = Node::start(spec);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(*node.state().borrow(), State::Booting);
    assert!(node.console().contains("Ignition failed"), "{}", node.console());
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_off_when_stop_returns() {
    let node = Node::start(spec(|_| ()));
    let state = node.state();
    node.stop().await;
    assert_eq!(*state.borrow(), State::Off);
}
