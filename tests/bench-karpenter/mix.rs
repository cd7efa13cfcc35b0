//! Pods and types as Karpenter's side wrote them, as our planner takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1 as k8s;
use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{Arch, CapacityType, Hardware, InstanceType, Place, Price};
use scarpenter_core::pod::Pod;
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::resources::{CPU, MEMORY, Resources, parse_quantity};
use scarpenter_core::snapshot::{Snapshot, SnapshotBuilder};
use scarpenter_core::topology::Namespaces;
use scarpenter_planner::{Caps, Input, Kind, Lessons, Plan, Rules, Unavailable};
use serde::Deserialize;
use serde::de::DeserializeOwned;

const VENDOR: &str = "fake";
const CLASS: &str = "default";

/// An instance type of the fake cloud.
#[derive(Debug, Deserialize)]
struct Type {
    name: String,
    allocatable: BTreeMap<String, String>,
    capacity: BTreeMap<String, String>,
    offerings: Vec<Offering>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offering {
    zone: String,
    capacity_type: String,
    micro_usd: u64,
}

/// Everything that a pass is given.
pub(crate) struct Mix {
    snapshot: Snapshot,
    pods: Vec<Pod>,
    pool: Pool,
    classes: BTreeMap<String, Class>,
    lessons: Lessons,
}

impl Mix {
    pub(crate) fn read(types: &Path, pods: &Path) -> anyhow::Result<Self> {
        let types: Vec<Type> = read(types)?;
        let pods: Vec<k8s::Pod> = read(pods)?;
        let mut builder = SnapshotBuilder::default();
        let mut lessons = Lessons::default();
        for each in &types {
            add(&mut builder, each)?;
            // So that both sides count on the same, whatever either would keep back.
            lessons.allocatable.insert(kind(&each.name), resources(&each.allocatable)?);
        }
        let class = Class {
            name: CLASS.to_owned(),
            vendors: BTreeMap::from([(Vendor::new(VENDOR), BTreeSet::new())]),
            boot_disk_gib: 40,
            kubelet: Kubelet { max_pods: 110, ..Kubelet::default() },
            ..Class::default()
        };
        Ok(Self {
            snapshot: builder.build(),
            pods: pods.iter().map(scarpenter_api::pod::parse).collect(),
            pool: pool(),
            classes: BTreeMap::from([(CLASS.to_owned(), class)]),
            lessons,
        })
    }

    pub(crate) fn with_input<T>(&self, work: impl FnOnce(&Input<'_>) -> T) -> T {
        work(&Input {
            snapshot: &self.snapshot,
            pods: &self.pods,
            pools: std::slice::from_ref(&self.pool),
            classes: &self.classes,
            nodes: &[],
            daemons: &[],
            unavailable: &Unavailable::default(),
            caps: &Caps::default(),
            namespaces: &Namespaces::new(),
            lessons: &self.lessons,
            rules: Rules::default(),
            now: 0,
        })
    }

    /// That no pod is lost or placed twice, and no machine holds more than it has.
    pub(crate) fn check(&self, plan: &Plan) -> anyhow::Result<()> {
        let asked: BTreeMap<&str, &Pod> = self.pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
        let mut told: BTreeSet<&str> = plan.unplaced.iter().map(|pod| pod.uid.as_str()).collect();
        for claim in &plan.claims {
            let mut sum = Resources::new();
            for (key, uid) in &claim.pods {
                ensure!(told.insert(uid), "pod {key} is told of twice");
                sum.add(&asked.get(uid.as_str()).context("a pod that nobody asked for")?.requests);
            }
            let has = &self.lessons.allocatable[&kind(&claim.launch.offering.instance_type)];
            ensure!(sum.fits(has), "{} holds {sum}, but has {has}", claim.launch.offering);
        }
        ensure!(told.len() + plan.deferred == self.pods.len(), "the plan does not tell of all pods");
        Ok(())
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file)).with_context(|| format!("read {}", path.display()))
}

/// As the pool of the benchmark: no requirement and limits that are never reached; that spot is welcome must be said.
fn pool() -> Pool {
    let both = [CapacityType::Spot.as_str(), CapacityType::OnDemand.as_str()];
    Pool {
        name: "default".to_owned(),
        class: CLASS.to_owned(),
        requirements: vec![Requirement::new(label::CAPACITY_TYPE, Operator::In, &both)],
        limits: Resources::new().with(CPU, 10_000_000_000).with(MEMORY, 10_000_000 << 30),
        ..Pool::default()
    }
}

fn kind(name: &str) -> Kind {
    Kind { class: CLASS.to_owned(), vendor: Vendor::new(VENDOR), instance_type: name.to_owned() }
}

fn resources(quantities: &BTreeMap<String, String>) -> anyhow::Result<Resources> {
    let amounts = quantities.iter().map(|(name, text)| Ok((name.clone(), parse_quantity(name, text)?)));
    amounts.collect()
}

fn add(builder: &mut SnapshotBuilder, each: &Type) -> anyhow::Result<()> {
    let capacity = resources(&each.capacity)?;
    let id = builder.instance_type(InstanceType {
        vendor: Vendor::new(VENDOR),
        name: each.name.clone(),
        arch: Arch::Amd64,
        family: String::new(),
        cpu: u32::try_from(capacity.get(CPU) / 1000)?,
        memory_mib: u64::try_from(capacity.get(MEMORY) >> 20)?,
        storage_gb: 0,
        gpu_count: 0,
        gpu_manufacturer: String::new(),
        gpu_model: String::new(),
        cpu_manufacturer: String::new(),
        cpu_allocation: String::new(),
        benchmarks: BTreeMap::new(),
        hardware: Box::<Hardware>::default(),
    });
    for offering in &each.offerings {
        let capacity = CapacityType::parse(&offering.capacity_type).context("an unknown capacity type")?;
        let place = Place { region: "fake".to_owned(), zone: Some(offering.zone.clone()), zone_id: None };
        builder.offering(id, place, capacity, Price::from_micro_usd(offering.micro_usd));
    }
    Ok(())
}
