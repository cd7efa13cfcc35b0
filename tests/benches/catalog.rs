//! Reads the full catalog, and finds the cheapest offering for 10,000 sets of requirements; prints what that takes against
//! its bars.
//!
//! `cargo bench -p scarpenter-tests --bench catalog`.
//! Every answer is compared with a plain scan over all offerings and their labels, which knows nothing of the index.
//! Memory is what a process of its own has grown by when it holds the catalog, as the kernel counts it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;
use scarpenter_catalog::{Catalog, Rates, file, open_sqlite};
use scarpenter_core::requirements::Requirements;
use scarpenter_core::snapshot::{OfferingId, Snapshot};

#[path = "catalog/draw.rs"]
mod draw;
#[path = "catalog/scan.rs"]
mod scan;

const SETS: usize = 10_000;
const SEED: u64 = 20_261_130;
const LOADS: usize = 11;
const RATES: [(&str, f64); 2] = [("EUR", 1.10), ("CNY", 0.14)];

const SQLITE_BAR: Duration = Duration::from_secs(1);
const SNAPSHOT_BAR: Duration = Duration::from_millis(150);
const MEMORY_BAR_KIB: u64 = 64 * 1024;
const MEDIAN_BAR: Duration = Duration::from_micros(20);
const P99_BAR: Duration = Duration::from_micros(200);

/// First argument of a child that only reads a catalog and says how it has grown.
const WEIGH: &str = "weigh";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [first, path] if first == WEIGH => weigh(Path::new(path)).map(|()| true),
        _ => run(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench catalog: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A bar by name, what was measured, and whether it is held.
type Held = (&'static str, String, bool);

fn run() -> anyhow::Result<bool> {
    let database = shared().join("keeper/catalog.sqlite");
    if !database.exists() {
        eprintln!("bench catalog: not run, {} is not there (set SCARPENTER_SHARED)", database.display());
        return Ok(true);
    }
    let folder = tempfile::tempdir()?;
    let own = folder.path().join("catalog.scc");
    let catalog = open(&database)?;
    file::write(&own, &catalog)?;
    println!("{}", catalog.report);
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len() / 1024);
    println!("SQLite {} KiB, own snapshot {} KiB", bytes(&database), bytes(&own));
    let mut held = loads(&database, &own)?;
    held.extend(memory(&database, &own)?);
    held.extend(queries(&catalog.snapshot)?);
    for (bar, measured, held) in &held {
        println!("bar {bar}: {measured}, {}", if *held { "held" } else { "MISSED" });
    }
    Ok(held.iter().all(|(_, _, held)| *held))
}

fn shared() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    std::env::var_os("SCARPENTER_SHARED").map_or_else(beside, PathBuf::from)
}

fn rates() -> anyhow::Result<Rates> {
    let mut rates = Rates::default();
    for (currency, usd) in RATES {
        rates.set(currency, usd)?;
    }
    Ok(rates)
}

fn open(path: &Path) -> anyhow::Result<Catalog> {
    let rates = rates()?;
    let own = path.extension().is_some_and(|extension| extension == "scc");
    Ok(if own { file::read(path, &rates)? } else { open_sqlite(path, &rates)? })
}

/// From the file to the index, several times: the file is in the page cache, as it is after it was fetched.
fn loads(database: &Path, own: &Path) -> anyhow::Result<Vec<Held>> {
    let mut out = Vec::new();
    for (bar, path, most) in [
        ("SQLite to index ≤ 1 s", database, SQLITE_BAR),
        ("own snapshot to index ≤ 150 ms", own, SNAPSHOT_BAR),
    ] {
        let mut times = Vec::new();
        for _ in 0..LOADS {
            let started = Instant::now();
            std::hint::black_box(open(path)?);
            times.push(started.elapsed());
        }
        times.sort_unstable();
        let (median, worst) = (times[LOADS / 2], times[LOADS - 1]);
        out.push((bar, format!("{median:.0?} (median of {LOADS}, worst {worst:.0?})"), median <= most));
    }
    Ok(out)
}

