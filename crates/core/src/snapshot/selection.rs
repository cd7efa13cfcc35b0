use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::label;
use crate::offering::{CapacityType, Price};
use crate::requirements::{Requirements, ValueSet};

use super::build::number;
use super::prices::Prices;
use super::{Bits, OfferingId, Row, Snapshot};

/// Fewer offerings than this are gathered and sorted; more are met by walking all in price order.
const GATHER: usize = 4096;
/// Where one in so many types is left, or fewer, they are looked at one by one.
const FEW: usize = 8;

/// A set of offerings as what it was chosen by: types × places × capacity types, within a price.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Types, by index.
    pub types: Bits,
    /// Places, by index.
    pub places: Bits,
    on_demand: bool,
    spot: bool,
    price: Option<Prices>,
}

impl Selection {
    /// Keeps what is in `other` too.
    pub fn and(&mut self, other: &Self) {
        self.types.and(&other.types);
        self.places.and(&other.places);
        self.on_demand &= other.on_demand;
        self.spot &= other.spot;
        self.price = match (self.price.take(), &other.price) {
            (Some(own), Some(theirs)) => Some(own.and(theirs.set())),
            (own, theirs) => own.or_else(|| theirs.clone()),
        };
    }

    /// Keeps only what `set` allows as label `karpenter.sh/capacity-type`.
    pub fn keep_capacity_types(&mut self, set: &ValueSet) {
        self.on_demand &= set.allows(Some(CapacityType::OnDemand.as_str()));
        self.spot &= set.allows(Some(CapacityType::Spot.as_str()));
    }

    /// Capacity types that may be in it.
    pub fn capacity_types(&self) -> impl Iterator<Item = CapacityType> + Clone {
        let on_demand = self.on_demand.then_some(CapacityType::OnDemand);
        on_demand.into_iter().chain(self.spot.then_some(CapacityType::Spot))
    }

    /// Whether the two can have an offering in common, judged by types, places and capacity types.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        (self.on_demand && other.on_demand || self.spot && other.spot)
            && self.types.meets(&other.types)
            && self.places.meets(&other.places)
    }

    /// Whether an offering of such a type, place, capacity type and price is in it.
    pub(super) fn takes(&self, row: &Row) -> bool {
        let capacity = match row.capacity {
            CapacityType::OnDemand => self.on_demand,
            CapacityType::Spot => self.spot,
        };
        capacity
            && self.types.contains(row.instance_type as usize)
            && self.places.contains(row.place as usize)
            && self.price.as_ref().is_none_or(|prices| prices.allows(row.price.micro_usd()))
    }

    /// Whether only the type decides what is in it.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.on_demand && self.spot && self.price.is_none() && self.places.is_full()
    }
}

impl Snapshot {
    /// All offerings.
    #[must_use]
    pub fn everything(&self) -> Selection {
        Selection {
            types: Bits::all(self.types.len()),
            places: Bits::all(self.places.len()),
            on_demand: true,
            spot: true,
            price: None,
        }
    }

    /// What the requirements on keys that offerings carry leave; other keys are not looked at.
    #[must_use]
    pub fn select(&self, requirements: &Requirements) -> Selection {
        let mut out = self.everything();
        for (key, set) in requirements.iter().filter(|(key, _)| Self::carries(key)) {
            self.narrow(&mut out, key, set);
        }
        out
    }

    /// Keeps in `selection` the offerings whose label `key`, or lack of it, `set` allows.
    pub fn narrow(&self, selection: &mut Selection, key: &str, set: &ValueSet) {
        match key {
            label::CAPACITY_TYPE => selection.keep_capacity_types(set),
            label::PRICE => {
                let own = selection.price.as_ref();
                selection.price = Some(own.map_or_else(|| Prices::of(set.clone()), |own| own.and(set)));
            }
            _ => match (self.columns.get(key), self.place_columns.get(key)) {
                (Some(column), _) => column.narrow(&mut selection.types, set),
                (None, Some(column)) => column.narrow(&mut selection.places, set),
                (None, None) if set.allows(None) => {}
                (None, None) => selection.types = Bits::none(self.types.len()),
            },
        }
    }

