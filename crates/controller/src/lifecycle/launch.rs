//! Launch and Create: commit, call once, record.

use scarpenter_api::{ScarpenterNodeClass, event};
use scarpenter_core::label;
use scarpenter_core::lifecycle::{Time, may_send};
use scarpenter_core::offering::{Launch, Place};
use scarpenter_index::ClaimRecord;
use scarpenter_provider::{
    CreateMachine, Created, FindMachine, Image, Machine, Refusal, RefusalReason, Scope,
};
use serde_json::json;

use super::{Error, Next, patch};
use crate::context::Context;
use crate::event::Severity;
use crate::vendors::Slot;
use crate::{clock, join, mesh, user_claim};

/// First create: join material and `attempt` at the same time, then the call, without looking first.
pub(crate) async fn launch(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    check(record)?;
    let Some(launch) = record.claim.launch.clone() else {
        return user_claim::plan(context, record).await;
    };
    let (slot, class) = parties(context, record, &launch)?;
    let (marked, key) = mesh::prepare(context, record, &launch, &class).await?;
    let record = marked.as_ref().unwrap_or(record);
    let (material, attempted, noted) = tokio::join!(
        join::ensure(context, record, &launch, &class, key),
        attempt(context, record),
        mesh::note(context, record)
    );
    let record = &attempted?;
    let noted = noted.map_err(|error| Error::Mesh(Box::new(error)));
    let material =
        match material.map_err(|error| Error::Join(Box::new(error))).and_then(|own| noted.map(|()| own)) {
            Ok(material) => material,
            Err(error) => {
                // Nothing was sent, so nobody has to wait until it has settled.
                let undone = json!({label::ATTEMPT: null});
                patch::annotate(context, record, "take back the attempt", undone).await?;
                return Err(error);
            }
        };
    let settled = mesh::settle(context, record, &material).await?;
    let record = settled.as_ref().unwrap_or(record);
    if let Some(capabilities) = slot.capabilities()
        && !capabilities.user_data_limit.takes(material.user_data.len())
    {
        let limit = capabilities.user_data_limit;
        let words = format!(
            "the Ignition document is {} bytes and {} takes {}: shorten the CA bundle or the labels",
            limit.counted(material.user_data.len()),
            launch.offering.vendor,
            limit.bytes
        );
        return refused(
            context,
            record,
            &launch,
            &Refusal {
                reason: RefusalReason::Invalid,
                scope: Scope::Offering,
                retry_after: None,
                message: words,
            },
        )
        .await;
    }
    send(context, record, &launch, slot, &class, material.user_data).await
}

/// A later create: the latest has settled without a recorded answer, so look first.
pub(crate) async fn create(context: &Context, record: &ClaimRecord) -> Result<Next, Error> {
    check(record)?;
    let Some(launch) = record.claim.launch.clone() else {
        return Err(Error::Unreadable("annotation launch is gone".to_owned()));
    };
    let (slot, class) = parties(context, record, &launch)?;
    let record = attempt(context, record).await?;
    let find = FindMachine {
        cluster: context.cluster.clone(),
        claim: record.claim.uid.clone(),
        machine: None,
        place: Some(place(&launch)),
    };
    if let Some(machine) = slot.client.get_machine(find).await.map_err(Error::provider("find the machine"))? {
        tracing::info!(machine = %machine.id, "machine of an earlier create found");
        return accepted(context, &record, &launch, &machine).await;
    }
    let material = join::read(context, &record).await.map_err(|error| Error::Join(Box::new(error)))?;
    let record = mesh::settle(context, &record, &material).await?.unwrap_or(record);
    send(context, &record, &launch, slot, &class, material.user_data).await
}

fn check(record: &ClaimRecord) -> Result<(), Error> {
    if record.unreadable.is_empty() { Ok(()) } else { Err(Error::Unreadable(record.unreadable.join("; "))) }
}

fn parties<'a>(
    context: &'a Context,
    record: &ClaimRecord,
    launch: &Launch,
) -> Result<(&'a Slot, std::sync::Arc<ScarpenterNodeClass>), Error> {
    let slot = context.vendors.get(&launch.offering.vendor).ok_or(Error::Missing("the vendor's plugin"))?;
    let class = context
        .view()
        .class(&record.object.spec.node_class_ref.name)
        .cloned()
        .ok_or(Error::Missing("the node class"))?;
    Ok((slot, class))
}

/// Writes the time of this create before it is sent. Whoever loses the race for it sends nothing.
async fn attempt(context: &Context, record: &ClaimRecord) -> Result<ClaimRecord, Error> {
    let now = clock::now();
    let later = record.claim.attempt.map_or(now, |latest| now.max(Time::from_millis(latest.millis() + 1)));
    let annotations = json!({label::ATTEMPT: clock::rfc3339(later)});
    patch::annotate(context, record, "write the attempt", annotations).await.map(ClaimRecord::parse)
}

