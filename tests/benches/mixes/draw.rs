//! Pods, drawn from a seed.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use scarpenter_core::label;
use scarpenter_core::offering::{CapacityType, OfferingKey};
use scarpenter_core::pod::{HostPort, Pod, PodKey};
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::resources::{CPU, MEMORY, PODS, Resources};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::{PodTerm, Spread};

/// Pods of one app that know of each other.
const APP: usize = 50;
const MILLICORES: [i64; 9] = [50, 100, 250, 500, 1000, 1500, 2000, 4000, 8000];
const MIB_PER_CORE: [i64; 5] = [512, 1024, 2048, 4096, 8192];
const ARCHS: [&str; 2] = ["amd64", "arm64"];
/// Micro-USD an hour.
const CAPS: [u64; 4] = [100_000, 250_000, 500_000, 1_000_000];
const PORTS: [u16; 4] = [80, 443, 9100, 30_000];

/// A pod that asks for nothing but its size.
pub(crate) fn plain(random: &mut StdRng, number: usize) -> Pod {
    let cpu = *MILLICORES.choose(random).expect("there are sizes");
    let memory = cpu * MIB_PER_CORE.choose(random).expect("there are sizes") * 1024 * 1024 / 1000;
    sized(number, cpu, memory)
}

/// A pod of this size.
pub(crate) fn sized(number: usize, cpu: i64, memory: i64) -> Pod {
    Pod {
        key: PodKey::new("bench", &format!("pod-{number:06}")),
        uid: format!("uid-{number:06}"),
        requests: Resources::new().with(CPU, cpu).with(MEMORY, memory).with(PODS, 1),
        ..Pod::default()
    }
}

/// Draws pods of all kinds over one catalog.
pub(crate) struct Draw {
    keys: Vec<OfferingKey>,
    vendors: Vec<String>,
    zones: Vec<String>,
}

impl Draw {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let on_demand = snapshot.offerings().filter(|each| each.capacity_type() == CapacityType::OnDemand);
        let keys: BTreeMap<usize, OfferingKey> =
            on_demand.map(|offering| (offering.type_index(), offering.key())).collect();
        let vendors: BTreeSet<String> =
            keys.values().map(|key| label::label_value(key.vendor.as_str())).collect();
        let zones = keys.values().filter_map(|key| Some(format!("{}.{}", key.vendor, key.zone.as_ref()?)));
        let zones: BTreeSet<String> = zones.map(|zone| label::label_value(&zone)).collect();
        Self {
            keys: keys.into_values().collect(),
            vendors: vendors.into_iter().collect(),
            zones: zones.into_iter().collect(),
        }
    }

    /// Of twenty pods: six plain ones, three that choose by a label, two each that spread over zones, spread over hosts, stay
    /// near their like, keep away from it, or name an exact type, and one with a price cap or a port of the host.
    pub(crate) fn mixed(&self, random: &mut StdRng, number: usize) -> Pod {
        let mut pod = plain(random, number);
        let kind = number % 20;
        let app = format!("app-{}-{kind}", number / 20 / APP);
        pod.labels.insert("app".to_owned(), app.clone());
        match kind {
            0..6 => {}
            6..9 => self.choose(random, &mut pod),
            9 | 10 => pod.spread.push(spread(label::UNIQUE_ZONE, &app)),
            11 | 12 => pod.spread.push(spread(label::HOSTNAME, &app)),
            13 | 14 => pod.affinity.push(term(label::UNIQUE_ZONE, &app)),
            15 | 16 => pod.anti_affinity.push(term(label::HOSTNAME, &app)),
            17 | 18 => self.exact(random, &mut pod),
            _ if random.random_bool(0.5) => cap(random, &mut pod),
            _ => {
                let port = *PORTS.choose(random).expect("there are ports");
                pod.host_ports.push(HostPort { port, protocol: "TCP".to_owned(), ip: String::new() });
            }
        }
        pod
    }

    fn choose(&self, random: &mut StdRng, pod: &mut Pod) {
        let (key, value) = match random.random_range(0..3) {
            0 => (label::VENDOR, self.vendors.choose(random).map(String::as_str)),
            1 => (label::UNIQUE_ZONE, self.zones.choose(random).map(String::as_str)),
            _ => (label::ARCH, ARCHS.choose(random).copied()),
        };
        pod.node_selector.extend(value.map(|value| (key.to_owned(), value.to_owned())));
    }

    fn exact(&self, random: &mut StdRng, pod: &mut Pod) {
        let key = self.keys.choose(random).expect("the catalog has types");
        pod.requests = Resources::new().with(CPU, 100).with(MEMORY, 64 << 20).with(PODS, 1);
        pod.node_selector.insert(label::VENDOR.to_owned(), label::label_value(key.vendor.as_str()));
        pod.node_selector.insert(label::INSTANCE_TYPE.to_owned(), label::label_value(&key.instance_type));
    }
}

fn cap(random: &mut StdRng, pod: &mut Pod) {
    let most = CAPS.choose(random).expect("there are caps").to_string();
    pod.required_terms.push(vec![Requirement::new(label::PRICE, Operator::Lt, &[&most])]);
}

fn of_app(app: &str) -> Vec<Requirement> {
    vec![Requirement::new("app", Operator::In, &[app])]
}

fn spread(key: &str, app: &str) -> Spread {
    Spread {
        topology_key: key.to_owned(),
        max_skew: 1,
        min_domains: None,
        selector: Some(of_app(app)),
        required: true,
        honor_affinity: true,
        honor_taints: false,
    }
}

fn term(key: &str, app: &str) -> PodTerm {
    PodTerm {
        topology_key: key.to_owned(),
        selector: Some(of_app(app)),
        namespaces: BTreeSet::from(["bench".to_owned()]),
        namespace_selector: None,
    }
}
