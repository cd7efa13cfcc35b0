//! Selections from the stored catalog, held against counts and hashes that were worked out apart.
//!
//! The catalog is `keeper/catalog.sqlite` in the folder that SCARPENTER_SHARED names; the numbers hold for that one file.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use scarpenter_catalog::{Catalog, Rate, Rates};
use scarpenter_emission::{Facts, Intent, Measurement, Selection, select};
use serde_json::{Value, json};

const SHA256: &str = "6ebbe924904693819d7492bebcb0f586922e22d239543c3cf4c8edf2a3fc684d";

/// The stored catalog; `None`, and a line on stderr, where it is absent or another one.
fn catalog() -> Option<&'static Catalog> {
    static CATALOG: OnceLock<Option<Catalog>> = OnceLock::new();
    CATALOG.get_or_init(read).as_ref()
}

fn read() -> Option<Catalog> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SCARPENTER_SHARED").map_or(beside, PathBuf::from);
    let path = shared.join("keeper/catalog.sqlite");
    if !path.exists() {
        eprintln!(
            "NOT RUN: goldens of emission, since SCARPENTER_SHARED names no folder with keeper/catalog.sqlite"
        );
        return None;
    }
    let rates: Rates =
        ["EUR=1.10", "CNY=0.14"].map(|rate| rate.parse::<Rate>().unwrap()).into_iter().collect();
    let catalog = scarpenter_catalog::open(&path, &rates).unwrap();
    if catalog.report.provenance.hash.as_deref() != Some(SHA256) {
        eprintln!(
            "NOT RUN: goldens of emission, since keeper/catalog.sqlite is another one than they hold for"
        );
        return None;
    }
    Some(catalog)
}

fn facts(catalog: &Catalog) -> Facts<'_> {
    let measurement = |own: &'_ scarpenter_catalog::Measurement| own.iter().collect();
    Facts {
        snapshot: &catalog.snapshot,
        measurements: catalog
            .scores
            .iter()
            .map(|own| Measurement { id: own.id(), config: own.config(), scores: measurement(own) })
            .collect(),
        timestamp: catalog.snapshot.observed().map(|(_, newest)| newest),
        hash: catalog.report.provenance.hash.as_deref(),
        auto_mode: None,
    }
}

/// An SCNodePool for a node class in one region; `more` are further fields of its spec.
fn intent(class: &str, region: &str, more: &str) -> Intent {
    let (group, kind) = class.split_once(' ').unwrap();
    let more: BTreeMap<String, Value> = serde_saphyr::from_str(&format!("{{{more}}}")).unwrap();
    let mut spec = json!({
        "nodePoolTemplate": {"spec": {"template": {"spec": {
            "nodeClassRef": {"group": group, "kind": kind, "name": "default"},
        }}}},
        "location": {"regions": [region]},
    });
    more.into_iter().for_each(|(field, value)| spec[field] = value);
    Intent::parse("case", spec).unwrap()
}

const AWS: (&str, &str) = ("karpenter.k8s.aws EC2NodeClass", "us-east-1");
const AZURE: (&str, &str) = ("karpenter.azure.com AKSNodeClass", "westeurope");
const GCP: (&str, &str) = ("karpenter.k8s.gcp GCENodeClass", "us-central1");
const ALICLOUD: (&str, &str) = ("karpenter.alibabacloud.com ECSNodeClass", "eu-central-1");
const HCLOUD: (&str, &str) = ("karpenter.hetzner.cloud HCloudNodeClass", "fsn1");
const ITSH: (&str, &str) = ("karpenter.itsh.dev HCloudNodeClass", "fsn1");
const OVH: (&str, &str) = ("karpenter.ovhcloud.sh OVHNodeClass", "GRA11");
const UPCLOUD: (&str, &str) = ("karpenter.k8s.upcloud UpCloudNodeClass", "de-fra1");
const VULTR: (&str, &str) = ("karpenter.vultr.com VultrNodeClass", "ewr");

