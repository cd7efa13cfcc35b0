//! Two hundred claims at once while answers are lost and calls are throttled.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use scarpenter_provider::{Client, Created, Deleted, Machine};

use crate::stage::{SETTLE, create, delete, find, stage};

const CLAIMS: usize = 200;

/// As the controller does: an unknown outcome is waited out and looked at before anything is asked again.
async fn make(client: &Client, claim: &str) -> Machine {
    loop {
        let error = match client.create_machine(create(claim)).await {
            Ok(Created::Machine(machine)) => return machine,
            Ok(Created::Refused(refusal)) => panic!("{refusal:?}"),
            Err(error) => error,
        };
        let wait = error.retry_after().unwrap_or(Duration::from_millis(20));
        tokio::time::sleep(if error.had_no_effect() { wait } else { SETTLE }).await;
        if !error.had_no_effect()
            && let Ok(Some(machine)) = client.get_machine(find(claim)).await
        {
            return machine;
        }
    }
}

async fn unmake(client: &Client, claim: &str) {
    while !matches!(client.delete_machine(delete(claim)).await, Ok(Deleted::Gone)) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_claims_are_two_hundred_machines_and_then_none() {
    let stage = stage().await;
    {
        let mut world = stage.fake.world();
        (world.lost_of_100, world.throttled_of_100) = (5, 5);
    }
    let claims: Vec<String> = (0..CLAIMS).map(|number| format!("claim-{number}")).collect();
    let making = claims.iter().map(|claim| make(&stage.client, claim));
    let made: Vec<Machine> = futures::stream::iter(making).buffer_unordered(40).collect().await;
    let ids: BTreeSet<_> = made.iter().map(|machine| machine.id.clone()).collect();
    assert_eq!(ids.len(), CLAIMS);
    assert_eq!(stage.fake.world().servers.len(), CLAIMS);
    let list = loop {
        if let Ok(list) = stage.client.list_machines(&"cluster".into()).await {
            break list;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        list.machines.into_iter().map(|machine| machine.id).collect::<BTreeSet<_>>(),
        ids,
        "over four pages"
    );
    let unmaking = claims.iter().map(|claim| unmake(&stage.client, claim));
    futures::stream::iter(unmaking).buffer_unordered(40).collect::<Vec<()>>().await;
    let world = stage.fake.world();
    assert_eq!((world.servers.len(), world.ips.len()), (0, 0));
    assert_eq!(world.peak, CLAIMS, "never one more");
    let posts = world.journal.iter().filter(|line| line.starts_with("POST")).count();
    assert!(posts > CLAIMS + 5, "{posts} creates: nothing went wrong");
}
