//! All answers that make a catalog, fetched and checked, before anything is made of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::benchmark;
use crate::rows::{Cells as _, PriceRow, RegionRow, ServerRow, ZoneRow};
use crate::source::Progress;
use crate::{Rate, Rates};

use super::ask::{self, Prices, Scores};
use super::client::{Answer, Client};
use super::list::{List, Rows, Shape};
use super::{Ask, Error, rate};

/// How many questions are open at once.
const AT_ONCE: usize = 2;

/// How many steps it is until better is known: a Keeper of eight vendors needs so many.
const USUAL: usize = 70;

/// The most benchmarks, each config counted, that are all asked for: each takes a question of three credits, and a
/// Keeper with all of Spare Cores' measurements has hundreds.
const MOST_BENCHMARKS: usize = 24;

/// All rows of a Keeper.
pub(crate) struct Fetched {
    pub(crate) regions: Rows,
    pub(crate) zones: Rows,
    pub(crate) servers: Rows,
    pub(crate) scores: Vec<(Scores, Rows)>,
    pub(crate) prices: Vec<(Prices, Rows)>,
    /// The rates at which this Keeper converts.
    pub(crate) rates: Rates,
}

impl Fetched {
    /// How many rows could not be read.
    pub(crate) fn unreadable(&self) -> usize {
        let scores = self.scores.iter().map(|(_, rows)| rows);
        let prices = self.prices.iter().map(|(_, rows)| rows);
        let all = [&self.regions, &self.zones, &self.servers].into_iter().chain(scores).chain(prices);
        all.map(|rows| rows.bad).sum()
    }
}

/// By vendor: its open regions, and how many active prices it has.
type Totals = BTreeMap<String, (Vec<String>, usize)>;

#[derive(Clone, Copy, Deserialize)]
struct Stats {
    total_regions: usize,
    total_zones: usize,
    total_server_types: usize,
    total_server_prices: usize,
}

/// One question whose answer is rows.
#[derive(Clone, Debug)]
enum Job {
    Prices(Prices),
    Scores(Scores),
}

/// Columns of an answer of `/servers` that hold a score.
pub(crate) const SCORE: [&str; 3] = ["vendor_id", "server_id", "selected_benchmark_score"];

pub(crate) struct Fetch<'f> {
    client: &'f Client,
    steps: Steps<'f>,
}

struct Steps<'f> {
    done: AtomicUsize,
    of: AtomicUsize,
    progress: &'f dyn Progress,
}

