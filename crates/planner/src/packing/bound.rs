//! What any plan costs at least.

use std::collections::BTreeMap;

use scarpenter_core::resources::{CPU, MEMORY};

use crate::Input;
use crate::pass::Pass;
use crate::shape::Profile;

/// How much a CPU weighs against 4 GiB of memory; each way to count gives a bound, and the largest is told.
const WAYS: [(f64, f64); 5] = [(1.0, 0.0), (0.75, 0.25), (0.5, 0.5), (0.25, 0.75), (0.0, 1.0)];
/// Millicores of a CPU, and bytes of memory that weigh as much at equal shares.
const UNITS: (f64, f64) = (1000.0, 4_294_967_296.0);

/// A price in micro-USD an hour below which no plan can buy machines for these pods, whatever it puts where.
///
/// Every pod that could be bought a machine pays its share of the cheapest machine that it could be on, by CPU, by
/// memory or by a mix of both. Room on nodes that exist, rules about other pods, limits and caps are left out, so it
/// holds where there are none of them.
#[must_use]
pub fn lower_bound(input: &Input<'_>) -> u64 {
    let mut pass = Pass::new(input);
    let mut rates: BTreeMap<usize, [f64; WAYS.len()]> = BTreeMap::new();
    let mut bounds = [0.0; WAYS.len()];
    for pod in input.pods {
        let Ok((shape, _)) = pass.look(pod) else { continue };
        let rates = rates.entry(shape.profile.id).or_insert_with(|| rates_of(&pass, &shape.profile));
        let need = |name| pass.names.position(name).map_or(0, |at| shape.need[at]);
        let need = (need(CPU), need(MEMORY));
        for ((bound, rate), way) in bounds.iter_mut().zip(rates).zip(WAYS) {
            *bound += *rate * weighed(way, need);
        }
    }
    bounds.into_iter().fold(0.0, f64::max).floor() as u64
}

#[expect(clippy::cast_precision_loss, reason = "a bound need not be exact to the last millicore")]
fn weighed((cpu, memory): (f64, f64), need: (i64, i64)) -> f64 {
    cpu * need.0 as f64 / UNITS.0 + memory * need.1 as f64 / UNITS.1
}

/// The least price of a unit on any machine that a pod of the profile could be on; 0 where there is none.
fn rates_of(pass: &Pass<'_>, profile: &Profile) -> [f64; WAYS.len()] {
    let snapshot = pass.market.snapshot;
    let mut out = [f64::INFINITY; WAYS.len()];
    for wish in profile.wishes.iter().filter(|wish| wish.weight == 0) {
        for (ground, offer) in pass.grounds.iter().zip(&wish.offers) {
            let Some(offer) = offer else { continue };
            for id in snapshot.first_of_types(&offer.selection, |id| pass.market.in_stock(id)) {
                let room = ground.room(snapshot, id, true);
                let have = |name| pass.names.position(name).map_or(0, |at| room[at].max(0));
                let have = (have(CPU), have(MEMORY));
                for (rate, way) in out.iter_mut().zip(WAYS) {
                    *rate = rate.min(price(ground.price(snapshot, id)) / weighed(way, have));
                }
            }
        }
    }
    out.map(|rate| if rate.is_finite() { rate } else { 0.0 })
}

#[expect(clippy::cast_precision_loss, reason = "a price an hour is far below 2^52 micro-USD")]
fn price(micro_usd: u64) -> f64 {
    micro_usd as f64
}
