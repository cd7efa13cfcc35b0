//! Writes a plan: claims, tolerations, and what pods are to be told.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use scarpenter_api::condition::{self, Status};
use scarpenter_api::nodeclaim::ClaimResources;
use scarpenter_api::requirement::RequirementSpec;
use scarpenter_api::{NodeClaim, NodeClaimSpec, NodePool, event, node, quantity, reason};
use scarpenter_core::label;
use scarpenter_core::name::claim_name;
use scarpenter_core::pod::{PodKey, Toleration};
use scarpenter_planner::{Nomination, Plan, PlannedClaim, Unplaced};
use serde_json::json;

use super::tell::News;
use crate::context::Context;
use crate::event::Severity;
use crate::{clock, lessons};

/// How many claims are written at a time.
const PARALLEL: usize = 16;
/// Rule of a refusal: several kinds of machines came, and none took the pod.
pub(super) const GIVEN_UP: &str = "given-up";

/// Writes a plan. One claim that fails does not stop the others; its pods are planned again.
///
/// Claims come first, then what pods need to be bound to them; pods are told afterwards, and not waited for.
/// A pod that gets nothing is also told which pools are `unready`.
pub(crate) async fn write(context: &Arc<Context>, plan: Plan, unready: &[String]) {
    let Plan { claims, nominated, mut unplaced, capped, deferred: _ } = plan;
    unplaced.iter_mut().for_each(|unplaced| add_unready(unplaced, unready));
    if let Some(capped) = &capped {
        tracing::warn!(capped, "a cap of the controller leaves pods over");
    }
    hold_classes(context, &claims).await;
    futures::stream::iter(claims).for_each_concurrent(PARALLEL, |planned| claim(context, planned)).await;
    futures::stream::iter(nominated)
        .for_each_concurrent(PARALLEL, |nomination| nominate(context, nomination))
        .await;
    context.metrics.unschedulable(unplaced.len());
    unplaced.into_iter().for_each(|unplaced| refuse(context, unplaced));
}

/// A pool that is not ready may be the one that the pod was meant for.
fn add_unready(unplaced: &mut Unplaced, unready: &[String]) {
    let refusal = &mut unplaced.refusal;
    if !unready.is_empty()
        && !["stock-out", "caps", "invalid", "undecided"].contains(&refusal.reason.as_str())
    {
        refusal.message = format!("{}; {}", unready.join("; "), refusal.message);
    }
}

/// Before their claims, so that a class that is deleted from here on waits for them.
async fn hold_classes(context: &Context, claims: &[PlannedClaim]) {
    let names: BTreeSet<String> = {
        let view = context.view();
        let pools = claims.iter().filter_map(|planned| view.pool(&planned.pool));
        pools.map(|pool| pool.spec.template.spec.node_class_ref.name.clone()).collect()
    };
    for name in names {
        if let Err(error) = crate::class::hold(context, &name).await {
            tracing::warn!(class = name, error = %chain(&error), "class not held yet");
        }
    }
}

async fn claim(context: &Context, planned: PlannedClaim) {
    let Some(pool) = context.view().pool(&planned.pool).cloned() else { return };
    let class = context.view().class(&pool.spec.template.spec.node_class_ref.name).cloned();
    let mut object = object(&pool, &planned);
    if let Some(class) = class {
        object.annotations_mut().insert(lessons::BOOTS.to_owned(), lessons::boots(&class.spec));
    }
    let api = Api::<NodeClaim>::all(context.client.clone());
    match api.create(&PostParams::default(), &object).await {
        Ok(created) => {
            context.wrote(&created);
            context.metrics.claim_created(&planned.pool);
            tracing::info!(claim = created.name_any(), pool = planned.pool, offering = %planned.launch.offering,
                price = %planned.launch.price_per_hour_micro_usd, pods = planned.pods.len(), "claim created");
            tell(context, &planned, &created.name_any()).await;
        }
        Err(error) => tracing::error!(pool = planned.pool, error = %chain(&error), "claim not created"),
    }
}

/// A claim is born with its finalizer, its offering and its labels, so that nothing has to be added before the launch.
fn object(pool: &NodePool, planned: &PlannedClaim) -> NodeClaim {
    let template = &pool.spec.template;
    let launch = serde_json::to_string(&planned.launch).expect("a launch is plain data");
    let pods: Vec<&str> = planned.pods.iter().map(|(_, uid)| uid.as_str()).collect();
    let mut annotations = template.metadata.annotations.clone();
    annotations.insert(label::LAUNCH.to_owned(), launch);
    annotations.insert(label::PODS.to_owned(), pods.join(","));
    annotations.extend(
        planned.min_values_relaxed.map(|relaxed| (label::MIN_VALUES_RELAXED.to_owned(), relaxed.to_string())),
    );
    let mut labels = planned.launch.labels.clone();
    labels.extend(planned.labels.clone());
    let mut claim = NodeClaim::new(&claim_name(&planned.pool, rand::random()), spec(pool, planned));
    claim.metadata = ObjectMeta {
        annotations: Some(annotations),
        labels: Some(labels),
        finalizers: Some(vec![label::FINALIZER.to_owned()]),
        owner_references: owner(pool).map(|owner| vec![owner]),
        ..claim.metadata
    };
    claim
}

fn spec(pool: &NodePool, planned: &PlannedClaim) -> NodeClaimSpec {
    NodeClaimSpec {
        requirements: planned.requirements.iter().map(RequirementSpec::from).collect(),
        resources: Some(ClaimResources { requests: quantity::write(&planned.requests) }),
        taints: planned.taints.iter().map(node::write_taint).collect(),
        startup_taints: planned.startup_taints.iter().map(node::write_taint).collect(),
        ..NodeClaimSpec::from(&pool.spec.template.spec)
    }
}

