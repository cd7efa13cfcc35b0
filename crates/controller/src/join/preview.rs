//! What the document of a claim in a file would be made of, without a cluster.

use std::sync::Arc;

use scarpenter_api::nodeclass::JoinMethod;
use scarpenter_api::{NodeClaim, ScarpenterNodeClass};
use scarpenter_bootstrap::{Join, Mesh};
use scarpenter_core::name::{Secret as Hidden, base36, bootstrap_token_id, sha256_hex};
use scarpenter_core::offering::Launch;
use scarpenter_index::ClaimRecord;

use super::Error;
use super::input::{self, Facts, Given};
use crate::context::Server;

/// As long as the keys of Headscale: prefix, id and secret.
const MESH_KEY_LENGTH: usize = 88;
const TOKEN_LENGTH: usize = 16;
const PASSWORD_LENGTH: usize = 32;

/// What a controller would have found in its cluster.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// URL of the API server that the controller itself uses.
    pub server: String,
    /// The API server's version, such as `v1.37.2`.
    pub version: String,
    /// The CA that the class names, PEM.
    pub ca_pem: String,
    /// The Ignition that the class names.
    pub ignition: Option<String>,
}

/// Why there is nothing to be seen.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PreviewError(Error);

/// What a controller would render for `claim` once it is bound to `launch`. Token, mesh key and node password are made
/// up, as long as real ones are; equal input gives equal ones.
///
/// # Errors
/// When the class leaves open which version the machine would run, and the server's is none that it could.
pub fn preview(
    claim: NodeClaim,
    launch: &Launch,
    class: &ScarpenterNodeClass,
    surroundings: Surroundings,
) -> Result<Join, PreviewError> {
    let record = ClaimRecord::parse(Arc::new(claim));
    let uid = &record.claim.uid;
    let secret = |what: &str, length| Hidden::new(word(&format!("{uid} {what}"), length));
    let mesh = class.spec.mesh.as_ref().map(|mesh| Mesh {
        login_server: mesh.headscale.url.clone(),
        auth_key: secret("mesh", MESH_KEY_LENGTH),
        tailscale_version: mesh.tailscale.version.clone(),
        accept_routes: mesh.tailscale.accept_routes,
    });
    let is_agent = class.spec.join.method == JoinMethod::K3sAgent;
    let given = Given {
        ca_pem: surroundings.ca_pem,
        extra: surroundings.ignition,
        token: (bootstrap_token_id(uid, 0), secret("token", TOKEN_LENGTH)),
        node_password: is_agent.then(|| secret("password", PASSWORD_LENGTH)),
        mesh,
    };
    let server = Server { url: surroundings.server, version: surroundings.version };
    input::join(&server, class, Facts::of(&record, launch), given).map_err(PreviewError)
}

/// As hard to pack as a random one.
fn word(seed: &str, length: usize) -> String {
    let block = |number: usize| {
        let digits = sha256_hex(format!("{seed} {number}").as_bytes());
        base36(u64::from_str_radix(&digits[..16], 16).expect("SHA-256 is in hex digits"), 8)
    };
    let blocks: String = (0..length.div_ceil(8)).map(block).collect();
    blocks[..length].to_owned()
}