    /// The offerings that match, in price order; a key that offerings do not carry is a missing label.
    pub fn matching(&self, requirements: &Requirements) -> impl Iterator<Item = OfferingId> + '_ {
        let mut selection = self.select(requirements);
        if requirements.iter().any(|(key, set)| !Self::carries(key) && !set.allows(None)) {
            selection.types = Bits::none(self.types.len());
        }
        self.selected(selection)
    }

    /// The offerings of a selection, in price order.
    pub fn selected<'a>(&'a self, selection: impl std::borrow::Borrow<Selection> + 'a) -> Selected<'a> {
        let chosen = selection.borrow();
        let most: usize = chosen.types.iter().map(|id| self.of_type(id).len()).sum();
        if most > GATHER {
            let all = self.rows.iter().zip(0..);
            return Box::new(
                all.filter(move |(row, _)| selection.borrow().takes(row)).map(|(_, id)| OfferingId(id)),
            );
        }
        let mut ids: Vec<u32> = chosen
            .types
            .iter()
            .flat_map(|id| self.of_type(id))
            .copied()
            .filter(|id| chosen.takes(&self.rows[*id as usize]))
            .collect();
        ids.sort_unstable();
        Box::new(ids.into_iter().map(OfferingId))
    }

    /// The cheapest offering of a selection.
    #[must_use]
    pub fn cheapest(&self, selection: &Selection) -> Option<OfferingId> {
        self.first(selection, |_| true)
    }

    /// The first offering of a selection, in price order, that `accept` takes.
    pub fn first(&self, selection: &Selection, accept: impl Fn(OfferingId) -> bool) -> Option<OfferingId> {
        self.first_within(selection, self.within(selection.price.as_ref()), accept)
    }

    /// The same, if its price is at most `most`; what is dearer is not looked at.
    pub fn first_up_to(
        &self,
        selection: &Selection,
        most: Price,
        accept: impl Fn(OfferingId) -> bool,
    ) -> Option<OfferingId> {
        let mut within = self.within(selection.price.as_ref());
        let end = number(self.rows.partition_point(|row| row.price <= most));
        within.end = within.end.min(end).max(within.start);
        self.first_within(selection, within, accept)
    }

    fn first_within(
        &self,
        selection: &Selection,
        within: Range<u32>,
        accept: impl Fn(OfferingId) -> bool,
    ) -> Option<OfferingId> {
        let accept = |id: u32| selection.takes(&self.rows[id as usize]) && accept(OfferingId(id));
        if let Some(only) = selection.price.as_ref().and_then(Prices::only) {
            let mut ids = only.iter().flat_map(|price| self.between(*price, *price));
            return ids.find(|id| within.contains(id) && accept(*id)).map(OfferingId);
        }
        let mut types = selection.types.clone();
        self.reach.narrow(&mut types, &selection.places, selection.capacity_types());
        let few = types.count() * FEW <= types.limit();
        let first = match (few, within.start) {
            (true, _) => self.first_of_few(&types, within, accept),
            (false, 0) => self.first_of_many(&types, within.end, accept),
            // Most types begin below the least price, so that their cheapest offering says nothing.
            (false, _) => within.into_iter().find(|id| accept(*id)),
        };
        first.map(OfferingId)
    }

    /// Numbers of the offerings between the least and the greatest price that may be allowed.
    fn within(&self, prices: Option<&Prices>) -> Range<u32> {
        let (least, most) = prices.map_or((0, u64::MAX), Prices::span);
        self.between(least, most)
    }

    fn between(&self, least: u64, most: u64) -> Range<u32> {
        let start = self.rows.partition_point(|row| row.price.micro_usd() < least);
        let end = self.rows.partition_point(|row| row.price.micro_usd() <= most);
        number(start)..number(end.max(start))
    }

    fn first_of_few(&self, types: &Bits, within: Range<u32>, accept: impl Fn(u32) -> bool) -> Option<u32> {
        let mut best = within.end;
        for id in types.iter() {
            let offerings = self.of_type(id);
            let start = offerings.partition_point(|id| *id < within.start);
            let cheaper = offerings[start..].iter().copied().take_while(|id| *id < best);
            best = cheaper.into_iter().find(|id| accept(*id)).unwrap_or(best);
        }
        (best < within.end).then_some(best)
    }

    /// Types are met in the order of their cheapest offering, so that of each only few offerings are looked at, and
    /// none of the types that are dearer than what was found.
    fn first_of_many(&self, types: &Bits, end: u32, accept: impl Fn(u32) -> bool) -> Option<u32> {
        let mut best = end;
        for id in self.cheapest_first.iter().map(|id| *id as usize) {
            let offerings = self.of_type(id);
            if offerings.first().is_none_or(|cheapest| *cheapest >= best) {
                break;
            }
            if types.contains(id) {
                let cheaper = offerings.iter().copied().take_while(|id| *id < best);
                best = cheaper.into_iter().find(|id| accept(*id)).unwrap_or(best);
            }
        }
        (best < end).then_some(best)
    }

    /// The first offering of each type of a selection, in price order, that `accept` takes.
    #[must_use]
    pub fn first_of_types(
        &self,
        selection: &Selection,
        accept: impl Fn(OfferingId) -> bool,
    ) -> Vec<OfferingId> {
        let taken = |id: &u32| selection.takes(&self.rows[*id as usize]) && accept(OfferingId(*id));
        let first = |id| self.of_type(id).iter().copied().find(taken);
        let mut out: Vec<OfferingId> = selection.types.iter().filter_map(first).map(OfferingId).collect();
        out.sort_unstable();
        out
    }

    /// Values of label `key` that the offerings of a selection have; `accept` is asked where it is given.
    #[must_use]
    pub fn values_of(
        &self,
        selection: &Selection,
        key: &str,
        accept: Option<&dyn Fn(OfferingId) -> bool>,
    ) -> BTreeSet<Cow<'_, str>> {
        if selection.price.is_none() && accept.is_none() && self.place_columns.contains_key(key) {
            let sold =
                |place: &usize| self.reach.any_in(*place, &selection.types, selection.capacity_types());
            let places = selection.places.iter().filter(sold);
            return places.filter_map(|place| self.places[place].label(key)).map(Cow::Borrowed).collect();
        }
        let ids = self.selected(selection).filter(|id| accept.is_none_or(|accept| accept(*id)));
        ids.filter_map(|id| self.offering(id).label(key)).collect()
    }

    /// How many offerings a selection has.
    #[must_use]
    pub fn count(&self, selection: &Selection) -> usize {
        let free = selection.is_everywhere();
        let taken = |id: &u32| selection.takes(&self.rows[*id as usize]);
        let of_type = |id| {
            let offerings = self.of_type(id);
            if free { offerings.len() } else { offerings.iter().filter(|id| taken(id)).count() }
        };
        selection.types.iter().map(of_type).sum()
    }

    /// Whether `selection` has the offering.
    #[must_use]
    pub fn contains(&self, selection: &Selection, id: OfferingId) -> bool {
        selection.takes(&self.rows[id.index()])
    }
}

/// Offerings in price order.
pub type Selected<'a> = Box<dyn Iterator<Item = OfferingId> + 'a>;
