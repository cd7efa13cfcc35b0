use clap::Parser;
use scarpenter_catalog::{Rates, sample};

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

pub(super) fn query(words: &[&str]) -> anyhow::Result<Query> {
    let command = Command::try_parse_from([&["search"], words].concat())?;
    Query::new(&lines(&command.args.wanted)?, &command.args)
}

/// Offerings that are found in the sample, best first.
fn found<T>(words: &[&str], of: impl Fn(&Offering<'_>) -> T) -> Vec<T> {
    let catalog = sample(&Rates::default());
    let found = query(words).unwrap().find(&catalog.snapshot);
    found.iter().map(|id| of(&catalog.snapshot.offering(*id))).collect()
}

fn error(words: &[&str]) -> String {
    format!("{:#}", query(words).unwrap_err())
}

#[test]
fn spot_is_left_out_unless_capacity_is_named() {
    let capacities = |words: &[&str]| {
        let all: std::collections::BTreeSet<_> =
            found(words, |offering| offering.capacity_type()).into_iter().collect();
        all.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(capacities(&[]), [CapacityType::OnDemand]);
    assert_eq!(capacities(&["--where", "capacity=spot"]), [CapacityType::Spot]);
    assert_eq!(capacities(&["--where", "capacity"]), [CapacityType::OnDemand, CapacityType::Spot]);
}

#[test]
fn all_that_is_asked_for_holds_for_all_that_is_found() {
    let wanted = ["--where", "instance-cpu>=4,arch=amd64", "--where", "vendor in (aws,hcloud)"];
    let all = found(&wanted, |offering| offering.instance_type().clone());
    assert!(!all.is_empty());
    assert!(all.iter().all(|of| of.cpu >= 4 && of.arch.as_str() == "amd64"), "{all:?}");
    assert!(all.iter().all(|of| ["aws", "hcloud"].contains(&of.vendor.as_str())), "{all:?}");
}

#[test]
fn a_row_is_the_cheapest_of_its_type_in_the_region_or_zone_or_anywhere() {
    let rows = |rows: &str| found(&["--rows", rows, "--where", "capacity"], |offering| offering.id());
    let (zones, regions, types) = (rows("zone"), rows("region"), rows("type"));
    assert_eq!(zones.len(), sample(&Rates::default()).snapshot.len());
    assert!(zones.len() >= regions.len() && regions.len() > types.len());
    assert!(types.iter().all(|id| regions.contains(id)) && regions.iter().all(|id| zones.contains(id)));
    assert!(zones.is_sorted() && types.is_sorted());
}

#[test]
fn what_was_not_measured_comes_last_and_equals_stay_in_price_order() {
    for sort in ["score", "score-per-price"] {
        let words = ["--sort", sort, "--benchmark", "passmark-single-thread", "--rows", "zone"];
        let query = query(&words).unwrap();
        let keys = found(&words, |offering| {
            let score = query.score(offering);
            let per_usd = query.score_per_usd(offering);
            let key = if sort == "score" { score.map(|score| score as f64) } else { per_usd };
            (key.map_or(f64::INFINITY, |key| -key), offering.id())
        });
        assert!(keys.iter().any(|(key, _)| key.is_infinite()) && keys.iter().any(|(key, _)| key.is_finite()));
        assert!(keys.is_sorted(), "{keys:?}");
    }
}

#[test]
fn sorting_by_score_without_a_benchmark_takes_the_keepers_own() {
    assert_eq!(query(&["--sort", "score"]).unwrap().benchmark, Some("stress-ng-bestn"));
    assert_eq!(query(&[]).unwrap().benchmark, None);
    assert!(error(&["--benchmark", "passmark"]).contains("passmark-single-thread"));
}

#[test]
fn a_bad_line_and_an_unknown_key_are_one_sentence() {
    assert_eq!(
        error(&["--where", "arch=amd64,instance-cpu>=x"]),
        "--where: character 26 of `arch=amd64,instance-cpu>=x`: expected an integer of at least 0, not `x`"
    );
    assert_eq!(
        error(&["--where", "example.com/vendor=aws"]),
        "--where: no offering has a label example.com/vendor, the nearest that they have is vendor"
    );
    assert!(error(&["--where", "tenancy=shared"]).contains("no offering has a label"));
}

fn answer(words: &[&str], limit: usize) -> (serde_json::Value, String, String) {
    let catalog = sample(&Rates::default());
    let query = query(words).unwrap();
    let found = query.find(&catalog.snapshot);
    let answer = Answer { catalog: &catalog, query: &query, found: &found, limit };
    (serde_json::to_value(SearchDocument::new(&answer)).unwrap(), table(&answer), grid(&answer).csv())
}

#[test]
fn version_1_of_the_contract_has_exactly_these_fields() {
    let (document, _, _) = answer(&["--where", "arch=arm64", "--sort", "score"], 1);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let top = ["benchmark", "catalog", "found", "offerings", "rows", "sort", "version", "where"];
    assert_eq!(keys(&document), top);
    let offering = [
        "arch",
        "capacityType",
        "cpu",
        "currency",
        "gpuCount",
        "gpuModel",
        "instanceType",
        "memoryMib",
        "price",
        "pricePerHourMicroUsd",
        "region",
        "score",
        "scorePerUsd",
        "vendor",
        "zone",
    ];
    assert_eq!(keys(&document["offerings"][0]), offering);
    assert_eq!(document["version"], 1);
    assert_eq!(document["where"], "capacity=on-demand,arch=arm64");
    assert_eq!((document["sort"].as_str(), document["rows"].as_str()), (Some("score"), Some("region")));
    assert_eq!(document["offerings"].as_array().unwrap().len(), 1);
    assert!(document["found"].as_u64().unwrap() > 1);
}

#[test]
fn a_limit_is_said_and_zero_is_none() {
    let (document, text, csv) = answer(&[], 2);
    assert_eq!((csv.lines().count(), document["offerings"].as_array().unwrap().len()), (3, 2));
    assert!(text.contains("\n2 of ") && text.ends_with("; --limit 0 shows all\n"), "{text}");
    let (document, text, _) = answer(&[], 0);
    assert_eq!(document["found"].as_u64().unwrap() as usize, document["offerings"].as_array().unwrap().len());
    assert!(text.ends_with(" rows\n") && !text.contains("--limit"), "{text}");
    assert_eq!(answer(&["--where", "type=none"], 2).1, "nothing in the catalog matches\n");
}

#[test]
fn scores_are_shown_only_where_a_benchmark_is_asked_for() {
    let heads = |words: &[&str]| {
        let (_, text, csv) = answer(words, 1);
        [text, csv].map(|text| text.lines().next().unwrap_or_default().to_owned())
    };
    let [table, csv] = heads(&[]);
    assert_eq!(table.split_whitespace().last(), Some("USD/HOUR"));
    assert!(csv.ends_with(",usd_per_hour"), "{csv}");
    let [table, csv] = heads(&["--benchmark", "geekbench-multi"]);
    assert!(table.ends_with("GEEKBENCH-MULTI  PER USD"), "{table}");
    assert!(csv.ends_with(",usd_per_hour,geekbench_multi,score_per_usd"), "{csv}");
}
