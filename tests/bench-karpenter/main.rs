//! Karpenter's solver and ours on the same pods and the same 400 types, side by side, against the bars.
//!
//! `cargo bench -p scarpenter-tests --bench karpenter`, or with `-- 100 1000` for other sizes of the mix.
//! See README.md in this folder.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use scarpenter_planner::{Plan, lower_bound, plan};

mod mix;
mod solver;

use mix::Mix;
use solver::{Solved, Solver};

const SIZES: [usize; 3] = [100, 1000, 5000];
const THEIR_RUNS: usize = 3;
const OUR_RUNS: usize = 15;
/// At so many pods and more the bars hold.
const BARRED_FROM: usize = 1000;
const RATIO_BAR: f64 = 50.0;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench karpenter: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Both on one mix.
struct Compared {
    size: usize,
    shipped: Option<f64>,
    theirs: Solved,
    ours: Ours,
}

/// What our planner makes of a mix.
struct Ours {
    seconds: f64,
    nodes: usize,
    micro_usd: u64,
    unscheduled: usize,
    at_least: u64,
}

fn run() -> anyhow::Result<bool> {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    eprintln!("building Karpenter {} with its benchmark (minutes, the first time)", solver::VERSION);
    let solver = Solver::build()?;
    eprintln!("running the benchmark as it is shipped");
    let shipped = solver.shipped(&sizes)?;
    let mut rows = Vec::new();
    for size in sizes {
        eprintln!("{size} pods: Karpenter {THEIR_RUNS} times, ours {OUR_RUNS} times");
        let theirs = solver.solve(size, THEIR_RUNS)?;
        let mix = Mix::read(&solver.types(), &solver.pods(size))?;
        rows.push(Compared { size, shipped: shipped.get(&size).copied(), theirs, ours: solve(&mix)? });
    }
    print(&rows);
    Ok(rows.iter().map(|row| row.size >= BARRED_FROM && !judge(row)).filter(|missed| *missed).count() == 0)
}

fn solve(mix: &Mix) -> anyhow::Result<Ours> {
    let mut took = Vec::new();
    let mut last = Plan::default();
    for _ in 0..OUR_RUNS {
        let started = Instant::now();
        last = mix.with_input(plan);
        took.push(started.elapsed());
    }
    mix.check(&last)?;
    Ok(Ours {
        seconds: median(took.iter().map(Duration::as_secs_f64).collect()),
        nodes: last.claims.len(),
        micro_usd: last.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd()).sum(),
        unscheduled: last.unplaced.len() + last.deferred,
        at_least: mix.with_input(lower_bound),
    })
}

impl Compared {
    fn their_rate(&self) -> f64 {
        rate(self.size, median(self.theirs.seconds.clone()))
    }

    fn our_rate(&self) -> f64 {
        rate(self.size, self.ours.seconds)
    }

    /// Against the better of Karpenter's two figures.
    fn ratio(&self) -> f64 {
        self.our_rate() / self.their_rate().max(self.shipped.unwrap_or(0.0))
    }
}

fn print(rows: &[Compared]) {
    println!(
        "{:>6}  {:>10} {:>10} {:>11} {:>7}  {:>6} {:>6}  {:>12} {:>12} {:>12}  {:>5} {:>5}",
        "", "Karpenter", "as shipped", "ours", "", "nodes", "", "USD/h", "", "", "left", "over"
    );
    println!(
        "{:>6}  {:>10} {:>10} {:>11} {:>7}  {:>6} {:>6}  {:>12} {:>12} {:>12}  {:>5} {:>5}",
        "pods",
        "pods/s",
        "pods/s",
        "pods/s",
        "ratio",
        "theirs",
        "ours",
        "theirs",
        "ours",
        "at least",
        "them",
        "us"
    );
    for row in rows {
        println!(
            "{:>6}  {:>10.0} {:>10} {:>11.0} {:>6.0}×  {:>6} {:>6}  {:>12.6} {:>12.6} {:>12.6}  {:>5} {:>5}",
            row.size,
            row.their_rate(),
            row.shipped.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
            row.our_rate(),
            row.ratio(),
            row.theirs.nodes,
            row.ours.nodes,
            usd(row.theirs.micro_usd),
            usd(row.ours.micro_usd),
            usd(row.ours.at_least),
            row.theirs.unscheduled,
            row.ours.unscheduled,
        );
    }
}

/// Whether a row holds its bars, each told.
fn judge(row: &Compared) -> bool {
    let held = [
        (format!("≥ {RATIO_BAR}× Karpenter's pods/s"), row.ratio() >= RATIO_BAR),
        ("price not above Karpenter's".to_owned(), row.ours.micro_usd <= row.theirs.micro_usd),
        ("as many pods placed".to_owned(), row.ours.unscheduled <= row.theirs.unscheduled),
    ];
    for (what, held) in &held {
        println!("bar {} pods, {what}: {}", row.size, if *held { "held" } else { "MISSED" });
    }
    held.iter().all(|(_, held)| *held)
}

#[expect(clippy::cast_precision_loss, reason = "sizes are small")]
fn rate(pods: usize, seconds: f64) -> f64 {
    pods as f64 / seconds
}

#[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52 micro-USD")]
fn usd(micro: u64) -> f64 {
    micro as f64 / 1e6
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
