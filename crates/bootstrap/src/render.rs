//! From [`Join`] to the files and units of the machine.

use ignition_config::v3_3;
use scarpenter_core::label;
use serde_json::{Value, json};

use crate::data_url;
use crate::document::Document;
use crate::join::{self, Join, authority};

const KUBELET_UNIT: &str = include_str!("../../../ignition/units/scarpenter-kubelet.service");
const TIME_WAIT_SYNC: &str = include_str!("../../../ignition/units/time-wait-sync.conf");
const PROXY_SOCKET: &str = include_str!("../../../ignition/units/scarpenter-api-proxy.socket");
const PROXY_UNIT: &str = include_str!("../../../ignition/units/scarpenter-api-proxy.service");
const PROXY_SCRIPT: &str = include_str!("../../../ignition/files/api-proxy");
const NEVER_JOINED_UNIT: &str = include_str!("../../../ignition/units/scarpenter-never-joined.service");
const NEVER_JOINED_TIMER: &str = include_str!("../../../ignition/units/scarpenter-never-joined.timer");
const LIFETIME_UNIT: &str = include_str!("../../../ignition/units/scarpenter-lifetime.service");
const LIFETIME_TIMER: &str = include_str!("../../../ignition/units/scarpenter-lifetime.timer");
const KUBELET_CONFIG: &str = include_str!("../../../ignition/files/kubelet.json");
const MODULES: &str = include_str!("../../../ignition/files/modules.conf");
const SYSCTL: &str = include_str!("../../../ignition/files/sysctl.conf");

pub(crate) const HOSTNAME_PATH: &str = "/etc/hostname";
pub(crate) const NODE_ENV_PATH: &str = "/etc/scarpenter/node.env";
pub(crate) const SERVERS_PATH: &str = "/etc/scarpenter/api-servers";
pub(crate) const CA_PATH: &str = "/etc/kubernetes/ca.crt";
pub(crate) const KUBELET_CONFIG_PATH: &str = "/etc/kubernetes/kubelet.json";
pub(crate) const KUBECONFIG_PATH: &str = "/etc/kubernetes/bootstrap-kubeconfig.json";
pub(crate) const SYSEXT_DIR: &str = "/opt/extensions/kubernetes/";
pub(crate) const NEVER_JOINED: &str = "scarpenter-never-joined.timer";
pub(crate) const LIFETIME: &str = "scarpenter-lifetime.timer";
pub(crate) const DEADLINE_DROPIN: &str = "deadline.conf";

/// The name of the API server that every server's certificate holds, whatever its address.
pub(crate) const SHARED_NAME: &str = "kubernetes.default";
const PROXY_URL: &str = "https://kubernetes.default:6444";

/// Why there is no document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input cannot be used.
    #[error("cannot render the Ignition document")]
    Join(#[from] join::Error),
}

/// Renders the document of one claim. Equal input gives equal bytes.
///
/// # Errors
/// [`Error`] when a field would not survive the way into a unit, a URL or the kubelet.
pub fn render(join: &Join) -> Result<Document, Error> {
    join.check()?;
    let storage = v3_3::Storage {
        files: Some(files(join)?),
        links: Some(vec![sysext_link(join)]),
        ..Default::default()
    };
    let config = v3_3::Config {
        storage: Some(storage),
        systemd: Some(v3_3::Systemd { units: Some(units(join)) }),
        ..Default::default()
    };
    Ok(Document::pack(&config))
}

fn files(join: &Join) -> Result<Vec<v3_3::File>, Error> {
    let mut out = vec![
        file(HOSTNAME_PATH, &format!("{}\n", join.node_name), 0o644),
        file(NODE_ENV_PATH, &node_env(join), 0o644),
        file(CA_PATH, &join.ca_pem, 0o644),
        // 0600: whoever reads the token may ask for this node's certificate.
        file(KUBECONFIG_PATH, &kubeconfig(join).to_string(), 0o600),
        file(KUBELET_CONFIG_PATH, &kubelet_config(join).to_string(), 0o644),
        file("/etc/modules-load.d/scarpenter.conf", MODULES, 0o644),
        file("/etc/sysctl.d/90-scarpenter.conf", SYSCTL, 0o644),
        sysext_image(join),
    ];
    if proxied(join) {
        let servers: Vec<String> = join.servers.iter().map(|s| authority(s)).collect::<Result<_, _>>()?;
        out.push(file(SERVERS_PATH, &format!("{}\n", servers.join("\n")), 0o644));
        out.push(file("/opt/scarpenter/api-proxy", PROXY_SCRIPT, 0o755));
        let hosts = format!("127.0.0.1 localhost {SHARED_NAME}\n::1 localhost\n");
        out.push(file("/etc/hosts", &hosts, 0o644));
    }
    Ok(out)
}

