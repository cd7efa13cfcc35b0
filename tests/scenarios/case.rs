//! Reads one scenario.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod as KubePod;
use scarpenter_api::{NodePool, ScarpenterNodeClass, daemon, pod};
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_core::node::{Daemon, Node};
use scarpenter_core::offering::{Arch, CapacityType, InstanceType, OfferingKey, Place, Price};
use scarpenter_core::pod::{Pod, Taint};
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::resources::{Resources, parse_quantity};
use scarpenter_core::snapshot::{Snapshot, SnapshotBuilder};
use scarpenter_core::topology::Namespaces;
use scarpenter_planner::{Caps, Input, Lessons, Plan, Rules, Unavailable, plan};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// All facts of one scenario.
pub(crate) struct Case {
    rows: Vec<TypeRow>,
    pods: Vec<Pod>,
    pools: Vec<Pool>,
    classes: BTreeMap<String, Class>,
    nodes: Vec<Node>,
    daemons: Vec<Daemon>,
    unavailable: Unavailable,
    caps: Caps,
}

/// One type of the catalog and where it is sold.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TypeRow {
    vendor: String,
    name: String,
    cpu: u32,
    memory_gib: f64,
    #[serde(default)]
    arm64: bool,
    #[serde(default)]
    disk_gb: u64,
    #[serde(default)]
    nvidia: u32,
    #[serde(default)]
    single_thread: Option<u64>,
    /// Region, or `region/zone`, to dollars an hour on demand.
    #[serde(default)]
    on_demand: BTreeMap<String, f64>,
    /// The same as spot.
    #[serde(default)]
    spot: BTreeMap<String, f64>,
}

/// What is not in Kubernetes objects.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Situation {
    #[serde(default)]
    sold_out: Vec<SoldOut>,
    #[serde(default)]
    vendors_down: BTreeMap<String, String>,
    #[serde(default)]
    max_machines: Option<u64>,
    #[serde(default)]
    places: Vec<PlaceRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SoldOut {
    #[serde(flatten)]
    offering: OfferingKey,
    until: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlaceRow {
    name: String,
    #[serde(default)]
    pool: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Taint>,
    allocatable: BTreeMap<String, String>,
    #[serde(default)]
    requested: BTreeMap<String, String>,
    #[serde(default)]
    initialized: bool,
    /// Pods that it was made for, as `namespace/name`.
    #[serde(default)]
    promised: Vec<String>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut out = Self {
            rows: Vec::new(),
            pods: Vec::new(),
            pools: Vec::new(),
            classes: BTreeMap::new(),
            nodes: Vec::new(),
            daemons: Vec::new(),
            unavailable: Unavailable::default(),
            caps: Caps::default(),
        };
        for document in documents {
            out.add(document);
        }
        out
    }

    fn add(&mut self, mut document: Value) {
        let kind = document["kind"].as_str().unwrap().to_owned();
        match kind.as_str() {
            "Catalog" => self.rows.extend(parse::<Vec<TypeRow>>(document["types"].take())),
            "Situation" => self.situation(parse(document["spec"].take())),
            "NodePool" => self.pools.push(parse::<NodePool>(document).to_pool().unwrap()),
            "ScarpenterNodeClass" => {
                let class = parse::<ScarpenterNodeClass>(document).to_class();
                self.classes.insert(class.name.clone(), class);
            }
            "DaemonSet" => self.daemons.push(daemon::parse(&parse::<DaemonSet>(document))),
            "Pod" => {
                let mut object: KubePod = parse(document);
                object.metadata.uid = Some(uid(&pod::key(&object).to_string()));
                self.pods.push(pod::parse(&object));
            }
            other => panic!("a scenario has no {other}"),
        }
    }

    fn situation(&mut self, situation: Situation) {
        for sold in situation.sold_out {
            self.unavailable.offerings.insert(sold.offering, sold.until);
        }
        let down = situation.vendors_down.into_iter();
        self.unavailable.vendors = down.map(|(vendor, why)| (Vendor::new(vendor), why)).collect();
        self.caps.max_machines = situation.max_machines;
        self.nodes = situation.places.into_iter().map(place).collect();
    }

    pub(crate) fn plan(&self) -> Plan {
        let snapshot = catalog(&self.rows);
        plan(&Input {
            snapshot: &snapshot,
            pods: &self.pods,
            pools: &self.pools,
            classes: &self.classes,
            nodes: &self.nodes,
            daemons: &self.daemons,
            unavailable: &self.unavailable,
            caps: &self.caps,
            namespaces: &Namespaces::new(),
            lessons: &Lessons::default(),
            rules: Rules::default(),
            now: 1_000_000_000,
        })
    }

    pub(crate) fn reverse(&mut self) {
        self.rows.reverse();
        self.pods.reverse();
        self.pools.reverse();
        self.nodes.reverse();
        self.daemons.reverse();
    }
}

fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn uid(key: &str) -> String {
    key.replace('/', ".")
}

fn amounts(quantities: &BTreeMap<String, String>) -> Resources {
    quantities.iter().map(|(name, text)| (name.clone(), parse_quantity(name, text).unwrap())).collect()
}

fn place(row: PlaceRow) -> Node {
    Node {
        name: row.name,
        pool: row.pool,
        labels: row.labels,
        taints: row.taints,
        allocatable: amounts(&row.allocatable),
        counted: amounts(&row.allocatable).with(scarpenter_core::resources::NODES, 1),
        requested: amounts(&row.requested),
        open: true,
        initialized: row.initialized,
        promised: row.promised.iter().map(|key| uid(key)).collect(),
        ..Node::default()
    }
}

fn catalog(rows: &[TypeRow]) -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    for row in rows {
        let id = builder.instance_type(instance_type(row));
        for (capacity, prices) in [(CapacityType::OnDemand, &row.on_demand), (CapacityType::Spot, &row.spot)]
        {
            for (place, usd) in prices {
                let (region, zone) = match place.split_once('/') {
                    Some((region, zone)) => (region, Some(zone.to_owned())),
                    None => (place.as_str(), None),
                };
                let place = Place { region: region.to_owned(), zone, zone_id: None };
                // A price that is none makes no offering, as in the catalog.
                if let Some(price) = Price::from_usd(*usd) {
                    builder.offering(id, place, capacity, price);
                }
            }
        }
    }
    builder.build()
}

fn instance_type(row: &TypeRow) -> InstanceType {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let memory_mib = (row.memory_gib * 1024.0) as u64;
    let score = row.single_thread.map(|score| (label::BENCHMARKS[0], score));
    let gpu = |text: &str| if row.nvidia > 0 { text.to_owned() } else { String::new() };
    InstanceType {
        vendor: row.vendor.as_str().into(),
        name: row.name.clone(),
        arch: if row.arm64 { Arch::Arm64 } else { Arch::Amd64 },
        family: String::new(),
        cpu: row.cpu,
        memory_mib,
        storage_gb: row.disk_gb,
        gpu_count: row.nvidia,
        gpu_manufacturer: gpu("NVIDIA"),
        gpu_model: gpu("A100"),
        cpu_manufacturer: String::new(),
        cpu_allocation: String::new(),
        benchmarks: score.into_iter().collect(),
        hardware: Box::default(),
    }
}
