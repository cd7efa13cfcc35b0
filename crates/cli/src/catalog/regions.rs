//! `catalog regions`: where each vendor sells.
//!
//! ```json
//! {"version": 1, "catalog": {"source": "…", "fetched": null, "date": null},
//!  "regions": [{"vendor": "aws", "region": "us-west-2", "uniqueRegion": "aws.us-west-2",
//!  "zones": ["us-west-2a", "us-west-2b"], "types": 820, "onDemand": 3100, "spot": 0}]}
//! ```
//!
//! `region` and `zones` are the values of the labels `topology.kubernetes.io/region` and `…/zone`, `uniqueRegion` that of
//! `scarpenter.sparecores.com/region`; `types` counts types, `onDemand` and `spot` offerings.

use std::collections::{BTreeMap, BTreeSet};

use scarpenter_catalog::Catalog;
use scarpenter_core::label::label_value;
use scarpenter_core::offering::CapacityType;
use scarpenter_core::snapshot::Snapshot;
use serde::Serialize;

use super::grid::{Grid, numbers, words};
use super::view::{VERSION, View};
use super::words::{CatalogDocument, count};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    view: View,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let catalog = args.view.source.open()?;
    let regions = regions(&catalog.snapshot);
    let grid = grid(&regions);
    args.view.print(&document(&catalog, &regions), &grid, || table(&grid, &regions))
}

#[derive(Debug, Serialize)]
struct RegionsDocument<'a> {
    version: u32,
    catalog: CatalogDocument,
    regions: &'a [Region],
}

/// A region of a vendor and what is sold there.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    vendor: String,
    region: String,
    unique_region: String,
    zones: BTreeSet<String>,
    types: usize,
    on_demand: usize,
    spot: usize,
}

fn document<'a>(catalog: &Catalog, regions: &'a [Region]) -> RegionsDocument<'a> {
    RegionsDocument { version: VERSION, catalog: CatalogDocument::new(&catalog.report), regions }
}

/// By vendor and region.
fn regions(snapshot: &Snapshot) -> Vec<Region> {
    let mut out: BTreeMap<(&str, &str), Region> = BTreeMap::new();
    for (vendor, place) in snapshot.places() {
        let key = (vendor.as_str(), place.region.as_str());
        let region = out.entry(key).or_insert_with(|| Region {
            vendor: key.0.to_owned(),
            region: label_value(key.1),
            unique_region: label_value(&format!("{}.{}", key.0, key.1)),
            zones: BTreeSet::new(),
            types: 0,
            on_demand: 0,
            spot: 0,
        });
        region.zones.extend(place.zone.as_deref().map(label_value));
    }
    let mut types = BTreeSet::new();
    for offering in snapshot.offerings() {
        let vendor = offering.instance_type().vendor.as_str();
        let key = (vendor, offering.place().region.as_str());
        let region = out.get_mut(&key).expect("an offering stands in one of the places");
        match offering.capacity_type() {
            CapacityType::OnDemand => region.on_demand += 1,
            CapacityType::Spot => region.spot += 1,
        }
        region.types += usize::from(types.insert((key, offering.type_index())));
    }
    out.into_values().collect()
}

fn grid(regions: &[Region]) -> Grid {
    let mut grid = Grid::new(vec![
        words("VENDOR", "vendor"),
        words("REGION", "region"),
        numbers("TYPES", "types"),
        numbers("ON-DEMAND", "on_demand"),
        numbers("SPOT", "spot"),
        words("ZONES", "zones"),
    ]);
    for region in regions {
        let zones: Vec<&str> = region.zones.iter().map(String::as_str).collect();
        grid.push(vec![
            region.vendor.clone(),
            region.region.clone(),
            region.types.to_string(),
            region.on_demand.to_string(),
            region.spot.to_string(),
            zones.join(" "),
        ]);
    }
    grid
}

fn table(grid: &Grid, regions: &[Region]) -> String {
    let vendors: BTreeSet<&str> = regions.iter().map(|region| region.vendor.as_str()).collect();
    format!("{}\n{} of {}\n", grid.table(), count(regions.len(), "region"), count(vendors.len(), "vendor"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_catalog::{Rates, sample};

    use super::*;

    #[test]
    fn a_region_counts_what_is_sold_in_it_and_all_together_count_everything() {
        let catalog = sample(&Rates::default());
        let regions = regions(&catalog.snapshot);
        let all: usize = regions.iter().map(|region| region.on_demand + region.spot).sum();
        assert_eq!(all, catalog.snapshot.len());
        assert!(regions.is_sorted_by_key(|region| (region.vendor.clone(), region.region.clone())));
        let hetzner = regions.iter().find(|region| region.unique_region == "hcloud.fsn1").unwrap();
        assert_eq!((hetzner.zones.len(), hetzner.spot), (1, 0));
        assert!(hetzner.types > 0 && hetzner.on_demand >= hetzner.types);
    }

    #[test]
    fn version_1_of_the_contract_has_exactly_these_fields() {
        let catalog = sample(&Rates::default());
        let regions = regions(&catalog.snapshot);
        let document = serde_json::to_value(document(&catalog, &regions)).unwrap();
        let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&document), ["catalog", "regions", "version"]);
        assert_eq!(keys(&document["catalog"]), ["date", "fetched", "source"]);
        let fields = ["onDemand", "region", "spot", "types", "uniqueRegion", "vendor", "zones"];
        assert_eq!(keys(&document["regions"][0]), fields);
        assert_eq!(document["version"], 1);
    }
}
