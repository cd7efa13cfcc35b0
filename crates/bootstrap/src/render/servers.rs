//! The API servers: their list, and with several a local port that leads to the first that answers.

use crate::join::{self, Join, authority};
use crate::parts::Parts;

const PROXY_SOCKET: &str = include_str!("../../../../ignition/units/scarpenter-api-proxy.socket");
const PROXY_UNIT: &str = include_str!("../../../../ignition/units/scarpenter-api-proxy.service");
const PROXY_SCRIPT: &str = include_str!("../../../../ignition/files/api-proxy");

pub(crate) const LIST_PATH: &str = "/etc/scarpenter/api-servers";
/// The name of the API server that every server's certificate holds, whatever its address.
pub(crate) const SHARED_NAME: &str = "kubernetes.default";
/// Where the machine finds its API server when there are several.
pub(crate) const PROXY_URL: &str = "https://kubernetes.default:6444";

pub(super) fn add(parts: &mut Parts, join: &Join) -> Result<(), join::Error> {
    if is_proxied(join) || join.api_unreachable_after.is_some() {
        let servers: Vec<String> = join.servers.iter().map(|s| authority(s)).collect::<Result<_, _>>()?;
        parts.file(LIST_PATH, &format!("{}\n", servers.join("\n")));
    }
    if is_proxied(join) {
        parts.program("/opt/scarpenter/api-proxy", PROXY_SCRIPT);
        parts.file("/etc/hosts", &format!("127.0.0.1 localhost {SHARED_NAME}\n::1 localhost\n"));
        parts.enabled("scarpenter-api-proxy.socket", PROXY_SOCKET);
        parts.unit("scarpenter-api-proxy.service", PROXY_UNIT);
    }
    Ok(())
}

pub(super) fn is_proxied(join: &Join) -> bool {
    join.servers.len() > 1
}

/// The URL that kubelet or k3s is told.
pub(super) fn url(join: &Join) -> &str {
    if is_proxied(join) { PROXY_URL } else { &join.servers[0] }
}
