//! The smallest world that is still wrong in the same way.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::play::{Mode, Stop, Wrong, play};
use crate::world::World;

/// So long a smaller world is looked for.
const PATIENCE: Duration = Duration::from_secs(45);

/// Leaves out what the failure does not need, first in large pieces, then one by one.
pub(crate) async fn shrink(
    cluster: &mut Cluster,
    world: &World,
    mode: Mode,
    wrong: Box<Wrong>,
) -> anyhow::Result<Box<Wrong>> {
    let begun = Instant::now();
    let (mut world, mut wrong) = (world.clone(), wrong);
    let mut piece = world.pods.len().div_ceil(2);
    loop {
        let mut smaller = false;
        for candidate in without(&world, piece) {
            if begun.elapsed() > PATIENCE {
                return Ok(wrong);
            }
            match play(cluster, &candidate, mode).await {
                Err(Stop::Wrong(again)) if again.what == wrong.what => {
                    (world, wrong, smaller) = (candidate, again, true);
                    break;
                }
                Ok(_) | Err(Stop::Wrong(_)) => {}
                Err(Stop::Broken(error)) => return Err(error),
            }
        }
        if !smaller {
            if piece == 1 {
                return Ok(wrong);
            }
            piece = piece.div_ceil(2);
        }
    }
}

/// Worlds that are a little less: so many pods fewer, or one thing of another sort.
fn without(world: &World, piece: usize) -> Vec<World> {
    let mut out = Vec::new();
    for start in (0..world.pods.len()).step_by(piece) {
        let mut less = world.clone();
        less.pods.drain(start..(start + piece).min(world.pods.len()));
        out.push(less);
    }
    if piece > 1 {
        return out;
    }
    for index in 0..world.bound.len() {
        let mut less = world.clone();
        less.bound.remove(index);
        out.push(less);
    }
    for index in 0..world.nodes.len() {
        let mut less = world.clone();
        let gone = less.nodes.remove(index);
        less.bound.retain(|pod| pod["spec"]["nodeName"] != gone["metadata"]["name"]);
        out.push(less);
    }
    for index in 0..world.daemons.len() {
        let mut less = world.clone();
        less.daemons.remove(index);
        out.push(less);
    }
    for index in 0..world.pools.len() {
        let mut less = world.clone();
        less.pools.remove(index);
        out.push(less);
    }
    for index in 0..world.market.len() {
        let mut less = world.clone();
        less.market.remove(index);
        out.push(less);
    }
    out
}
