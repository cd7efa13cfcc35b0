//! Each rule with the value at its bound, beyond it, and not known.

use std::collections::BTreeMap;

use scarpenter_core::offering::{Arch, Hardware, InstanceType};

use super::*;
use crate::spec::Selector;

const IN: &str = "in";
const OUT: &str = "out";
const MISSING: &str = "missing";

/// A type of which everything is known.
fn known() -> InstanceType {
    InstanceType {
        vendor: "aws".into(),
        name: "m8a.large".to_owned(),
        arch: Arch::Amd64,
        family: "m8a".to_owned(),
        cpu: 2,
        memory_mib: 8192,
        storage_gb: 0,
        gpu_count: 1,
        gpu_manufacturer: "NVIDIA".to_owned(),
        gpu_model: "A10G".to_owned(),
        cpu_manufacturer: "AMD".to_owned(),
        cpu_allocation: "dedicated".to_owned(),
        benchmarks: BTreeMap::new(),
        hardware: Box::new(Hardware {
            cpu_cores: Some(2),
            cpu_mhz: Some(3400),
            cpu_flags: ["avx", "avx2"].into_iter().collect(),
            l1d_kib: Some(48),
            l1i_kib: Some(32),
            l2_kib: Some(1024),
            l3_kib: Some(32 * 1024),
            l3_total_kib: Some(64 * 1024),
            gpu_ten_thousandths: 5000,
            gpu_memory_min_mib: Some(12 * 1024),
            gpu_memory_total_mib: Some(24 * 1024),
            gpu_manufacturer: "NVIDIA".into(),
            gpu_model: "A10G".into(),
            network_baseline_mbps: Some(1500),
            network_peak_mbps: Some(12500),
            local_storage_gb: 118,
            local_storages: 2,
            ..Hardware::default()
        }),
    }
}

/// The same without all that may be unknown.
fn unknown() -> InstanceType {
    InstanceType {
        family: String::new(),
        cpu_manufacturer: String::new(),
        cpu_allocation: String::new(),
        hardware: Box::new(Hardware { local_storage_gb: 118, ..Hardware::default() }),
        ..known()
    }
}

fn judged(selector: &str, of: &InstanceType) -> Vec<Failure> {
    let selector: Selector = serde_saphyr::from_str(&format!("{{{selector}}}")).unwrap();
    let wanted = Wanted { bounds: Vec::new(), rank: None };
    let filters = Filters::read(&selector, &wanted).unwrap();
    filters.judge(&Row { index: 0, of, price: Some(90_000), on_demand: true })
}

fn outcome(selector: &str, of: &InstanceType) -> &'static str {
    match judged(selector, of).first().map(|failure| failure.step) {
        None => IN,
        Some(Step::Missing(_)) => MISSING,
        Some(_) => OUT,
    }
}

