//! The sweep: lists every vendor's machines, then the claims uncached, and deletes what no claim owns.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use scarpenter_api::{NodeClaim, event};
use scarpenter_core::lifecycle::Time;
use scarpenter_core::offering::Place;
use scarpenter_core::sweep::{Doomed, Fault, Kept, Machine, Outcome, Owner, Settings, sweep};
use scarpenter_index::ClaimRecord;
use scarpenter_provider::{DeleteMachine, MachineList};

use crate::clock;
use crate::context::Context;
use crate::event::Severity;
use crate::join;
use crate::provisioner::chain;
use crate::vendors::Slot;

/// What one pass over one vendor did.
#[derive(Debug)]
pub struct Swept {
    /// Whose machines.
    pub vendor: String,
    /// Machines that it lists, of this cluster.
    pub machines: usize,
    /// What was (or would be) deleted: machine id, claim UID, why, and how that went.
    pub deleted: Vec<(String, String, &'static str, Result<(), String>)>,
    /// What was kept though no claim owns it plainly, and why.
    pub kept: Vec<(String, &'static str)>,
    /// Why nothing was deleted.
    pub braked: Option<String>,
    /// Why the vendor could not be asked.
    pub error: Option<String>,
}

/// Sweeps for ever.
pub(crate) async fn run(context: Arc<Context>) {
    loop {
        tokio::time::sleep(context.settings.sweep_every).await;
        if let Err(error) = join::tidy(&context).await {
            tracing::warn!(error = %chain(&error), "join material not tidied");
        }
        for swept in pass(&context, false).await {
            if let Some(braked) = &swept.braked {
                tracing::error!(vendor = swept.vendor, braked, "sweep braked");
            }
            for (machine, claim, why, outcome) in &swept.deleted {
                tracing::warn!(vendor = swept.vendor, machine, claim, why, ?outcome, "orphan deleted");
            }
        }
    }
}

/// One pass over all vendors. A dry run deletes nothing.
pub(crate) async fn pass(context: &Context, dry_run: bool) -> Vec<Swept> {
    let passes = context.vendors.iter().map(|slot| vendor(context, slot, dry_run));
    futures::future::join_all(passes).await
}

async fn vendor(context: &Context, slot: &Slot, dry_run: bool) -> Swept {
    let mut swept = Swept {
        vendor: slot.vendor.to_string(),
        machines: 0,
        deleted: Vec::new(),
        kept: Vec::new(),
        braked: None,
        error: None,
    };
    // Machines first: a machine is made only after its claim, so a claim missing from a later list is really gone.
    let list = match slot.client.list_machines(&context.cluster).await {
        Ok(list) => list,
        Err(error) => return Swept { error: Some(error.to_string()), ..swept },
    };
    let mut owners = match owners(context).await {
        Ok(owners) => owners,
        Err(error) => return Swept { error: Some(chain(&error)), ..swept },
    };
    if let Err(error) = choose_twins(context, &list, &mut owners).await {
        return Swept { error: Some(chain(&error)), ..swept };
    }
    let outcome = decide(context, slot, &list, &owners);
    swept.machines = list.machines.len();
    swept.kept = outcome
        .kept
        .iter()
        .filter(|(_, why)| !matches!(why, Kept::Owned | Kept::Chosen))
        .map(|(id, why)| (id.to_string(), why.words()))
        .collect();
    if let Some(braked) = outcome.braked {
        announce(context, slot, event::SWEEP_BRAKED, &braked.to_string()).await;
        swept.braked = Some(braked.to_string());
    }
    context.metrics.orphans(&slot.vendor, outcome.delete.len());
    for doomed in &outcome.delete {
        let done = if dry_run { Ok(()) } else { delete(context, slot, doomed).await };
        let why =
            if doomed.fault == Fault::Orphan { "no claim owns it" } else { "its claim has another machine" };
        if !dry_run {
            tell(context, slot, doomed, why, &done).await;
        }
        swept.deleted.push((doomed.id.to_string(), doomed.claim.to_string(), why, done));
    }
    swept
}

async fn owners(context: &Context) -> Result<Vec<Owner>, kube::Error> {
    let claims = Api::<NodeClaim>::all(context.client.clone()).list(&ListParams::default()).await?;
    let records = claims.items.into_iter().map(|claim| ClaimRecord::parse(Arc::new(claim)));
    Ok(records
        .map(|record| Owner {
            uid: record.claim.uid,
            machine_id: record.claim.machine_id,
            attempt: record.claim.attempt,
        })
        .collect())
}

/// Of two machines of one claim the one that is its node has to stay, also when the other is recorded: both were given
/// the same document, and only one got the certificate.
async fn choose_twins(
    context: &Context,
    list: &MachineList,
    owners: &mut [Owner],
) -> Result<(), kube::Error> {
    for owner in owners {
        let twins: Vec<_> = list.machines.iter().filter(|machine| machine.claim == owner.uid).collect();
        let [first, _, ..] = twins.as_slice() else { continue };
        let Some(node) = Api::<Node>::all(context.client.clone()).get_opt(&first.name).await? else {
            continue;
        };
        let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
        let is_node = |machine: &&scarpenter_provider::Machine| {
            machine.addresses.iter().any(|own| addresses.iter().any(|address| address.address == *own))
        };
        if let Some(machine) = twins.iter().find(|machine| is_node(machine)) {
            owner.machine_id = Some(machine.id.clone());
        }
    }
    Ok(())
}

fn decide(context: &Context, slot: &Slot, list: &MachineList, owners: &[Owner]) -> Outcome {
    let machines: Vec<Machine> = list
        .machines
        .iter()
        .map(|machine| Machine {
            id: machine.id.clone(),
            cluster: machine.cluster.clone(),
            claim: machine.claim.clone(),
            region: machine.region.clone(),
            created: Time::from_millis(
                i64::try_from(machine.created).unwrap_or(i64::MAX / 1000).saturating_mul(1000),
            ),
        })
        .collect();
    let covered = machines
        .iter()
        .map(|machine| machine.region.clone())
        .filter(|region| list.covered.covers(region))
        .collect();
    let settings = Settings {
        grace: context.settings.sweep_grace.max(slot.settle()),
        settle: slot.settle(),
        ..Settings::default()
    };
    sweep(&context.cluster, &machines, owners, &covered, clock::now(), &settings)
}

async fn delete(context: &Context, slot: &Slot, doomed: &Doomed) -> Result<(), String> {
    let delete = DeleteMachine {
        cluster: context.cluster.clone(),
        claim: doomed.claim.clone(),
        machine: Some(doomed.id.clone()),
        place: Some(Place { region: doomed.region.clone(), zone: None, zone_id: None }),
        only_this_machine: doomed.fault == Fault::Twin,
    };
    slot.client.delete_machine(delete).await.map(drop).map_err(|error| error.to_string())
}

/// What was deleted is said where somebody may look: on the claim of a twin, else on the classes that use the vendor.
async fn tell(context: &Context, slot: &Slot, doomed: &Doomed, why: &str, done: &Result<(), String>) {
    let end = done.as_ref().err().map(|error| format!("; not deleted yet: {error}")).unwrap_or_default();
    let words = format!("machine {} of claim {} is deleted, since {why}{end}", doomed.id, doomed.claim);
    let claim = context.view().claim_of(&doomed.claim).map(|record| Arc::clone(&record.object));
    match claim {
        Some(claim) if doomed.fault == Fault::Twin => {
            context
                .events
                .publish(&context.client, &*claim, Severity::Warning, event::DUPLICATE_MACHINE, &words)
                .await;
        }
        _ => announce(context, slot, event::ORPHAN_DELETED, &words).await,
    }
}

/// An event on the classes that use the vendor, for a person to look at.
async fn announce(context: &Context, slot: &Slot, reason: &'static str, words: &str) {
    let classes: Vec<_> = context
        .view()
        .classes()
        .filter(|class| class.spec.vendors.contains_key(slot.vendor.as_str()))
        .cloned()
        .collect();
    for class in classes {
        let note = format!("{}: {words}", slot.vendor);
        context.events.publish(&context.client, &*class, Severity::Warning, reason, &note).await;
    }
}
