//! From [`Join`] to the files and units of the machine.

use crate::document::Document;
use crate::extra;
use crate::join::{self, Join, Method};
use crate::parts::Parts;

mod base;
mod firewall;
mod k3s;
mod kubelet;
mod mesh;
mod servers;
mod sysext;

pub(crate) use base::{CA_PATH, DEADLINE_DROPIN, HOSTNAME_PATH, LIFETIME, NEVER_JOINED};
pub(crate) use k3s::{CONFIG_PATH as K3S_CONFIG_PATH, TOKEN_PATH as K3S_TOKEN_PATH};
pub(crate) use kubelet::{CONFIG_PATH as KUBELET_CONFIG_PATH, KUBECONFIG_PATH, NODE_ENV_PATH};
pub(crate) use servers::{LIST_PATH as SERVERS_PATH, PROXY_URL, SHARED_NAME};
pub(crate) use sysext::FOLDER as SYSEXT_FOLDER;

/// Why there is no document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input cannot be used.
    #[error("cannot render the Ignition document")]
    Join(#[from] join::Error),
    /// The class's own Ignition cannot be used.
    #[error("cannot merge the Ignition of the class")]
    Extra(#[from] extra::Error),
}

/// Renders the document of one claim. Equal input gives equal bytes.
///
/// # Errors
/// [`Error`] when a field would not survive the way into a unit, a URL or the kubelet, when a system extension would
/// be taken unverified, or when the class's own Ignition is not valid or in conflict.
pub fn render(join: &Join) -> Result<Document, Error> {
    join.check()?;
    let mut parts = Parts::default();
    base::add(&mut parts, join);
    servers::add(&mut parts, join)?;
    let unit = match &join.method {
        Method::Kubelet => kubelet::add(&mut parts, join)?,
        Method::K3sAgent { node_password } => k3s::add(&mut parts, join, node_password)?,
    };
    if let Some(mesh) = &join.mesh {
        mesh::add(&mut parts, join, mesh, unit)?;
    }
    if let Some(allowed) = allowed_ranges(join) {
        firewall::add(&mut parts, allowed, unit);
    }
    let config = parts.into_config();
    let config = match &join.extra {
        Some(extra) => extra::merge(config, extra)?,
        None => config,
    };
    Ok(Document::pack(&config))
}

/// With a mesh there is a firewall even when the class says nothing.
fn allowed_ranges(join: &Join) -> Option<&[String]> {
    match (&join.firewall, &join.mesh) {
        (Some(ranges), _) => Some(ranges),
        (None, Some(_)) => Some(&[]),
        (None, None) => None,
    }
}
