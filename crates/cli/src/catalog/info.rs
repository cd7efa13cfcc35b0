//! `catalog info`: where the catalog is from, how old it is, what it holds, and what was left out.
//!
//! ```json
//! {"version": 1, "catalog": {"source": "…", "fetched": "2026-11-30T18:00:00Z", "date": "2026-08-22T03:50:12Z"},
//!  "origin": "keeper https://keeper.example.com", "hash": "6ebb…", "oldest": "2024-12-30T00:00:00Z",
//!  "ageSeconds": 3600, "types": 4485, "offerings": 79801,
//!  "vendors": [{"vendor": "aws", "types": 1376, "sold": 1356, "regions": 32, "zones": 48, "onDemand": 25592, "spot": 0}],
//!  "leftOut": [{"reason": "inactive-type", "words": "inactive types", "rows": 967}],
//!  "withoutRate": [{"currency": "CNY", "rows": 10443}],
//!  "rates": [{"currency": "EUR", "usd": 1.1, "date": "2026-08-22"}], "notice": "…"}
//! ```
//!
//! `origin` is what the facts were first fetched from, `ageSeconds` how long ago that was; `types` and `sold` count types
//! that can be bought somewhere, a vendor's `types` all that are known.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use scarpenter_catalog::{Catalog, Reason, Report};
use scarpenter_core::offering::CapacityType;
use scarpenter_core::snapshot::Snapshot;
use serde::Serialize;

use super::grid::{Grid, numbers, words};
use super::view::{VERSION, View};
use super::words::{CatalogDocument, ago, count, time};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    view: View,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let catalog = args.view.source.open_quietly()?;
    let document = InfoDocument::new(&catalog, Timestamp::now());
    let grid = grid(&document);
    args.view.print(&document, &grid, || table(&document, &grid))
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InfoDocument {
    version: u32,
    catalog: CatalogDocument,
    origin: String,
    hash: Option<String>,
    oldest: Option<Timestamp>,
    age_seconds: Option<i64>,
    types: usize,
    offerings: usize,
    vendors: Vec<VendorDocument>,
    left_out: Vec<LeftOut>,
    without_rate: Vec<WithoutRate>,
    rates: Vec<RateDocument>,
    notice: String,
}

/// What there is of one vendor.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VendorDocument {
    vendor: String,
    types: usize,
    sold: usize,
    regions: usize,
    zones: usize,
    on_demand: usize,
    spot: usize,
}

#[derive(Debug, Serialize)]
struct LeftOut {
    reason: Reason,
    words: &'static str,
    rows: usize,
}

#[derive(Debug, Serialize)]
struct WithoutRate {
    currency: String,
    rows: usize,
}

#[derive(Debug, Serialize)]
struct RateDocument {
    currency: String,
    usd: f64,
    date: Option<Date>,
}

impl InfoDocument {
    fn new(catalog: &Catalog, now: Timestamp) -> Self {
        let Report { provenance, dropped, without_rate, oldest, types, offerings, .. } = &catalog.report;
        let age = provenance.fetched.map(|fetched| now.duration_since(fetched).as_secs().max(0));
        Self {
            version: VERSION,
            catalog: CatalogDocument::new(&catalog.report),
            origin: provenance.source.clone(),
            hash: provenance.hash.clone(),
            oldest: *oldest,
            age_seconds: age,
            types: *types,
            offerings: *offerings,
            vendors: vendors(&catalog.snapshot),
            left_out: dropped
                .iter()
                .map(|(reason, rows)| LeftOut { reason: *reason, words: reason.as_str(), rows: *rows })
                .collect(),
            without_rate: without_rate
                .iter()
                .map(|(currency, rows)| WithoutRate { currency: currency.clone(), rows: *rows })
                .collect(),
            rates: provenance
                .rates
                .iter()
                .map(|rate| RateDocument {
                    currency: rate.currency().to_owned(),
                    usd: rate.usd(),
                    date: rate.date(),
                })
                .collect(),
            notice: provenance.notice.clone(),
        }
    }
}

fn vendors(snapshot: &Snapshot) -> Vec<VendorDocument> {
    let mut out: BTreeMap<&str, VendorDocument> = BTreeMap::new();
    for (index, each) in snapshot.types().iter().enumerate() {
        let vendor = out.entry(each.vendor.as_str()).or_default();
        vendor.types += 1;
        vendor.sold += usize::from(snapshot.offerings_of(index).next().is_some());
    }
    let (mut regions, mut zones) = (BTreeSet::new(), BTreeSet::new());
    for offering in snapshot.offerings() {
        let (key, place) = (offering.instance_type().vendor.as_str(), offering.place());
        let vendor = out.get_mut(key).expect("an offering has one of the types");
        match offering.capacity_type() {
            CapacityType::OnDemand => vendor.on_demand += 1,
            CapacityType::Spot => vendor.spot += 1,
        }
        vendor.regions += usize::from(regions.insert((key, &place.region)));
        vendor.zones += usize::from(zones.insert((key, place)));
    }
    out.into_iter().map(|(name, vendor)| VendorDocument { vendor: name.to_owned(), ..vendor }).collect()
}

/// What there is, by vendor.
fn grid(document: &InfoDocument) -> Grid {
    let mut grid = Grid::new(vec![
        words("VENDOR", "vendor"),
        numbers("TYPES", "types"),
        numbers("SOLD", "sold"),
        numbers("REGIONS", "regions"),
        numbers("ZONES", "zones"),
        numbers("ON-DEMAND", "on_demand"),
        numbers("SPOT", "spot"),
    ]);
    for vendor in &document.vendors {
        let VendorDocument { vendor, types, sold, regions, zones, on_demand, spot } = vendor;
        let counts = [types, sold, regions, zones, on_demand, spot].map(|number| number.to_string());
        grid.push([vec![vendor.clone()], counts.to_vec()].concat());
    }
    grid
}

