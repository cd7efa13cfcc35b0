//! Patches of a claim, each with the resource version that it was decided on: the loser of a race gets a conflict.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use scarpenter_api::NodeClaim;
use scarpenter_core::label;
use scarpenter_index::ClaimRecord;
use serde_json::{Value, json};

use super::{Error, Next};
use crate::context::Context;

/// Merges `patch` into the claim if it is still as it was read, and remembers the result.
pub(crate) async fn merge(
    context: &Context,
    record: &ClaimRecord,
    doing: &'static str,
    mut patch: Value,
) -> Result<Arc<NodeClaim>, Error> {
    patch["metadata"]["resourceVersion"] = json!(record.object.resource_version());
    patch["metadata"]["uid"] = json!(record.claim.uid.as_str());
    let api = Api::<NodeClaim>::all(context.client.clone());
    let written = api
        .patch(&record.claim.name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::kubernetes(doing))?;
    context.wrote(&written);
    Ok(Arc::new(written))
}

/// Sets and (by `null`) removes annotations.
pub(crate) async fn annotate(
    context: &Context,
    record: &ClaimRecord,
    doing: &'static str,
    annotations: Value,
) -> Result<Arc<NodeClaim>, Error> {
    merge(context, record, doing, json!({"metadata": {"annotations": annotations}})).await
}

/// Adds the finalizer.
pub(crate) async fn hold(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    let mut finalizers = record.object.finalizers().to_vec();
    finalizers.push(label::FINALIZER.to_owned());
    merge(context, record, "add the finalizer", json!({"metadata": {"finalizers": finalizers}})).await?;
    Ok(Next::Again)
}

/// Removes the finalizer; a claim that is gone already is fine.
pub(crate) async fn let_go(context: &Context, record: &ClaimRecord) -> Result<(), Error> {
    let mut finalizers = record.object.finalizers().to_vec();
    finalizers.retain(|finalizer| finalizer != label::FINALIZER);
    let patch = json!({"metadata": {
        "finalizers": finalizers, "resourceVersion": record.object.resource_version(), "uid": record.claim.uid.as_str(),
    }});
    let api = Api::<NodeClaim>::all(context.client.clone());
    match api.patch(&record.claim.name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(Error::kubernetes("remove the finalizer")(error)),
    }
}
