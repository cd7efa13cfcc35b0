//! Check of `ListOfferings`.

use scarpenter_core::snapshot::LiveOfferings;

use crate::capabilities::Capabilities;
use crate::error::Error;

use super::Verdict;
use super::bench::{Bench, persist};

pub(super) async fn says_what_it_sells(bench: &Bench) -> Verdict {
    let can = bench.capabilities().await?;
    // The client has refused what names an offering twice, or no type or place.
    let answer = persist(|| async {
        match bench.client.list_offerings(Vec::new()).await {
            Err(Error::Unimplemented { .. }) => Ok(None),
            answer => answer.map(Some),
        }
    })
    .await?;
    match (can.lists_offerings, answer) {
        (false, None) => Ok(()),
        (false, Some(_)) => Err("it lists offerings, and its capabilities say that it does not".to_owned()),
        (true, None) => Err("its capabilities say that it lists offerings, and it does not".to_owned()),
        (true, Some(live)) => fits(&live, &can),
    }
}

fn fits(live: &LiveOfferings, can: &Capabilities) -> Verdict {
    let other = live.offerings.iter().find(|row| !can.capacity_types.contains(&row.capacity_type));
    if let Some(row) = other {
        let capacity = row.capacity_type.as_str();
        return Err(format!(
            "{} is listed as {capacity}, which its capabilities do not name",
            row.instance_type
        ));
    }
    let other = live.instance_types.iter().find(|row| !can.archs.contains(&row.arch));
    if let Some(row) = other {
        return Err(format!(
            "type {} is {}, which its capabilities do not name",
            row.name,
            row.arch.as_str()
        ));
    }
    let empty = live.instance_types.iter().find(|row| row.cpu == 0 || row.memory_mib == 0);
    empty.map_or(Ok(()), |row| Err(format!("type {} has no CPU or no memory", row.name)))
}