fn memory(database: &Path, own: &Path) -> anyhow::Result<Vec<Held>> {
    let mut out = Vec::new();
    for (bar, path) in [("memory from SQLite ≤ 64 MiB", database), ("memory from own snapshot ≤ 64 MiB", own)]
    {
        let child =
            Command::new(std::env::current_exe()?).arg(WEIGH).arg(path).output().context("start a child")?;
        ensure!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        let text = String::from_utf8(child.stdout)?;
        let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [grown, peak] = numbers[..] else { anyhow::bail!("the child said {text:?}") };
        let mib = |kib: u64| kib.div_ceil(1024);
        out.push((
            bar,
            format!("{} MiB, at most {} MiB while reading", mib(grown), mib(peak)),
            grown <= MEMORY_BAR_KIB,
        ));
    }
    Ok(out)
}

/// Prints by how many KiB this process has grown with the catalog at `path` in it, and by how many at most.
fn weigh(path: &Path) -> anyhow::Result<()> {
    let before = kib("VmRSS")?;
    let catalog = open(path)?;
    let (after, peak) = (kib("VmRSS")?, kib("VmHWM")?);
    println!("{} {}", after.saturating_sub(before), peak.saturating_sub(before));
    drop(catalog);
    Ok(())
}

/// A figure of this process in KiB.
fn kib(name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let figure =
        line.and_then(|line| line.trim().strip_suffix(" kB")).context("the kernel says no such figure")?;
    Ok(figure.trim().parse()?)
}

fn queries(snapshot: &Snapshot) -> anyhow::Result<Vec<Held>> {
    let mut random = StdRng::seed_from_u64(SEED);
    let draw = draw::Draw::new(snapshot);
    let sets: Vec<Requirements> =
        (0..SETS).map(|_| draw.requirements(&mut random)).collect::<Result<_, _>>()?;
    let first = ask(&sets, |set| snapshot.cheapest(&snapshot.select(set)));
    let asked = ask(&sets, |set| snapshot.cheapest(&snapshot.select(set)));
    let scan = scan::Scan::new(snapshot);
    let scanned = ask(&sets, |set| scan.cheapest(set));
    for (at, set) in sets.iter().enumerate() {
        ensure!(asked.answers[at] == scanned.answers[at], "index and scan differ on {:?}", set.to_list());
    }
    let some = asked.answers.iter().flatten().count();
    println!("{SETS} sets of requirements, {some} with an answer, all as the scan has them (seed {SEED})");
    println!(
        "index, first time over: {first}\nindex, second time:     {asked}\nscan:                   {scanned}"
    );
    println!(
        "the scan takes {:.0} times as long in all, {:.0} times at the median",
        scanned.total().as_secs_f64() / asked.total().as_secs_f64(),
        scanned.at(50).as_secs_f64() / asked.at(50).as_secs_f64()
    );
    let (median, late) = (first.at(50).max(asked.at(50)), first.at(99).max(asked.at(99)));
    Ok(vec![
        ("cheapest, median ≤ 20 µs", format!("{median:.1?}"), median <= MEDIAN_BAR),
        ("cheapest, 99th percentile ≤ 200 µs", format!("{late:.1?}"), late <= P99_BAR),
    ])
}

/// What every set was answered, and how long each took.
struct Asked {
    answers: Vec<Option<OfferingId>>,
    sorted: Vec<Duration>,
}

fn ask(sets: &[Requirements], answer: impl Fn(&Requirements) -> Option<OfferingId>) -> Asked {
    let (mut answers, mut sorted) = (Vec::with_capacity(sets.len()), Vec::with_capacity(sets.len()));
    for set in sets {
        let started = Instant::now();
        answers.push(std::hint::black_box(answer(std::hint::black_box(set))));
        sorted.push(started.elapsed());
    }
    sorted.sort_unstable();
    Asked { answers, sorted }
}

impl Asked {
    fn at(&self, percent: usize) -> Duration {
        self.sorted[(self.sorted.len() - 1) * percent / 100]
    }

    fn total(&self) -> Duration {
        self.sorted.iter().sum()
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [half, late, worst] = [50, 99, 100].map(|percent| self.at(percent));
        write!(f, "median {half:.1?}, 99th percentile {late:.1?}, worst {worst:.1?}")
    }
}