fn owner(pool: &NodePool) -> Option<OwnerReference> {
    Some(OwnerReference { block_owner_deletion: Some(true), controller: None, ..pool.owner_ref(&())? })
}

/// Gives the pods of a claim the tolerations that they need there, and has them told.
async fn tell(context: &Context, planned: &PlannedClaim, claim: &str) {
    let place = format!("{} at {}", planned.launch.offering, planned.launch.price_per_hour_micro_usd);
    let place = &place;
    let tellings = planned.pods.iter().map(|(key, uid)| async move {
        let tolerations = planned.tolerations.get(uid).map_or(&[][..], Vec::as_slice);
        if let Err(error) = tolerate(context, key, uid, tolerations).await {
            tracing::error!(pod = %key, claim, error = %chain(&error), "tolerations not added: the pod cannot be bound to its machine");
        }
        let message = format!("waiting for nodeclaim {claim}: {place}");
        let note = format!("Pod should schedule on: nodeclaim/{claim} ({place})");
        context.teller.say(News {
            condition: Some((reason::CLAIM_CREATED, message)),
            ..nominated(key, uid, note)
        });
    });
    futures::future::join_all(tellings).await;
}

async fn nominate(context: &Context, nomination: Nomination) {
    let Nomination { pod, uid, node, tolerations } = nomination;
    if let Err(error) = tolerate(context, &pod, &uid, &tolerations).await {
        tracing::error!(%pod, node, error = %chain(&error), "tolerations not added: the pod cannot be bound to its machine");
    }
    context.teller.say(nominated(&pod, &uid, format!("Pod should schedule on: node/{node}")));
}

fn nominated(pod: &PodKey, uid: &str, note: String) -> News {
    News {
        pod: pod.clone(),
        uid: uid.to_owned(),
        about: event::NOMINATED.to_owned(),
        condition: None,
        severity: Severity::Normal,
        event: (event::NOMINATED, note),
        good: true,
    }
}

fn refuse(context: &Context, unplaced: Unplaced) {
    let Unplaced { pod, uid, refusal } = unplaced;
    let word = match refusal.reason.as_str() {
        "stock-out" => reason::SOLD_OUT,
        "limits" | "caps" => reason::LIMIT_REACHED,
        "invalid" | "undecided" | GIVEN_UP => reason::NOT_PLACEABLE,
        _ => reason::NO_OFFERING,
    };
    // The planner's words end with the time of the next try where there is one.
    let again = if refusal.until.is_some() { "" } else { "; tried again when something changes" };
    let last = if word == reason::SOLD_OUT { context.stock().said(&uid) } else { None };
    let last = last.map(|words| format!("; {words}")).unwrap_or_default();
    let message = format!("{}{again}{last}", refusal.message.trim_end_matches('.'));
    context.teller.say(News {
        pod,
        uid,
        about: refusal.reason,
        condition: Some((word, message.clone())),
        severity: Severity::Warning,
        event: (event::FAILED_SCHEDULING, message),
        good: false,
    });
}

/// Adds tolerations that the pod does not have; the API server lets them be added to a pod, and only that.
async fn tolerate(
    context: &Context,
    key: &PodKey,
    uid: &str,
    wanted: &[Toleration],
) -> Result<(), kube::Error> {
    if wanted.is_empty() {
        return Ok(());
    }
    let api = Api::<Pod>::namespaced(context.client.clone(), &key.namespace);
    let Some(pod) = api.get_opt(&key.name).await?.filter(|pod| pod.uid().as_deref() == Some(uid)) else {
        return Ok(());
    };
    let mut tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
    for toleration in wanted {
        let toleration = write_toleration(toleration);
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    let patch = json!({"metadata": {"uid": uid, "resourceVersion": pod.resource_version()}, "spec": {"tolerations": tolerations}});
    api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

fn write_toleration(toleration: &Toleration) -> k8s_openapi::api::core::v1::Toleration {
    k8s_openapi::api::core::v1::Toleration {
        key: toleration.key.clone(),
        operator: Some(if toleration.value.is_some() { "Equal" } else { "Exists" }.to_owned()),
        value: toleration.value.clone(),
        effect: toleration.effect.map(|effect| effect.as_str().to_owned()),
        toleration_seconds: None,
    }
}

/// Writes the pod condition that says whether it has, or will get, a machine.
pub(crate) async fn set_condition(
    context: &Context,
    key: &PodKey,
    uid: &str,
    status: Status,
    reason: &str,
    message: &str,
) {
    let api = Api::<Pod>::namespaced(context.client.clone(), &key.namespace);
    let condition = json!({
        "type": condition::MACHINE_READY,
        "status": status.as_str(),
        "reason": reason,
        "message": message,
        "lastTransitionTime": clock::timestamp(clock::now()).strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    let patch = json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}});
    match api.patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(patch)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
        Err(error) => tracing::warn!(pod = %key, error = %chain(&error), "pod condition not written"),
    }
}

/// An error with its causes, for the one place that logs it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        out = format!("{out}: {inner}");
        cause = inner.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_without_value_is_written_as_exists() {
        let all = Toleration { key: None, value: None, effect: None };
        assert_eq!(write_toleration(&all).operator.as_deref(), Some("Exists"));
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let error = std::io::Error::other("cause");
        assert_eq!(chain(&error), "cause");
    }
}
