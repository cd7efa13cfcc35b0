//! What is in a document, and what is refused.
#![allow(clippy::unwrap_used)]

mod cases;

use std::collections::BTreeMap;

use cases::{CA_LINES, MESH_KEY, NODE_PASSWORD, TOKEN_SECRET, ca, join_of};
use scarpenter_bootstrap::{
    Error, Join, JoinError, Mesh, Method, OpenError, check_size, masked, open, render,
};
use scarpenter_core::name::Secret;
use scarpenter_core::resources::{CPU, Resources};

#[test]
fn a_machine_finds_in_the_document_what_was_put_in() {
    let join = join_of("everything");
    let opened = open(render(&join).unwrap().bytes()).unwrap();
    assert_eq!(opened.node_name, join.node_name);
    assert_eq!(opened.provider_id, join.provider_id);
    assert_eq!(opened.ca_pem, join.ca_pem);
    assert_eq!(opened.token.reveal(), format!("abc123.{TOKEN_SECRET}"));
    assert_eq!(opened.token_id(), "abc123");
    assert_eq!(opened.labels, join.kubelet_labels());
    assert!(!opened.labels.contains_key("node-restriction.kubernetes.io/team"));
    assert_eq!(opened.taints, join.register_with_taints());
    assert_eq!(opened.taints[0].to_string(), "karpenter.sh/unregistered:NoExecute");
    assert_eq!(opened.taints.len(), 3);
    assert_eq!(opened.kubelet, join.kubelet);
    assert_eq!(opened.kubernetes_version, "v1.37.2");
    assert_eq!((opened.never_joined_after, opened.lifetime), (Some(2400), Some(86_400)));
    assert_eq!(
        opened.servers,
        ["https://100.64.0.1:6443", "https://api.example.com:443", "https://[fd00::3]:6443"]
    );
    assert_eq!(opened.tls_server_name.as_deref(), Some("kubernetes.default"));
    assert_eq!(opened.file("/etc/hostname"), Some(b"arm-pool-abcdefghij\n".as_slice()));
}

#[test]
fn one_server_is_dialled_without_a_proxy() {
    let opened = open(render(&join_of("minimal")).unwrap().bytes()).unwrap();
    assert_eq!(opened.servers, ["https://203.0.113.10:6443"]);
    assert_eq!(opened.tls_server_name, None);
    assert_eq!(opened.lifetime, None);
}

#[test]
fn a_k3s_agent_finds_the_same_and_the_cluster_s_pin() {
    let join = join_of("k3s-mesh");
    let opened = open(render(&join).unwrap().bytes()).unwrap();
    assert_eq!(opened.provider_id, join.provider_id);
    assert_eq!(opened.token.reveal(), format!("abc123.{TOKEN_SECRET}"));
    assert_eq!((opened.token_id(), opened.kubernetes_version.as_str()), ("abc123", "v1.37.2+k3s1"));
    assert_eq!(opened.labels, join.kubelet_labels());
    assert_eq!(opened.taints, join.register_with_taints());
    assert_eq!(opened.kubelet, join.kubelet);
    assert_eq!(opened.servers.len(), 3);
    assert_eq!(opened.ca_pem, join.ca_pem);
    let pin = scarpenter_core::name::sha256_hex(join.ca_pem.as_bytes());
    let token = String::from_utf8(opened.file("/etc/scarpenter/k3s-token").unwrap().to_vec()).unwrap();
    assert_eq!(token, format!("K10{pin}::abc123.{TOKEN_SECRET}"));
    // What is kept back is the same whatever the method: the planner counts with one set of defaults.
    let plain = open(render(&join_of("k3s")).unwrap().bytes()).unwrap();
    let capacity =
        Resources::new().with(CPU, 2000).with("memory", 4 << 30).with("ephemeral-storage", 1 << 30);
    assert_eq!(plain.kubelet.allocatable(&capacity), join_of("k3s").kubelet.allocatable(&capacity));
}

#[test]
fn a_machine_in_a_mesh_and_one_in_a_local_demo_open_like_any_other() {
    for case in ["mesh", "firewall", "extra", "local", "k3s"] {
        let join = join_of(case);
        let opened = open(render(&join).unwrap().bytes()).unwrap();
        assert_eq!((opened.node_name, opened.servers), (join.node_name, join.servers), "{case}");
    }
}

