use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::requirements::ValueSet;
use scarpenter_core::snapshot::{OfferingId, Snapshot};

use crate::market::Market;
use crate::shape::{Offer, Shape};

/// Values of topology keys that a machine for a pod could have: they are domains even while nothing is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    values: BTreeMap<String, BTreeSet<String>>,
}

impl Reach {
    /// Values of `keys` on machines that have all of `must`.
    pub(super) fn new(market: &Market<'_>, shape: &Shape, must: &[&str], keys: &[&str]) -> Self {
        let mut out = Self::default();
        let present: Vec<(&str, ValueSet)> = must.iter().map(|key| (*key, ValueSet::present())).collect();
        for offer in shape.bare() {
            let Some(offer) = offer.narrowed(market.snapshot, &present) else { continue };
            keys.iter().for_each(|key| out.take(market, &offer, key));
        }
        out
    }

    fn take(&mut self, market: &Market<'_>, offer: &Offer, key: &str) {
        if Snapshot::carries(key) {
            let in_stock = |id| market.in_stock(id);
            let accept: Option<&dyn Fn(OfferingId) -> bool> =
                if market.is_full() { None } else { Some(&in_stock) };
            for value in market.snapshot.values_of(&offer.selection, key, accept) {
                self.add(key, &value);
            }
        } else if let Some(listed) = offer.requirements.get(key).and_then(ValueSet::listed) {
            listed.iter().for_each(|value| self.add(key, value));
        }
    }

    fn add(&mut self, key: &str, value: &str) {
        let values = match self.values.get_mut(key) {
            Some(values) => values,
            None => self.values.entry(key.to_owned()).or_default(),
        };
        if !values.contains(value) {
            values.insert(value.to_owned());
        }
    }

    /// Both.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.values.extend(other.values);
        self
    }

    pub(super) fn contains(&self, key: &str, value: &str) -> bool {
        self.values.get(key).is_some_and(|values| values.contains(value))
    }

    /// How many values of a key are so.
    pub(super) fn count(&self, key: &str, is: impl Fn(&str) -> bool) -> usize {
        self.values.get(key).map_or(0, |values| values.iter().filter(|value| is(value)).count())
    }
}
