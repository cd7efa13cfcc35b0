//! The mesh that a machine joins before it is a node.

use serde_json::{Value, json};

use super::sysext;
use crate::join::{self, Join, Mesh};
use crate::parts::Parts;

const UNIT: &str = include_str!("../../../../ignition/units/scarpenter-tailscaled.service");
const ADDRESS_UNIT: &str = include_str!("../../../../ignition/units/scarpenter-mesh-address.service");
const ADDRESS_SCRIPT: &str = include_str!("../../../../ignition/files/mesh-address");
const AFTER_MESH: &str = include_str!("../../../../ignition/units/after-mesh.conf");
const CONFIG: &str = include_str!("../../../../ignition/files/tailscale.json");

/// Adds the mesh, and makes `node_unit` wait for the machine's address in it.
pub(super) fn add(parts: &mut Parts, join: &Join, mesh: &Mesh, node_unit: &str) -> Result<(), join::Error> {
    sysext::add(parts, join, "tailscale", &mesh.tailscale_version)?;
    parts.file("/etc/tailscale/config.json", &config(join, mesh).to_string());
    parts.secret("/etc/tailscale/auth-key", mesh.auth_key.reveal());
    parts.file("/etc/modules-load.d/scarpenter-mesh.conf", "tun\n");
    parts.program("/opt/scarpenter/mesh-address", ADDRESS_SCRIPT);
    parts.enabled("scarpenter-tailscaled.service", UNIT);
    parts.unit("scarpenter-mesh-address.service", ADDRESS_UNIT);
    // The image starts its own unit, which knows nothing of our configuration.
    parts.masked("tailscaled.service");
    parts.dropin(node_unit, "mesh.conf", AFTER_MESH);
    Ok(())
}

fn config(join: &Join, mesh: &Mesh) -> Value {
    let mut config: Value = serde_json::from_str(CONFIG).expect("ignition/files/tailscale.json is JSON");
    config["ServerURL"] = json!(mesh.login_server);
    config["Hostname"] = json!(join.node_name);
    config["AcceptRoutes"] = json!(mesh.accept_routes);
    config
}
