//! Pods that got their machine are told so: the condition `MachineReady` turns True.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use scarpenter_api::condition::{self, Status};
use scarpenter_core::pod::PodKey;

use crate::context::Context;
use crate::provisioner::set_condition;

/// The loop looks this often.
const EVERY: Duration = Duration::from_secs(2);

/// Tells pods for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let mut told: HashSet<String> = HashSet::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let arrived = arrived(&context);
        told.retain(|uid| arrived.iter().any(|(_, own, _)| own == uid));
        for (key, uid, claim) in arrived {
            if told.insert(uid.clone()) {
                let message = format!("runs on the machine of nodeclaim {claim}");
                set_condition(&context, &key, &uid, Status::True, condition::READY, &message).await;
            }
        }
    }
}

/// Pods on nodes of ours, among those that a claim was made for.
fn arrived(context: &Context) -> Vec<(PodKey, String, String)> {
    let view = context.view();
    let mut out = Vec::new();
    for record in view.claims().filter(|record| record.claim.initialized && record.claim.deleted.is_none()) {
        for node in view.nodes_of(&record.claim.uid) {
            let here =
                view.pods_on(&node.name).filter(|pod| record.pods.contains(&pod.pod.uid) && !pod.terminating);
            out.extend(here.map(|pod| (pod.pod.key.clone(), pod.pod.uid.clone(), record.claim.name.clone())));
        }
    }
    out
}
