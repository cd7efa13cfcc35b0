//! `catalog benchmarks`: by what pods may select, and searches may sort.
//!
//! ```json
//! {"version": 1, "catalog": {"source": "…", "fetched": null, "date": null},
//!  "benchmarks": [{"name": "geekbench-single", "key": "benchmark.scarpenter.sparecores.com/geekbench-single",
//!  "id": "geekbench:score", "config": {"cores": "single"}, "types": 2841, "sold": 2610}]}
//! ```
//!
//! `id` and `config` are those of Spare Cores, `types` counts the types that have a score, `sold` those of them that can
//! be bought somewhere.

use std::collections::BTreeMap;

use scarpenter_catalog::{Catalog, benchmarks};
use scarpenter_core::label::BENCHMARK_PREFIX;
use scarpenter_core::snapshot::Snapshot;
use serde::Serialize;

use super::grid::{Grid, numbers, words};
use super::view::{VERSION, View};
use super::words::CatalogDocument;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    view: View,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let catalog = args.view.source.open()?;
    let measured = measured(&catalog.snapshot);
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
    name: &'static str,
    key: String,
    id: &'static str,
    config: BTreeMap<&'static str, &'static str>,
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

fn measured(snapshot: &Snapshot) -> Vec<Measured> {
    let types = snapshot.types().iter().enumerate();
    let sold: Vec<_> = types.map(|(at, each)| (each, snapshot.offerings_of(at).next().is_some())).collect();
    benchmarks()
        .map(|benchmark| {
            let name = benchmark.name;
            let with_score = || sold.iter().filter(move |(each, _)| each.benchmarks.contains_key(name));
            Measured {
                name,
                key: format!("{BENCHMARK_PREFIX}{name}"),
                id: benchmark.id,
                config: benchmark.cores.map(|cores| ("cores", cores)).into_iter().collect(),
                types: with_score().count(),
                sold: with_score().filter(|(_, sold)| *sold).count(),
            }
        })
        .collect()
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
        let config: Vec<String> = each.config.iter().map(|(key, value)| format!("{key}={value}")).collect();
        grid.push(vec![
            each.name.to_owned(),
            each.id.to_owned(),
            config.join(" "),
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
        let measured = measured(&catalog.snapshot);
        let names: Vec<&str> = measured.iter().map(|each| each.name).collect();
        assert_eq!(names, scarpenter_core::label::BENCHMARKS);
        assert!(measured.iter().all(|each| each.sold <= each.types && each.types > 0), "{measured:?}");
        let single = measured.iter().find(|each| each.name == "geekbench-single").unwrap();
        assert_eq!((single.id, single.config["cores"]), ("geekbench:score", "single"));
    }

    #[test]
    fn version_1_of_the_contract_has_exactly_these_fields() {
        let catalog = sample(&Rates::default());
        let measured = measured(&catalog.snapshot);
        let document = serde_json::to_value(document(&catalog, &measured)).unwrap();
        let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&document), ["benchmarks", "catalog", "version"]);
        assert_eq!(keys(&document["benchmarks"][0]), ["config", "id", "key", "name", "sold", "types"]);
    }
}