async fn send(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    slot: &Slot,
    class: &ScarpenterNodeClass,
    user_data: Vec<u8>,
) -> Result<Next, Error> {
    let _in_flight = context.inflight.begin();
    // A process that stood still since it wrote the attempt must begin anew: another may have taken over.
    if !record.claim.attempt.is_some_and(|attempt| may_send(attempt, clock::now())) {
        return Err(Error::Stale("the attempt"));
    }
    let create = CreateMachine {
        cluster: context.cluster.clone(),
        claim: record.claim.uid.clone(),
        pool: record.pool.clone().unwrap_or_default(),
        name: record.claim.name.clone(),
        instance_type: launch.offering.instance_type.clone(),
        place: place(launch),
        capacity_type: launch.offering.capacity_type,
        arch: launch.arch,
        image: image(class, launch),
        settings: settings(class, launch),
        boot_disk_gib: u32::try_from(class.spec.boot_disk.size_gib).ok(),
        user_data,
        expected_capacity: launch.capacity.clone(),
    };
    let began = std::time::Instant::now();
    let outcome = slot.client.create_machine(create).await;
    context.metrics.create(&launch.offering.vendor, began.elapsed(), &outcome);
    match outcome.map_err(Error::provider("create the machine"))? {
        Created::Machine(machine) => accepted(context, record, launch, &machine).await,
        Created::Refused(refusal) => refused(context, record, launch, &refusal).await,
    }
}

async fn accepted(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    machine: &Machine,
) -> Result<Next, Error> {
    tracing::info!(machine = %machine.id, offering = %launch.offering, "machine accepted");
    patch::annotate(
        context,
        record,
        "record the machine id",
        json!({label::MACHINE_ID: machine.id.as_str()}),
    )
    .await?;
    Ok(Next::Again)
}

/// A definite refusal proves that nothing was made: the reason is written and `attempt` cleared in one patch.
async fn refused(
    context: &Context,
    record: &ClaimRecord,
    launch: &Launch,
    refusal: &Refusal,
) -> Result<Next, Error> {
    let words = format!("{} refused {}: {}", launch.offering.vendor, launch.offering, refusal.message);
    remember(context, launch, refusal);
    context.stock().say(&record.pods, &words);
    tracing::warn!(
        reason = refusal.reason.as_str(),
        scope = refusal.scope.as_str(),
        words,
        "machine refused"
    );
    let annotations = if refusal.proves_nothing_made() {
        json!({label::REFUSED: words, label::ATTEMPT: null})
    } else {
        json!({label::REFUSED: words})
    };
    patch::annotate(context, record, "write the refusal", annotations).await?;
    context
        .events
        .publish(
            &context.client,
            &*record.object,
            Severity::Warning,
            event::INSUFFICIENT_CAPACITY_ERROR,
            &words,
        )
        .await;
    Ok(Next::Again)
}

fn remember(context: &Context, launch: &Launch, refusal: &Refusal) {
    let (key, now, words) = (&launch.offering, clock::now(), refusal.message.as_str());
    let mut stock = context.stock();
    let until = match (refusal.reason, refusal.scope) {
        (RefusalReason::Conflict, _) => return,
        (RefusalReason::Auth, Scope::Account) => {
            context.wake.classes.notify_one();
            stock.deny_vendor(&key.vendor, now, words)
        }
        (RefusalReason::Quota, Scope::Account) => stock.refuse_vendor(&key.vendor, now, words),
        (RefusalReason::Auth | RefusalReason::Quota, _) => {
            stock.refuse_region(&key.vendor, &key.region, now, words)
        }
        (RefusalReason::SoldOut, Scope::Account) => stock.refuse_vendor(&key.vendor, now, words),
        (RefusalReason::SoldOut, Scope::Region) => stock.refuse_region(&key.vendor, &key.region, now, words),
        _ => stock.refuse_offering(key, now, words),
    };
    tracing::info!(offering = %key, until = clock::rfc3339(until), "not tried again before");
}

/// Where the machine is to be.
pub(crate) fn place(launch: &Launch) -> Place {
    Place {
        region: launch.offering.region.clone(),
        zone: launch.offering.zone.clone(),
        zone_id: launch.zone_id.clone(),
    }
}

/// The most exact of the class's image ids for this place, else Flatcar of its channel.
fn image(class: &ScarpenterNodeClass, launch: &Launch) -> Image {
    let (vendor, region, arch) =
        (launch.offering.vendor.as_str(), &launch.offering.region, launch.arch.as_str());
    let keys = [
        format!("{vendor}/{region}/{arch}"),
        format!("{vendor}/{region}"),
        format!("{vendor}/{arch}"),
        vendor.to_owned(),
    ];
    let id = keys.iter().find_map(|key| class.spec.image.ids.get(key));
    id.map_or_else(
        || Image::Flatcar(class.spec.image.flatcar.channel.as_str().to_owned()),
        |id| Image::Id(id.clone()),
    )
}

fn settings(class: &ScarpenterNodeClass, launch: &Launch) -> scarpenter_provider::request::Settings {
    let vendor = class.spec.vendors.get(launch.offering.vendor.as_str());
    vendor.map(|vendor| vendor.settings.clone().into_iter().collect()).unwrap_or_default()
}
