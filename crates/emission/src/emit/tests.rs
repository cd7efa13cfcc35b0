use super::*;
use crate::testing::{self, intent, pool, types};

fn emitted(intent: &Intent, list: &[&str]) -> Result<Value, Refusal> {
    let facts = testing::facts();
    let selection = crate::select(intent, &facts).unwrap();
    emit(intent, &selection, &types(list), (Some("2026-08-22T00:00:00Z"), Some("abc")))
}

fn requirements_of(nodepool: &Value) -> Vec<String> {
    let list = nodepool.pointer("/spec/template/spec/requirements").unwrap().as_array().unwrap();
    let words = |line: &Value| {
        let values: Vec<&str> =
            line["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!(
            "{} {} {}",
            line["key"].as_str().unwrap(),
            line["operator"].as_str().unwrap(),
            values.join(",")
        )
    };
    list.iter().map(words).collect()
}

#[test]
fn a_template_without_requirements_gets_the_three_universal_ones() {
    let nodepool = emitted(&intent(pool("hcloud"), "fsn1", ""), &["cx22", "cax11"]).unwrap();
    assert_eq!(
        requirements_of(&nodepool),
        [
            "kubernetes.io/arch In amd64,arm64",
            "karpenter.sh/capacity-type In on-demand",
            "node.kubernetes.io/instance-type In cax11,cx22",
        ]
    );
    assert_eq!(nodepool["metadata"]["labels"], json!({SCNODEPOOL: "case"}));
    let annotations = &nodepool["metadata"]["annotations"];
    assert_eq!(annotations[DATA_HASH], "abc");
    assert_eq!(listed(&nodepool), Some((types(&["cax11", "cx22"]), true)));
    assert_eq!(nodepool["spec"].get("disruption"), None, "nothing else is added");
}

#[test]
fn the_templates_own_requirements_stay_as_they_are_and_the_list_comes_last() {
    let mut own = intent(pool("hcloud"), "fsn1", "");
    let spec = json!({
        "disruption": {"consolidationPolicy": "WhenEmpty"}, "weight": 7,
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "nodeClassRef": {"group": "karpenter.hetzner.cloud", "kind": "HCloudNodeClass", "name": "x"},
            "requirements": [
                {"key": "example.org/tier", "operator": "Exists"},
                {"key": INSTANCE_TYPE, "operator": "NotIn", "values": ["cx32"], "minValues": 2},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            ],
        }},
    });
    own.spec.node_pool_template.spec = spec.as_object().unwrap().clone();
    let nodepool = emitted(&own, &["cx22", "cx42"]).unwrap();
    assert_eq!(
        requirements_of(&nodepool),
        [
            "example.org/tier Exists ",
            "kubernetes.io/arch In amd64",
            "karpenter.sh/capacity-type In on-demand",
            "node.kubernetes.io/instance-type In cx22,cx42",
        ]
    );
    let list = nodepool.pointer("/spec/template/spec/requirements/3").unwrap();
    assert_eq!(list["minValues"], 2);
    assert_eq!(
        nodepool["spec"]["disruption"],
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"})
    );
    let refusal = emitted(&own, &["cx22"]).unwrap_err();
    assert_eq!(refusal.reason, Reason::ValidationFailed, "{refusal}");
    assert!(refusal.message.contains("minValues 2 is not from 1 to 1"), "{refusal}");
}

#[test]
fn ovh_always_gets_zones_and_others_only_those_that_are_asked_for() {
    let nodepool = emitted(&intent(pool("ovh"), "GRA11", ""), &["b3-8"]).unwrap();
    assert!(requirements_of(&nodepool).contains(&"topology.kubernetes.io/zone In gra11-a".to_owned()));
    let asked = "location: {regions: [GRA11], zones: [gra11-b, gra11-a]}";
    let nodepool = emitted(&intent(pool("ovh"), "GRA11", asked), &["b3-8"]).unwrap();
    assert!(
        requirements_of(&nodepool).contains(&"topology.kubernetes.io/zone In gra11-a,gra11-b".to_owned())
    );
}

#[test]
fn an_empty_list_is_never_emitted() {
    let refusal = emitted(&intent(pool("hcloud"), "fsn1", ""), &[]).unwrap_err();
    assert_eq!(refusal.reason, Reason::NoCandidates);
}

#[test]
fn what_no_definition_checks_is_refused_with_all_that_is_wrong() {
    let long = "x".repeat(64);
    for (line, words) in [
        (json!({"key": "kubernetes.io/hostname", "operator": "Exists"}), "one host"),
        (json!({"key": "karpenter.sh/x", "operator": "Exists"}), "keeps its own keys"),
        (json!({"key": "a.karpenter.sh/x", "operator": "Exists"}), "keeps its own keys"),
        (json!({"key": "a/b", "operator": "In", "values": [long]}), "no label value"),
        (json!({"key": "a/b", "operator": "In", "values": ["-x"]}), "no label value"),
        (json!({"key": "a/b", "operator": "In", "values": []}), "without values"),
        (json!({"key": "a/b", "operator": "Gte", "values": ["x"]}), "takes one integer"),
    ] {
        let mut own = intent(pool("hcloud"), "fsn1", "");
        let spec = &mut own.spec.node_pool_template.spec;
        spec["template"]["spec"]["requirements"] = json!([line]);
        spec.insert("weight".to_owned(), json!(101));
        let refusal = emitted(&own, &["cx22"]).unwrap_err();
        assert_eq!(refusal.reason, Reason::ValidationFailed, "{refusal}");
        assert!(refusal.message.contains(words) && refusal.message.contains("weight 101"), "{refusal}");
    }
}

#[test]
fn a_list_that_someone_edited_is_told_from_one_that_is_ours() {
    let mut nodepool = emitted(&intent(pool("hcloud"), "fsn1", ""), &["cx22", "cx42"]).unwrap();
    let list = nodepool.pointer_mut("/spec/template/spec/requirements/2/values").unwrap();
    *list = json!(["cx22"]);
    assert_eq!(listed(&nodepool), Some((types(&["cx22"]), false)));
    assert_eq!(listed(&json!({"spec": {}})), None);
}

#[test]
fn the_kind_of_node_class_never_changes() {
    let own = intent(pool("hcloud"), "fsn1", "");
    let live = emitted(&own, &["cx22"]).unwrap();
    assert_eq!(check_live(&own, &live), Ok(()));
    let refusal = check_live(&intent(pool("ovh"), "GRA11", ""), &live).unwrap_err();
    assert_eq!(refusal.reason, Reason::NodeClassRefImmutable);
}
