//! What any plan costs at least.

use std::collections::BTreeMap;
use std::rc::Rc;

use scarpenter_core::pool::Tenancy;
use scarpenter_core::resources::{CPU, MEMORY};

use crate::Input;
use crate::pass::Pass;
use crate::shape::{Profile, Shape};

/// How much a CPU weighs against 4 GiB of memory; each way to count gives a bound, and the largest is told.
const WAYS: [(f64, f64); 5] = [(1.0, 0.0), (0.75, 0.25), (0.5, 0.5), (0.25, 0.75), (0.0, 1.0)];
/// Millicores of a CPU, and bytes of memory that weigh as much at equal shares.
const UNITS: (f64, f64) = (1000.0, 4_294_967_296.0);
/// With more kinds of pods than this nobody asks which of them can share machines.
const COMPARED: usize = 2000;

/// A price in micro-USD an hour below which no plan can buy machines for these pods, whatever it puts where.
///
/// Every pod pays its share of the cheapest machine that it could be on, by CPU, by memory or by a mix of both; pods
/// that cannot share a machine are counted apart, and none of them for less than its own cheapest machine. Room on
/// nodes that exist, rules about other pods, limits and caps are left out, so it holds where there are none of them;
/// a pod that no machine fits costs nothing.
#[must_use]
pub fn lower_bound(input: &Input<'_>) -> u64 {
    let mut pass = Pass::new(input);
    let mut kinds: BTreeMap<usize, Kin> = BTreeMap::new();
    for pod in input.pods {
        let Ok((shape, _)) = pass.look(pod) else { continue };
        let kin = kinds.entry(shape.profile.id).or_insert_with(|| Kin::new(&pass, &shape.profile));
        kin.take(&pass, &shape);
    }
    let groups = families(kinds.into_values().collect());
    groups.iter().map(|family| family.iter().fold(Bound::default(), Bound::with).least()).sum()
}

/// All pods of one profile.
struct Kin {
    profile: Rc<Profile>,
    rates: [f64; WAYS.len()],
    alone: bool,
    shares: [f64; WAYS.len()],
    /// What the dearest of them costs alone, and all of them together.
    dearest: u64,
    apart: u64,
}

impl Kin {
    fn new(pass: &Pass<'_>, profile: &Rc<Profile>) -> Self {
        let tenancies = profile.wishes.iter().flat_map(|wish| {
            let offered = wish.offers.iter().zip(&pass.grounds).filter(|(offer, _)| offer.is_some());
            offered.map(|(_, ground)| ground.class.tenancy)
        });
        Self {
            rates: rates(pass, profile),
            alone: tenancies.into_iter().all(|tenancy| tenancy == Tenancy::SinglePod),
            profile: Rc::clone(profile),
            shares: [0.0; WAYS.len()],
            dearest: 0,
            apart: 0,
        }
    }

    fn take(&mut self, pass: &Pass<'_>, shape: &Shape) {
        let Some(price) = cheapest(pass, shape) else { return };
        let need = |name| pass.names.position(name).map_or(0, |at| shape.need[at]);
        let need = (need(CPU), need(MEMORY));
        for ((share, rate), way) in self.shares.iter_mut().zip(self.rates).zip(WAYS) {
            *share += rate * weighed(way, need);
        }
        self.dearest = self.dearest.max(price);
        self.apart = self.apart.saturating_add(price);
    }
}

/// The bound of pods that may share machines.
#[derive(Default)]
struct Bound {
    shares: [f64; WAYS.len()],
    dearest: u64,
    apart: u64,
}

impl Bound {
    fn with(mut self, kin: &Kin) -> Self {
        if kin.alone {
            self.apart = self.apart.saturating_add(kin.apart);
            return self;
        }
        for (share, more) in self.shares.iter_mut().zip(kin.shares) {
            *share += more;
        }
        self.dearest = self.dearest.max(kin.dearest);
        self
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sum of prices is neither negative nor beyond 2^64 micro-USD"
    )]
    fn least(self) -> u64 {
        let shared = self.shares.into_iter().fold(0.0, f64::max).floor() as u64;
        self.apart.saturating_add(shared.max(self.dearest))
    }
}

/// Profiles that can share machines, directly or by way of others.
fn families(kinds: Vec<Kin>) -> Vec<Vec<Kin>> {
    if kinds.len() > COMPARED {
        return vec![kinds];
    }
    let mut out: Vec<Vec<Kin>> = Vec::new();
    for kin in kinds {
        let is_akin = |family: &Vec<Kin>| family.iter().any(|own| own.profile.meets(&kin.profile));
        let (akin, mut apart): (Vec<_>, Vec<_>) = out.into_iter().partition(is_akin);
        let mut family: Vec<Kin> = akin.into_iter().flatten().collect();
        family.push(kin);
        apart.push(family);
        out = apart;
    }
    out
}

/// The cheapest machine for one such pod alone.
fn cheapest(pass: &Pass<'_>, shape: &Shape) -> Option<u64> {
    let snapshot = pass.market.snapshot;
    let bare = shape.wishes.iter().filter(|wish| wish.weight == 0);
    let prices = bare.flat_map(|wish| pass.grounds.iter().zip(&wish.offers)).filter_map(|(ground, offer)| {
        let id = ground.first(snapshot, &offer.as_ref()?.selection, |id| {
            pass.market.in_stock(id) && ground.has_room(snapshot, id, &shape.need, shape.profile.exact)
        })?;
        Some(ground.price(snapshot, id))
    });
    prices.min()
}

#[expect(clippy::cast_precision_loss, reason = "a bound need not be exact to the last millicore")]
fn weighed((cpu, memory): (f64, f64), need: (i64, i64)) -> f64 {
    cpu * need.0 as f64 / UNITS.0 + memory * need.1 as f64 / UNITS.1
}

/// The least price of a unit on any machine that a pod of the profile could be on; 0 where there is none.
fn rates(pass: &Pass<'_>, profile: &Profile) -> [f64; WAYS.len()] {
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