#[test]
fn each_rule_keeps_what_is_at_its_bound_and_leaves_out_what_is_beyond_it_or_not_known() {
    for (at, beyond, without) in [
        ("families: {include: ['m8?']}", "families: {include: ['m7?']}", MISSING),
        ("families: {exclude: ['m7?']}", "families: {exclude: ['m8?']}", IN),
        ("instanceTypes: {include: ['m8a.*']}", "instanceTypes: {exclude: ['*.large']}", IN),
        ("vcpus: {min: 2, max: 2}", "vcpus: {min: 3}", IN),
        ("vcpus: {max: 2}", "vcpus: {max: 1}", IN),
        ("architectures: [amd64]", "architectures: [arm64]", IN),
        ("cpu: {manufacturers: [AMD]}", "cpu: {manufacturers: [amd]}", MISSING),
        ("cpu: {allocations: [Dedicated]}", "cpu: {allocations: [Shared]}", MISSING),
        ("cpu: {clockSpeedMinGHz: 3.4}", "cpu: {clockSpeedMinGHz: 3.41}", MISSING),
        ("cpu: {hyperthreading: false}", "cpu: {hyperthreading: true}", MISSING),
        ("cpu: {flags: {allOf: [avx, avx2]}}", "cpu: {flags: {allOf: [avx, sve]}}", MISSING),
        ("cpu: {flags: {anyOf: [sve, avx2]}}", "cpu: {flags: {anyOf: [sve]}}", MISSING),
        ("cpu: {flags: {noneOf: [sve]}}", "cpu: {flags: {noneOf: [avx]}}", MISSING),
        ("cpu: {caches: {l1dPerCoreMinKiB: 48}}", "cpu: {caches: {l1dPerCoreMinKiB: 49}}", MISSING),
        ("cpu: {caches: {l1iPerCoreMinKiB: 32}}", "cpu: {caches: {l1iPerCoreMinKiB: 33}}", MISSING),
        ("cpu: {caches: {l2PerCoreMinKiB: 1024}}", "cpu: {caches: {l2PerCoreMinKiB: 1025}}", MISSING),
        ("cpu: {caches: {l3MinMiB: 32}}", "cpu: {caches: {l3MinMiB: 33}}", MISSING),
        ("cpu: {caches: {l3TotalMinMiB: 64}}", "cpu: {caches: {l3TotalMinMiB: 65}}", MISSING),
        ("memory: {minGiB: 8}", "memory: {minGiB: 8.01}", IN),
        ("memory: {maxGiB: 8}", "memory: {maxGiB: 7.99}", IN),
        ("memory: {perVcpu: {minGiB: 4, maxGiB: 4}}", "memory: {perVcpu: {minGiB: 4.01}}", IN),
        ("gpu: {count: {min: 0.5, max: 0.5}}", "gpu: {count: {min: 0.51}}", OUT),
        ("gpu: {count: {max: 0.5}}", "gpu: {count: {max: 0}}", IN),
        ("gpu: {memoryPerGpu: {minGiB: 12}}", "gpu: {memoryPerGpu: {minGiB: 12.1}}", MISSING),
        ("gpu: {memoryTotal: {minGiB: 24}}", "gpu: {memoryTotal: {minGiB: 24.1}}", MISSING),
        ("gpu: {manufacturers: [NVIDIA]}", "gpu: {manufacturers: [AMD]}", MISSING),
        ("gpu: {models: [A10G, L4]}", "gpu: {models: [A100]}", MISSING),
        ("network: {baselineMinGbps: 1.5}", "network: {baselineMinGbps: 1.6}", MISSING),
        ("network: {peakMinGbps: 12.5}", "network: {peakMinGbps: 12.6}", MISSING),
        ("storage: {local: {minGB: 118}}", "storage: {local: {minGB: 119}}", IN),
        ("storage: {local: {countMin: 2}}", "storage: {local: {countMin: 3}}", MISSING),
        ("storage: {local: {countMin: 1}}", "storage: {local: {countMin: 3}}", IN),
        ("price: {maxHourly: '0.09'}", "price: {maxHourly: '0.089999'}", IN),
        ("price: {maxHourlyPerVcpu: '0.045'}", "price: {maxHourlyPerVcpu: '0.044999'}", IN),
    ] {
        assert_eq!(outcome(at, &known()), IN, "{at}");
        assert_eq!(outcome(beyond, &known()), OUT, "{beyond}");
        assert_eq!(outcome(at, &unknown()), without, "{at}, not known");
    }
}

#[test]
fn every_rule_that_fails_is_told_with_its_margin() {
    let selector = "vcpus: {min: 4}, architectures: [arm64], memory: {maxGiB: 4}, gpu: {count: {max: 0}}";
    let failures = judged(selector, &known());
    let told: Vec<_> = failures.iter().map(|failure| (failure.step, failure.margin)).collect();
    assert_eq!(
        told,
        [
            (Step::Filter("vcpus"), Some(50.0)),
            (Step::Filter("architectures"), None),
            (Step::Filter("memory"), Some(100.0)),
            (Step::Filter("gpu.count"), None),
        ]
    );
    assert_eq!(failures[0].words, "vcpus: 2 vCPUs, at least 4 is wanted");
}