fn units(join: &Join) -> Vec<v3_3::Unit> {
    let mut out = vec![
        enabled("scarpenter-kubelet.service", KUBELET_UNIT),
        // The image brings kubeadm's unit of that name; two kubelets would fight for one machine.
        masked("kubelet.service"),
        with_dropin("systemd-time-wait-sync.service", "timeout.conf", TIME_WAIT_SYNC),
        // A bought machine lives for hours: an update that reboots it costs its pods.
        masked("update-engine.service"),
        masked("locksmithd.service"),
    ];
    if proxied(join) {
        out.push(enabled("scarpenter-api-proxy.socket", PROXY_SOCKET));
        out.push(unit("scarpenter-api-proxy.service", PROXY_UNIT));
    }
    if let Some(seconds) = join.never_joined_after {
        out.push(unit("scarpenter-never-joined.service", NEVER_JOINED_UNIT));
        out.push(timer(NEVER_JOINED, NEVER_JOINED_TIMER, seconds));
    }
    if let Some(seconds) = join.lifetime {
        out.push(unit("scarpenter-lifetime.service", LIFETIME_UNIT));
        out.push(timer(LIFETIME, LIFETIME_TIMER, seconds));
    }
    out
}

fn proxied(join: &Join) -> bool {
    join.servers.len() > 1
}

fn node_env(join: &Join) -> String {
    let labels = join.kubelet_labels();
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("NODE_NAME={}\nNODE_LABELS={}\n", join.node_name, pairs.join(","))
}

/// JSON is YAML to the kubelet, and needs no quoting rules.
fn kubeconfig(join: &Join) -> Value {
    let server = if proxied(join) { PROXY_URL } else { join.servers[0].as_str() };
    let token = format!("{}.{}", join.token_id, join.token_secret.reveal());
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": server, "certificate-authority": CA_PATH}}],
        "users": [{"name": "bootstrap", "user": {"token": token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "cluster", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    })
}

fn kubelet_config(join: &Join) -> Value {
    let mut config: Value =
        serde_json::from_str(KUBELET_CONFIG).expect("ignition/files/kubelet.json is JSON");
    config["providerID"] = json!(join.provider_id);
    config["clusterDNS"] = json!(join.cluster_dns);
    config["clusterDomain"] = json!(join.cluster_domain);
    config["maxPods"] = json!(join.kubelet.max_pods);
    config["registerWithTaints"] = join.register_with_taints().iter().map(taint).collect();
    let mut put = |key: &str, value: Value| {
        if value.as_object().is_some_and(|fields| !fields.is_empty()) {
            config[key] = value;
        }
    };
    put("kubeReserved", json!(join.kubelet.kube_reserved.to_quantities()));
    put("systemReserved", json!(join.kubelet.system_reserved.to_quantities()));
    put("evictionHard", json!(join.kubelet.eviction_hard));
    config
}

fn taint(taint: &scarpenter_core::pod::Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": taint.effect.as_str()})
}

fn sysext_name(join: &Join) -> String {
    let arch = match join.labels.get(label::ARCH).map(String::as_str) {
        Some("arm64") => "arm64",
        _ => "x86-64",
    };
    format!("kubernetes-{}-{arch}.raw", join.kubernetes_version)
}

fn sysext_image(join: &Join) -> v3_3::File {
    let name = sysext_name(join);
    let mut out = v3_3::File::new(format!("{SYSEXT_DIR}{name}"));
    let hash = join.sysext_hashes.get(&name);
    let verification = hash.map(|hash| v3_3::Verification { hash: Some(hash.to_ascii_lowercase()) });
    let source = format!("{}/{name}", join.sysext_base_url.trim_end_matches('/'));
    out.contents = Some(v3_3::Resource { source: Some(source), verification, ..Default::default() });
    out.mode = Some(0o644);
    out
}

fn sysext_link(join: &Join) -> v3_3::Link {
    let mut out = v3_3::Link::new("/etc/extensions/kubernetes.raw".to_owned());
    out.target = Some(format!("{SYSEXT_DIR}{}", sysext_name(join)));
    out.overwrite = Some(true);
    out
}

fn file(path: &str, contents: &str, mode: i64) -> v3_3::File {
    let mut out = v3_3::File::new(path.to_owned());
    out.contents = Some(v3_3::Resource { source: Some(data_url::text(contents)), ..Default::default() });
    out.mode = Some(mode);
    out.overwrite = Some(true);
    out
}

fn unit(name: &str, contents: &str) -> v3_3::Unit {
    let mut out = v3_3::Unit::new(name.to_owned());
    out.contents = Some(contents.to_owned());
    out
}

fn enabled(name: &str, contents: &str) -> v3_3::Unit {
    v3_3::Unit { enabled: Some(true), ..unit(name, contents) }
}

fn masked(name: &str) -> v3_3::Unit {
    let mut out = v3_3::Unit::new(name.to_owned());
    out.mask = Some(true);
    out
}

/// A unit that the system has: enabled, with one drop-in.
fn with_dropin(name: &str, dropin: &str, contents: &str) -> v3_3::Unit {
    let mut out = v3_3::Unit::new(name.to_owned());
    let mut entry = v3_3::Dropin::new(dropin.to_owned());
    entry.contents = Some(contents.to_owned());
    out.enabled = Some(true);
    out.dropins = Some(vec![entry]);
    out
}

fn timer(name: &str, contents: &str, seconds: u64) -> v3_3::Unit {
    let deadline = format!("[Timer]\nOnBootSec={seconds}s\nAccuracySec=1s\n");
    let mut out = with_dropin(name, DEADLINE_DROPIN, &deadline);
    out.contents = Some(contents.to_owned());
    out
}
