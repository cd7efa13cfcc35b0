//! What is known of types, prices and scores, and one vendor's rows of it.

use std::collections::BTreeMap;

use scarpenter_core::lifecycle::Time;
use scarpenter_core::offering::{CapacityType, InstanceType};
use scarpenter_core::snapshot::Snapshot;

use crate::spec::PriceBasis;

/// Fees in micro-USD an hour by region and type.
pub type Fees = BTreeMap<(String, String), u64>;

/// The data that a selection is made from.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Types and prices of all vendors.
    pub snapshot: &'a Snapshot,
    /// All that was measured, in any order.
    pub measurements: Vec<Measurement<'a>>,
    /// When the data was last updated.
    pub timestamp: Option<Time>,
    /// What tells one state of the data from another.
    pub hash: Option<&'a str>,
    /// Types that EKS Auto Mode launches and what it charges for each in micro-USD an hour, by region and type;
    /// `None` where that is not known.
    pub auto_mode: Option<&'a Fees>,
}

/// One benchmark with one config.
#[derive(Clone, Debug)]
pub struct Measurement<'a> {
    /// Id, such as `geekbench:score`.
    pub id: &'a str,
    /// Config, a JSON object.
    pub config: &'a str,
    /// Scores by the type's place in the snapshot, in that order.
    pub scores: Vec<(usize, f64)>,
}

impl Measurement<'_> {
    pub(crate) fn of(&self, index: usize) -> Option<f64> {
        let at = self.scores.binary_search_by_key(&index, |(of, _)| *of).ok()?;
        Some(self.scores[at].1).filter(|score| score.is_finite())
    }
}

/// One type of one vendor, as a pool in some regions sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) index: usize,
    pub(crate) of: &'a InstanceType,
    /// Lowest price on the basis, fee included, in micro-USD.
    pub(crate) price: Option<u64>,
    /// It is sold on demand in one of the regions.
    pub(crate) on_demand: bool,
}

impl<'a> Row<'a> {
    pub(crate) fn name(&self) -> &'a str {
        &self.of.name
    }

    /// Its family; a type of none is a family of its own.
    pub(crate) fn family(&self) -> &'a str {
        if self.of.family.is_empty() { &self.of.name } else { &self.of.family }
    }
}

/// Where and how prices are looked for.
pub(crate) struct Market<'s> {
    pub(crate) vendor: &'s str,
    pub(crate) regions: &'s [String],
    pub(crate) basis: PriceBasis,
    /// Only what Auto Mode sells counts, and with its fee if that is wanted.
    pub(crate) auto_mode: Option<(&'s Fees, bool)>,
}

impl Market<'_> {
    /// The vendor's rows, by name.
    pub(crate) fn rows<'a>(&self, snapshot: &'a Snapshot) -> Vec<Row<'a>> {
        let types = snapshot.types().iter().enumerate().filter(|(_, of)| of.vendor.as_str() == self.vendor);
        let mut rows: Vec<Row<'a>> = types.map(|(index, of)| self.row(snapshot, index, of)).collect();
        rows.sort_by_key(|row| row.name());
        rows
    }

    fn row<'a>(&self, snapshot: &'a Snapshot, index: usize, of: &'a InstanceType) -> Row<'a> {
        let mut row = Row { index, of, price: None, on_demand: false };
        for offering in snapshot.offerings_of(index).map(|id| snapshot.offering(id)) {
            let region = &offering.place().region;
            if !self.regions.contains(region) {
                continue;
            }
            let is_spot = offering.capacity_type() == CapacityType::Spot;
            row.on_demand |= !is_spot;
            if is_spot != (self.basis == PriceBasis::Spot) {
                continue;
            }
            let fee = match self.auto_mode {
                None => 0,
                Some((fees, charged)) => match fees.get(&(region.clone(), of.name.clone())) {
                    None => continue,
                    Some(fee) => {
                        if charged {
                            *fee
                        } else {
                            0
                        }
                    }
                },
            };
            if let Some(price) = rounded(offering.price().micro_usd()) {
                let price = price + fee;
                row.price = Some(row.price.map_or(price, |least| least.min(price)));
            }
        }
        row
    }
}

/// To four decimals of a dollar, half up, as Keeper does; 0 is no price.
fn rounded(micro: u64) -> Option<u64> {
    Some((micro + 50) / 100 * 100).filter(|micro| *micro > 0)
}

/// The regions of a vendor in which anything is sold.
pub(crate) fn regions<'a>(snapshot: &'a Snapshot, vendor: &str) -> Vec<&'a str> {
    let own = snapshot.places().filter(|(of, _)| of.as_str() == vendor);
    let mut regions: Vec<&str> = own.map(|(_, place)| place.region.as_str()).collect();
    regions.sort_unstable();
    regions.dedup();
    regions
}

/// The zones of a vendor's regions, in text order.
pub(crate) fn zones(snapshot: &Snapshot, vendor: &str, regions: &[String]) -> Vec<String> {
    let own =
        snapshot.places().filter(|(of, place)| of.as_str() == vendor && regions.contains(&place.region));
    let mut zones: Vec<String> = own.filter_map(|(_, place)| place.zone.clone()).collect();
    zones.sort_unstable();
    zones.dedup();
    zones
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_rounded_half_up_to_four_decimals_and_nothing_is_no_price() {
        for (micro, expected) in
            [(49, None), (50, Some(100)), (149, Some(100)), (150, Some(200)), (244_090, Some(244_100))]
        {
            assert_eq!(rounded(micro), expected, "{micro}");
        }
    }
}
