use proptest::prelude::*;

use super::*;
use crate::testing::{self, intent, pool, spec};

fn names(adapter: &str, region: &str, more: &str) -> String {
    let facts = testing::facts();
    let own = intent(pool(adapter), region, more);
    let selection = select(&own, &facts).unwrap();
    assert_eq!(selection.wanted().count() + selection.excluded().sum(), selection.types.len());
    selection.desired().into_iter().collect::<Vec<_>>().join(" ")
}

fn hcloud(more: &str) -> String {
    names("hcloud", "fsn1", more)
}

fn refused(adapter: &str, region: &str, more: &str) -> Refusal {
    let facts = testing::facts();
    let spec = spec(pool(adapter), region, more);
    match Intent::parse("case", spec) {
        Err(refusal) => refusal,
        Ok(own) => match select(&own, &facts) {
            Err(refusal) => refusal,
            Ok(selection) => selection.refusal().unwrap(),
        },
    }
}

#[test]
fn only_what_is_sold_in_the_regions_and_launched_by_the_provider_is_wanted() {
    assert_eq!(hcloud(""), "cax11 ccx13 cx22 cx32 cx42");
    assert_eq!(names("hcloud-itsh", "fsn1", ""), "ccx13 cx22 cx32 cx42");
    assert_eq!(names("hcloud", "hil", ""), "cpx11");
    assert_eq!(hcloud("location: {regions: [fsn1, hil]}"), "cax11 ccx13 cpx11 cx22 cx32 cx42");
}

#[test]
fn bounds_are_inclusive_and_names_are_patterns() {
    for (selector, expected) in [
        ("vcpus: {min: 4}", "cx32 cx42"),
        ("vcpus: {min: 4, max: 4}", "cx32"),
        ("vcpus: {max: 2}", "cax11 ccx13 cx22"),
        ("memory: {minGiB: 8, maxGiB: 8}", "ccx13 cx32"),
        ("memory: {minGiB: 8.001}", "cx42"),
        ("memory: {perVcpu: {minGiB: 4}}", "ccx13"),
        ("memory: {perVcpu: {maxGiB: 2}}", "cax11 cx22 cx32 cx42"),
        ("architectures: [arm64]", "cax11"),
        ("instanceTypes: {include: ['cx?2'], exclude: ['*42']}", "cx22 cx32"),
        ("families: {exclude: [cx]}", "cax11 ccx13"),
        ("price: {maxHourly: '0.0065'}", "cax11 cx22"),
        ("price: {maxHourly: '0.0064'}", "cx22"),
        ("price: {maxHourlyPerVcpu: '0.003'}", "cx22 cx32"),
        ("cpu: {manufacturers: [AMD]}", "cax11 ccx13 cx22 cx32 cx42"),
        ("cpu: {allocations: [Shared], hyperthreading: false}", "cax11 ccx13 cx22 cx32 cx42"),
        ("gpu: {count: {max: 0}}", "cax11 ccx13 cx22 cx32 cx42"),
        ("benchmarks: [{id: plain, min: 100}]", "ccx13 cx22 cx32"),
        ("benchmarks: [{id: plain, min: 50, normalize: PerVcpu}]", "ccx13 cx22"),
        ("benchmarks: [{id: plain, min: 13000, normalize: PerPrice}]", "cax11 cx22"),
        ("benchmarks: [{id: 'redis:latency', max: 10}]", "ccx13 cx22 cx32"),
    ] {
        assert_eq!(hcloud(&format!("selector: {{{selector}}}")), expected, "{selector}");
    }
}

#[test]
fn what_is_not_known_is_dropped_and_counted_apart() {
    let facts = testing::facts();
    for selector in [
        "cpu: {clockSpeedMinGHz: 1}",
        "cpu: {flags: {noneOf: [avx]}}",
        "network: {peakMinGbps: 1}",
        "gpu: {models: [A100]}",
    ] {
        let own = intent(pool("hcloud"), "fsn1", &format!("selector: {{{selector}}}"));
        let excluded = select(&own, &facts).unwrap().excluded();
        assert_eq!((excluded.missing_data, excluded.provider_ineligible), (5, 1), "{selector}");
    }
    assert_eq!(
        hcloud("selector: {unbenchmarked: Include, cpu: {flags: {noneOf: [avx]}}}"),
        "cax11 ccx13 cx22 cx32 cx42"
    );
}

