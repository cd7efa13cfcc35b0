//! Plans mixes of pods over the full catalog, and prints what that takes and costs against its bars.
//!
//! `cargo bench -p scarpenter-tests --bench mixes`.
//! Four tables: 10,000 pods of all kinds; plain pods by the thousand, against n log n; good pods beside hopeless ones; and
//! prices against the lower bound and against first-fit-decreasing onto every single offering.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scarpenter_catalog::{Rates, open_sqlite};
use scarpenter_core::label;
use scarpenter_core::pod::Pod;
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::snapshot::Snapshot;

#[path = "mixes/draw.rs"]
mod draw;
#[path = "mixes/prices.rs"]
mod prices;
#[path = "mixes/world.rs"]
mod world;

use draw::Draw;
use world::{World, money};

const SEED: u64 = 20_261_130;
const RATES: [(&str, f64); 2] = [("EUR", 1.10), ("CNY", 0.14)];
const MIXED: usize = 10_000;
const MIXED_BAR: Duration = Duration::from_secs(2);
const MEMORY_BAR_KIB: u64 = 200 * 1024;
const PLAIN: [(usize, usize); 3] = [(1_000, 5), (10_000, 3), (100_000, 1)];
/// By so much the cost of a pod a log n may differ from the row before by the machine's own unrest.
const GROWTH_BAR: f64 = 1.25;
const HOPELESS: usize = 2_000;
const GOOD: usize = 10;
const HOPELESS_BAR: Duration = Duration::from_secs(1);

/// A bar in words, and whether it is held.
type Held = (String, bool);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench mixes: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<bool> {
    let catalog = shared().join("keeper/catalog.sqlite");
    if !catalog.exists() {
        eprintln!("bench mixes: not run, {} is not there (set SCARPENTER_SHARED)", catalog.display());
        return Ok(true);
    }
    let mut rates = Rates::default();
    for (currency, usd) in RATES {
        rates.set(currency, usd)?;
    }
    let loaded = open_sqlite(&catalog, &rates)?;
    println!("{}", loaded.report);
    let snapshot = &loaded.snapshot;
    // First, so that the peak is that of the catalog and of these plans.
    let mut held = mixed(snapshot);
    held.extend(growth(snapshot));
    held.extend(hopeless(snapshot));
    held.extend(prices::compare(snapshot));
    for (what, held) in &held {
        println!("bar {what}: {}", if *held { "held" } else { "MISSED" });
    }
    Ok(held.iter().all(|(_, held)| *held))
}

fn shared() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    std::env::var_os("SCARPENTER_SHARED").map_or_else(beside, PathBuf::from)
}

fn mixed(snapshot: &Snapshot) -> Vec<Held> {
    let mut random = StdRng::seed_from_u64(SEED);
    let draw = Draw::new(snapshot);
    let pods: Vec<Pod> = (0..MIXED).map(|number| draw.mixed(&mut random, number)).collect();
    let before = peak_memory().unwrap_or_default();
    let (plan, took) = World::new(snapshot).timed(&pods, 3);
    let memory = peak_memory().unwrap_or(u64::MAX);
    println!(
        "\n{MIXED} mixed pods: {took:.2?}; {} machines, ${:.2}/h, {} pods get nothing; peak memory {} MiB, {} before",
        plan.claims.len(),
        usd(money(&plan)),
        plan.unplaced.len(),
        memory / 1024,
        before / 1024
    );
    let mut reasons = std::collections::BTreeMap::<&str, usize>::new();
    for pod in &plan.unplaced {
        *reasons.entry(&pod.refusal.reason).or_default() += 1;
    }
    println!("refused: {reasons:?}");
    vec![
        (format!("{MIXED} mixed pods ≤ {MIXED_BAR:?}"), took <= MIXED_BAR),
        (format!("memory ≤ {} MiB", MEMORY_BAR_KIB / 1024), memory <= MEMORY_BAR_KIB),
    ]
}

