//! Documents, one file in and one file out. `UPDATE_GOLDEN=1 cargo test -p scarpenter-bootstrap` accepts a change.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use scarpenter_bootstrap::{Document, Error, Join, JoinError, Method, OpenError, check_size, open, render};
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::{CPU, Resources, parse_quantity};
use serde::Deserialize;

const TOKEN_SECRET: &str = "0123456789abcdef";
// Size and shape of an RSA-2048 authority, as kubeadm makes it.
const CA_LINES: usize = 17;

#[derive(Deserialize)]
struct Input {
    node_name: String,
    provider_id: String,
    servers: Vec<String>,
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<String>,
    max_pods: Option<u32>,
    #[serde(default)]
    kube_reserved: BTreeMap<String, String>,
    #[serde(default)]
    system_reserved: BTreeMap<String, String>,
    #[serde(default)]
    eviction_hard: BTreeMap<String, String>,
    sysext_base_url: Option<String>,
    #[serde(default)]
    sysext_hashes: BTreeMap<String, String>,
    never_joined_after: Option<u64>,
    lifetime: Option<u64>,
}

impl Input {
    fn into_join(self) -> Join {
        Join {
            node_name: self.node_name,
            provider_id: self.provider_id,
            servers: self.servers,
            ca_pem: ca(CA_LINES),
            token_id: "abc123".to_owned(),
            token_secret: Secret::new(TOKEN_SECRET),
            kubernetes_version: "v1.37.2".to_owned(),
            cluster_dns: vec!["10.43.0.10".to_owned()],
            cluster_domain: "cluster.local".to_owned(),
            labels: self.labels,
            taints: self.taints.iter().map(|text| taint(text)).collect(),
            kubelet: Kubelet {
                max_pods: self.max_pods.unwrap_or(110),
                kube_reserved: amounts(&self.kube_reserved),
                system_reserved: amounts(&self.system_reserved),
                eviction_hard: self.eviction_hard,
            },
            sysext_base_url: self
                .sysext_base_url
                .unwrap_or_else(|| "https://extensions.flatcar.org/extensions".to_owned()),
            sysext_hashes: self.sysext_hashes,
            never_joined_after: self.never_joined_after,
            lifetime: self.lifetime,
            api_unreachable_after: None,
            method: Method::Kubelet,
            mesh: None,
            firewall: None,
            extra: None,
            external_addresses: false,
        }
    }
}

fn amounts(quantities: &BTreeMap<String, String>) -> Resources {
    quantities.iter().map(|(name, text)| (name.clone(), parse_quantity(name, text).unwrap())).collect()
}

fn taint(text: &str) -> Taint {
    let (rest, effect) = text.rsplit_once(':').unwrap();
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Taint { key: key.to_owned(), value: value.to_owned(), effect: TaintEffect::parse(effect).unwrap() }
}

/// A certificate's outline with lines that do not compress, like a real one's.
fn ca(lines: usize) -> String {
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in 0..lines {
        let hex = scarpenter_core::name::sha256_hex(line.to_string().as_bytes());
        let packed: String = hex.as_bytes().chunks(2).map(base64_char).collect();
        let other = scarpenter_core::name::sha256_hex(packed.as_bytes());
        let more: String = other.as_bytes().chunks(2).map(base64_char).collect();
        out.push_str(&format!("{packed}{more}\n"));
    }
    out + "-----END CERTIFICATE-----\n"
}

fn base64_char(hex: &[u8]) -> char {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = usize::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap();
    char::from(ALPHABET[value % 64])
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn join_of(case: &str) -> Join {
    let text = std::fs::read_to_string(folder().join(format!("{case}.in.json"))).unwrap();
    serde_json::from_str::<Input>(&text).unwrap().into_join()
}

fn cases() -> Vec<String> {
    let names =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut out: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".in.json").map(str::to_owned)).collect();
    out.sort();
    assert!(out.len() >= 2, "the golden folder lost its cases: {out:?}");
    out
}

