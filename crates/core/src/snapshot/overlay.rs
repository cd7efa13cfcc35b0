//! What vendors say now, laid over a catalog.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::name::Vendor;
use crate::offering::{CapacityType, InstanceType, Place, Price, Terms};

use super::{Offering, Snapshot, SnapshotBuilder, TypeId};

/// What one vendor says now, beside the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveOfferings {
    /// Price and availability, each offering once.
    pub offerings: Vec<LiveOffering>,
    /// Types that the catalog may not know.
    pub instance_types: Vec<InstanceType>,
}

/// One offering as the vendor sells it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveOffering {
    /// The vendor's name of the type.
    pub instance_type: String,
    /// Where; without a zone it speaks for every zone of the region that is not named itself.
    pub place: Place,
    /// How long it is promised.
    pub capacity_type: CapacityType,
    /// `None` = the catalog's; 0 is a price.
    pub price: Option<Price>,
    /// Whether one can be had now, as far as the vendor tells.
    pub available: bool,
}

/// How many offerings of one vendor became what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlaid {
    /// They have another price than in the catalog.
    pub repriced: usize,
    /// The catalog has them, and they cannot be had now.
    pub withdrawn: usize,
    /// The catalog does not have them.
    pub added: usize,
    /// The catalog does not have them, and they have no price or are of a type that nobody knows: left out.
    pub unknown: usize,
}

impl Snapshot {
    /// This catalog with what vendors say now: their price goes before its own, what cannot be had now is left out, and
    /// what it does not know is added. What a vendor does not name stays as it is.
    #[must_use]
    pub fn overlay(&self, live: &BTreeMap<Vendor, LiveOfferings>) -> (Self, BTreeMap<Vendor, Overlaid>) {
        let mut builder = SnapshotBuilder::default();
        let types: Vec<TypeId> = self.types.iter().map(|own| builder.instance_type(own.clone())).collect();
        let mut counts: BTreeMap<Vendor, Overlaid> = BTreeMap::new();
        let mut said: BTreeMap<&Vendor, Said<'_>> =
            live.iter().map(|(vendor, live)| (vendor, Said::new(&live.offerings))).collect();
        for offering in self.offerings() {
            let vendor = &offering.instance_type().vendor;
            let (price, terms) = match said.get_mut(vendor).and_then(|said| said.of(&offering)) {
                None => (offering.price(), offering.terms()),
                Some(live) => {
                    let count = counts.entry(vendor.clone()).or_default();
                    if !live.available {
                        count.withdrawn += 1;
                        continue;
                    }
                    match live.price.filter(|price| *price != offering.price()) {
                        None => (offering.price(), offering.terms()),
                        Some(price) => {
                            count.repriced += 1;
                            (price, Terms::usd(price))
                        }
                    }
                }
            };
            let place = builder.place(vendor, offering.place().clone());
            builder.offer(types[offering.type_index()], place, offering.capacity_type(), price, terms);
        }
        for (vendor, said) in said {
            let mut known: HashMap<String, TypeId> = self.type_ids(vendor, &types);
            for new in &live[vendor].instance_types {
                let of_vendor = InstanceType { vendor: vendor.clone(), ..new.clone() };
                known.entry(new.name.clone()).or_insert_with(|| builder.instance_type(of_vendor));
            }
            let count = counts.entry(vendor.clone()).or_default();
            for new in said.rest() {
                match (known.get(&new.instance_type), new.price) {
                    (Some(id), Some(price)) => {
                        builder.offering(*id, new.place.clone(), new.capacity_type, price);
                        count.added += 1;
                    }
                    _ => count.unknown += 1,
                }
            }
        }
        (builder.build(), counts)
    }

    fn type_ids(&self, vendor: &Vendor, ids: &[TypeId]) -> HashMap<String, TypeId> {
        let own = self.types.iter().zip(ids).filter(|(own, _)| own.vendor == *vendor);
        own.map(|(own, id)| (own.name.clone(), *id)).collect()
    }
}

/// Type, region, zone, capacity type.
type Key<'a> = (&'a str, &'a str, Option<&'a str>, CapacityType);

/// What one vendor says, by what it is said of.
struct Said<'a> {
    rows: &'a [LiveOffering],
    by_key: HashMap<Key<'a>, usize>,
    /// Rows that speak for something in the catalog.
    heard: HashSet<usize>,
}

impl<'a> Said<'a> {
    fn new(rows: &'a [LiveOffering]) -> Self {
        let by_key = rows.iter().enumerate().map(|(at, row)| (key(row), at));
        Self { rows, by_key: by_key.collect(), heard: HashSet::new() }
    }

    /// What is said of an offering of the catalog: of its zone, else of its region.
    fn of(&mut self, offering: &Offering<'_>) -> Option<&'a LiveOffering> {
        let (name, place) = (offering.instance_type().name.as_str(), offering.place());
        let find = |zone| self.by_key.get(&(name, place.region.as_str(), zone, offering.capacity_type()));
        let at = *find(place.zone.as_deref()).or_else(|| find(None))?;
        self.heard.insert(at);
        Some(&self.rows[at])
    }

    /// What can be had now and the catalog does not have.
    fn rest(&self) -> impl Iterator<Item = &'a LiveOffering> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(at, row)| row.available && !self.heard.contains(at)).map(|(_, row)| row)
    }
}

fn key(row: &LiveOffering) -> Key<'_> {
    (&row.instance_type, &row.place.region, row.place.zone.as_deref(), row.capacity_type)
}

#[cfg(test)]
mod tests;
