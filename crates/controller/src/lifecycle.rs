//! The life of each claim: observe, ask core what is next, act, record.
//!
//! **Architecture invariant:** nothing here compares prices, fit or age: [`next_step`] does, on facts and observation.

mod abandon;
mod error;
mod launch;
mod leave;
mod observe;
mod patch;
mod register;
mod status;

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, WatchStreamExt, reflector};
use scarpenter_api::{NodeClaim, event};
use scarpenter_core::lifecycle::{Limits, Step, Time, WaitReason, next_step};
use scarpenter_index::ClaimRecord;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::wrappers::UnboundedReceiverStream;

pub(crate) use abandon::delete as delete_claim;
pub(crate) use error::Error;
pub(crate) use leave::{remove_node, taint};
pub(crate) use observe::pods_on;
pub(crate) use patch::{annotate, merge};
pub(crate) use status::write as write_status;

use crate::clock;
use crate::context::Context;
use crate::event::Severity;
use crate::provisioner::chain;
use crate::watch;

/// Claims that are looked at in parallel: all of them, so that those of a vendor that hangs keep nobody else waiting.
const CONCURRENCY: u16 = 0;
/// Steps of one claim in one look; more would only mean that something is wrong.
const STEPS: usize = 8;
/// How long a machine may stay hidden of a vendor that cannot be asked.
const SETTLE_OF_NOBODY: Duration = Duration::from_secs(300);
/// A look that failed is repeated after this long.
const RETRY: Duration = Duration::from_secs(1);
/// A claim whose machine is going is looked at this often, besides by events.
const POLL: Duration = Duration::from_secs(2);

/// What follows an act.
pub(crate) enum Next {
    /// Something was recorded: look again at once.
    Again,
    /// Wait for an event, at most this long.
    After(Duration),
}

/// Runs every claim's life until `shutdown`; a running look is waited for.
pub(crate) async fn run(
    context: Arc<Context>,
    woken: UnboundedReceiver<String>,
    synced: watch::Synced,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let (reader, writer) = reflector::store();
    let claims = watch::claims(Arc::clone(&context), synced).reflect(writer).applied_objects();
    let woken = UnboundedReceiverStream::new(woken).map(|name| ObjectRef::<NodeClaim>::new(&name));
    drain(
        Controller::for_stream(claims, reader)
            .with_config(Config::default().concurrency(CONCURRENCY))
            .reconcile_on(woken)
            .graceful_shutdown_on(shutdown)
            .run(reconcile, |_, error, _| retry(error), context),
    )
    .await;
}

async fn drain<T, E>(stream: impl Stream<Item = Result<T, E>>) {
    stream.for_each(|_| std::future::ready(())).await;
}

fn retry(error: &Error) -> Action {
    Action::requeue(error.retry_after().unwrap_or(RETRY))
}

#[tracing::instrument(name = "claim", skip_all, fields(claim = object.metadata.name.as_deref(), uid = object.metadata.uid.as_deref()))]
async fn reconcile(object: Arc<NodeClaim>, context: Arc<Context>) -> Result<Action, Error> {
    if !object.is_ours() || context.is_released(&object) {
        return Ok(Action::await_change());
    }
    let unreadable = Arc::clone(&object);
    let outcome = look(object, &context).await;
    if let Err(error) = &outcome {
        context.metrics.failed(error.category());
        if let Error::Unreadable(_) = error {
            context
                .events
                .publish(
                    &context.client,
                    &*unreadable,
                    Severity::Warning,
                    event::ABANDONED,
                    &error.to_string(),
                )
                .await;
        }
        if error.is_race() {
            tracing::debug!(error = %chain(error), "lost a race; looking again");
        } else {
            tracing::error!(category = error.category(), error = %chain(error), "look failed");
        }
    }
    outcome
}

async fn look(mut object: Arc<NodeClaim>, context: &Context) -> Result<Action, Error> {
    for _ in 0..STEPS {
        let record = ClaimRecord::parse(context.newest(object));
        let now = clock::now();
        let seen = observe::observe(context, &record, now).await?;
        let step = next_step(&record.claim, &seen, &limits(context, &record), now);
        let next = match step {
            Step::Wait { until, reason } => {
                status::waiting(context, &record, &seen, &reason).await?;
                return Ok(pause(until, &reason));
            }
            step => act(context, &record, step).await?,
        };
        if let Next::After(duration) = next {
            return Ok(Action::requeue(duration));
        }
        object = record.object;
    }
    Ok(Action::requeue(RETRY))
}

async fn act(context: &Context, record: &ClaimRecord, step: Step) -> Result<Next, Error> {
    context.metrics.step(&step);
    match step {
        Step::Hold => patch::hold(context, record).await,
        Step::Launch => launch::launch(context, record).await,
        Step::Create => launch::create(context, record).await,
        Step::Register => register::register(context, record).await,
        Step::Initialize => register::initialize(context, record).await,
        Step::Abandon(reason) => abandon::abandon(context, record, &reason).await,
        Step::Drain => leave::drain(context, record).await,
        Step::Destroy => leave::destroy(context, record).await,
        Step::Release => leave::release(context, record).await,
        Step::Wait { .. } => Ok(Next::Again),
    }
}

fn limits(context: &Context, record: &ClaimRecord) -> Limits {
    let class = context.view().class(&record.object.spec.node_class_ref.name).cloned();
    let vendor = record.claim.launch.as_ref().map(|launch| &launch.offering.vendor);
    let registration = match (&class, vendor) {
        (Some(class), Some(vendor)) => class.registration_deadline(vendor),
        _ => Duration::from_secs(900),
    };
    Limits {
        launch: class.as_ref().map_or(Duration::from_secs(300), |class| class.launch_deadline()),
        registration,
        settle: match vendor {
            Some(vendor) => context.vendors.get(vendor).map(|slot| slot.settle()),
            // Whose machine it was cannot be read any more: it may be the slowest one's.
            None => context.vendors.iter().map(|slot| slot.settle()).max(),
        }
        .unwrap_or(SETTLE_OF_NOBODY),
        drain: context.settings.drain_delay,
    }
}

fn pause(until: Option<Time>, reason: &WaitReason) -> Action {
    let polled = matches!(
        reason,
        WaitReason::MachineTerminating
            | WaitReason::ProviderUnreachable(_)
            | WaitReason::Draining
            | WaitReason::Settling
    );
    let until = until.map(|until| clock::now().until(until) + Duration::from_millis(1));
    match (until, polled) {
        (Some(wait), true) => Action::requeue(wait.min(POLL)),
        (None, true) => Action::requeue(POLL),
        (Some(wait), false) => Action::requeue(wait),
        (None, false) => Action::await_change(),
    }
}
