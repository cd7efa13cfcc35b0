//! A small world for tests: a few types of three vendors, with prices and scores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{Arch, CapacityType, Hardware, InstanceType, Place, Price, Terms};
use scarpenter_core::snapshot::{Snapshot, SnapshotBuilder};
use serde_json::{Value, json};

use crate::facts::{Facts, Measurement};
use crate::spec::Intent;

/// Vendor, region, zone, type, family, architecture, vCPUs, GiB, micro-USD an hour.
type Line = (&'static str, &'static str, &'static str, &'static str, &'static str, Arch, u32, u64, u64);

const TYPES: [Line; 8] = [
    ("hcloud", "fsn1", "fsn1", "cx22", "cx", Arch::Amd64, 2, 4, 6_000),
    ("hcloud", "fsn1", "fsn1", "cx32", "cx", Arch::Amd64, 4, 8, 11_000),
    ("hcloud", "fsn1", "fsn1", "cx42", "cx", Arch::Amd64, 8, 16, 26_000),
    ("hcloud", "fsn1", "fsn1", "cax11", "cax", Arch::Arm64, 2, 4, 6_500),
    ("hcloud", "fsn1", "fsn1", "ccx13", "ccx", Arch::Amd64, 2, 8, 20_000),
    ("hcloud", "hil", "hil", "cpx11", "cpx", Arch::Amd64, 2, 2, 7_000),
    ("ovh", "GRA11", "gra11-a", "b3-8", "General Purpose", Arch::Amd64, 2, 8, 50_000),
    ("aws", "us-east-1", "us-east-1a", "m8a.large", "m8a", Arch::Amd64, 2, 8, 120_000),
];

pub(crate) fn snapshot() -> &'static Snapshot {
    static SNAPSHOT: OnceLock<Snapshot> = OnceLock::new();
    SNAPSHOT.get_or_init(|| {
        let mut builder = SnapshotBuilder::default();
        for (vendor, region, zone, name, family, arch, cpu, gib, micro) in TYPES {
            let of = builder.instance_type(InstanceType {
                vendor: vendor.into(),
                name: name.to_owned(),
                arch,
                family: family.to_owned(),
                cpu,
                memory_mib: gib * 1024,
                storage_gb: 0,
                gpu_count: 0,
                gpu_manufacturer: String::new(),
                gpu_model: String::new(),
                cpu_manufacturer: "AMD".to_owned(),
                cpu_allocation: "shared".to_owned(),
                benchmarks: BTreeMap::new(),
                hardware: Box::new(Hardware { cpu_cores: Some(cpu), ..Hardware::default() }),
            });
            let place = Place { region: region.to_owned(), zone: Some(zone.to_owned()), zone_id: None };
            let place = builder.place(&Vendor::from(vendor), place);
            let price = Price::from_micro_usd(micro);
            builder.offer(of, place, CapacityType::OnDemand, price, Terms::usd(price));
        }
        builder.build()
    })
}

pub(crate) fn facts() -> Facts<'static> {
    let snapshot = snapshot();
    let score = |name: &str| match name {
        "cx22" => Some(100.0),
        "cx32" => Some(102.0),
        "ccx13" => Some(150.0),
        "cax11" => Some(90.0),
        _ => None,
    };
    let scores = snapshot.types().iter().enumerate().filter_map(|(at, of)| Some((at, score(&of.name)?)));
    let scores: Vec<(usize, f64)> = scores.collect();
    let latency = scores.iter().map(|(at, score)| (*at, 1000.0 / score)).collect();
    Facts {
        snapshot,
        measurements: vec![
            Measurement { id: "speed", config: r#"{"cores":"single"}"#, scores: scores.clone() },
            Measurement { id: "speed", config: r#"{"cores":"multi"}"#, scores: scores.clone() },
            Measurement { id: "plain", config: "{}", scores },
            Measurement { id: "redis:latency", config: "{}", scores: latency },
        ],
        timestamp: None,
        hash: None,
        auto_mode: None,
    }
}

/// Group and kind of an adapter's node class.
pub(crate) fn pool(adapter: &str) -> (&'static str, &'static str) {
    crate::adapter::ADAPTERS
        .iter()
        .find(|own| own.id == adapter)
        .map(|own| own.node_class)
        .expect("an adapter")
}

/// An SCNodePool in one region; `more` are further fields of its spec.
pub(crate) fn intent(class: (&str, &str), region: &str, more: &str) -> Intent {
    Intent::parse("case", spec(class, region, more)).expect("a sound spec")
}

pub(crate) fn spec((group, kind): (&str, &str), region: &str, more: &str) -> Value {
    let mut spec = json!({
        "nodePoolTemplate": {"spec": {"template": {"spec": {
            "nodeClassRef": {"group": group, "kind": kind, "name": "default"},
        }}}},
        "location": {"regions": [region]},
    });
    let more: BTreeMap<String, Value> = serde_saphyr::from_str(&format!("{{{more}}}")).expect("YAML");
    more.into_iter().for_each(|(field, value)| spec[field] = value);
    spec
}

pub(crate) fn types(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
