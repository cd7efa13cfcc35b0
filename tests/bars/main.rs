//! The bars of the whole path, measured on a real control plane with simulated machines.
//!
//! `cargo bench -p scarpenter-tests --bench bars -- [latency|burst|chaos|all] [--small]`: without arguments all, as
//! large as the bars say. Ends with code 1 when a bar is missed. The tests play the same scenes small.

mod latency;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use scarpenter_playground::{ControlPlane, Options};
use scarpenter_tests::harness::ensure_binaries;
use scarpenter_tests::scene::{burst, chaos};
use scarpenter_tests::stage::{Requests, Setting, play};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scarpenter-on-trial");
/// Long enough that no pod of a burst finds a machine on which another has ended.
const BURST_SECONDS: u32 = 60;
const REQUESTS_PER_MACHINE: u64 = 45;

/// How large, and which.
struct Arguments {
    latency: Option<usize>,
    burst: Option<usize>,
    chaos: Option<(usize, usize)>,
}

impl Arguments {
    fn parse() -> anyhow::Result<Self> {
        let mut small = false;
        let mut words = Vec::new();
        for word in std::env::args().skip(1) {
            match word.as_str() {
                // Cargo's own.
                "--bench" => {}
                "--small" => small = true,
                "latency" | "burst" | "chaos" | "all" => words.push(word),
                _ => bail!("{word:?} is none of latency, burst, chaos, all and --small"),
            }
        }
        let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name || word == "all");
        Ok(Self {
            latency: wanted("latency").then_some(if small { 20 } else { 200 }),
            burst: wanted("burst").then_some(if small { 50 } else { 500 }),
            chaos: wanted("chaos").then_some(if small { (30, 8) } else { (100, 30) }),
        })
    }
}

fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Runtime::new().expect("this machine can start threads");
    match runtime.block_on(measure()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bars: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every bar held.
async fn measure() -> anyhow::Result<bool> {
    let arguments = Arguments::parse()?;
    let binaries = ensure_binaries().await?;
    let plane = ControlPlane::start(&binaries, Options::default()).await?;
    let mut bars = Bars { held: true };
    if let Some(pods) = arguments.latency {
        measure_latency(&plane, pods, &mut bars).await?;
    }
    if let Some(pods) = arguments.burst {
        measure_burst(&plane, pods, &mut bars).await?;
    }
    if let Some((pods, kills)) = arguments.chaos {
        measure_chaos(&plane, pods, kills).await?;
    }
    plane.stop().await;
    Ok(bars.held)
}

async fn measure_latency(plane: &ControlPlane, pods: usize, bars: &mut Bars) -> anyhow::Result<()> {
    let setting = Setting { controller_flags: caps(), ..Setting::default() };
    let taken =
        play(plane, Path::new(PROGRAM), setting, async |stage| latency::one_after_another(stage, pods).await);
    let latency::Latency { from_unschedulable, from_created, requests } = taken.await?;
    println!("\n{pods} pods of exact types, one after another; until the plugin received CreateMachine:");
    bars.at_most("from Unschedulable seen by a watch, p50", from_unschedulable.median(), ms(50));
    bars.at_most("from Unschedulable seen by a watch, p99", from_unschedulable.percentile(99), ms(250));
    println!(
        "  from the pod's creation acknowledged: p50 {:.1?}, p99 {:.1?}",
        from_created.median(),
        from_created.percentile(99)
    );
    print_requests(&requests, pods, bars);
    Ok(())
}

async fn measure_burst(plane: &ControlPlane, pods: usize, bars: &mut Bars) -> anyhow::Result<()> {
    let setting = Setting {
        controller_flags: caps(),
        consolidate_after: "0s",
        pods_run_within: Duration::from_secs(900),
        all_gone_within: Duration::from_secs(600),
        ..Setting::default()
    };
    let burst =
        play(plane, Path::new(PROGRAM), setting, async |stage| burst(stage, pods, BURST_SECONDS).await)
            .await?;
    println!("\n{pods} pods of exact types at once:");
    println!("  all Running after {:.1?}, all gone after {:.1?}", burst.all_ran, burst.all_gone);
    println!("  {} machines made, at most {} at a time, 0 doubled, 0 left", burst.machines, burst.most);
    println!("  the controller's peak memory: {} MiB", burst.peak_memory >> 20);
    print_requests(&burst.requests, burst.machines, bars);
    Ok(())
}

async fn measure_chaos(plane: &ControlPlane, pods: usize, kills: usize) -> anyhow::Result<()> {
    let setting = Setting {
        pods_run_within: Duration::from_secs(300),
        all_gone_within: Duration::from_secs(300),
        ..Setting::default()
    };
    let seed = rand::random();
    let took = play(plane, Path::new(PROGRAM), setting, async |stage| chaos(stage, pods, kills, seed).await);
    let took = took.await?;
    println!("\nthe controller killed {kills} times while {pods} pods came (seed {seed}):");
    println!("  every pod ran, and after {took:.1?} 0 machines, claims, tokens, join Secrets, Nodes");
    Ok(())
}

/// Flags of a controller that may buy this much.
fn caps() -> Vec<String> {
    let flags = ["--max-machines", "600", "--max-usd-per-hour", "1000", "--validation-delay", "1s"];
    flags.map(str::to_owned).to_vec()
}

fn print_requests(requests: &Requests, machines: usize, bars: &mut Bars) {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let each = |count: u64| count as f64 / machines as f64;
    println!("  the controller's requests to the API server for each machine:");
    for (method, resource, count) in requests.rows() {
        println!("    {:6.2}  {method} {resource}", each(count));
    }
    let bound = REQUESTS_PER_MACHINE * machines as u64;
    bars.say(
        requests.total() <= bound,
        &format!("{:.1} of all (bar {REQUESTS_PER_MACHINE})", each(requests.total())),
    );
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Remembers whether one was missed.
struct Bars {
    held: bool,
}

impl Bars {
    fn at_most(&mut self, what: &str, measured: Duration, bar: Duration) {
        self.say(measured <= bar, &format!("{what}: {measured:.1?} (bar {bar:?})"));
    }

    fn say(&mut self, holds: bool, words: &str) {
        self.held &= holds;
        println!("  {}{words}", if holds { "" } else { "MISSED: " });
    }
}
