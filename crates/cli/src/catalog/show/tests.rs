use scarpenter_catalog::{Rates, sample};

use super::*;

fn error(name: &str) -> String {
    let catalog = sample(&Rates::default());
    Shown::find(&catalog, name).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn every_offering_of_a_type_is_shown_in_price_order_with_where_it_is_from() {
    let catalog = sample(&Rates::default());
    let shown = Shown::find(&catalog, "hcloud/ccx33").unwrap();
    assert!(!shown.offerings.is_empty());
    assert!(shown.offerings.iter().all(|offering| offering.instance_type().name == "ccx33"));
    assert!(shown.offerings.is_sorted_by_key(|offering| offering.price()));
    let text = answer::table(&shown);
    for words in ["hcloud/ccx33\n", "8 vCPU", "32000 MiB", "EUR", "fsn1", "benchmarks\n", "built-in sample"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(answer::grid(&shown).csv().lines().count(), shown.offerings.len() + 1);
}

#[test]
fn a_type_that_is_not_known_is_answered_with_those_that_are() {
    assert!(
        error("hcloud/ccx34").starts_with("the catalog has no type hcloud/ccx34; the nearest are hcloud/ccx")
    );
    assert_eq!(error("ccx33"), "there is no type ccx33; the catalog has hcloud/ccx33");
    assert_eq!(error("aws/ccx33"), "there is no type aws/ccx33; the catalog has hcloud/ccx33");
    assert!(error("hetzner/cx1").starts_with("there is no vendor hetzner; the catalog has alicloud, aws, "));
    assert!(error("").starts_with("the catalog has no type ; the nearest are "));
}

#[test]
fn version_1_of_the_contract_has_exactly_these_fields() {
    let catalog = sample(&Rates::default());
    let shown = Shown::find(&catalog, "hcloud/ccx33").unwrap();
    let document = serde_json::to_value(answer::ShowDocument::new(&shown)).unwrap();
    let keys = |pointer: &str| -> Vec<String> {
        document.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let top = ["benchmarks", "catalog", "hash", "notice", "offerings", "origin", "type", "version"];
    assert_eq!(keys(""), top);
    let of = [
        "arch",
        "cpu",
        "cpuAllocation",
        "cpuManufacturer",
        "family",
        "gpuCount",
        "hardware",
        "memoryMib",
        "name",
        "vendor",
    ];
    assert_eq!(keys("/type"), of);
    assert_eq!(keys("/type/hardware").len(), 26);
    let offering = [
        "capacityType",
        "currency",
        "monthlyCapMicroUsd",
        "price",
        "pricePerHourMicroUsd",
        "region",
        "seen",
        "zone",
        "zoneId",
    ];
    assert_eq!(keys("/offerings/0"), offering);
    assert_eq!(keys("/benchmarks/0"), ["config", "id", "name", "score"]);
    assert_eq!((&document["version"], &document["type"]["cpu"]), (&1.into(), &8.into()));
}
