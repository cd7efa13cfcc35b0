use std::collections::BTreeMap;

use scarpenter_core::name::Vendor;
use scarpenter_core::snapshot::{Bits, OfferingId, Selection, Snapshot};

use crate::Unavailable;

/// The catalog with what cannot be bought now.
#[derive(Debug)]
pub(crate) struct Market<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// Offerings of vendors that can be asked.
    pub(crate) usable: Selection,
    /// Why the others cannot.
    pub(crate) vendors: &'a BTreeMap<Vendor, String>,
    sold_out: BTreeMap<OfferingId, i64>,
    sold_out_bits: Bits,
    quota: Vec<Option<i64>>,
}

impl<'a> Market<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, unavailable: &'a Unavailable, now: i64) -> Self {
        let mut usable = snapshot.everything();
        let mut quota = Vec::new();
        for (index, (vendor, place)) in snapshot.places().enumerate() {
            if unavailable.vendors.contains_key(vendor) {
                usable.places.remove(index);
            }
            let until = unavailable.regions.get(&(vendor.clone(), place.region.clone()));
            quota.push(until.copied().filter(|until| *until > now));
        }
        let mut sold_out_bits = Bits::none(snapshot.len());
        let mut sold_out = BTreeMap::new();
        for (key, until) in unavailable.offerings.iter().filter(|(_, until)| **until > now) {
            if let Some(id) = snapshot.find(key) {
                sold_out.insert(id, *until);
                sold_out_bits.insert(id.index());
            }
        }
        Self { snapshot, usable, vendors: &unavailable.vendors, sold_out, sold_out_bits, quota }
    }

    /// Whether nothing was refused lately.
    pub(crate) fn is_full(&self) -> bool {
        self.sold_out.is_empty() && self.quota.iter().all(Option::is_none)
    }

    /// Whether nothing speaks against buying it now.
    pub(crate) fn in_stock(&self, id: OfferingId) -> bool {
        !self.sold_out_bits.contains(id.index())
            && self.quota[self.snapshot.offering(id).place_index()].is_none()
    }

    /// Until when it is not asked for again, if it is out of stock or over quota.
    pub(crate) fn until(&self, id: OfferingId) -> Option<i64> {
        let quota = self.quota[self.snapshot.offering(id).place_index()];
        self.sold_out.get(&id).copied().max(quota)
    }
}
