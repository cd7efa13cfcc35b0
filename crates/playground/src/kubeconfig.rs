//! A kubeconfig with everything inside it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::authority::Identity;

/// The text of a kubeconfig (JSON, which is YAML too); it holds a private key.
pub(crate) fn render(server: &str, authority: &str, identity: &Identity) -> String {
    let encode = |pem: &str| BASE64_STANDARD.encode(pem);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "playground", "cluster": {
            "server": server,
            "certificate-authority-data": encode(authority),
        }}],
        "users": [{"name": "user", "user": {
            "client-certificate-data": encode(&identity.certificate),
            "client-key-data": encode(&identity.key),
        }}],
        "contexts": [{"name": "playground", "context": {"cluster": "playground", "user": "user"}}],
        "current-context": "playground",
    })
    .to_string()
}
