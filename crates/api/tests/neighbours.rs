//! Topology spread, pod affinity and anti-affinity, field by field.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use scarpenter_api::pod;
use scarpenter_core::pod::Pod;
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::topology::{PodTerm, Spread};

fn parse(spec: &str) -> Pod {
    let text = format!(
        "{{metadata: {{name: p, namespace: own, labels: {{app: a, version: '2'}}}}, spec: {{containers: [], {spec}}}}}"
    );
    pod::parse(&serde_saphyr::from_str(&text).unwrap())
}

fn spread(fields: &str) -> Spread {
    let parsed = parse(&format!("topologySpreadConstraints: [{{maxSkew: 2, topologyKey: t/k, {fields}}}]"));
    assert_eq!(parsed.invalid, Vec::<String>::new(), "{fields}");
    parsed.spread.into_iter().next().unwrap()
}

fn term(fields: &str) -> PodTerm {
    let parsed = parse(&format!(
        "affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: t/k, {fields}}}]}}}}"
    ));
    assert_eq!(parsed.invalid, Vec::<String>::new(), "{fields}");
    parsed.affinity.into_iter().next().unwrap()
}

fn is(key: &str, values: &[&str]) -> Requirement {
    Requirement::new(key, Operator::In, values)
}

const HARD: &str = "whenUnsatisfiable: DoNotSchedule";

#[test]
fn a_spread_that_says_little_means_what_the_scheduler_takes_it_for() {
    let expected = Spread {
        topology_key: "t/k".to_owned(),
        max_skew: 2,
        min_domains: None,
        selector: None,
        required: true,
        honor_affinity: true,
        honor_taints: false,
    };
    assert_eq!(spread(HARD), expected);
    let soft = spread("whenUnsatisfiable: ScheduleAnyway, labelSelector: {}");
    assert_eq!(soft, Spread { required: false, selector: Some(Vec::new()), ..expected });
}

#[test]
fn every_field_of_a_spread_is_read() {
    let all = spread(&format!(
        "{HARD}, minDomains: 3, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, matchLabelKeys: [version, absent], \
         labelSelector: {{matchLabels: {{app: a}}, matchExpressions: [{{key: tier, operator: NotIn, values: [x, y]}}, \
         {{key: old, operator: DoesNotExist}}]}}"
    ));
    assert_eq!(all.min_domains, Some(3));
    assert!(!all.honor_affinity && all.honor_taints);
    let lines = [
        is("app", &["a"]),
        Requirement::new("tier", Operator::NotIn, &["x", "y"]),
        Requirement::new("old", Operator::DoesNotExist, &[]),
        is("version", &["2"]),
    ];
    assert_eq!(all.selector.unwrap(), lines);
}

#[test]
fn label_keys_select_nothing_without_a_selector_and_are_not_added_twice() {
    assert_eq!(spread(&format!("{HARD}, matchLabelKeys: [version]")).selector, None);
    let merged = "matchExpressions: [{key: version, operator: In, values: ['1']}]";
    let again = term(&format!("labelSelector: {{{merged}}}, matchLabelKeys: [version]"));
    assert_eq!(again.selector.unwrap(), [is("version", &["1"])]);
}

#[test]
fn the_key_of_a_domain_is_not_renamed() {
    let key = "failure-domain.beta.kubernetes.io/zone";
    let parsed = parse(&format!("topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {key}, {HARD}}}]"));
    assert_eq!(parsed.spread[0].topology_key, key);
}

#[test]
fn a_term_looks_at_its_own_namespace_unless_it_names_others() {
    let own = BTreeSet::from(["own".to_owned()]);
    let named = BTreeSet::from(["x".to_owned(), "y".to_owned()]);
    for (fields, namespaces, selector) in [
        ("", own.clone(), None),
        ("namespaces: []", own, None),
        ("namespaces: [x, y]", named.clone(), None),
        ("namespaceSelector: {}", BTreeSet::new(), Some(Vec::new())),
        ("namespaceSelector: {matchLabels: {team: a}}", BTreeSet::new(), Some(vec![is("team", &["a"])])),
        ("namespaces: [x, y], namespaceSelector: {}", named, Some(Vec::new())),
    ] {
        let term = term(fields);
        assert_eq!((term.namespaces, term.namespace_selector), (namespaces, selector), "{fields}");
    }
}

#[test]
fn every_field_of_a_term_is_read() {
    let read = term(
        "labelSelector: {matchLabels: {app: b}}, matchLabelKeys: [version], mismatchLabelKeys: [app, absent]",
    );
    assert_eq!(read.topology_key, "t/k");
    let lines = [is("app", &["b"]), is("version", &["2"]), Requirement::new("app", Operator::NotIn, &["a"])];
    assert_eq!(read.selector.unwrap(), lines);
    assert_eq!(term("").selector, None, "no selector is no pod");
    assert_eq!(term("labelSelector: {}").selector, Some(Vec::new()), "an empty one is every pod");
}