fn table(document: &InfoDocument, grid: &Grid) -> String {
    let CatalogDocument { source, fetched, date } = &document.catalog;
    let mut lines = vec![("source", source.clone())];
    let mut put = |name, text: String| {
        if !text.is_empty() {
            lines.push((name, text));
        }
    };
    if document.origin != *source {
        put("first from", document.origin.clone());
    }
    let age = document.age_seconds.map(|seconds| format!("{}, {}", time(*fetched), ago(seconds)));
    put("fetched", age.unwrap_or_default());
    put("hash", document.hash.clone().unwrap_or_default());
    put("prices seen", seen(document.oldest, *date));
    put("offerings", format!("{} of {}", document.offerings, count(document.types, "type")));
    let others = document.rates.iter().filter(|rate| rate.currency != "USD");
    put("rates", others.map(RateDocument::words).collect::<Vec<_>>().join(", "));
    put("notice", document.notice.clone());
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out: String = lines.iter().map(|(name, text)| format!("{name:width$}  {text}\n")).collect();
    out.push_str(&format!("\n{}", grid.table()));
    if !document.left_out.is_empty() {
        out.push_str(&format!("\nleft out\n{}", left_out(document)));
    }
    out
}

fn seen(oldest: Option<Timestamp>, newest: Option<Timestamp>) -> String {
    match (time(oldest), time(newest)) {
        (oldest, newest) if oldest == newest => newest,
        (oldest, newest) => format!("{oldest} to {newest}"),
    }
}

fn left_out(document: &InfoDocument) -> String {
    let rows = document.left_out.iter().map(|left| {
        let currencies: Vec<String> = match left.reason {
            Reason::NoRate => document.without_rate.iter().map(WithoutRate::words).collect(),
            _ => Vec::new(),
        };
        let which =
            if currencies.is_empty() { String::new() } else { format!(": {}", currencies.join(", ")) };
        format!("{:>7}  {}{which}\n", left.rows, left.words)
    });
    rows.collect()
}

impl RateDocument {
    fn words(&self) -> String {
        let of = self.date.map(|date| format!(" of {date}")).unwrap_or_default();
        format!("1 {} = {} USD{of}", self.currency, self.usd)
    }
}

impl WithoutRate {
    fn words(&self) -> String {
        format!("{} ({}), give --rate {0}=…", self.currency, self.rows)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_catalog::{Rates, sample};

    use super::*;

    fn info(catalog: &Catalog) -> InfoDocument {
        InfoDocument::new(catalog, "2026-11-30T18:00:00Z".parse().unwrap())
    }

    #[test]
    fn vendors_add_up_to_the_whole() {
        let catalog = sample(&Rates::default());
        let info = info(&catalog);
        assert_eq!(info.vendors.len(), 8);
        let offerings: usize = info.vendors.iter().map(|vendor| vendor.on_demand + vendor.spot).sum();
        let sold: usize = info.vendors.iter().map(|vendor| vendor.sold).sum();
        assert_eq!((offerings, sold), (catalog.report.offerings, catalog.report.types));
    }

    #[test]
    fn the_age_is_counted_from_the_fetching_and_is_never_negative() {
        let mut catalog = sample(&Rates::default());
        for (fetched, age) in [("2026-11-30T17:00:00Z", 3600), ("2026-11-30T19:00:00Z", 0)] {
            catalog.report.provenance.fetched = Some(fetched.parse().unwrap());
            assert_eq!(info(&catalog).age_seconds, Some(age));
        }
        catalog.report.provenance.fetched = None;
        assert_eq!(info(&catalog).age_seconds, None);
    }

    #[test]
    fn what_was_left_out_is_said_with_what_would_bring_it_in() {
        let mut catalog = sample(&Rates::default());
        catalog.report.dropped = BTreeMap::from([(Reason::OtherArch, 3), (Reason::NoRate, 2)]);
        catalog.report.without_rate = BTreeMap::from([("EUR".to_owned(), 2)]);
        let info = info(&catalog);
        let text = table(&info, &grid(&info));
        assert!(text.contains("      3  types of another architecture\n"), "{text}");
        assert!(text.contains("prices in a currency without a rate: EUR (2), give --rate EUR=…\n"), "{text}");
    }

    #[test]
    fn version_1_of_the_contract_has_exactly_these_fields() {
        let mut catalog = sample(&Rates::default());
        catalog.report.dropped = BTreeMap::from([(Reason::OtherArch, 3)]);
        catalog.report.without_rate = BTreeMap::from([("EUR".to_owned(), 2)]);
        let document = serde_json::to_value(info(&catalog)).unwrap();
        let keys = |pointer: &str| -> Vec<String> {
            document.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
        };
        let fields = [
            "ageSeconds",
            "catalog",
            "hash",
            "leftOut",
            "notice",
            "offerings",
            "oldest",
            "origin",
            "rates",
            "types",
            "vendors",
            "version",
            "withoutRate",
        ];
        assert_eq!(keys(""), fields);
        assert_eq!(keys("/vendors/0"), ["onDemand", "regions", "sold", "spot", "types", "vendor", "zones"]);
        assert_eq!(keys("/leftOut/0"), ["reason", "rows", "words"]);
        assert_eq!(keys("/withoutRate/0"), ["currency", "rows"]);
        assert_eq!(keys("/rates/0"), ["currency", "date", "usd"]);
    }
}
