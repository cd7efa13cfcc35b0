//! Checks of `GetMachine` and `ListMachines`.

use std::collections::BTreeSet;

use scarpenter_core::offering::Place;

use crate::request::FindMachine;

use super::Verdict;
use super::bench::{Bench, find, persist};

pub(super) async fn by_claim_alone(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    let made = bench.machine(&create).await?;
    bench.settled_as_one(&create).await?;
    let place = Place { region: made.region.clone(), zone: made.zone.clone(), zone_id: None };
    let alone = find(&create);
    let placed = FindMachine { place: Some(place.clone()), ..alone.clone() };
    let known = FindMachine { machine: Some(made.id.clone()), place: Some(place), ..alone.clone() };
    for (what, find) in [("claim", alone), ("claim and place", placed), ("claim, place and id", known)] {
        match persist(|| bench.client.get_machine(find.clone())).await? {
            Some(found) if found.id == made.id && found.params == made.params => {}
            Some(found) => return Err(format!("by {what}: found {}, made was {}", found.id, made.id)),
            None => return Err(format!("by {what}: not found")),
        }
    }
    bench.clean(&create).await
}

pub(super) async fn lists_every_machine(bench: &Bench) -> Verdict {
    let creates: Vec<_> = (0..6).map(|_| bench.fresh()).collect();
    let mut made = BTreeSet::new();
    for create in &creates {
        made.insert(bench.machine(create).await?.id);
    }
    tokio::time::sleep(bench.settle().await?).await;
    let list = bench.list(&bench.cluster).await?;
    let region = &creates[0].place.region;
    if !list.covered.covers(region) {
        return Err(format!("region {region} is not covered"));
    }
    let listed: BTreeSet<_> = list.machines.into_iter().map(|machine| machine.id).collect();
    let missing = made.difference(&listed).count();
    if missing > 0 {
        return Err(format!("{missing} of {} machines are not listed", made.len()));
    }
    for create in &creates {
        bench.clean(create).await?;
    }
    Ok(())
}

pub(super) async fn unknown_claim(bench: &Bench) -> Verdict {
    match bench.get(&bench.fresh()).await? {
        Some(machine) => Err(format!("found {}", machine.id)),
        None => Ok(()),
    }
}