#[test]
fn required_and_preferred_near_and_far_are_kept_apart() {
    let term = |key: &str| format!("{{topologyKey: {key}, labelSelector: {{}}}}");
    let wish = |weight: i32, key: &str| format!("{{weight: {weight}, podAffinityTerm: {}}}", term(key));
    let parsed = parse(&format!(
        "affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{}, {}], \
         preferredDuringSchedulingIgnoredDuringExecution: [{}]}}, podAntiAffinity: \
         {{requiredDuringSchedulingIgnoredDuringExecution: [{}], preferredDuringSchedulingIgnoredDuringExecution: [{}, {}]}}}}",
        term("a"),
        term("b"),
        wish(7, "c"),
        term("d"),
        wish(1, "e"),
        wish(100, "f")
    ));
    let keys = |terms: &[PodTerm]| terms.iter().map(|term| term.topology_key.clone()).collect::<Vec<_>>();
    assert_eq!(
        (keys(&parsed.affinity), keys(&parsed.anti_affinity)),
        (vec!["a".into(), "b".into()], vec!["d".into()])
    );
    let wishes = |wishes: &[scarpenter_core::pod::WeightedTerm]| {
        wishes.iter().map(|wish| (wish.weight, wish.term.topology_key.clone())).collect::<Vec<_>>()
    };
    assert_eq!(wishes(&parsed.preferred_affinity), [(7, "c".to_owned())]);
    assert_eq!(wishes(&parsed.preferred_anti_affinity), [(1, "e".to_owned()), (100, "f".to_owned())]);
    assert!(parsed.invalid.is_empty() && parsed.undecided.is_empty());
}

#[test]
fn what_is_malformed_is_one_clear_sentence() {
    let spread = |fields: &str| format!("topologySpreadConstraints: [{{{fields}}}]");
    let full = |fields: &str| spread(&format!("maxSkew: 1, topologyKey: t, {HARD}, {fields}"));
    let required = |kind: &str, fields: &str| {
        format!("affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{{fields}}}]}}}}")
    };
    for (fields, words) in [
        (spread(&format!("maxSkew: 0, topologyKey: t, {HARD}")), "topologySpreadConstraints[0]: maxSkew: 0 is less than 1"),
        (spread(&format!("maxSkew: 1, topologyKey: '', {HARD}")), "topologySpreadConstraints[0]: topologyKey: \"\" is not a label key"),
        (
            spread("maxSkew: 1, topologyKey: t, whenUnsatisfiable: Never"),
            "topologySpreadConstraints[0]: whenUnsatisfiable: \"Never\" is neither DoNotSchedule nor ScheduleAnyway",
        ),
        (full("minDomains: 0"), "topologySpreadConstraints[0]: minDomains: 0 is less than 1"),
        (
            spread("maxSkew: 1, topologyKey: t, whenUnsatisfiable: ScheduleAnyway, minDomains: 2"),
            "topologySpreadConstraints[0]: minDomains needs whenUnsatisfiable DoNotSchedule",
        ),
        (full("nodeTaintsPolicy: Maybe"), "topologySpreadConstraints[0]: nodeTaintsPolicy: \"Maybe\" is neither Honor nor Ignore"),
        (
            full("labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}"),
            "topologySpreadConstraints[0]: labelSelector: a: \"Gt\" is not an operator of a label selector",
        ),
        (
            full("labelSelector: {matchExpressions: [{key: a, operator: In}]}"),
            "topologySpreadConstraints[0]: labelSelector: a: operator In needs a value",
        ),
        (
            full("labelSelector: {matchLabels: {a: 'not ok'}}"),
            "topologySpreadConstraints[0]: labelSelector: a: \"not ok\" is not a label value",
        ),
        (required("podAffinity", "topologyKey: ''"), "required podAffinity: topologyKey: \"\" is not a label key"),
        (
            required("podAntiAffinity", "topologyKey: t, namespaceSelector: {matchExpressions: [{key: a, operator: Exists, values: [x]}]}"),
            "required podAntiAffinity: namespaceSelector: a: operator Exists takes no value",
        ),
        (
            "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: \
             {topologyKey: t, labelSelector: {matchLabels: {'a b': c}}}}]}}"
                .to_owned(),
            "preferred podAntiAffinity: labelSelector: \"a b\" is not a label key",
        ),
    ] {
        assert_eq!(parse(&fields).invalid, [words], "{fields}");
    }
}
