//! The catalog at one instant, indexed: all that the planner sees of it.
//!
//! Offerings are numbered in the order in which they are chosen: by price, on-demand before spot, then vendor, region,
//! zone and type. So the smallest [`OfferingId`] of a set is the one to buy.
//! Facts of a type are kept once a type, those of a place once a place; an offering is one row of 24 bytes
//! beside its index, and what choosing does not need (its price in the vendor's own currency, its cap, its age) stands
//! apart.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::label;
use crate::lifecycle::Time;
use crate::name::Vendor;
use crate::offering::{
    CapacityType, Currency, InstanceType, Money, OfferingKey, Place, Price, Terms, place_labels,
};

mod bits;
mod build;
mod column;
mod overlay;
mod prices;
mod reach;
mod selection;
mod terms;

pub use bits::Bits;
pub use build::{PlaceId, SnapshotBuilder};
pub use overlay::{LiveOffering, LiveOfferings, Overlaid};
pub use selection::{Selected, Selection};

/// Index of an instance type in a [`Snapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u32);

impl TypeId {
    /// Where it stands in [`Snapshot::types`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of an offering in a [`Snapshot`], in the order of choosing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferingId(u32);

impl OfferingId {
    /// Its number.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// All offerings at one instant, immutable; share it by `Arc`.
#[derive(Debug, Default)]
pub struct Snapshot {
    types: Vec<InstanceType>,
    places: Vec<PlaceData>,
    rows: Vec<Row>,
    starts: Vec<u32>,
    of_type: Vec<u32>,
    cheapest_first: Vec<u32>,
    columns: column::Columns,
    place_columns: column::Columns,
    reach: reach::Reach,
    terms: terms::TermsTable,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    price: Price,
    place: u32,
    instance_type: u32,
    capacity: CapacityType,
    /// Where its terms stand.
    terms: u32,
}

#[derive(Debug)]
struct PlaceData {
    vendor: Vendor,
    place: Place,
    labels: Vec<(&'static str, String)>,
}

impl PlaceData {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(own, _)| *own == key).map(|(_, value)| value.as_str())
    }
}

impl Snapshot {
    /// All types, by vendor and name.
    #[must_use]
    pub fn types(&self) -> &[InstanceType] {
        &self.types
    }

    /// Places by index, each with the vendor whose it is.
    pub fn places(&self) -> impl Iterator<Item = (&Vendor, &Place)> {
        self.places.iter().map(|data| (&data.vendor, &data.place))
    }

    /// How many offerings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is sold.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All offerings in price order.
    pub fn offerings(&self) -> impl Iterator<Item = Offering<'_>> {
        (0..self.rows.len()).map(|id| self.offering(OfferingId(build::number(id))))
    }

