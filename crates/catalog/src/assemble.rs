//! Puts raw rows together into a catalog: ids become names, rows that are no offering are counted.

use std::collections::{HashMap, HashSet};

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{CapacityType, InstanceType, Place, Terms};

use crate::offers::{Offer, Offers, number};
use crate::report::Provenance;
use crate::rows::{PriceRow, RegionRow, ScoreRow, ServerRow, ZoneRow};
use crate::scores::Collected;
use crate::{Catalog, Rates, Reason, Report, benchmark, place};

mod machine;
mod terms;

use machine::Machines;
use terms::Times;

/// A catalog in the making.
///
/// Rows are given in this order: regions, zones, servers, scores, prices.
/// A row that refers to one not yet given is left out.
pub(crate) struct Assembly<'r> {
    rates: &'r Rates,
    vendors: HashMap<String, Ids>,
    machines: Machines,
    times: Times,
    types: Vec<InstanceType>,
    places: Places,
    offers: Vec<Offer>,
    scores: Collected,
    report: Report,
}

/// What the ids of one vendor mean. Ids of two vendors may be equal.
#[derive(Default)]
struct Ids {
    regions: HashMap<String, (String, bool)>,
    zones: HashMap<String, HashMap<String, (u32, bool)>>,
    /// A type's number, or why it was left out.
    servers: HashMap<String, Result<u32, Reason>>,
    type_names: HashSet<String>,
}

impl<'r> Assembly<'r> {
    pub(crate) fn new(rates: &'r Rates) -> Self {
        Self {
            rates,
            vendors: HashMap::new(),
            machines: Machines::default(),
            times: Times::default(),
            types: Vec::new(),
            places: Places::default(),
            offers: Vec::new(),
            scores: Collected::default(),
            report: Report::default(),
        }
    }

    pub(crate) fn region(&mut self, row: &RegionRow<'_>) {
        let name = (place::region(row), row.active);
        self.ids(row.vendor).regions.insert(row.id.to_owned(), name);
    }

    pub(crate) fn zone(&mut self, row: &ZoneRow<'_>) {
        let Some((region, region_active)) = self.ids(row.vendor).regions.get(row.region_id).cloned() else {
            return self.report.drop(Reason::NoRegion);
        };
        let number = self.places.number(row.vendor, place::place(row, &region));
        let zones = self.ids(row.vendor).zones.entry(row.region_id.to_owned()).or_default();
        zones.insert(row.id.to_owned(), (number, row.active && region_active));
    }

    pub(crate) fn server(&mut self, row: &ServerRow<'_>) {
        let read = match self.machines.read(row) {
            Ok(known) if !self.ids(row.vendor).type_names.insert(known.name.clone()) => Err(Reason::BadType),
            other => other,
        };
        let outcome = match read {
            Ok(new) => {
                self.types.push(new);
                Ok(number(self.types.len() - 1))
            }
            Err(reason) => {
                self.report.drop(reason);
                Err(reason)
            }
        };
        let servers = &mut self.ids(row.vendor).servers;
        if outcome.is_ok() || !servers.contains_key(row.id) {
            servers.insert(row.id.to_owned(), outcome);
        }
    }

    pub(crate) fn score(&mut self, row: &ScoreRow<'_>) {
        let of = self.vendors.get(row.vendor).and_then(|ids| ids.servers.get(row.server_id));
        let Some(Ok(of)) = of else { return };
        if !row.active {
            return self.report.drop(Reason::InactiveScore);
        }
        let exact = row.score.unwrap_or_default();
        match benchmark::score(row.score) {
            Some(rounded) if self.scores.add(*of, row.benchmark_id, row.config, exact) => {
                if let Some(name) = benchmark::name(row.benchmark_id, row.config) {
                    self.types[*of as usize].benchmarks.insert(name, rounded);
                }
            }
            _ => self.report.drop(Reason::BadScore),
        }
    }

    pub(crate) fn price(&mut self, row: &PriceRow<'_>) {
        match self.offer(row) {
            Ok(offer) => self.offers.push(offer),
            Err(reason) => self.report.drop(reason),
        }
    }

    /// Rows that are there and cannot be read.
    pub(crate) fn unreadable(&mut self, count: usize) {
        self.report.drop_many(Reason::Unreadable, count);
    }

    /// The catalog of all that was given; `provenance` says whence, the rates in it are set here.
    pub(crate) fn finish(self, provenance: Provenance) -> Catalog {
        let Self { rates, machines, mut types, places, offers, scores, report, .. } = self;
        machines.finish(&mut types);
        let report = Report {
            source: provenance.source.clone(),
            provenance: Provenance { rates: rates.clone(), ..provenance },
            ..report
        };
        Offers { types, places: places.list, offers, scores: scores.into_list() }.into_catalog(report)
    }

    fn ids(&mut self, vendor: &str) -> &mut Ids {
        if !self.vendors.contains_key(vendor) {
            self.vendors.insert(vendor.to_owned(), Ids::default());
        }
        self.vendors.get_mut(vendor).expect("it was just put there")
    }

    /// The checks are in the order of [`Reason`].
    fn offer(&mut self, row: &PriceRow<'_>) -> Result<Offer, Reason> {
        let ids = self.vendors.get(row.vendor).ok_or(Reason::NoType)?;
        let of = ids.servers.get(row.server_id).ok_or(Reason::NoType)?;
        let of = of.map_err(|reason| match reason {
            Reason::InactiveType => Reason::OfInactiveType,
            _ => Reason::OfOtherType,
        })?;
        let zone = ids.zones.get(row.region_id).and_then(|zones| zones.get(row.zone_id));
        let (place, open) = *zone.ok_or(Reason::NoPlace)?;
        if !open {
            return Err(Reason::InactivePlace);
        }
        if !row.active {
            return Err(Reason::InactivePrice);
        }
        if !row.operating_system.eq_ignore_ascii_case("linux") {
            return Err(Reason::OtherSystem);
        }
        let capacity = capacity_type(row.allocation).ok_or(Reason::OtherAllocation)?;
        if !row.unit.eq_ignore_ascii_case("hour") {
            return Err(Reason::NotHourly);
        }
        let terms: Terms = terms::terms(row, &mut self.times)?;
        Ok(Offer { instance_type: of, place, capacity, terms })
    }
}

/// Each place of a vendor once.
#[derive(Default)]
struct Places {
    list: Vec<(Vendor, Place)>,
    numbers: HashMap<(Vendor, Place), u32>,
}

impl Places {
    fn number(&mut self, vendor: &str, place: Place) -> u32 {
        let next = number(self.list.len());
        let place = (Vendor::from(vendor), place);
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.list.push(place);
        }
        number
    }
}

/// The database writes `ONDEMAND`, the Keeper `ondemand`.
fn capacity_type(allocation: &str) -> Option<CapacityType> {
    if allocation.eq_ignore_ascii_case("ondemand") {
        Some(CapacityType::OnDemand)
    } else if allocation.eq_ignore_ascii_case("spot") {
        Some(CapacityType::Spot)
    } else {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
