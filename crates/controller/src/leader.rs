//! Leadership by a Lease: one controller acts, the others watch.
//!
//! A leader that cannot renew ends its process, so that nothing of it acts on; the claim's facts heal whatever it left.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;

use crate::context::Context;
use crate::fence::Fence;

/// A lease is taken over when it has not changed for this long by the local clock.
const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed or looked at.
const PERIOD: Duration = Duration::from_secs(2);
/// A leader that could not renew for this long has lost it.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// A candidate for leadership.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    leases: Api<Lease>,
    name: String,
    identity: String,
    fence: Fence,
}

impl Leader {
    pub(crate) fn new(context: &Context, name: &str, identity: &str) -> Self {
        let leases = Api::namespaced(context.client.clone(), &context.settings.namespace);
        let fence = context.fence.clone();
        Self { leases, name: name.to_owned(), identity: identity.to_owned(), fence }
    }

    /// Returns once the lease is held.
    pub(crate) async fn acquire(&self) {
        let mut seen: Option<(Option<String>, Instant)> = None;
        loop {
            let began = Instant::now();
            match self.try_take(&mut seen).await {
                Ok(true) => return self.fence.renewed(began, RENEW_DEADLINE),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, lease = self.name, "lease not read"),
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Renews until the lease is lost.
    pub(crate) async fn keep(&self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(PERIOD).await;
            let began = Instant::now();
            match tokio::time::timeout(RENEW_DEADLINE, self.renew()).await {
                Ok(Ok(true)) => {
                    renewed = began;
                    self.fence.renewed(began, RENEW_DEADLINE);
                }
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(%error, lease = self.name, "lease not renewed"),
                Err(_) => tracing::warn!(lease = self.name, "lease not renewed in time"),
            }
            if renewed.elapsed() > RENEW_DEADLINE {
                return;
            }
        }
    }

    /// Gives the lease up, so that a successor need not wait.
    pub(crate) async fn release(&self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.name).await else { return };
        if holder(&lease) != Some(&self.identity) {
            return;
        }
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
        }
        if let Err(error) = self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            tracing::debug!(%error, "lease not released");
        }
    }

    async fn try_take(&self, seen: &mut Option<(Option<String>, Instant)>) -> Result<bool, kube::Error> {
        let Some(current) = self.leases.get_opt(&self.name).await? else {
            return taken(self.leases.create(&PostParams::default(), &self.lease(None)).await);
        };
        let version = current.metadata.resource_version.clone();
        let unchanged_since = match seen {
            Some((known, at)) if *known == version => *at,
            _ => seen.insert((version, Instant::now())).1,
        };
        let free = holder(&current).is_none_or(|holder| holder == &self.identity)
            || unchanged_since.elapsed() > DURATION;
        if !free {
            return Ok(false);
        }
        taken(self.leases.replace(&self.name, &PostParams::default(), &self.lease(Some(&current))).await)
    }

    async fn renew(&self) -> Result<bool, kube::Error> {
        let current = self.leases.get(&self.name).await?;
        if holder(&current) != Some(&self.identity) {
            return Ok(false);
        }
        taken(self.leases.replace(&self.name, &PostParams::default(), &self.lease(Some(&current))).await)
    }

    fn lease(&self, current: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = current.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let mine = spec.holder_identity.as_ref() == Some(&self.identity);
        let transitions = spec.lease_transitions.unwrap_or(0) + i32::from(!mine);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: current.and_then(|lease| lease.metadata.resource_version.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time: if mine { spec.acquire_time } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_transitions: Some(transitions),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn holder(lease: &Lease) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

/// The loser of a race gets a conflict, which is an answer and no failure.
fn taken<T>(outcome: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