#[test]
fn secrets_are_only_in_files_that_only_root_reads() {
    for (case, secrets) in [
        ("everything", vec![TOKEN_SECRET, MESH_KEY]),
        ("k3s-mesh", vec![TOKEN_SECRET, MESH_KEY, NODE_PASSWORD]),
    ] {
        let document = render(&join_of(case)).unwrap();
        let config: serde_json::Value = serde_json::from_str(document.inner()).unwrap();
        for secret in secrets {
            let files = config["storage"]["files"].as_array().unwrap();
            let with: Vec<_> = files.iter().filter(|file| file.to_string().contains(secret)).collect();
            assert_eq!(with.len(), 1, "{case}");
            assert_eq!(with[0]["mode"], 0o600, "{case}");
            assert!(!config["systemd"].to_string().contains(secret), "{case}");
        }
    }
}

#[test]
fn nothing_that_is_printed_shows_a_secret() {
    for case in ["everything", "k3s-mesh", "extra"] {
        let join = join_of(case);
        let document = render(&join).unwrap();
        let opened = open(document.bytes()).unwrap();
        let shown = masked(&join, &document);
        let printed = format!("{join:?} {document:?} {opened:?} {shown}");
        let hash = "aVd3cF2bN7mK1pR5wZ9\"";
        for secret in [TOKEN_SECRET, MESH_KEY, NODE_PASSWORD, "c2VjcmV0Cg", hash] {
            // The class's own Ignition is the user's text, and no secret of ours to `Join`.
            let printed = if case == "extra" { &shown } else { &printed };
            assert!(!printed.contains(secret), "{case} shows {secret}");
        }
        assert!(shown.contains("%2A%2A%2A%2A"), "{case} masks nothing");
        assert!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["storage"].is_object());
    }
}

