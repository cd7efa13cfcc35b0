//! Whether machines of a class could join its mesh: condition MeshReady.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use scarpenter_api::condition::{self, Status};
use scarpenter_api::nodeclass::Mesh as Spec;
use scarpenter_api::{ScarpenterNodeClass, reason};
use scarpenter_headscale::{Client, Kind, tag_problem};

use super::key::find_user;
use super::{Error, Server, lock, server};
use crate::context::Context;
use crate::provisioner::chain;

/// Classes are looked at again after this long, besides by events.
const AGAIN: Duration = Duration::from_secs(5);
/// An answer that the mesh can be joined holds for this long.
const GOOD_FOR: Duration = Duration::from_secs(30);
/// One that it cannot: whoever mends it is waiting.
const BAD_FOR: Duration = Duration::from_secs(5);

/// Status, reason and words of a condition.
pub(crate) type Verdict = (Status, &'static str, String);

/// A verdict, and what it was about.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    spec: Spec,
    pub(super) verdict: Verdict,
    /// `None` when it is doubted.
    at: Option<Instant>,
}

impl Checked {
    pub(super) fn is_of(&self, spec: &Spec) -> bool {
        self.spec == *spec
    }

    pub(super) fn doubt(&mut self) {
        self.at = None;
    }

    fn is_due(&self) -> bool {
        let good_for = if self.verdict.0 == Status::True { GOOD_FOR } else { BAD_FOR };
        self.at.is_none_or(|at| at.elapsed() >= good_for)
    }
}

/// Checks all classes with a mesh for ever, apart from what else is said of classes: a Headscale may hang.
pub(super) async fn run(context: Arc<Context>) {
    loop {
        let classes: Vec<Arc<ScarpenterNodeClass>> = context.view().classes().cloned().collect();
        let is_there = |name: &String| classes.iter().any(|class| class.name_any() == *name);
        lock(&context.mesh.checked).retain(|name, _| is_there(name));
        let due = classes.iter().filter_map(|class| {
            let spec = class.spec.mesh.as_ref()?;
            let known = lock(&context.mesh.checked).get(&class.name_any()).cloned();
            known
                .is_none_or(|known| !known.is_of(spec) || known.is_due())
                .then(|| (class.name_any(), spec.clone()))
        });
        let due: Vec<(String, Spec)> = due.collect();
        futures::future::join_all(due.into_iter().map(|(name, spec)| one(&context, name, spec))).await;
        let _ = tokio::time::timeout(AGAIN, context.mesh.check.notified()).await;
    }
}

async fn one(context: &Context, name: String, spec: Spec) {
    let verdict = verdict(check(context, &spec).await);
    let checked = Checked { spec, verdict: verdict.clone(), at: Some(Instant::now()) };
    let before = lock(&context.mesh.checked).insert(name.clone(), checked);
    if before.as_ref().map(|before| &before.verdict) != Some(&verdict) {
        let (status, reason, words) = verdict;
        tracing::info!(class = name, status = status.as_str(), reason, words, "mesh checked");
        context.wake.classes.notify_one();
        // What waits for it to be reachable, waits no longer.
        context.mesh.tidy.notify_one();
    }
}

async fn check(context: &Context, spec: &Spec) -> Result<(), Error> {
    let headscale = &spec.headscale;
    Client::check_address(&headscale.url)?;
    if let Some(problem) = headscale.tags.iter().find_map(|tag| tag_problem(tag)) {
        return Err(Error::Tag(problem));
    }
    let server = Server::of(headscale);
    let client = server::client(context, &server).await?;
    server::said(context, &server, client.health().await)?;
    find_user(context, &server, &headscale.user, &client).await?;
    // Without a policy everybody may do everything.
    let Some(policy) = server::said(context, &server, client.policy().await)? else { return Ok(()) };
    match headscale.tags.iter().find(|tag| !policy.knows(tag)) {
        Some(tag) => Err(Error::Tag(format!(
            "the policy of Headscale at {} does not know {tag:?}: add it to its tagOwners, or name another tag",
            headscale.url
        ))),
        None => Ok(()),
    }
}

fn verdict(outcome: Result<(), Error>) -> Verdict {
    let error = match outcome {
        Ok(()) => return (Status::True, condition::MESH_READY, String::new()),
        Err(error) => error,
    };
    let reason = match &error {
        Error::Kubernetes { .. } => reason::MESH_NOT_CHECKED,
        Error::NoSecret { .. } | Error::NoSecretKey { .. } => reason::SECRET_NOT_FOUND,
        Error::NoUser { .. } => reason::MESH_USER_NOT_FOUND,
        Error::Tag(_) => reason::MESH_TAG_REFUSED,
        Error::ApiKey { .. } => reason::UNAUTHENTICATED,
        Error::Headscale(error) => match error.kind() {
            Kind::Invalid => reason::INVALID,
            Kind::Unauthorized => reason::UNAUTHENTICATED,
            Kind::Unreachable => reason::MESH_UNREACHABLE,
            Kind::NotFound | Kind::Refused | Kind::Malformed => reason::MESH_MISBEHAVES,
        },
    };
    (Status::False, reason, chain(&error))
}