fn pretty(document: &Document) -> String {
    let value: serde_json::Value = serde_json::from_str(document.inner()).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

#[test]
fn documents_are_as_the_golden_files_say() {
    for case in cases() {
        let path = folder().join(format!("{case}.out.json"));
        let rendered = pretty(&render(&join_of(&case)).unwrap());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &rendered).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(rendered, golden, "{case} differs; UPDATE_GOLDEN=1 accepts it");
    }
}

#[test]
fn the_real_ignition_validate_accepts_every_document() {
    let Some(program) = validator() else {
        eprintln!("not run: ignition-validate (Debian package ignition) is not installed");
        return;
    };
    let temp = std::env::temp_dir().join(format!("scarpenter-ignition-{}", std::process::id()));
    for case in cases() {
        let document = render(&join_of(&case)).unwrap();
        for (part, bytes) in [("outer", document.bytes()), ("inner", document.inner().as_bytes())] {
            std::fs::write(&temp, bytes).unwrap();
            let output = Command::new(&program).arg(&temp).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && said.is_empty(), "{case} {part}: {said}");
        }
    }
    std::fs::write(&temp, br#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"relative"}]}}"#)
        .unwrap();
    let refused = Command::new(&program).arg(&temp).output().unwrap();
    assert!(!refused.status.success(), "the validator accepts anything");
    std::fs::remove_file(&temp).unwrap();
}

fn validator() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders
        .extend(["/usr/bin", "/usr/lib/ignition", "/usr/lib/dracut/modules.d/30ignition"].map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join("ignition-validate")).find(|program| program.is_file())
}

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
fn equal_input_gives_equal_bytes() {
    let (one, two) = (render(&join_of("everything")).unwrap(), render(&join_of("everything")).unwrap());
    assert_eq!(one.bytes(), two.bytes());
    assert_eq!(one.sha256(), scarpenter_core::name::sha256_hex(two.bytes()));
    assert_ne!(one.sha256(), render(&join_of("minimal")).unwrap().sha256());
}

#[test]
fn only_the_kubeconfig_holds_the_token_and_only_root_reads_it() {
    let document = render(&join_of("everything")).unwrap();
    let config: serde_json::Value = serde_json::from_str(document.inner()).unwrap();
    let files = config["storage"]["files"].as_array().unwrap();
    let with_token: Vec<_> = files.iter().filter(|file| file.to_string().contains(TOKEN_SECRET)).collect();
    assert_eq!(with_token.len(), 1);
    assert_eq!(with_token[0]["mode"], 0o600);
    assert!(!config["systemd"].to_string().contains(TOKEN_SECRET));
}

#[test]
fn nothing_that_is_printed_shows_the_token() {
    let join = join_of("everything");
    let document = render(&join).unwrap();
    let opened = open(document.bytes()).unwrap();
    let damaged = document.inner().replace("%22bootstrap%22", "bootstrap");
    let error = open(damaged.as_bytes()).unwrap_err();
    assert!(matches!(error, OpenError::Malformed(_)), "{error:?}");
    let bad_token = Join { token_secret: Secret::new("SHORT-secret"), ..join.clone() };
    let refused = render(&bad_token).unwrap_err();
    assert_eq!(refused, Error::Join(JoinError::Token));
    let printed = format!("{join:?} {document:?} {opened:?} {error:?} {error} {refused:?} {refused}");
    assert!(!printed.contains(TOKEN_SECRET) && !printed.contains("SHORT-secret"), "{printed}");
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
    let bad: [(&str, Join); 7] = [
        ("node name", Join { node_name: "a b".to_owned(), ..good.clone() }),
        ("providerID", Join { provider_id: String::new(), ..good.clone() }),
        ("label value", Join { labels, ..good.clone() }),
        ("join.servers entry", Join { servers: vec!["http://10.0.0.1".to_owned()], ..good.clone() }),
        ("join.kubernetesVersion", Join { kubernetes_version: "v1 ; rm".to_owned(), ..good.clone() }),
        ("join.sysextBaseURL", Join { sysext_base_url: "https://x/\"".to_owned(), ..good.clone() }),
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
