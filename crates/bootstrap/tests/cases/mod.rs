//! The golden documents' inputs: one file each, read into a `Join`.
#![allow(clippy::unwrap_used, dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use scarpenter_bootstrap::{Join, Mesh, Method};
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::resources::{Resources, parse_quantity};
use serde::Deserialize;

pub(crate) const TOKEN_SECRET: &str = "0123456789abcdef";
pub(crate) const MESH_KEY: &str = "hskey-auth-Tq_0Yk-8sXy-aVd3cF2bN7mK1pR5wZ9";
pub(crate) const NODE_PASSWORD: &str = "3c9e1f7ab2d64058";
// Size and shape of an RSA-2048 authority, as kubeadm makes it.
pub(crate) const CA_LINES: usize = 17;

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
    api_unreachable_after: Option<u64>,
    k3s_version: Option<String>,
    mesh: Option<MeshInput>,
    firewall: Option<Vec<String>>,
    extra: Option<serde_json::Value>,
    #[serde(default)]
    external_addresses: bool,
}

#[derive(Deserialize)]
struct MeshInput {
    login_server: String,
    accept_routes: bool,
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
            kubernetes_version: self.k3s_version.clone().unwrap_or_else(|| "v1.37.2".to_owned()),
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
            api_unreachable_after: self.api_unreachable_after,
            method: match self.k3s_version {
                Some(_) => Method::K3sAgent { node_password: Secret::new(NODE_PASSWORD) },
                None => Method::Kubelet,
            },
            mesh: self.mesh.map(|mesh| Mesh {
                login_server: mesh.login_server,
                auth_key: Secret::new(MESH_KEY),
                tailscale_version: "v1.102.5".to_owned(),
                accept_routes: mesh.accept_routes,
            }),
            firewall: self.firewall,
            extra: self.extra.map(|extra| extra.to_string()),
            external_addresses: self.external_addresses,
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
pub(crate) fn ca(lines: usize) -> String {
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

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

pub(crate) fn join_of(case: &str) -> Join {
    let text = std::fs::read_to_string(folder().join(format!("{case}.in.json"))).unwrap();
    serde_json::from_str::<Input>(&text).unwrap().into_join()
}

pub(crate) fn cases() -> Vec<String> {
    let names =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut out: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".in.json").map(str::to_owned)).collect();
    out.sort();
    assert!(out.len() >= 8, "the golden folder lost its cases: {out:?}");
    out
}

/// A program of Debian's package ignition; a note when it is not installed.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(
        ["/usr/sbin", "/usr/lib/ignition", "/usr/lib/dracut/modules.d/30ignition"].map(PathBuf::from),
    );
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|program| program.is_file());
    if found.is_none() {
        eprintln!("not run: {name} is not installed");
    }
    found
}

/// Whether this is root, which Ignition needs to set owners.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}