/// What is compared: how many types, the start of the hash, the families that are kept.
fn with<T>((class, region): (&str, &str), more: &str, look: impl FnOnce(&Selection<'_>) -> T) -> Option<T> {
    let facts = facts(catalog()?);
    let selection = select(&intent(class, region, more), &facts).unwrap();
    let sum = selection.wanted().count() + selection.excluded().sum();
    assert_eq!(sum, selection.types.len(), "each type is wanted or counted once");
    Some(look(&selection))
}

fn kept(selection: &Selection<'_>) -> Vec<String> {
    let families = selection.ranked.iter().flat_map(|ranked| &ranked.families);
    families.filter(|family| family.kept).map(|family| family.name.clone()).collect()
}

#[test]
fn as_many_types_are_eligible_as_were_counted() {
    for (pool, eligible) in [
        (AWS, 1339),
        (AZURE, 1024),
        (GCP, 489),
        (ALICLOUD, 486),
        (HCLOUD, 20),
        (ITSH, 16),
        (OVH, 43),
        (UPCLOUD, 114),
        (VULTR, 119),
    ] {
        let Some(found) = with(pool, "", |selection| selection.wanted().count()) else { return };
        assert_eq!(found, eligible, "{pool:?}");
    }
    let amd64 = with(AWS, "selector: {architectures: [amd64]}", |selection| selection.wanted().count());
    assert_eq!(amd64, Some(943));
}

const SINGLE: &str = "score: {benchmark: {id: 'geekbench:score', config: {cores: single}}}, objective: Score, band: {withinPercent: 12}";

#[test]
fn rankings_choose_the_families_and_types_that_were_worked_out() {
    let aws = |families: &str| {
        format!("selector: {{price: {{maxHourly: '0.50'}}}}, ranking: {{{SINGLE}, families: {{{families}}}}}")
    };
    type Expected = (usize, &'static str, &'static [&'static str], (bool, bool));
    let cases: [((&str, &str), String, Expected); 10] = [
        (AWS, aws("min: 3, max: 6"), (13, "302b0d719dd7", &["m8azn", "r8a", "m8a", "c8a"], (false, false))),
        (AWS, aws("min: 5, max: 6"), (15, "175e1201b96d", &["m8azn", "r8a", "m8a", "c8a", "i7i"], (true, false))),
        (
            GCP,
            "selector: {vcpus: {min: 2, max: 16}}, ranking: {score: {benchmark: {id: 'stress_ng:bestn'}}, objective: ScorePerPrice, band: {withinPercent: 10}, families: {min: 2, max: 4}}".to_owned(),
            (6, "a11564bdab2b", &["t2d", "n4a"], (false, false)),
        ),
        (
            AZURE,
            "selector: {vcpus: {min: 2, max: 16}, gpu: {count: {max: 0}}}, ranking: {score: {benchmark: {id: 'passmark:cpu_single_threaded_test'}}, band: {withinPercent: 5}, families: {min: 3, max: 8}}".to_owned(),
            (29, "e866003120a3", &[], (false, true)),
        ),
        (HCLOUD, "ranking: {objective: Price, families: {max: 2}}".to_owned(), (8, "c0b87c6ca1b9", &["cx", "cax"], (false, true))),
        (
            OVH,
            "ranking: {score: {benchmark: {id: 'stress_ng:bestn'}}, normalize: PerVcpu, band: {withinPercent: 10}, families: {min: 2}}".to_owned(),
            (25, "c15366e1ea3d", &["Memory Optimized", "General Purpose"], (true, false)),
        ),
        (
            UPCLOUD,
            "ranking: {score: {benchmark: {id: 'stress_ng:bestn'}}, objective: ScorePerPrice, band: {withinPercent: 20}}".to_owned(),
            (9, "49eeb51552cd", &["Starter"], (false, false)),
        ),
        (
            VULTR,
            "ranking: {score: {benchmark: {id: 'passmark:cpu_mark'}}, objective: ScorePerPrice, band: {withinPercent: 25}}".to_owned(),
            (25, "29ffd108e017", &["High Performance", "Cloud Compute"], (false, false)),
        ),
        (
            ALICLOUD,
            "selector: {architectures: [amd64]}, ranking: {score: {benchmark: {id: 'stress_ng:bestn'}}, normalize: PerVcpu, band: {withinPercent: 10}, families: {min: 2, max: 5}}".to_owned(),
            (12, "c1d26b403422", &["ecs.sgn7i-vws", "ecs.g8a"], (true, false)),
        ),
        (
            AWS,
            format!("selector: {{price: {{maxHourly: '0.5'}}, benchmarks: [{{id: 'geekbench:score', config: {{cores: single}}, min: 1}}]}}, ranking: {{{SINGLE}, families: {{min: 3, max: 6}}}}"),
            (13, "302b0d719dd7", &["m8azn", "r8a", "m8a", "c8a"], (false, false)),
        ),
    ];
    for (pool, more, (count, hash, families, (widened, trimmed))) in cases {
        let look = |selection: &Selection<'_>| {
            let ranked = selection.ranked.clone().unwrap();
            let hash = scarpenter_emission::selection_hash(&selection.desired());
            (selection.wanted().count(), hash, kept(selection), (ranked.widened, ranked.trimmed))
        };
        let Some(found) = with(pool, &more, look) else { return };
        assert_eq!((found.0, &found.1[..12]), (count, hash), "{pool:?} {more}: {found:?}");
        assert_eq!(found.3, (widened, trimmed), "{pool:?} {more}");
        if families.is_empty() {
            assert_eq!(found.2.len(), 8, "{pool:?} {more}: {found:?}");
        } else {
            assert_eq!(found.2, families, "{pool:?} {more}");
        }
    }
}

#[test]
fn the_medians_of_the_fastest_families_are_those_that_were_worked_out() {
    let more = format!(
        "selector: {{price: {{maxHourly: '0.50'}}}}, ranking: {{{SINGLE}, families: {{min: 3, max: 6}}}}"
    );
    let look = |selection: &Selection<'_>| {
        let families = &selection.ranked.as_ref().unwrap().families;
        let values: Vec<_> =
            families.iter().take(5).map(|family| (family.name.clone(), family.value.unwrap())).collect();
        let passed = selection.wanted().count() + selection.excluded().ranking;
        (values, passed, selection.excluded().missing_data, families.len())
    };
    let Some((values, scored, unscored, families)) = with(AWS, &more, look) else { return };
    assert_eq!((scored, unscored, families), (320, 53, 114));
    let expected = [("m8azn", 3118.0), ("r8a", 2822.0), ("m8a", 2819.5), ("c8a", 2812.0), ("i7i", 2294.5)];
    assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn filters_leave_as_many_types_as_were_counted() {
    let single = |policy: &str| {
        format!(
            "selector: {{unbenchmarked: {policy}, benchmarks: [{{id: 'geekbench:score', config: {{cores: single}}, min: 2500}}]}}"
        )
    };
    for (pool, more, count) in [
        (AWS, "selector: {vcpus: {min: 2, max: 32}, cpu: {flags: {allOf: [amx_tile]}}}", 94),
        (AWS, "selector: {vcpus: {min: 2, max: 32}, cpu: {hyperthreading: false}}", 249),
        (AWS, "selector: {vcpus: {min: 2, max: 8}, price: {maxHourlyPerVcpu: '0.03'}}", 15),
        (AWS, "selector: {storage: {local: {countMin: 2}}}", 226),
        (AWS, &single("Exclude"), 43),
        (AWS, &single("IncludeIfFamilyQualifies"), 45),
        (AWS, &single("Include"), 280),
        (HCLOUD, "selector: {memory: {minGiB: 4}}", 16),
        (HCLOUD, "selector: {memory: {minGiB: 3.8}}", 19),
        (OVH, "selector: {network: {baselineMinGbps: 4}}", 17),
    ] {
        let Some(found) = with(pool, more, |selection| selection.wanted().count()) else { return };
        assert_eq!(found, count, "{pool:?} {more}");
    }
    let look = |selection: &Selection<'_>| selection.excluded().missing_data;
    let missing = with(AWS, "selector: {vcpus: {min: 2, max: 32}, cpu: {flags: {allOf: [amx_tile]}}}", look);
    assert_eq!(missing, Some(73));
}
