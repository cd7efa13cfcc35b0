//! What mixes cost, against the lower bound and against first-fit-decreasing onto every single offering.
//!
//! The bound takes a CPU and a GiB at the rate of the machine that sells it cheapest, however small, so it lies far below any
//! plan where pods are large or many to a machine; the ratio is told, not judged.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::StdRng;
use scarpenter_core::pod::Pod;
use scarpenter_core::resources::{CPU, MEMORY, PODS, Resources};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_planner::{Kind, allocatable, lower_bound};

use crate::draw::{self, Draw};
use crate::world::{World, money};
use crate::{Held, SEED};

const PODS_OF_MIX: usize = 1_000;
const GIB: i64 = 1 << 30;

/// CPU, memory and number of pods.
type Size = [i64; 3];

pub(crate) fn compare(snapshot: &Snapshot) -> Vec<Held> {
    let mut world = World::new(snapshot);
    // What a machine really shows is known of none: planner and comparison are to count on the same.
    for each in snapshot.types() {
        let (vendor, instance_type) = (each.vendor.clone(), each.name.clone());
        let kind = Kind { class: world.class().name.clone(), vendor, instance_type };
        let room = allocatable(each, world.class());
        world.lessons.allocatable.insert(kind, room);
    }
    println!(
        "\n{:<22}  {:>10}  {:>10}  {:>6}  {:>12}  {:>6}",
        "mix", "USD/h", "at least", "ratio", "best ffd", "saved"
    );
    let mut never = true;
    for (name, pods) in mixes() {
        let (plan, _) = world.timed(&pods, 1);
        let (paid, bound) = (money(&plan), world.with_input(&pods, lower_bound));
        let single = cheapest_single(&world, &pods);
        never &= plan.unplaced.is_empty() && paid <= single;
        print(name, paid, bound, Some(single));
    }
    let draw = Draw::new(snapshot);
    let mut random = StdRng::seed_from_u64(SEED);
    let pods: Vec<Pod> = (0..PODS_OF_MIX).map(|number| draw.mixed(&mut random, number)).collect();
    let (plan, _) = world.timed(&pods, 1);
    let placed: Vec<Pod> =
        pods.into_iter().filter(|pod| plan.unplaced.iter().all(|unplaced| unplaced.uid != pod.uid)).collect();
    print("of all kinds", money(&plan), world.with_input(&placed, lower_bound), None);
    vec![("never dearer than first-fit-decreasing onto any single offering".to_owned(), never)]
}

fn print(name: &str, paid: u64, bound: u64, single: Option<u64>) {
    let single_text = single.map_or_else(|| "-".to_owned(), |single| format!("{:.4}", crate::usd(single)));
    let saved = single
        .map_or_else(|| "-".to_owned(), |single| format!("{:.1} %", 100.0 - 100.0 * ratio(paid, single)));
    let (paid_text, bound_text) = (crate::usd(paid), crate::usd(bound));
    println!(
        "{name:<22}  {paid_text:>10.4}  {bound_text:>10.4}  {:>6.3}  {single_text:>12}  {saved:>6}",
        ratio(paid, bound)
    );
}

fn mixes() -> Vec<(&'static str, Vec<Pod>)> {
    let random = || StdRng::seed_from_u64(SEED);
    let drawn = |of: fn(&mut StdRng, usize) -> Pod| {
        let mut random = random();
        (0..PODS_OF_MIX).map(|number| of(&mut random, number)).collect::<Vec<Pod>>()
    };
    let two = |one: (i64, i64), other: (i64, i64)| {
        let size = |number: usize| if number.is_multiple_of(2) { one } else { other };
        (0..PODS_OF_MIX)
            .map(|number| draw::sized(number, size(number).0, size(number).1))
            .collect::<Vec<Pod>>()
    };
    vec![
        ("steps of size", drawn(draw::plain)),
        ("any size", drawn(crate::sized)),
        ("ten of any size", drawn(crate::sized)[..10].to_vec()),
        ("a hundred of any size", drawn(crate::sized)[..100].to_vec()),
        ("much CPU, much memory", two((4000, GIB), (250, 16 * GIB))),
        ("a half and a bit", two((1100, 2 * GIB), (2100, 4 * GIB))),
        ("very small", two((20, 32 << 20), (50, 64 << 20))),
        ("large", two((30_000, 100 * GIB), (48_000, 64 * GIB))),
    ]
}

/// The price of first-fit-decreasing onto the one offering for which it is lowest.
fn cheapest_single(world: &World<'_>, pods: &[Pod]) -> u64 {
    let mut sizes: Vec<Size> = pods.iter().map(|pod| size(&pod.requests)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut price_of: BTreeMap<Size, u64> = BTreeMap::new();
    for offering in world.snapshot.offerings() {
        let room = size(&allocatable(offering.instance_type(), world.class()));
        // A pod that names no capacity type is only given on-demand.
        if offering.capacity_type().as_str() == "on-demand" {
            price_of.entry(room).or_insert_with(|| offering.price().micro_usd());
        }
    }
    let mut least = u64::MAX;
    for (room, price) in price_of {
        let most = usize::try_from(least / price.max(1)).unwrap_or(usize::MAX);
        if let Some(machines) = first_fit(&sizes, room, most) {
            least = least.min(price.saturating_mul(machines));
        }
    }
    least
}

/// How many machines with this room the pods take, each put into the first that has some left; `None` when a pod fits
/// none or more than `most` are needed.
fn first_fit(sizes: &[Size], room: Size, most: usize) -> Option<u64> {
    let fits = |size: &Size, left: &Size| size.iter().zip(left).all(|(size, left)| size <= left);
    let mut machines: Vec<Size> = Vec::new();
    for size in sizes {
        let at = match machines.iter().position(|left| fits(size, left)) {
            Some(at) => at,
            None if fits(size, &room) && machines.len() < most => {
                machines.push(room);
                machines.len() - 1
            }
            None => return None,
        };
        for (left, size) in machines[at].iter_mut().zip(size) {
            *left -= size;
        }
    }
    Some(machines.len() as u64)
}

fn size(amounts: &Resources) -> Size {
    [CPU, MEMORY, PODS].map(|name| amounts.get(name))
}

#[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52 micro-USD")]
fn ratio(paid: u64, to: u64) -> f64 {
    paid as f64 / to as f64
}
