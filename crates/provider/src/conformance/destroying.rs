//! Checks of `DeleteMachine`.

use scarpenter_core::name::{ClusterId, MachineId};

use crate::error::Deleted;
use crate::request::{CreateMachine, DeleteMachine};

use super::bench::{Bench, delete_of};
use super::{Foreign, Verdict};

pub(super) async fn until_gone(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    bench.machine(&create).await?;
    bench.settled_as_one(&create).await?;
    if bench.delete(delete_of(&create.cluster, &create.claim)).await? == Deleted::Gone {
        return Err("gone at the first call, though it was there".to_owned());
    }
    bench.clean(&create).await
}

pub(super) async fn twice(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    bench.machine(&create).await?;
    let delete = || bench.delete(delete_of(&create.cluster, &create.claim));
    let (first, second) = tokio::join!(delete(), delete());
    first?;
    second?;
    bench.clean(&create).await?;
    match delete().await? {
        Deleted::Gone => Ok(()),
        Deleted::Asked => Err("asked for once more after it was gone".to_owned()),
    }
}

pub(super) async fn the_unknown(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    expect_gone(bench, delete_of(&create.cluster, &create.claim), "unknown claim").await?;
    let machine = Some(MachineId::from("no-such-machine"));
    let by_id = DeleteMachine { machine, ..delete_of(&create.cluster, &create.claim) };
    expect_gone(bench, by_id, "unknown claim and id").await
}

async fn expect_gone(bench: &Bench, delete: DeleteMachine, what: &str) -> Verdict {
    match bench.delete(delete).await? {
        Deleted::Gone => Ok(()),
        Deleted::Asked => Err(format!("{what}: asked for")),
    }
}

pub(super) async fn one_alone(bench: &Bench) -> Verdict {
    let (kept, going) = (bench.fresh(), bench.fresh());
    let (kept_machine, going_machine) = (bench.machine(&kept).await?, bench.machine(&going).await?);
    tokio::time::sleep(bench.settle().await?).await;
    // An id that does not belong to the claim must drag neither machine along.
    for strange in [MachineId::from("no-such-machine"), going_machine.id.clone()] {
        let delete = DeleteMachine {
            machine: Some(strange),
            only_this_machine: true,
            ..delete_of(&kept.cluster, &kept.claim)
        };
        expect_gone(bench, delete, "only an id that is not the claim's").await?;
    }
    still_there(bench, &going, &going_machine.id).await?;
    let alone = DeleteMachine {
        machine: Some(going_machine.id),
        only_this_machine: true,
        ..delete_of(&going.cluster, &going.claim)
    };
    bench.delete(alone).await?;
    bench.clean(&going).await?;
    still_there(bench, &kept, &kept_machine.id).await?;
    bench.clean(&kept).await
}

pub(super) async fn other_cluster(bench: &Bench) -> Verdict {
    let create = bench.fresh_in(&bench.other_cluster);
    let machine = bench.machine(&create).await?;
    tokio::time::sleep(bench.settle().await?).await;
    if bench.list(&bench.cluster).await?.machines.iter().any(|listed| listed.id == machine.id) {
        return Err("listed for a cluster that it is not of".to_owned());
    }
    for delete in strangers(&bench.cluster, &create, &machine.id) {
        bench.delete(delete).await?;
    }
    still_there(bench, &create, &machine.id).await?;
    bench.clean(&create).await
}

/// Every way in which another cluster could hit a machine.
fn strangers(cluster: &ClusterId, create: &CreateMachine, id: &MachineId) -> [DeleteMachine; 3] {
    let by_claim = delete_of(cluster, &create.claim);
    let by_id = DeleteMachine { machine: Some(id.clone()), ..by_claim.clone() };
    let alone = DeleteMachine { only_this_machine: true, ..by_id.clone() };
    [by_claim, by_id, alone]
}

async fn still_there(bench: &Bench, create: &CreateMachine, id: &MachineId) -> Verdict {
    use crate::machine::MachineState::{Pending, Running};
    match bench.get(create).await? {
        Some(machine) if machine.id == *id && matches!(machine.state, Pending | Running) => Ok(()),
        _ => Err("it was touched".to_owned()),
    }
}

pub(super) async fn foreign(bench: &Bench, foreign: &Foreign) -> Verdict {
    let create = bench.fresh();
    if bench.list(&bench.cluster).await?.machines.iter().any(|machine| machine.id == foreign.id) {
        return Err("listed as ours".to_owned());
    }
    for delete in strangers(&bench.cluster, &create, &foreign.id) {
        expect_gone(bench, delete, "a machine without our tags").await?;
    }
    if (foreign.is_alive)().await { Ok(()) } else { Err("it was destroyed".to_owned()) }
}

pub(super) async fn nothing_behind(bench: &Bench) -> Verdict {
    let mut left = Vec::new();
    for (cluster, claim) in bench.made() {
        if let Err(why) = bench.delete_until_gone(&cluster, &claim).await {
            left.push(format!("{claim}: {why}"));
        }
    }
    tokio::time::sleep(bench.settle().await?).await;
    for cluster in [&bench.cluster, &bench.other_cluster] {
        left.extend(bench.list(cluster).await?.machines.into_iter().map(|machine| machine.id.to_string()));
    }
    if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
}
