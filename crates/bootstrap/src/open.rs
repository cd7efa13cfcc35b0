//! Opens a document as Ignition would, and reads what kubelet and timers would read.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use flate2::read::GzDecoder;
use ignition_config::v3_3;
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::name::Secret;
use scarpenter_core::pod::Taint;
use serde::Deserialize;

use crate::data_url;
use crate::render::{
    CA_PATH, DEADLINE_DROPIN, HOSTNAME_PATH, K3S_CONFIG_PATH, LIFETIME, NEVER_JOINED, PROXY_URL,
    SERVERS_PATH, SHARED_NAME, SYSEXT_FOLDER,
};

mod k3s;
mod kubelet;

/// What a machine finds in its document, however it joins; the mesh and the firewall are left to real machines.
#[derive(Clone)]
pub struct Opened {
    /// Name of host and node.
    pub node_name: String,
    /// `spec.providerID` of the node.
    pub provider_id: String,
    /// API servers to try in turn, `https://host:port`.
    pub servers: Vec<String>,
    /// Name that the API server's certificate has to hold, when it is not the host of its URL.
    pub tls_server_name: Option<String>,
    /// Certificate authority of the API servers, PEM.
    pub ca_pem: String,
    /// Bootstrap token, `<id>.<secret>`.
    pub token: Secret,
    /// Labels that the kubelet registers with, beside those it knows itself.
    pub labels: BTreeMap<String, String>,
    /// Taints that the kubelet registers with.
    pub taints: Vec<Taint>,
    /// Limit of pods, reserved resources, eviction.
    pub kubelet: Kubelet,
    /// Version of the kubelet, such as `v1.37.2`.
    pub kubernetes_version: String,
    /// Seconds from boot after which a machine that never joined powers off.
    pub never_joined_after: Option<u64>,
    /// Seconds from boot after which the machine powers off.
    pub lifetime: Option<u64>,
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a machine could do nothing with its document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an Ignition document of a version we read.
    #[error("not an Ignition 3.3.0 document")]
    Config(#[source] serde_json::Error),
    /// Another version.
    #[error("the document has Ignition version {0:?}, not 3.3.0")]
    Version(String),
    /// The packed inner document does not unpack.
    #[error("the inner document cannot be unpacked: {0}")]
    Unpack(&'static str),
    /// The inner document is damaged.
    #[error("the inner document is not valid gzip")]
    Gzip(#[source] std::io::Error),
    /// A file that the machine needs is not in the document.
    #[error("the document has no file {0}")]
    Missing(&'static str),
    /// A file that the machine needs cannot be read. Its contents are not shown.
    #[error("file {0} in the document is malformed")]
    Malformed(&'static str),
}

impl Opened {
    /// Contents of the file at `path`, if the document itself holds them.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Id of the bootstrap token: its public half.
    #[must_use]
    pub fn token_id(&self) -> &str {
        self.token.reveal().split('.').next().unwrap_or_default()
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("node_name", &self.node_name)
            .field("provider_id", &self.provider_id)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// Opens user data: unwraps the outer document, unpacks the inner one, reads its files.
///
/// # Errors
/// [`Error`] says which part is missing or damaged; it never shows the token.
pub fn open(user_data: &[u8]) -> Result<Opened, Error> {
    let config = unwrap_outer(parse(user_data)?)?;
    let files = embedded_files(&config)?;
    let text = |path: &'static str| {
        let bytes = files.get(path).ok_or(Error::Missing(path))?;
        std::str::from_utf8(bytes).map_err(|_| Error::Malformed(path))
    };
    let (node, extension) = match files.contains_key(K3S_CONFIG_PATH) {
        true => (k3s::read(&text)?, "k3s"),
        false => (kubelet::read(&text)?, "kubernetes"),
    };
    let (servers, tls_server_name) = match node.server == PROXY_URL {
        true => {
            let servers = text(SERVERS_PATH)?.lines().map(|server| format!("https://{server}")).collect();
            (servers, Some(SHARED_NAME.to_owned()))
        }
        false => (vec![node.server], None),
    };
    Ok(Opened {
        node_name: text(HOSTNAME_PATH)?.trim().to_owned(),
        provider_id: node.provider_id,
        servers,
        tls_server_name,
        ca_pem: text(CA_PATH)?.to_owned(),
        token: node.token,
        labels: node.labels,
        taints: node.taints,
        kubelet: node.kubelet,
        kubernetes_version: version(&config, extension).ok_or(Error::Missing(SYSEXT_FOLDER))?,
        never_joined_after: deadline(&config, NEVER_JOINED),
        lifetime: deadline(&config, LIFETIME),
        files,
    })
}

/// What the files of one way of joining say.
struct Node {
    server: String,
    token: Secret,
    provider_id: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    kubelet: Kubelet,
}

fn parse(bytes: &[u8]) -> Result<v3_3::Config, Error> {
    let config: v3_3::Config = serde_json::from_slice(bytes).map_err(Error::Config)?;
    match config.ignition.version.as_deref() {
        Some("3.3.0") => Ok(config),
        other => Err(Error::Version(other.unwrap_or_default().to_owned())),
    }
}

fn unwrap_outer(outer: v3_3::Config) -> Result<v3_3::Config, Error> {
    let Some(replace) = outer.ignition.config.as_ref().and_then(|config| config.replace.as_ref()) else {
        return Ok(outer);
    };
    let source = replace.source.as_deref().ok_or(Error::Unpack("it has no source"))?;
    let packed = data_url::decode(source).ok_or(Error::Unpack("its source is no data URL"))?;
    let inner = match replace.compression.as_deref() {
        None | Some("") => packed,
        Some("gzip") => gunzip(&packed)?,
        Some(_) => return Err(Error::Unpack("its compression is unknown")),
    };
    parse(&inner)
}

fn gunzip(packed: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    // The trailer's checksum is verified on the way.
    GzDecoder::new(packed).read_to_end(&mut out).map_err(Error::Gzip)?;
    Ok(out)
}

fn embedded_files(config: &v3_3::Config) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let files = config.storage.as_ref().and_then(|storage| storage.files.as_deref()).unwrap_or_default();
    let mut out = BTreeMap::new();
    for file in files {
        let source = file.contents.as_ref().and_then(|contents| contents.source.as_deref());
        if let Some(source) = source.filter(|source| source.starts_with("data:")) {
            let bytes = data_url::decode(source).ok_or(Error::Unpack("a file's data URL is malformed"))?;
            out.insert(file.path.clone(), bytes);
        }
    }
    Ok(out)
}

fn json<'a, T: Deserialize<'a>>(path: &'static str, text: &'a str) -> Result<T, Error> {
    // The parser's message quotes the text, and the text may be the token.
    serde_json::from_str(text).map_err(|_| Error::Malformed(path))
}

/// `key=value` pairs.
fn pairs<'a>(items: impl Iterator<Item = &'a str>) -> Option<BTreeMap<String, String>> {
    let pair = |pair: &str| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    items.map(pair).collect()
}

fn version(config: &v3_3::Config, extension: &str) -> Option<String> {
    let files = config.storage.as_ref()?.files.as_deref()?;
    let image = files
        .iter()
        .find_map(|file| file.path.strip_prefix(SYSEXT_FOLDER)?.strip_prefix(extension)?.strip_prefix('/'))?;
    let version = image.strip_prefix(extension)?.strip_prefix('-')?;
    ["-x86-64.raw", "-arm64.raw"].iter().find_map(|end| version.strip_suffix(end)).map(str::to_owned)
}

fn deadline(config: &v3_3::Config, timer: &str) -> Option<u64> {
    let units = config.systemd.as_ref()?.units.as_deref()?;
    let dropins = units.iter().find(|unit| unit.name == timer)?.dropins.as_deref()?;
    let contents = dropins.iter().find(|dropin| dropin.name == DEADLINE_DROPIN)?.contents.as_deref()?;
    let value = contents.lines().find_map(|line| line.strip_prefix("OnBootSec="))?;
    value.trim_end_matches('s').parse().ok()
}
