//! `catalog search`: the offerings that match, best first.

use std::cmp::Ordering;
use std::collections::HashSet;

use anyhow::Context;
use scarpenter_catalog::Catalog;
use scarpenter_core::label;
use scarpenter_core::offering::CapacityType;
use scarpenter_core::requirements::{Requirement, Requirements, ValueSet, parse};
use scarpenter_core::snapshot::{Offering, OfferingId, Snapshot};

use crate::BadInput;

use super::view::View;

mod answer;

use answer::{SearchDocument, grid, table};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    view: View,
    /// Labels as a pod may select them, such as `instance-cpu>=8,arch=arm64,vendor in (aws,gcp)`; operators are =, !=,
    /// in (…), notin (…), >, >=, <, <=, a key alone and !key. Several are taken together. Spot is left out unless
    /// `capacity` is named.
    #[arg(long = "where", value_name = "REQUIREMENTS")]
    wanted: Vec<String>,
    /// Which come first. What has no score comes last.
    #[arg(long, value_enum, default_value_t = Sort::Price)]
    sort: Sort,
    /// The benchmark whose score is shown and sorted by; for sorting stress-ng-bestn unless another is named.
    #[arg(long, value_name = "NAME", value_parser = label::BENCHMARKS)]
    benchmark: Option<String>,
    /// One row for each type, for each type in each region, or for each type in each zone: the cheapest there.
    #[arg(long, value_enum, default_value_t = Rows::Region)]
    rows: Rows,
    /// Most rows to show; 0 shows all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

/// Which offerings come first. Ties are in the order of choosing: price, on-demand, vendor, region, zone, type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sort {
    /// The cheapest.
    Price,
    /// Those of the highest score.
    Score,
    /// Those of the highest score for a dollar.
    ScorePerPrice,
}

/// What one row stands for, by capacity type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Rows {
    /// A type, wherever it is cheapest.
    Type,
    /// A type in a region.
    Region,
    /// A type in a zone.
    Zone,
}

/// The benchmark that is sorted by when none is named: all CPUs at work, as the Keeper's own score.
const DEFAULT_BENCHMARK: &str = "stress-ng-bestn";

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let lines = lines(&args.wanted).context(BadInput)?;
    let query = Query::new(&lines, args).context(BadInput)?;
    let catalog = args.view.source.open()?;
    let found = query.find(&catalog.snapshot);
    let answer = Answer { catalog: &catalog, query: &query, found: &found, limit: args.limit };
    args.view.print(&SearchDocument::new(&answer), &grid(&answer), || table(&answer))
}

/// The requirements of all texts together.
fn lines(wanted: &[String]) -> anyhow::Result<Vec<Requirement>> {
    let mut out = Vec::new();
    for text in wanted {
        out.extend(parse::parse(text).context("--where")?);
    }
    match out.iter().find(|line| !Snapshot::carries(&line.key)) {
        Some(line) => {
            let near = label::nearest_key(&line.key);
            anyhow::bail!(
                "--where: no offering has a label {}, the nearest that they have is {near}",
                line.key
            )
        }
        None => Ok(out),
    }
}

/// What is looked for, and in which order it is wanted.
#[derive(Clone, Debug)]
struct Query {
    requirements: Requirements,
    sort: Sort,
    benchmark: Option<&'static str>,
    rows: Rows,
}

/// What was found, best first, and how much of it to show.
#[derive(Debug)]
struct Answer<'a> {
    catalog: &'a Catalog,
    query: &'a Query,
    found: &'a [OfferingId],
    limit: usize,
}

impl<'a> Answer<'a> {
    fn shown(&self) -> impl Iterator<Item = Offering<'a>> {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let snapshot = &*self.catalog.snapshot;
        self.found.iter().take(limit).map(|id| snapshot.offering(*id))
    }
}

impl Query {
    fn new(lines: &[Requirement], args: &Args) -> anyhow::Result<Self> {
        let mut requirements = Requirements::from_list(lines)?;
        if requirements.get(label::CAPACITY_TYPE).is_none() {
            requirements.require(label::CAPACITY_TYPE, ValueSet::one_of([CapacityType::OnDemand.as_str()]));
        }
        let named = args.benchmark.as_deref();
        let named = named.or((args.sort != Sort::Price).then_some(DEFAULT_BENCHMARK));
        let benchmark = named.and_then(|name| label::BENCHMARKS.into_iter().find(|known| *known == name));
        Ok(Self { requirements, sort: args.sort, benchmark, rows: args.rows })
    }

    /// All that match, the first first.
    fn find(&self, snapshot: &Snapshot) -> Vec<OfferingId> {
        let selection = snapshot.select(&self.requirements);
        let mut seen = HashSet::new();
        // They come in price order, so the first of each row is its cheapest.
        let mut out: Vec<OfferingId> = snapshot
            .selected(&selection)
            .filter(|id| {
                let offering = snapshot.offering(*id);
                let place = match self.rows {
                    Rows::Type => None,
                    Rows::Region => Some((offering.place().region.as_str(), None)),
                    Rows::Zone => Some((offering.place().region.as_str(), offering.place().zone.as_deref())),
                };
                seen.insert((offering.type_index(), place, offering.capacity_type()))
            })
            .collect();
        out.sort_by(|a, b| self.compare(&snapshot.offering(*a), &snapshot.offering(*b)));
        out
    }

    /// Sorting keeps the price order of equals.
    fn compare(&self, a: &Offering<'_>, b: &Offering<'_>) -> Ordering {
        let [left, right] = [a, b].map(|offering| self.score(offering).map(u128::from));
        let dollars = |offering: &Offering<'_>| u128::from(offering.price().micro_usd().max(1));
        match (self.sort, left, right) {
            (Sort::Price, ..) => Ordering::Equal,
            (Sort::ScorePerPrice, Some(left), Some(right)) => (right * dollars(a)).cmp(&(left * dollars(b))),
            _ => right.cmp(&left),
        }
    }

    /// The score of the benchmark that is asked for, where it was measured.
    fn score(&self, offering: &Offering<'_>) -> Option<u64> {
        offering.instance_type().benchmarks.get(self.benchmark?).copied()
    }

    /// Score for a dollar an hour.
    fn score_per_usd(&self, offering: &Offering<'_>) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "scores and prices are far smaller than that")]
        let per = |score: u64| score as f64 * 1e6 / offering.price().micro_usd().max(1) as f64;
        self.score(offering).map(per)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod sql;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
