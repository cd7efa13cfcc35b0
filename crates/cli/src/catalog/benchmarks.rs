//! `catalog benchmarks`: all that was measured, and by what of it pods may select and searches may sort.
//!
//! ```json
//! {"version": 1, "catalog": {"source": "…", "fetched": null, "date": null},
//!  "benchmarks": [{"name": "geekbench-single", "key": "benchmark.scarpenter.sparecores.com/geekbench-single",
//!  "id": "geekbench:score", "config": {"cores": "single"}, "types": 2841, "sold": 2610}]}
//! ```
//!
//! `id` and `config` are those of Spare Cores; `name` and `key` are null where no label holds the score. `types` counts
//! the types that have one, `sold` those of them that can be bought somewhere.

use scarpenter_catalog::{Catalog, Measurement};
use scarpenter_core::label::BENCHMARK_PREFIX;
use serde::Serialize;
use serde_json::Value;

use super::grid::{Grid, numbers, words};
use super::view::{VERSION, View};
use super::words::{CatalogDocument, config, config_words, label_name};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    view: View,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let catalog = args.view.source.open()?;
    let measured = measured(&catalog);
    let grid = grid(&measured);
    args.view.print(&document(&catalog, &measured), &grid, || grid.table())
}

#[derive(Debug, Serialize)]
struct BenchmarksDocument<'a> {
    version: u32,
    catalog: CatalogDocument,
    benchmarks: &'a [Measured],
}

/// A benchmark and how much it has measured.
#[derive(Debug, Serialize)]
struct Measured {
    name: Option<&'static str>,
    key: Option<String>,
    id: String,
    config: Value,
    types: usize,
    sold: usize,
}

fn document<'a>(catalog: &Catalog, measured: &'a [Measured]) -> BenchmarksDocument<'a> {
    BenchmarksDocument {
        version: VERSION,
        catalog: CatalogDocument::new(&catalog.report),
        benchmarks: measured,
    }
}

/// Those that are labels first.
fn measured(catalog: &Catalog) -> Vec<Measured> {
    let snapshot = &catalog.snapshot;
    let is_sold = |(index, _): &(usize, f64)| snapshot.offerings_of(*index).next().is_some();
    let measured = |measurement: &Measurement| {
        let name = label_name(measurement);
        Measured {
            name,
            key: name.map(|name| format!("{BENCHMARK_PREFIX}{name}")),
            id: measurement.id().to_owned(),
            config: config(measurement),
            types: measurement.iter().len(),
            sold: measurement.iter().filter(is_sold).count(),
        }
    };
    let mut out: Vec<Measured> = catalog.scores.iter().map(measured).collect();
    out.sort_by_key(|each| each.name.is_none());
    out
}

fn grid(measured: &[Measured]) -> Grid {
    let mut grid = Grid::new(vec![
        words("NAME", "name"),
        words("ID", "id"),
        words("CONFIG", "config"),
        numbers("TYPES", "types"),
        numbers("SOLD", "sold"),
    ]);
    for each in measured {
        grid.push(vec![
            each.name.unwrap_or_default().to_owned(),
            each.id.clone(),
            config_words(&each.config),
            each.types.to_string(),
            each.sold.to_string(),
        ]);
    }
    grid
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_catalog::{Rates, sample};

    use super::*;

    #[test]
    fn every_benchmark_that_is_stamped_is_listed_with_its_source() {
        let catalog = sample(&Rates::default());
        let measured = measured(&catalog);
        for name in scarpenter_core::label::BENCHMARKS {
            let of = measured.iter().find(|each| each.name == Some(name)).unwrap();
            let types = catalog.snapshot.types().iter().filter(|each| each.benchmarks.contains_key(name));
            assert_eq!(of.types, types.count(), "{name}");
            assert!(of.sold <= of.types && of.types > 0, "{of:?}");
        }
        assert!(measured.is_sorted_by_key(|each| each.name.is_none()));
        let single = measured.iter().find(|each| each.name == Some("geekbench-single")).unwrap();
        let config = serde_json::json!({"cores": "single"});
        assert_eq!((single.id.as_str(), &single.config), ("geekbench:score", &config));
    }

    #[test]
    fn version_1_of_the_contract_has_exactly_these_fields() {
        let catalog = sample(&Rates::default());
        let measured = measured(&catalog);
        let document = serde_json::to_value(document(&catalog, &measured)).unwrap();
        let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&document), ["benchmarks", "catalog", "version"]);
        assert_eq!(keys(&document["benchmarks"][0]), ["config", "id", "key", "name", "sold", "types"]);
    }
}