#[test]
fn types_without_a_score_are_kept_as_the_policy_says() {
    let with = |policy: &str| {
        hcloud(&format!("selector: {{unbenchmarked: {policy}, benchmarks: [{{id: plain, min: 95}}]}}"))
    };
    assert_eq!(with("Exclude"), "ccx13 cx22 cx32");
    assert_eq!(with("IncludeIfFamilyQualifies"), "ccx13 cx22 cx32 cx42");
    assert_eq!(with("Include"), "ccx13 cx22 cx32 cx42");
    let strict = |policy: &str| {
        hcloud(&format!("selector: {{unbenchmarked: {policy}, benchmarks: [{{id: plain, min: 140}}]}}"))
    };
    assert_eq!(
        (strict("IncludeIfFamilyQualifies"), strict("Include")),
        ("ccx13".to_owned(), "ccx13 cx42".to_owned())
    );
}

#[test]
fn families_are_ranked_by_their_median_and_all_their_sizes_come_along() {
    let rank =
        |ranking: &str| hcloud(&format!("ranking: {{score: {{benchmark: {{id: plain}}}}, {ranking}}}"));
    assert_eq!(rank("families: {max: 1}"), "ccx13");
    assert_eq!(rank("families: {max: 2}"), "ccx13 cx22 cx32");
    assert_eq!(rank("band: {withinPercent: 32}"), "ccx13");
    assert_eq!(rank("band: {withinPercent: 33}"), "ccx13 cx22 cx32");
    assert_eq!(rank("band: {withinPercent: 0}, families: {min: 3}"), "cax11 ccx13 cx22 cx32");
    assert_eq!(rank("objective: ScorePerPrice, families: {max: 1}"), "cax11");
    assert_eq!(hcloud("ranking: {objective: Price, families: {max: 1}}"), "cax11");
    assert_eq!(
        hcloud("ranking: {objective: Price, normalize: PerVcpu, families: {max: 1}}"),
        "cx22 cx32 cx42"
    );
    let latency = "ranking: {score: {benchmark: {id: 'redis:latency'}}, band: {withinPercent: 0}}";
    assert_eq!(hcloud(latency), "ccx13");
}

