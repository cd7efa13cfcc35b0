//! Types, places and what vendors ask, before rates: what every source gives and the snapshot file holds.

use std::sync::Arc;

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{CapacityType, InstanceType, Place, Terms};
use scarpenter_core::snapshot::{Snapshot, SnapshotBuilder};

use crate::scores::{Measurement, Scores};
use crate::{Catalog, Reason, Report};

/// All that a catalog is made of.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    pub(crate) types: Vec<InstanceType>,
    pub(crate) places: Vec<(Vendor, Place)>,
    pub(crate) offers: Vec<Offer>,
    /// Their types are those of this list.
    pub(crate) scores: Vec<Measurement>,
}

/// A price of a type in a place, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offer {
    pub(crate) instance_type: u32,
    pub(crate) place: u32,
    pub(crate) capacity: CapacityType,
    pub(crate) terms: Terms,
}

/// Offers whose price in USD is not known, for want of a rate: no offerings now, but once the rate is given.
#[derive(Debug, Default)]
pub(crate) struct Unpriced {
    pub(crate) places: Vec<(Vendor, Place)>,
    /// Their types are those of the snapshot.
    pub(crate) offers: Vec<Offer>,
}

impl Offers {
    /// Turns prices into USD by the report's rates, counts those without, and indexes the rest.
    pub(crate) fn into_catalog(self, mut report: Report) -> Catalog {
        let mut builder = SnapshotBuilder::default();
        let names: Vec<(Vendor, String)> =
            self.types.iter().map(|of| (of.vendor.clone(), of.name.clone())).collect();
        let types: Vec<_> = self.types.into_iter().map(|of| builder.instance_type(of)).collect();
        let mut places = vec![None; self.places.len()];
        let (mut unpriced, mut taken) = (Vec::new(), 0);
        for offer in self.offers {
            let Some(rate) = report.provenance.rates.get(offer.terms.native.currency.as_str()) else {
                report.drop_currency(offer.terms.native.currency.as_str());
                unpriced.push(offer);
                continue;
            };
            let Some(price) = offer.terms.native.to_usd(rate) else {
                report.drop(Reason::BadPrice);
                continue;
            };
            let place = *places[offer.place as usize].get_or_insert_with(|| {
                let (vendor, place) = &self.places[offer.place as usize];
                builder.place(vendor, place.clone())
            });
            builder.offer(types[offer.instance_type as usize], place, offer.capacity, price, offer.terms);
            taken += 1;
        }
        let snapshot = builder.build();
        report.drop_many(Reason::Dearer, taken - snapshot.len());
        report.describe(&snapshot);
        let ranks = ranks(&names, &snapshot);
        let unpriced = Unpriced::new(unpriced, &ranks, &self.places);
        let scores = Scores::new(self.scores, |of| ranks[of as usize]);
        Catalog {
            snapshot: Arc::new(snapshot),
            report,
            scores: Arc::new(scores),
            unpriced: Arc::new(unpriced),
        }
    }
}

impl Unpriced {
    /// Of `places`, by which `offers` are numbered, only those that they need.
    fn new(offers: Vec<Offer>, ranks: &[u32], places: &[(Vendor, Place)]) -> Self {
        let mut out = Self::default();
        let mut numbers = vec![None; places.len()];
        for offer in offers {
            let place = *numbers[offer.place as usize].get_or_insert_with(|| {
                out.places.push(places[offer.place as usize].clone());
                number(out.places.len() - 1)
            });
            out.offers.push(Offer { instance_type: ranks[offer.instance_type as usize], place, ..offer });
        }
        out
    }
}

/// Where the types of these names stand in `snapshot`.
fn ranks(names: &[(Vendor, String)], snapshot: &Snapshot) -> Vec<u32> {
    let rank = |(vendor, name): &(Vendor, String)| {
        let found = snapshot.types().binary_search_by(|of| (&of.vendor, &of.name).cmp(&(vendor, name)));
        number(found.expect("a snapshot has all types that it was built of"))
    };
    names.iter().map(rank).collect()
}

pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a catalog has fewer than four thousand million rows")
}