    /// One offering.
    #[must_use]
    pub fn offering(&self, id: OfferingId) -> Offering<'_> {
        Offering { snapshot: self, id, row: self.rows[id.index()] }
    }

    /// The offering with this key.
    #[must_use]
    pub fn find(&self, key: &OfferingKey) -> Option<OfferingId> {
        let id = self
            .types
            .binary_search_by(|own| (&own.vendor, &own.name).cmp(&(&key.vendor, &key.instance_type)))
            .ok()?;
        self.of_type(id).iter().copied().map(OfferingId).find(|id| {
            let row = self.rows[id.index()];
            let place = &self.places[row.place as usize].place;
            row.capacity == key.capacity_type && place.region == key.region && place.zone == key.zone
        })
    }

    /// When the oldest and the newest of its prices were seen.
    #[must_use]
    pub fn observed(&self) -> Option<(Time, Time)> {
        let times = self.rows.iter().filter_map(|row| self.terms.observed(row.terms));
        times.map(|time| (time, time)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Numbers of a type's offerings, in price order.
    fn of_type(&self, id: usize) -> &[u32] {
        &self.of_type[self.starts[id] as usize..self.starts[id + 1] as usize]
    }

    /// Offerings of the type that stands at `index` of [`Self::types`], in price order.
    pub fn offerings_of(&self, index: usize) -> impl Iterator<Item = OfferingId> + '_ {
        self.of_type(index).iter().copied().map(OfferingId)
    }

    /// Whether `key` is a label that an offering decides: all that we stamp but pool, class and tenancy.
    #[must_use]
    pub fn carries(key: &str) -> bool {
        label::is_well_known(key) && key != label::NODEPOOL && key != label::TENANCY
    }

    /// Values of label `key` over all types and places, in text order; prices are not listed.
    #[must_use]
    pub fn known_values(&self, key: &str) -> Vec<&str> {
        if key == label::CAPACITY_TYPE {
            return vec![CapacityType::OnDemand.as_str(), CapacityType::Spot.as_str()];
        }
        if let Some(column) = self.columns.get(key) {
            return column.values().collect();
        }
        let mut values: Vec<&str> = self.places.iter().filter_map(|place| place.label(key)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// View of one offering.
#[derive(Clone, Copy, Debug)]
pub struct Offering<'a> {
    snapshot: &'a Snapshot,
    id: OfferingId,
    row: Row,
}

impl<'a> Offering<'a> {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> OfferingId {
        self.id
    }

    /// Price per hour.
    #[must_use]
    pub fn price(&self) -> Price {
        self.row.price
    }

    /// How its vendor states the price.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.snapshot.terms.get(self.row.terms)
    }

    /// Price per hour in the vendor's own currency.
    #[must_use]
    pub fn native_price(&self) -> Money {
        self.terms().native
    }

    /// The most that a month costs in USD, where the vendor caps it, at the rate by which the hour was turned into USD.
    #[must_use]
    pub fn monthly_cap(&self) -> Option<Money> {
        let Terms { native, monthly_cap_micro, .. } = self.terms();
        let (cap, hour) = (u128::from(monthly_cap_micro?), u128::from(native.micro.max(1)));
        let micro = (cap * u128::from(self.row.price.micro_usd()) + hour / 2) / hour;
        Some(Money { micro: u64::try_from(micro).unwrap_or(u64::MAX), currency: Currency::USD })
    }

    /// When the price was seen.
    #[must_use]
    pub fn observed(&self) -> Option<Time> {
        self.snapshot.terms.observed(self.row.terms)
    }

    /// Where its type stands in [`Snapshot::types`].
    #[must_use]
    pub fn type_index(&self) -> usize {
        self.row.instance_type as usize
    }

    /// Where its place stands in [`Snapshot::places`].
    #[must_use]
    pub fn place_index(&self) -> usize {
        self.row.place as usize
    }

    /// Its type.
    #[must_use]
    pub fn instance_type(&self) -> &'a InstanceType {
        &self.snapshot.types[self.type_index()]
    }

    /// Its place.
    #[must_use]
    pub fn place(&self) -> &'a Place {
        &self.snapshot.places[self.place_index()].place
    }

    /// On-demand or spot.
    #[must_use]
    pub fn capacity_type(&self) -> CapacityType {
        self.row.capacity
    }

    /// Its name.
    #[must_use]
    pub fn key(&self) -> OfferingKey {
        let instance_type = self.instance_type();
        OfferingKey {
            vendor: instance_type.vendor.clone(),
            region: self.place().region.clone(),
            zone: self.place().zone.clone(),
            instance_type: instance_type.name.clone(),
            capacity_type: self.row.capacity,
        }
    }

    /// Value of one label, if it has it.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<Cow<'a, str>> {
        match key {
            label::CAPACITY_TYPE => Some(self.row.capacity.as_str().into()),
            label::PRICE => Some(self.row.price.micro_usd().to_string().into()),
            _ => match self.snapshot.columns.get(key) {
                Some(column) => column.value(self.type_index()).map(Into::into),
                None => self.snapshot.places[self.place_index()].label(key).map(Into::into),
            },
        }
    }

    /// Labels that a machine of it carries: type, place, capacity type, price.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let instance_type = self.instance_type();
        let mut out = instance_type.labels();
        out.extend(place_labels(&instance_type.vendor, self.place(), self.row.capacity, self.row.price));
        out
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
