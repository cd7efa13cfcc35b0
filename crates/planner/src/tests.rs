//! A small catalog, and builders that say only what a test is about.

use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::offering::{Arch, CapacityType, InstanceType, Place, Price};
use scarpenter_core::pod::{Pod, PodKey, Taint, TaintEffect, Toleration};
use scarpenter_core::pool::{Class, Pool, Tenancy};
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::resources::{CPU, MEMORY, MICRO_USD_PER_HOUR, NODES, PODS, Resources};
use scarpenter_core::snapshot::{Snapshot, SnapshotBuilder};
use scarpenter_core::topology::Namespaces;

use crate::{Caps, Input, Lessons, Plan, Rules, Unavailable, plan};

mod choice;
mod daemons;
mod explain;
mod extras;
mod lessons;
mod limits;
mod neighbours;
mod places;
mod properties;
mod refusals;

const GIB: i64 = 1 << 30;
const BENCHMARK: &str = "benchmark.scarpenter.sparecores.com/passmark-single-thread";

/// Vendor, name, CPUs, architecture, price in micro-USD, benchmark score.
type Sold = (&'static str, &'static str, u32, Arch, u64, Option<u64>);

const TYPES: [Sold; 7] = [
    ("one", "s2", 2, Arch::Amd64, 20_000, Some(1000)),
    ("one", "s4", 4, Arch::Amd64, 40_000, Some(1000)),
    ("one", "s8", 8, Arch::Amd64, 80_000, None),
    ("one", "a4", 4, Arch::Arm64, 30_000, Some(2000)),
    ("two", "m2", 2, Arch::Amd64, 25_000, Some(3000)),
    ("two", "m8", 8, Arch::Amd64, 90_000, Some(3000)),
    ("two", "m32", 32, Arch::Amd64, 400_000, None),
];

fn instance_type(vendor: &str, name: &str, cpu: u32, arch: Arch, score: Option<u64>) -> InstanceType {
    InstanceType {
        vendor: vendor.into(),
        name: name.to_owned(),
        arch,
        family: name.chars().take(1).collect(),
        cpu,
        memory_mib: u64::from(cpu) * 4096,
        storage_gb: 0,
        gpu_count: 0,
        gpu_manufacturer: String::new(),
        gpu_model: String::new(),
        cpu_manufacturer: String::new(),
        cpu_allocation: "dedicated".to_owned(),
        benchmarks: score.map(|score| ("passmark-single-thread", score)).into_iter().collect(),
        hardware: Box::default(),
    }
}

/// Vendor `one` in regions r1 and r2 at one price, vendor `two` in r2 (two zones) and, as spot, in r3 at a third.
fn catalog() -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    for (vendor, name, cpu, arch, price, score) in TYPES {
        let id = builder.instance_type(instance_type(vendor, name, cpu, arch, score));
        let place = |region: &str, zone: Option<&str>| Place {
            region: region.to_owned(),
            zone: zone.map(str::to_owned),
            zone_id: None,
        };
        let mut offer =
            |place, capacity, price| builder.offering(id, place, capacity, Price::from_micro_usd(price));
        if vendor == "one" {
            offer(place("r1", None), CapacityType::OnDemand, price);
            offer(place("r2", None), CapacityType::OnDemand, price);
        } else {
            offer(place("r2", Some("r2a")), CapacityType::OnDemand, price);
            offer(place("r2", Some("r2b")), CapacityType::OnDemand, price);
            offer(place("r3", None), CapacityType::Spot, price / 3);
        }
    }
    builder.instance_type(instance_type("one", "unsold", 2, Arch::Amd64, None));
    builder.build()
}

/// All facts of a pass, with defaults.
struct World {
    snapshot: Snapshot,
    pods: Vec<Pod>,
    pools: Vec<Pool>,
    classes: BTreeMap<String, Class>,
    nodes: Vec<Node>,
    daemons: Vec<Daemon>,
    unavailable: Unavailable,
    caps: Caps,
    namespaces: Namespaces,
    lessons: Lessons,
    rules: Rules,
}

fn class(name: &str, tenancy: Tenancy) -> Class {
    let vendors = ["one", "two"].map(|vendor| (Vendor::new(vendor), BTreeSet::new()));
    Class {
        name: name.to_owned(),
        vendors: vendors.into(),
        tenancy,
        boot_disk_gib: 40,
        kubelet: Kubelet { max_pods: 110, ..Kubelet::default() },
        extras: BTreeMap::new(),
    }
}

fn pool(name: &str) -> Pool {
    Pool { name: name.to_owned(), class: "default".to_owned(), ..Pool::default() }
}

fn pod(name: &str, cpu: i64) -> Pod {
    Pod {
        key: PodKey::new("default", name),
        uid: format!("uid-{name}"),
        requests: Resources::new().with(CPU, cpu * 1000).with(MEMORY, cpu * GIB).with(PODS, 1),
        ..Pod::default()
    }
}

fn selecting(mut pod: Pod, key: &str, value: &str) -> Pod {
    pod.node_selector.insert(key.to_owned(), value.to_owned());
    pod
}

fn requiring(mut pod: Pod, lines: &[(&str, Operator, &[&str])]) -> Pod {
    pod.required_terms
        .push(lines.iter().map(|(key, operator, values)| Requirement::new(key, *operator, values)).collect());
    pod
}

fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint { key: key.to_owned(), value: value.to_owned(), effect }
}

impl World {
    fn new(pods: impl IntoIterator<Item = Pod>) -> Self {
        Self {
            snapshot: catalog(),
            pods: pods.into_iter().collect(),
            pools: vec![pool("default")],
            classes: BTreeMap::from([
                ("default".to_owned(), class("default", Tenancy::Shared)),
                ("single".to_owned(), class("single", Tenancy::SinglePod)),
            ]),
            nodes: Vec::new(),
            daemons: Vec::new(),
            unavailable: Unavailable::default(),
            caps: Caps::default(),
            namespaces: Namespaces::new(),
            lessons: Lessons::default(),
            rules: Rules::default(),
        }
    }

    fn plan(&self) -> Plan {
        plan(&self.input())
    }

    fn input(&self) -> Input<'_> {
        Input {
            snapshot: &self.snapshot,
            pods: &self.pods,
            pools: &self.pools,
            classes: &self.classes,
            nodes: &self.nodes,
            daemons: &self.daemons,
            unavailable: &self.unavailable,
            caps: &self.caps,
            namespaces: &self.namespaces,
            lessons: &self.lessons,
            rules: self.rules,
            now: 1000,
        }
    }
}

/// Offerings of the claims, in text.
fn bought(plan: &Plan) -> Vec<String> {
    plan.claims.iter().map(|claim| claim.launch.offering.to_string()).collect()
}

/// The one refusal of a plan.
fn refusal(plan: &Plan) -> (&str, &str) {
    assert_eq!((plan.claims.len(), plan.nominated.len(), plan.unplaced.len()), (0, 0, 1), "{plan:#?}");
    let refusal = &plan.unplaced[0].refusal;
    (&refusal.reason, &refusal.message)
}