#[test]
fn no_error_shows_a_secret() {
    let join = join_of("everything");
    let document = render(&join).unwrap();
    let damaged = document.inner().replace("%22bootstrap%22", "bootstrap");
    let error = open(damaged.as_bytes()).unwrap_err();
    assert!(matches!(error, OpenError::Malformed(_)), "{error:?}");
    let refused = render(&Join { token_secret: Secret::new("SHORT-secret"), ..join.clone() }).unwrap_err();
    assert_eq!(refused, Error::Join(JoinError::Token));
    let mesh = Mesh { auth_key: Secret::new("two words"), ..join.mesh.clone().unwrap() };
    let key = render(&Join { mesh: Some(mesh), ..join.clone() }).unwrap_err();
    let method = Method::K3sAgent { node_password: Secret::new("two words") };
    let password = render(&Join { method, ..join }).unwrap_err();
    let printed = format!("{error:?} {error} {refused:?} {refused} {key:?} {key} {password:?} {password}");
    for secret in [TOKEN_SECRET, "SHORT-secret", "two words"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn an_image_that_anybody_on_the_way_could_replace_is_refused() {
    for (case, url) in [
        ("minimal", "http://mirror.example.com"),
        ("k3s", "http://127.0.0.1:8080/"),
        ("local", "http://10.0.2.2:8080"),
    ] {
        let join = join_of(case);
        let plain = Join { sysext_base_url: url.to_owned(), sysext_hashes: BTreeMap::new(), ..join };
        let Err(Error::Join(error)) = render(&plain) else { panic!("{case} passed") };
        let words = error.to_string();
        assert!(words.contains("join.sysextHashes") && words.contains(".raw"), "{words}");
    }
    let mesh = Join { sysext_base_url: "http://m.example.com".to_owned(), ..join_of("everything") };
    assert!(render(&mesh).is_ok(), "both hashes are given");
    let mut lacks = mesh.clone();
    lacks.sysext_hashes.retain(|file, _| !file.starts_with("tailscale"));
    let Err(Error::Join(error)) = render(&lacks) else { panic!("passed") };
    assert!(error.to_string().contains("tailscale-v1.102.5-arm64.raw"), "{error}");
}

#[test]
fn a_machine_with_a_mesh_has_a_firewall_even_unasked() {
    let has = |join: &Join| render(join).unwrap().inner().contains("firewall.nft");
    assert!(has(&join_of("mesh")) && has(&join_of("firewall")));
    assert!(!has(&join_of("minimal")) && !has(&join_of("k3s")));
    let closed = Join { firewall: Some(Vec::new()), ..join_of("minimal") };
    let rendered = render(&closed).unwrap();
    assert!(
        rendered.inner().contains("firewall.nft") && !rendered.inner().contains("firewall-allowed.nft\"")
    );
}

#[test]
fn a_realistic_document_keeps_within_the_tightest_vendor_limit() {
    let mut join = join_of("everything");
    // Two authorities, as during a rotation, and forty labels.
    join.ca_pem = ca(CA_LINES) + &ca(26);
    for number in 0..40 {
        let hash = scarpenter_core::name::sha256_hex(&[number]);
        join.labels
            .insert(format!("benchmark.scarpenter.sparecores.com/{}", &hash[..20]), hash[20..50].to_owned());
    }
    let document = render(&join).unwrap();
    println!("outer {} bytes, inner {} bytes", document.bytes().len(), document.inner().len());
    check_size(document.bytes(), 16_384).unwrap();
    join.ca_pem = ca(400);
    assert!(check_size(render(&join).unwrap().bytes(), 16_384).is_err());
}

#[test]
fn a_text_that_would_break_out_of_its_place_is_refused() {
    let good = join_of("minimal");
    let labels = BTreeMap::from([("example.com/a".to_owned(), "x\nEVIL=1".to_owned())]);
    let bad: [(&str, Join); 8] = [
        ("node name", Join { node_name: "a b".to_owned(), ..good.clone() }),
        ("providerID", Join { provider_id: String::new(), ..good.clone() }),
        ("label value", Join { labels, ..good.clone() }),
        ("join.servers entry", Join { servers: vec!["http://10.0.0.1".to_owned()], ..good.clone() }),
        ("join.kubernetesVersion", Join { kubernetes_version: "v1 ; rm".to_owned(), ..good.clone() }),
        ("join.sysextBaseURL", Join { sysext_base_url: "https://x/\"".to_owned(), ..good.clone() }),
        (
            "join.firewall.allowFrom entry",
            Join { firewall: Some(vec!["10.0.0.0/8 } accept".to_owned()]), ..good.clone() },
        ),
        (
            "join.sysextHashes entry",
            Join { sysext_hashes: [("x.raw".into(), "sha256-abc".into())].into(), ..good.clone() },
        ),
    ];
    for (expected, join) in bad {
        let Err(Error::Join(JoinError::Malformed { field, .. })) = render(&join) else {
            panic!("{expected} passed")
        };
        assert_eq!(field, expected);
    }
    assert_eq!(
        render(&Join { servers: vec![], ..good.clone() }).unwrap_err(),
        Error::Join(JoinError::NoServers)
    );
    assert_eq!(render(&Join { ca_pem: "none".to_owned(), ..good }).unwrap_err(), Error::Join(JoinError::Ca));
}

#[test]
fn a_damaged_document_is_an_error_that_says_where() {
    let document = render(&join_of("minimal")).unwrap();
    assert!(matches!(open(b"#cloud-config"), Err(OpenError::Config(_))));
    assert!(matches!(open(br#"{"ignition":{"version":"2.3.0"}}"#), Err(OpenError::Version(_))));
    assert!(matches!(open(br#"{"ignition":{"version":"3.3.0"}}"#), Err(OpenError::Missing(_))));
    let text = String::from_utf8(document.bytes().to_vec()).unwrap();
    let at = text.find("base64,").unwrap() + 400;
    let mut damaged = text.clone().into_bytes();
    damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
    assert!(matches!(open(&damaged), Err(OpenError::Gzip(_) | OpenError::Config(_))));
    let asks_elsewhere = text.replace("data:;base64,", "https://example.com/");
    assert!(matches!(open(asks_elsewhere.as_bytes()), Err(OpenError::Unpack(_))));
}

#[test]
fn the_document_and_the_planner_agree_on_what_is_left_for_pods() {
    let join = join_of("everything");
    let capacity = Resources::new().with(CPU, 2000).with("memory", 4 << 30);
    let opened = open(render(&join).unwrap().bytes()).unwrap();
    assert_eq!(opened.kubelet.allocatable(&capacity), join.kubelet.allocatable(&capacity));
    assert_eq!(opened.kubelet.allocatable(&capacity).unwrap().get(CPU), 1900);
}
