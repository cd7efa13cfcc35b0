//! The heartbeat.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use scarpenter_core::name::sha256_hex;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::certificate::CALL_WITHIN;
use crate::registration::Identity;

const NAMESPACE: &str = "kube-node-lease";
const RENEW_EVERY: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// Failures in a row after which the next API server is tried.
const LOST_AFTER: u32 = 3;

/// Renews the node's Lease; returns when the API server did not answer several times in a row.
pub(crate) async fn renew_until_lost(client: &Client, identity: &Identity, node_uid: &str) {
    let api: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let mut failures = 0;
    // A thousand nodes started together would beat together.
    let mut pause = jitter(&identity.name);
    while failures < LOST_AFTER {
        let renewed = timeout(CALL_WITHIN, renew(&api, identity, node_uid)).await;
        // An answer, even a refusal, is an API server that is there.
        let answered = matches!(renewed, Ok(Ok(()) | Err(kube::Error::Api(_))));
        failures = if answered { 0 } else { failures + 1 };
        sleep(pause).await;
        pause = RENEW_EVERY;
    }
}

async fn renew(api: &Api<Lease>, identity: &Identity, node_uid: &str) -> Result<(), kube::Error> {
    let patch = json!({"spec": {"renewTime": MicroTime(Timestamp::now())}});
    match api.patch(&identity.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            api.create(&PostParams::default(), &lease(identity, node_uid)).await.map(|_| ())
        }
        outcome => outcome.map(|_| ()),
    }
}

fn lease(identity: &Identity, node_uid: &str) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(identity.name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: identity.name.clone(),
                uid: node_uid.to_owned(),
                ..Default::default()
            }]),
            ..Default::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(identity.name.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..Default::default()
        }),
    }
}

/// A pause within [`RENEW_EVERY`] that differs from name to name.
fn jitter(name: &str) -> Duration {
    let byte = u32::from_str_radix(&sha256_hex(name.as_bytes())[..4], 16).unwrap_or_default();
    RENEW_EVERY * byte / 0x1_0000
}