fn growth(snapshot: &Snapshot) -> Vec<Held> {
    println!(
        "\n{:>7}  {:>10}  {:>12}  {:>8}  {:>8}",
        "plain", "time", "ns/(n log n)", "to first", "machines"
    );
    let mut costs: Vec<f64> = Vec::new();
    for (count, runs) in PLAIN {
        let mut random = StdRng::seed_from_u64(SEED);
        let pods: Vec<Pod> = (0..count).map(|number| sized(&mut random, number)).collect();
        let (plan, took) = World::new(snapshot).timed(&pods, runs);
        let n = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        costs.push(took.as_secs_f64() * 1e9 / (n * n.log2()));
        let cost = costs[costs.len() - 1];
        let machines = plan.claims.len();
        println!("{count:>7}  {took:>10.1?}  {cost:>12.1}  {:>8.2}  {machines:>8}", cost / costs[0]);
    }
    let grows = costs.windows(2).all(|pair| pair[1] <= pair[0] * GROWTH_BAR);
    vec![("planning time grows no worse than n log n".to_owned(), grows)]
}

/// A plain pod of a size of its own.
fn sized(random: &mut StdRng, number: usize) -> Pod {
    let (cpu, mib) = (random.random_range(50..4000), random.random_range(64..16_384));
    draw::sized(number, cpu, mib << 20)
}

fn hopeless(snapshot: &Snapshot) -> Vec<Held> {
    let mut random = StdRng::seed_from_u64(SEED);
    let good: Vec<Pod> = (0..GOOD).map(|number| draw::plain(&mut random, number)).collect();
    let mut pods: Vec<Pod> = (0..HOPELESS).map(|number| without_hope(&mut random, GOOD + number)).collect();
    pods.extend(good.iter().cloned());
    let mut world = World::new(snapshot);
    let (_, alone) = world.timed(&good, 11);
    let (plan, beside) = world.timed(&pods, 5);
    world.lessons.hopeless = pods[..HOPELESS].iter().map(|pod| pod.uid.clone()).collect();
    let (known, again) = world.timed(&pods, 5);
    println!(
        "\n{GOOD} good pods alone: {alone:.1?}; beside {HOPELESS} hopeless ones, each of its own shape: {beside:.1?}"
    );
    println!("and when those are known from the pass before: {again:.1?}");
    let placed = [&plan, &known].iter().all(|plan| {
        plan.unplaced.len() + plan.deferred == HOPELESS
            && plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>() == GOOD
    });
    vec![
        (format!("the {GOOD} good pods and no others are placed"), placed),
        (
            format!("a pass with {HOPELESS} hopeless pods ≤ {HOPELESS_BAR:?}"),
            beside.max(again) <= HOPELESS_BAR,
        ),
    ]
}

/// Larger than any machine, of no type there is, of no zone there is, or for less than anything costs.
fn without_hope(random: &mut StdRng, number: usize) -> Pod {
    let own = i64::try_from(number).unwrap_or(i64::MAX);
    let mut pod = draw::plain(random, number);
    match number % 4 {
        0 => return draw::sized(number, 10_000_000 + own, 1 << 30),
        1 => {
            drop(pod.node_selector.insert(label::INSTANCE_TYPE.to_owned(), format!("no-such-type-{number}")))
        }
        2 => drop(pod.node_selector.insert(label::ZONE.to_owned(), format!("no-such-zone-{number}"))),
        _ => {
            let cap = Requirement::new(label::PRICE, Operator::Lt, &["2"]);
            let score = format!("{}geekbench-single", label::BENCHMARK_PREFIX);
            let fast = Requirement::new(&score, Operator::Gt, &[&number.to_string()]);
            pod.required_terms.push(vec![cap, fast]);
        }
    }
    pod
}

/// `VmHWM` of this process in KiB.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52 micro-USD")]
fn usd(micro: u64) -> f64 {
    micro as f64 / 1e6
}
