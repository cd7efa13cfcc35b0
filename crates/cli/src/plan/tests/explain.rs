use serde_json::json;

use super::*;
use crate::explain::words;

fn text(pods: &str) -> String {
    let inputs = inputs(pods);
    words::render(&inputs.explain(&inputs.plan()))
}

#[test]
fn each_pod_has_a_block_of_at_most_100_columns() {
    let text = text(TWO);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let flowing: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "default/exact: hcloud/",
        "LEFT USD/HOUR RULE",
        "all offerings; cheapest with room: ",
        "instance-type: node.kubernetes.io/instance-type In [ccx33]; cheapest: hcloud/",
        "no offering removed by: node-class, class-vendor, ",
        "to change (vendor): drop or widen `scarpenter.sparecores.com/vendor In [hcloud]` of the pod: it removes ",
        "to change (instance-type): drop or widen `node.kubernetes.io/instance-type In [ccx33]` of the pod: without it hcloud/",
        "default/typo: no machine (node.kubernetes.io/instancetype): ",
        " 0 - node.kubernetes.io/instancetype In [ccx33] ",
    ] {
        assert!(flowing.contains(words), "{words}\n{text}");
    }
}

#[test]
fn what_made_it_dearer_is_marked() {
    let text = text(TWO);
    let marked: Vec<&str> = text.lines().filter(|line| line.contains("  +0.")).collect();
    assert!(marked.iter().any(|line| line.contains("instance-type: ")), "{text}");
}

#[test]
fn pods_with_one_fate_share_a_block() {
    let deployment = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: w}}, spec: {{replicas: 9, selector: {{}}, {}}}}}",
        TEMPLATE.replace("cpu: 1", "cpu: 999")
    );
    let text = text(&deployment);
    assert!(
        text.starts_with(
            "default/w-0, default/w-1, default/w-2, default/w-3 and 5 more: no machine (capacity): "
        ),
        "{text}"
    );
    assert_eq!(text.matches("LEFT").count(), 1, "{text}");
}

#[test]
fn explanations_are_a_field_of_the_contract_only_when_they_are_asked_for() {
    let inputs = inputs(TWO);
    let plan = inputs.plan();
    let plain = serde_json::to_value(PlanDocument::new(&plan).explained(None)).unwrap();
    assert_eq!(plain.get("explanations"), None);
    let explanations = inputs.explain(&plan);
    let document = serde_json::to_value(PlanDocument::new(&plan).explained(Some(&explanations))).unwrap();
    assert_eq!(document["version"], 1);
    let pods: Vec<&serde_json::Value> =
        document["explanations"].as_array().unwrap().iter().map(|own| &own["pod"]).collect();
    assert_eq!(pods, [&json!("default/exact"), &json!("default/typo")]);
    let exact = &document["explanations"][0];
    assert_eq!(
        (&exact["outcome"], &exact["offering"]),
        (&json!("machine"), &document["claims"][0]["offering"])
    );
    assert_eq!(document["explanations"][1]["message"], document["unplaced"][0]["message"]);
}

#[test]
fn with_explanations_the_table_does_not_repeat_refusals() {
    let inputs = inputs(TWO);
    let plan = inputs.plan();
    assert!(!table::without_refusals(&plan).contains("no machine"));
    assert!(table::without_refusals(&plan).ends_with(" together; 1 pod without a machine\n"));
}