impl Steps<'_> {
    /// Says how many steps are left, now that it is known.
    fn left(&self, count: usize) {
        self.of.store(self.done.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    fn more(&self, count: usize) {
        self.of.fetch_add(count, Ordering::Relaxed);
    }

    fn done(&self, what: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.told(done, self.of.load(Ordering::Relaxed).max(done), what);
    }
}

impl<'f> Fetch<'f> {
    pub(crate) fn new(client: &'f Client, progress: &'f dyn Progress) -> Self {
        Self { client, steps: Steps { done: AtomicUsize::new(0), of: AtomicUsize::new(USUAL), progress } }
    }

    pub(crate) async fn all(&self) -> Result<Fetched, Error> {
        let stats: Stats = self.object(&Ask::new("/stats")).await?;
        let shape = Shape::of(&RegionRow::TABLE, |row| RegionRow::read(row).active);
        let regions = self.table("/table/region", &shape, stats.total_regions).await?;
        let shape = Shape::of(&ZoneRow::TABLE, |row| ZoneRow::read(row).active);
        let zones = self.table("/table/zone", &shape, stats.total_zones).await?;
        let shape = Shape::of(&ServerRow::TABLE, |row| ServerRow::read(row).vcpus);
        let servers = self.table("/table/server", &shape, stats.total_server_types).await?;
        let mut jobs = self.benchmarks().await?;
        let totals = self.totals(&regions).await?;
        for (vendor, (open, rows)) in &totals {
            let prices = Prices::of(vendor, open.clone(), *rows, self.client.is_keyed());
            jobs.extend(prices.into_iter().map(Job::Prices));
        }
        let (scores, prices) = self.jobs(jobs, &totals).await?;
        let rates = self.rates(&prices).await?;
        Ok(Fetched { regions, zones, servers, scores, prices, rates })
    }

    /// An answer of one object.
    async fn object<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, Error> {
        let out = object(self.client, ask).await?;
        self.steps.done(ask.path);
        Ok(out)
    }

    /// A whole table, of which `/stats` says how many rows it has.
    async fn table(&self, path: &'static str, shape: &Shape, expected: usize) -> Result<Rows, Error> {
        let ask = Ask::new(path);
        let rows = self.rows(&ask, shape, false, Some(expected)).await?;
        if rows.count == 0 {
            return Err(Error::Empty { url: ask.url(self.client.address()) });
        }
        self.steps.done(path);
        Ok(rows)
    }

    /// What was measured, with the configs as the Keeper writes them: all, or what becomes labels where that is too many.
    async fn benchmarks(&self) -> Result<Vec<Job>, Error> {
        let ask = Ask::new("/benchmark_configs");
        let shape = Shape::new(&["benchmark_id", "config"], |row| row.text(0).len());
        let rows = self.rows(&ask, &shape, false, None).await?;
        self.steps.done(ask.path);
        let all = rows.iter().map(|row| (row.text(0).to_owned(), row.text(1).to_owned()));
        let wanted = all.filter(|(benchmark, config)| {
            rows.count <= MOST_BENCHMARKS || benchmark::name(benchmark, config).is_some()
        });
        let scores = wanted.map(|(benchmark, config)| Scores { benchmark, config, vendor: None });
        Ok(scores.map(Job::Scores).collect())
    }

    async fn totals(&self, regions: &Rows) -> Result<Totals, Error> {
        let mut totals = Totals::new();
        for row in regions.iter() {
            let region = RegionRow::read(&row);
            let (open, _) = totals.entry(region.vendor.to_owned()).or_default();
            if region.active {
                open.push(region.id.to_owned());
            }
        }
        for (vendor, (open, rows)) in &mut totals {
            open.sort();
            let ask = Ask::new("/stats").with("vendor", vendor).with("only_active", "true");
            *rows = self.object::<Stats>(&ask).await?.total_server_prices;
        }
        Ok(totals)
    }

    async fn jobs(
        &self,
        jobs: Vec<Job>,
        totals: &Totals,
    ) -> Result<(Vec<(Scores, Rows)>, Vec<(Prices, Rows)>), Error> {
        self.steps.left(jobs.len());
        let answers = stream::iter(jobs).map(|job| self.job(job, totals)).buffered(AT_ONCE);
        let answers: Vec<_> = answers.try_collect().await?;
        let (mut scores, mut prices) = (Vec::new(), Vec::new());
        for (job, rows) in answers.into_iter().flatten() {
            match job {
                Job::Prices(of) => prices.push((of, rows)),
                Job::Scores(of) => scores.push((of, rows)),
            }
        }
        self.check_vendors(&prices, totals)?;
        Ok((scores, prices))
    }

    /// Asks, and asks for the parts where the whole is too much.
    async fn job(&self, job: Job, totals: &Totals) -> Result<Vec<(Job, Rows)>, Error> {
        let (mut todo, mut answers) = (vec![job], Vec::new());
        while let Some(job) = todo.pop() {
            let parts = job.parts(totals);
            let rows = self.rows(&job.ask(), &job.shape(), !parts.is_empty(), job.expected(totals)).await;
            match rows {
                Ok(rows) => {
                    self.steps.done(&job.what());
                    answers.push((job, rows));
                }
                Err(error) if error.is_too_much() && !parts.is_empty() => {
                    self.steps.more(parts.len() - 1);
                    todo.extend(parts.into_iter().rev());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// One list of rows, complete and readable.
    async fn rows(
        &self,
        ask: &Ask,
        shape: &Shape,
        in_parts: bool,
        expected: Option<usize>,
    ) -> Result<Rows, Error> {
        let Answer { whole: mut rows, total } = self.client.get(ask, in_parts, || List::new(shape)).await?;
        rows.total = total;
        let url = || ask.url(self.client.address());
        let all = rows.count + rows.bad;
        if let Some(expected) = expected.max(total).filter(|expected| *expected > all) {
            return Err(Error::Partial { url: url(), rows: all, expected });
        }
        if rows.bad * 20 > all {
            return Err(Error::Schema { url: url(), rows: all, bad: rows.bad, why: rows.first_bad });
        }
        Ok(rows)
    }

    /// A vendor that has prices, of which none came and the Keeper did not say that none should, came in part.
    fn check_vendors(&self, prices: &[(Prices, Rows)], totals: &Totals) -> Result<(), Error> {
        for (vendor, (_, expected)) in totals {
            let mut answers =
                prices.iter().filter(|(of, _)| of.vendor == *vendor).map(|(_, rows)| rows).peekable();
            let Some(first) = answers.peek() else { continue };
            if *expected > 0 && first.total.is_none() && answers.all(|rows| rows.count == 0) {
                let url = Ask::new("/server_prices").with("vendor", vendor).url(self.client.address());
                return Err(Error::Partial { url, rows: 0, expected: *expected });
            }
        }
        Ok(())
    }

    async fn rates(&self, prices: &[(Prices, Rows)]) -> Result<Rates, Error> {
        let all = || prices.iter().map(|(_, rows)| rows);
        let wanted = rate::wanted(all());
        self.steps.more(wanted.len());
        let mut rates = Rates::default();
        for (currency, vendor) in wanted {
            let ask = ask::dearest(&vendor);
            let dollars = self.rows(&ask, &price_shape(), false, None).await?;
            self.steps.done(ask.path);
            // The day on which the Keeper converted at it; of which day the bank's rate is, it does not say.
            let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
            let rate =
                rate::rate(&currency, all(), &dollars).and_then(|rate| Rate::new(&currency, rate).ok());
            rates.extend(rate.map(|rate| rate.of(today)));
        }
        Ok(rates)
    }
}

impl Job {
    fn ask(&self) -> Ask {
        match self {
            Self::Prices(of) => of.ask(),
            Self::Scores(of) => of.ask(),
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Prices(of) => of.what(),
            Self::Scores(of) => of.what(),
        }
    }

    fn parts(&self, totals: &Totals) -> Vec<Self> {
        match self {
            Self::Prices(of) => of.parts().into_iter().map(Self::Prices).collect(),
            Self::Scores(of) => of.parts(totals.keys()).into_iter().map(Self::Scores).collect(),
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Prices(_) => price_shape(),
            Self::Scores(_) => {
                Shape::new(&SCORE, |row| (row.text(0).len(), row.text(1).len(), row.number(2)))
            }
        }
    }

    /// The bare table does not say how many rows it should have, but `/stats` counts the same ones.
    fn expected(&self, totals: &Totals) -> Option<usize> {
        match self {
            Self::Prices(of) if of.is_whole() && of.is_bare() => {
                totals.get(&of.vendor).map(|(_, rows)| *rows)
            }
            _ => None,
        }
    }
}

fn price_shape() -> Shape {
    Shape::of(&PriceRow::TABLE, |row| PriceRow::read(row).price)
}

/// An answer of one object.
pub(crate) async fn object<T: DeserializeOwned>(client: &Client, ask: &Ask) -> Result<T, Error> {
    let body = client.get(ask, false, Vec::new).await?.whole;
    serde_json::from_slice(&body).map_err(|error| {
        let url = ask.url(client.address());
        if error.is_eof() {
            Error::CutOff { url, bytes: body.len() }
        } else {
            Error::NotKeeper { url, why: error.to_string() }
        }
    })
}
