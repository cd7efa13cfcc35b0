//! Plans 1,000 distinct exact-SKU pods over the full catalog, and prints what that takes against its bars.
//!
//! `cargo bench -p scarpenter-tests --bench plan`.
//! Planning is the median of several runs; beside it stands a plain scan over all offerings for every pod, which must choose
//! the same. The whole process is the real command, started as a child.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use scarpenter_catalog::{Rates, open_sqlite};
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{CapacityType, OfferingKey, Price};
use scarpenter_core::pod::{Pod, PodKey};
use scarpenter_core::pool::{Class, Extras, Pool};
use scarpenter_core::resources::{CPU, MEMORY, NODES, PODS, Resources};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;
use scarpenter_planner::{Caps, Input, Lessons, Plan, Rules, Unavailable, plan};

const PODS_PLANNED: usize = 1000;
const RUNS: usize = 11;
const PLANNING_BAR: Duration = Duration::from_millis(100);
const PROCESS_BAR: Duration = Duration::from_secs(2);
const MEMORY_BAR_KIB: u64 = 150 * 1024;
const RATES: [(&str, f64); 2] = [("EUR", 1.10), ("CNY", 0.14)];

fn main() -> ExitCode {
    // The child is this program as the real command.
    if std::env::args().nth(1).as_deref() == Some("plan") {
        return scarpenter_cli::main();
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench plan: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<bool> {
    let catalog = shared().join("keeper/catalog.sqlite");
    if !catalog.exists() {
        eprintln!("bench plan: not run, {} is not there (set SCARPENTER_SHARED)", catalog.display());
        return Ok(true);
    }
    let mut rates = Rates::default();
    for (currency, usd) in RATES {
        rates.set(currency, usd)?;
    }
    let started = Instant::now();
    let loaded = open_sqlite(&catalog, &rates)?;
    println!("{} (read and indexed in {:.0?})", loaded.report, started.elapsed());
    let snapshot = &loaded.snapshot;
    let wanted = wanted(snapshot);
    ensure!(wanted.len() == PODS_PLANNED, "the catalog has only {} types to ask for", wanted.len());

    let pods: Vec<Pod> = wanted.iter().enumerate().map(|(number, key)| pod(number, key)).collect();
    let free = median(|| planned(snapshot, &pods, Resources::new(), None));
    let limited = median(|| planned(snapshot, &pods, Resources::new().with(NODES, 100), None));
    let charged = Extras {
        public_ipv4: Price::from_micro_usd(5000),
        boot_disk_gib_month: Price::from_micro_usd(80_000),
    };
    let full = median(|| planned(snapshot, &pods, Resources::new(), Some(charged)));
    let mine = peak_memory("self").unwrap_or_default();
    let started = Instant::now();
    let naive = scan(snapshot, &wanted);
    let scanned = started.elapsed();
    let chosen = chosen(&planned(snapshot, &pods, Resources::new(), None));
    ensure!(chosen == naive, "the planner and the scan choose differently");
    println!(
        "planning {PODS_PLANNED} exact-SKU pods: {free:.1?} (median of {RUNS}); plain scan: {scanned:.1?}"
    );
    println!("planning with a limit of 100 nodes, the rest refused with their tables: {limited:.1?}");
    println!("planning by full price, with an address and a boot disk from every vendor: {full:.1?}");
    println!("peak memory with catalog and plans: {} MiB", mine / 1024);
    let (process, memory) = child(&catalog, &wanted)?;
    println!("whole `plan` process: {process:.2?}, peak memory {} MiB", memory / 1024);
    let held = [
        ("planning", free.max(limited).max(full) <= PLANNING_BAR, format!("{PLANNING_BAR:?}")),
        ("process", process <= PROCESS_BAR, format!("{PROCESS_BAR:?}")),
        ("memory", memory <= MEMORY_BAR_KIB, format!("{} MiB", MEMORY_BAR_KIB / 1024)),
    ];
    for (what, held, bar) in &held {
        println!("bar {what} ≤ {bar}: {}", if *held { "held" } else { "MISSED" });
    }
    Ok(held.iter().all(|(_, held, _)| *held))
}

fn shared() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    std::env::var_os("SCARPENTER_SHARED").map_or_else(beside, PathBuf::from)
}

/// Types that are sold on demand, spread evenly over all of them.
fn wanted(snapshot: &Snapshot) -> Vec<OfferingKey> {
    let on_demand = |index: &usize| {
        let mut offerings = snapshot.offerings_of(*index).map(|id| snapshot.offering(id));
        offerings
            .find(|offering| offering.capacity_type() == CapacityType::OnDemand)
            .map(|offering| offering.key())
    };
    let sold: Vec<OfferingKey> = (0..snapshot.types().len()).filter_map(|index| on_demand(&index)).collect();
    (0..PODS_PLANNED).map_while(|number| sold.get(number * sold.len() / PODS_PLANNED).cloned()).collect()
}

fn pod(number: usize, key: &OfferingKey) -> Pod {
    Pod {
        key: PodKey::new("bench", &format!("pod-{number:04}")),
        uid: format!("uid-{number:04}"),
        requests: Resources::new().with(CPU, 100).with(MEMORY, 64 << 20).with(PODS, 1),
        node_selector: BTreeMap::from([
            (label::VENDOR.to_owned(), label::label_value(key.vendor.as_str())),
            (label::INSTANCE_TYPE.to_owned(), label::label_value(&key.instance_type)),
        ]),
        ..Pod::default()
    }
}

fn planned(snapshot: &Snapshot, pods: &[Pod], limits: Resources, extras: Option<Extras>) -> Plan {
    let vendors = snapshot.types().iter().map(|each| (each.vendor.clone(), Default::default())).collect();
    let vendors: BTreeMap<Vendor, BTreeSet<String>> = vendors;
    let class = Class {
        name: "default".to_owned(),
        extras: extras
            .into_iter()
            .flat_map(|extras| vendors.keys().map(move |vendor| (vendor.clone(), extras)))
            .collect(),
        vendors,
        boot_disk_gib: 40,
        kubelet: Kubelet { max_pods: 110, ..Kubelet::default() },
        ..Class::default()
    };
    let pools = ["amd64", "arm64"].map(|arch| Pool {
        name: arch.to_owned(),
        class: "default".to_owned(),
        requirements: vec![scarpenter_core::requirements::Requirement::new(
            label::ARCH,
            scarpenter_core::requirements::Operator::In,
            &[arch],
        )],
        limits: limits.clone(),
        ..Pool::default()
    });
    plan(&Input {
        snapshot,
        pods,
        pools: &pools,
        classes: &BTreeMap::from([("default".to_owned(), class)]),
        nodes: &[],
        daemons: &[],
        unavailable: &Unavailable::default(),
        caps: &Caps::default(),
        namespaces: &Namespaces::new(),
        lessons: &Lessons::default(),
        rules: Rules::default(),
        now: 0,
    })
}

fn median(work: impl Fn() -> Plan) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

/// What a program without an index would do: look at every offering for every pod.
fn scan(snapshot: &Snapshot, wanted: &[OfferingKey]) -> BTreeMap<String, OfferingKey> {
    let offerings: Vec<_> = snapshot.offerings().collect();
    let mut out = BTreeMap::new();
    for (number, want) in wanted.iter().enumerate() {
        let matching = offerings.iter().filter(|offering| {
            let has = offering.instance_type();
            has.vendor == want.vendor
                && has.name == want.instance_type
                && offering.capacity_type() == CapacityType::OnDemand
        });
        let cheapest = matching.min_by_key(|offering| {
            let place = offering.place();
            (
                offering.price(),
                place.region.clone(),
                place.zone.clone(),
                offering.instance_type().name.clone(),
            )
        });
        out.extend(cheapest.map(|offering| (format!("bench/pod-{number:04}"), offering.key())));
    }
    out
}

fn chosen(plan: &Plan) -> BTreeMap<String, OfferingKey> {
    let pods = plan
        .claims
        .iter()
        .flat_map(|claim| claim.pods.iter().map(|(key, _)| (key.to_string(), claim.launch.offering.clone())));
    pods.collect()
}

/// Runs the command over the same pods: how long it takes, and the most memory it had.
fn child(catalog: &Path, wanted: &[OfferingKey]) -> anyhow::Result<(Duration, u64)> {
    let folder = tempfile::tempdir()?;
    let mut text = String::new();
    for (number, key) in wanted.iter().enumerate() {
        writeln!(
            text,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: pod-{number:04}, namespace: bench}}\nspec:\n  \
             nodeSelector:\n    {}: {:?}\n    {}: {:?}\n  containers:\n  - name: main\n    image: pause\n    \
             resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}",
            label::VENDOR,
            label::label_value(key.vendor.as_str()),
            label::INSTANCE_TYPE,
            label::label_value(&key.instance_type),
        )?;
    }
    let pods = folder.path().join("pods.yaml");
    std::fs::write(&pods, text)?;
    let pools = folder.path().join("pools.yaml");
    std::fs::write(&pools, POOLS)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("plan").arg("-f").arg(&pods).arg("--nodepool").arg(&pools).arg("--catalog").arg(catalog);
    for (currency, usd) in RATES {
        command.arg("--rate").arg(format!("{currency}={usd}"));
    }
    let output = std::fs::File::create(folder.path().join("plan.json"))?;
    command.args(["-o", "json"]).stdout(output);
    let started = Instant::now();
    let mut running = command.spawn().context("start the command")?;
    let id = running.id().to_string();
    let mut memory = 0;
    let status = loop {
        memory = peak_memory(&id).unwrap_or_default().max(memory);
        if let Some(status) = running.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = started.elapsed();
    ensure!(status.success(), "the command ended with {status}");
    Ok((took, memory))
}

const POOLS: &str = "\
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: amd64}, spec: {template: {spec: {nodeClassRef: \
{group: scarpenter.sparecores.com, kind: ScarpenterNodeClass, name: default}, requirements: \
[{key: kubernetes.io/arch, operator: In, values: [amd64]}]}}}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: arm64}, spec: {template: {spec: {nodeClassRef: \
{group: scarpenter.sparecores.com, kind: ScarpenterNodeClass, name: default}, requirements: \
[{key: kubernetes.io/arch, operator: In, values: [arm64]}]}}}}
";

/// `VmHWM` of a process in KiB.
fn peak_memory(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