#[test]
fn a_listed_type_that_is_unwanted_is_told_why_and_by_how_much() {
    let facts = testing::facts();
    let own = intent(pool("hcloud"), "fsn1", "selector: {price: {maxHourly: '0.01'}, vcpus: {max: 4}}");
    let selection = select(&own, &facts).unwrap();
    let margin = |name: &str| match selection.verdict(name) {
        Some(Verdict::Fails(_, margin)) => margin.unwrap(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(selection.verdict("cx22"), None);
    assert!((margin("cx32") - 10.0).abs() < 1e-9);
    assert!((margin("cx42") - 160.0).abs() < 1e-9, "the largest of two");
    assert!(matches!(selection.verdict("cpx11"), Some(Verdict::Gone(_))));
    assert!(matches!(selection.verdict("cx99"), Some(Verdict::Gone(_))));
    let banded = intent(
        pool("hcloud"),
        "fsn1",
        "ranking: {score: {benchmark: {id: plain}}, band: {withinPercent: 20}}",
    );
    let selection = select(&banded, &facts).unwrap();
    let Some(Verdict::Fails(_, Some(margin))) = selection.verdict("cax11") else { panic!() };
    assert!((margin - 25.0).abs() < 1e-9, "90 of the 120 that the band ends at");
}

#[test]
fn what_means_nothing_is_refused_with_its_reason() {
    let arm = "nodePoolTemplate: {spec: {template: {spec: {nodeClassRef: {group: karpenter.hetzner.cloud, kind: HCloudNodeClass, name: x}, requirements: [%]}}}}";
    let template = |line: &str| arm.replace('%', line);
    for (adapter, region, more, reason) in [
        ("hcloud", "fsn2", "", Reason::UnknownRegion),
        ("hcloud", "fsn1", "location: {}", Reason::RegionsUnknown),
        ("aws-auto", "us-east-1", "", Reason::EligibilityUnknown),
        ("vultr", "ewr", "location: {regions: [ewr], zones: [ewr]}", Reason::InvalidTemplate),
        ("alicloud-cloudpilot", "x", "", Reason::ArchitectureUnsupported),
        ("hcloud", "fsn1", "selector: {price: {basis: Spot}}", Reason::NoCandidates),
        ("hcloud", "fsn1", "selector: {vcpus: {min: 99}}", Reason::NoCandidates),
        ("hcloud", "fsn1", "selector: {instanceTypes: {include: ['[a']}}", Reason::InvalidSelector),
        ("hcloud", "fsn1", "selector: {vcpu: {min: 9}}", Reason::InvalidSelector),
        ("hcloud", "fsn1", "selector: {vcpus: {min: 9, max: 8}}", Reason::InvalidSelector),
        ("hcloud", "fsn1", "selector: {price: {maxHourly: '0.00'}}", Reason::InvalidSelector),
        ("hcloud", "fsn1", "selector: {benchmarks: [{id: plain, max: 9}]}", Reason::InvalidBenchmarkBound),
        (
            "hcloud",
            "fsn1",
            "selector: {benchmarks: [{id: 'redis:latency', min: 9}]}",
            Reason::InvalidBenchmarkBound,
        ),
        (
            "hcloud",
            "fsn1",
            "selector: {benchmarks: [{id: 'redis:latency', max: 9, normalize: PerVcpu}]}",
            Reason::InvalidBenchmarkBound,
        ),
        ("hcloud", "fsn1", "selector: {benchmarks: [{id: speed, min: 9}]}", Reason::UnknownBenchmarkConfig),
        (
            "hcloud",
            "fsn1",
            "selector: {benchmarks: [{id: speed, config: {cores: 1}, min: 9}]}",
            Reason::UnknownBenchmarkConfig,
        ),
        (
            "hcloud",
            "fsn1",
            "selector: {benchmarks: [{id: bogomips, min: 9}]}",
            Reason::UnknownBenchmarkConfig,
        ),
        (
            "hcloud",
            "fsn1",
            "selector: {workloadProfiles: [{name: web, min: 1}]}",
            Reason::UnknownBenchmarkConfig,
        ),
        (
            "hcloud",
            "fsn1",
            "ranking: {score: {benchmark: {id: 'redis:latency'}}, objective: ScorePerPrice, families: {max: 1}}",
            Reason::InvalidRanking,
        ),
        ("hcloud", "fsn1", "ranking: {score: {benchmark: {id: plain}}}", Reason::InvalidRanking),
        ("hcloud", "fsn1", "ranking: {families: {max: 1}}", Reason::InvalidRanking),
        (
            "hcloud",
            "fsn1",
            &template("{key: kubernetes.io/arch, operator: NotIn, values: [amd64, arm64]}"),
            Reason::InvalidTemplate,
        ),
        (
            "hcloud",
            "fsn1",
            &template("{key: kubernetes.io/arch, operator: Gt, values: ['1']}"),
            Reason::InvalidTemplate,
        ),
        (
            "hcloud",
            "fsn1",
            &template("{key: karpenter.sh/capacity-type, operator: In, values: [spot]}"),
            Reason::CapacityTypeUnsupported,
        ),
        (
            "hcloud",
            "fsn1",
            &template("{key: karpenter.sh/capacity-type, operator: Exists}"),
            Reason::CapacityTypeUnsupported,
        ),
        (
            "hcloud",
            "fsn1",
            &template("{key: topology.kubernetes.io/region, operator: In, values: [fsn1]}"),
            Reason::InvalidTemplate,
        ),
        (
            "hcloud",
            "fsn1",
            &template("{key: node.kubernetes.io/instance-type, operator: Gt, values: ['1']}"),
            Reason::InvalidTemplate,
        ),
        (
            "hcloud",
            "fsn1",
            &template("{key: node.kubernetes.io/instance-type, operator: In, values: [cx99]}"),
            Reason::NoCandidates,
        ),
        ("hcloud", "fsn1", &template("{key: a, operator: Maybe}"), Reason::InvalidTemplate),
        (
            "hcloud",
            "fsn1",
            "nodePoolTemplate: {spec: {template: {spec: {nodeClassRef: {group: g, kind: k, name: x}}}}}",
            Reason::UnsupportedProvider,
        ),
        ("hcloud", "fsn1", "nodePoolTemplate: {spec: {}}", Reason::InvalidTemplate),
    ] {
        let refusal = refused(adapter, region, more);
        assert_eq!(refusal.reason, reason, "{more}: {refusal}");
    }
    let refusal = refused("hcloud", "fsn1", "selector: {price: {basis: Spot}}");
    assert!(refusal.message.contains("no spot prices of hcloud"), "{refusal}");
}

#[test]
fn auto_mode_launches_what_its_list_has_and_charges_its_fee() {
    let fees = BTreeMap::from([(("us-east-1".to_owned(), "m8a.large".to_owned()), 14_400)]);
    let facts = Facts { auto_mode: Some(&fees), ..testing::facts() };
    let desired = |price: &str| {
        let own = intent(pool("aws-auto"), "us-east-1", &format!("selector: {{price: {{{price}}}}}"));
        select(&own, &facts).unwrap().desired().len()
    };
    assert_eq!(desired("maxHourly: '0.1344'"), 1);
    assert_eq!(desired("maxHourly: '0.1343'"), 0);
    assert_eq!(desired("maxHourly: '0.12', includeManagedFee: false"), 1);
    let none = BTreeMap::new();
    let facts = Facts { auto_mode: Some(&none), ..testing::facts() };
    let own = intent(pool("aws-auto"), "us-east-1", "");
    assert_eq!(select(&own, &facts).unwrap().desired().len(), 0, "what the list lacks is not launched");
}

#[test]
fn what_the_template_lists_and_bars_restricts_the_types() {
    let with = |lines: &str| {
        hcloud(&format!(
            "nodePoolTemplate: {{spec: {{template: {{spec: {{nodeClassRef: {{group: karpenter.hetzner.cloud, kind: HCloudNodeClass, name: x}}, requirements: [{lines}]}}}}}}}}"
        ))
    };
    let types = |operator: &str, values: &str| {
        format!("{{key: node.kubernetes.io/instance-type, operator: {operator}, values: [{values}]}}")
    };
    assert_eq!(with(&types("In", "cx22, cx32, gone")), "cx22 cx32");
    assert_eq!(with(&format!("{}, {}", types("In", "cx22, cx32"), types("NotIn", "cx22"))), "cx32");
    assert_eq!(with("{key: kubernetes.io/arch, operator: NotIn, values: [amd64]}"), "cax11");
    assert_eq!(with("{key: example.org/x, operator: Exists}"), "cax11 ccx13 cx22 cx32 cx42");
}

proptest! {
    #[test]
    fn a_further_filter_never_adds_a_type(first in 0..8_usize, second in 0..8_usize) {
        const FILTERS: [&str; 8] = [
            "vcpus: {min: 4}", "memory: {minGiB: 8}", "architectures: [amd64]", "families: {exclude: [cx]}",
            "instanceTypes: {include: ['c?[23]*']}", "price: {maxHourly: '0.015'}", "benchmarks: [{id: plain, min: 95}]",
            "cpu: {hyperthreading: false}",
        ];
        prop_assume!(first != second);
        let facts = testing::facts();
        let desired = |filters: &str| {
            let own = intent(pool("hcloud"), "fsn1", &format!("selector: {{{filters}}}"));
            select(&own, &facts).unwrap().desired()
        };
        let (one, both) = (desired(FILTERS[first]), desired(&format!("{}, {}", FILTERS[first], FILTERS[second])));
        prop_assert!(both.is_subset(&one));
    }
}
