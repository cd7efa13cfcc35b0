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
        for (key, uid, place) in arrived {
            if told.insert(uid.clone()) {
                let message = format!("runs on {place}");
                set_condition(&context, &key, &uid, Status::True, condition::READY, &message).await;
            }
        }
    }
}

/// Pods that are bound and were told last that they have no machine, each with where it is.
///
/// Also those that the scheduler bound elsewhere than planned, or that were refused and found room after all.
fn arrived(context: &Context) -> Vec<(PodKey, String, String)> {
    let view = context.view();
    let place = |name: &str| match view.node(name).and_then(|node| view.claim_of_node(node)) {
        Some(record) => format!("the machine of nodeclaim {}", record.claim.name),
        None => format!("node {name}"),
    };
    view.arrived()
        .filter_map(|record| {
            let node = place(record.node.as_deref()?);
            Some((record.pod.key.clone(), record.pod.uid.clone(), node))
        })
        .collect()
}
