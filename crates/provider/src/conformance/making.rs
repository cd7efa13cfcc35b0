//! Checks of `GetCapabilities` and `CreateMachine`.

use std::time::Duration;

use futures::future::join_all;

use crate::capabilities::{Encoding, UserDataLimit};
use crate::client::Client;
use crate::error::{Created, RefusalReason};
use crate::pb;
use crate::request::CreateMachine;

use super::Verdict;
use super::bench::Bench;

pub(super) async fn says_who_it_is(bench: &Bench) -> Verdict {
    let can = bench.capabilities().await?;
    if can.capacity_types.is_empty() || can.archs.is_empty() {
        return Err("it sells nothing".to_owned());
    }
    if can.settle.is_zero() || can.user_data_limit.bytes == 0 {
        return Err("settle time and user-data limit must be above 0".to_owned());
    }
    Ok(())
}

pub(super) async fn makes_what_was_asked_for(bench: &Bench) -> Verdict {
    // The client has compared claim, cluster, type, place, capacity type and parameters.
    let create = bench.fresh();
    let machine = bench.machine(&create).await?;
    if !machine.pool.is_empty() && machine.pool != create.pool {
        return Err(format!("pool is {:?}, asked for was {:?}", machine.pool, create.pool));
    }
    bench.clean(&create).await
}

pub(super) async fn asked_twice(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    let first = bench.machine(&create).await?;
    let second = bench.machine(&create).await?;
    if first.id != second.id {
        return Err(format!("made {} and {}", first.id, second.id));
    }
    bench.settled_as_one(&create).await?;
    let third = bench.machine(&create).await?;
    if first.id != third.id {
        return Err(format!("made {}, and {} when it was settled", first.id, third.id));
    }
    bench.clean(&create).await
}

pub(super) async fn asked_in_parallel(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    let answers = join_all((0..8).map(|_| bench.client.send_create(create.clone()))).await;
    bench.machine(&create).await?;
    let kept = bench.settled_as_one(&create).await?;
    for answer in answers {
        match answer {
            Ok(Created::Machine(machine)) if machine.id != kept.id => {
                return Err(format!("one caller was told {}, kept is {}", machine.id, kept.id));
            }
            Ok(Created::Refused(refusal)) => {
                return Err(format!("one caller was refused: {}", refusal.message));
            }
            // A loser of the race may be told to look again.
            Ok(Created::Machine(_)) | Err(_) => {}
        }
    }
    bench.clean(&create).await
}

pub(super) async fn answers_lost(bench: &Bench) -> Verdict {
    let cut_off = [0, 1, 3, 10, 30].map(Duration::from_millis);
    let creates: Vec<_> = cut_off.iter().map(|_| bench.fresh()).collect();
    for (create, after) in creates.iter().zip(cut_off) {
        // Whether it was answered in time does not matter: the next call must fit either case.
        let _answer = tokio::time::timeout(after, bench.client.send_create(create.clone())).await;
        bench.machine(create).await?;
    }
    for create in &creates {
        bench.settled_as_one(create).await?;
        bench.clean(create).await?;
    }
    Ok(())
}

pub(super) async fn other_parameters(bench: &Bench) -> Verdict {
    let create = bench.fresh();
    let first = bench.machine(&create).await?;
    let mut user_data = create.user_data.clone();
    user_data.push(b'\n');
    let other = CreateMachine { user_data, ..create.clone() };
    match bench.create(&other).await? {
        Created::Refused(refusal) if refusal.reason == RefusalReason::Conflict => {}
        Created::Refused(refusal) => return Err(format!("refused as {}", refusal.reason.as_str())),
        Created::Machine(_) => return Err("accepted".to_owned()),
    }
    let kept = bench.settled_as_one(&create).await?;
    if kept.id != first.id || kept.params != first.params {
        return Err("the first machine was changed".to_owned());
    }
    bench.clean(&create).await
}

pub(super) async fn bad_arguments(bench: &Bench) -> Verdict {
    type Spoil = fn(&mut pb::CreateMachineRequest);
    let spoils: [(&str, Spoil); 8] = [
        ("no claim", |create| create.claim_uid.clear()),
        ("no cluster", |create| create.cluster_id.clear()),
        ("no name", |create| create.name.clear()),
        ("a name that is no host name", |create| create.name = "Not a host!".to_owned()),
        ("no offering", |create| create.offering = None),
        ("no image", |create| create.image = None),
        ("no place", |create| each_offering(create, |offering| offering.place = None)),
        ("no capacity type", |create| each_offering(create, |offering| offering.capacity_type = 0)),
    ];
    for (what, spoil) in spoils {
        let create = bench.fresh();
        let mut request = pb::CreateMachineRequest::from(create.clone());
        spoil(&mut request);
        match raw(&bench.client, request).await {
            Err(tonic::Code::InvalidArgument) => {}
            Err(code) => return Err(format!("{what}: answered {code:?}")),
            Ok(()) => return Err(format!("{what}: accepted")),
        }
        if !bench.listed(&create).await?.is_empty() {
            return Err(format!("{what}: a machine was made"));
        }
    }
    Ok(())
}

fn each_offering(create: &mut pb::CreateMachineRequest, spoil: impl FnOnce(&mut pb::Offering)) {
    if let Some(offering) = &mut create.offering {
        spoil(offering);
    }
}

/// Sends what the domain types cannot say.
async fn raw(client: &Client, request: pb::CreateMachineRequest) -> Result<(), tonic::Code> {
    loop {
        match client.raw().create_machine(request.clone()).await {
            Ok(_) => return Ok(()),
            Err(status) if status.code() == tonic::Code::Unavailable => {
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
            Err(status) => return Err(status.code()),
        }
    }
}

/// Most raw bytes that a limit allows.
fn largest(limit: UserDataLimit) -> usize {
    let bytes = usize::try_from(limit.bytes).unwrap_or(usize::MAX);
    match limit.encoding {
        Encoding::Raw => bytes,
        Encoding::Base64 => bytes / 4 * 3,
    }
}

pub(super) async fn user_data_at_the_limit(bench: &Bench) -> Verdict {
    let limit = bench.capabilities().await?.user_data_limit;
    let create = CreateMachine { user_data: vec![b' '; largest(limit)], ..bench.fresh() };
    bench.machine(&create).await?;
    bench.clean(&create).await
}

pub(super) async fn user_data_over_the_limit(bench: &Bench) -> Verdict {
    let limit = bench.capabilities().await?.user_data_limit;
    let create = CreateMachine { user_data: vec![b' '; largest(limit) + 1], ..bench.fresh() };
    match bench.create(&create).await? {
        Created::Refused(refusal) if refusal.reason == RefusalReason::Invalid => {}
        Created::Refused(refusal) => return Err(format!("refused as {}", refusal.reason.as_str())),
        Created::Machine(_) => return Err("accepted".to_owned()),
    }
    bench.settled_as_none(&create).await
}
