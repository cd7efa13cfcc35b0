//! Requests of random pods against an oracle that plays the pod's start through, step by step.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use proptest::prelude::*;
use scarpenter_api::pod;

/// Amounts by resource, cpu in millicores.
type Amounts = BTreeMap<&'static str, i64>;

#[derive(Clone, Debug)]
struct Step {
    sidecar: bool,
    requests: Amounts,
    limits: Amounts,
}

#[derive(Clone, Debug)]
struct Draft {
    init: Vec<Step>,
    main: Vec<Step>,
    overhead: Amounts,
    whole: Option<(Amounts, Amounts)>,
}

const NAMES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "example.com/thing"];

fn amounts(names: &'static [&'static str]) -> impl Strategy<Value = Amounts> {
    proptest::collection::btree_map(proptest::sample::select(names), 0..5_000i64, 0..3)
}

fn step() -> impl Strategy<Value = Step> {
    (any::<bool>(), amounts(&NAMES), amounts(&NAMES)).prop_map(|(sidecar, requests, limits)| Step {
        sidecar,
        requests,
        limits,
    })
}

fn draft() -> impl Strategy<Value = Draft> {
    let whole = proptest::option::of((amounts(&["cpu", "memory"]), amounts(&["cpu", "memory"])));
    let steps = |least, most| proptest::collection::vec(step(), least..most);
    (steps(0, 5), steps(1, 4), amounts(&["cpu", "memory"]), whole)
        .prop_map(|(init, main, overhead, whole)| Draft { init, main, overhead, whole })
}

/// Writes an amount in one of the ways people do.
fn quantity(name: &str, amount: i64) -> Quantity {
    Quantity(match (name, amount % 3) {
        ("cpu", 0) => format!("{}.{:03}", amount / 1000, amount % 1000),
        ("cpu", _) => format!("{amount}m"),
        (_, 1) if amount % 1000 == 0 => format!("{}k", amount / 1000),
        _ => amount.to_string(),
    })
}

fn list(amounts: &Amounts) -> Option<BTreeMap<String, Quantity>> {
    Some(amounts.iter().map(|(name, amount)| ((*name).to_owned(), quantity(name, *amount))).collect())
}

fn requirements(requests: &Amounts, limits: &Amounts) -> Option<ResourceRequirements> {
    Some(ResourceRequirements { requests: list(requests), limits: list(limits), ..Default::default() })
}

fn build(draft: &Draft) -> Pod {
    let container = |step: &Step, init: bool| Container {
        resources: requirements(&step.requests, &step.limits),
        restart_policy: (init && step.sidecar).then(|| "Always".to_owned()),
        ..Default::default()
    };
    let spec = PodSpec {
        init_containers: Some(draft.init.iter().map(|step| container(step, true)).collect()),
        containers: draft.main.iter().map(|step| container(step, false)).collect(),
        overhead: list(&draft.overhead),
        resources: draft.whole.as_ref().and_then(|(requests, limits)| requirements(requests, limits)),
        ..Default::default()
    };
    Pod { spec: Some(spec), ..Default::default() }
}

/// What one container asks for: its request, else its limit.
fn asks(step: &Step, name: &str) -> i64 {
    step.requests.get(name).or_else(|| step.limits.get(name)).copied().unwrap_or(0)
}

/// Plays the start: at each moment some containers run; the pod needs what the fullest moment needs.
fn oracle(draft: &Draft, name: &str) -> i64 {
    let mut moments: Vec<Vec<&Step>> = Vec::new();
    let mut running: Vec<&Step> = Vec::new();
    for step in &draft.init {
        running.push(step);
        moments.push(running.clone());
        if !step.sidecar {
            running.pop();
        }
    }
    running.extend(&draft.main);
    moments.push(running);
    let fullest = moments.iter().map(|moment| moment.iter().map(|step| asks(step, name)).sum()).max();
    let containers: i64 = fullest.unwrap_or(0);
    let named = |step: &Step| step.requests.contains_key(name) || step.limits.contains_key(name);
    let any_names_it = draft.init.iter().chain(&draft.main).any(named);

    let settable = name == "cpu" || name == "memory";
    let whole = draft.whole.as_ref().filter(|_| settable).and_then(|(requests, limits)| {
        let default = if limits.is_empty() || any_names_it { None } else { limits.get(name).copied() };
        requests.get(name).copied().or(default)
    });
    whole.unwrap_or(containers) + draft.overhead.get(name).copied().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_those_of_the_fullest_moment(draft in draft()) {
        let counted = pod::parse(&build(&draft));
        prop_assert!(counted.invalid.is_empty(), "{:?}", counted.invalid);
        for name in NAMES {
            prop_assert_eq!(counted.requests.get(name), oracle(&draft, name), "{}", name);
        }
        prop_assert_eq!(counted.requests.get("pods"), 1);
    }
}

fn requests(pod: &str) -> scarpenter_core::resources::Resources {
    pod::requests(&serde_saphyr::from_str(pod).unwrap())
}

#[test]
fn a_sidecar_counts_beside_what_starts_after_it() {
    let requests = requests(
        "spec:\n  initContainers:\n  - {name: early, resources: {requests: {cpu: 3}}}\n\
         \x20 - {name: side, restartPolicy: Always, resources: {requests: {cpu: 1}}}\n\
         \x20 - {name: late, resources: {requests: {cpu: 2500m}}}\n\
         \x20 containers:\n  - {name: main, resources: {requests: {cpu: 2}}}\n",
    );
    assert_eq!(requests.get("cpu"), 3500);
}

#[test]
fn a_container_being_resized_counts_at_its_largest() {
    let pod = |reason: &str| {
        format!(
            "spec: {{containers: [{{name: a, resources: {{requests: {{cpu: 3}}}}}}]}}\n\
             status: {{conditions: [{{type: PodResizePending, status: 'True', reason: {reason}}}], containerStatuses: \
             [{{name: a, image: i, imageID: i, ready: true, restartCount: 0, allocatedResources: {{cpu: 2}}, resources: {{requests: {{cpu: 1}}}}}}]}}"
        )
    };
    assert_eq!(requests(&pod("Deferred")).get("cpu"), 3000);
    assert_eq!(requests(&pod("Infeasible")).get("cpu"), 2000);
}

#[test]
fn a_quantity_that_is_none_is_named() {
    let pod: Pod =
        serde_saphyr::from_str("spec: {containers: [{name: a, resources: {requests: {cpu: lots}}}]}")
            .unwrap();
    let words = pod::parse(&pod).invalid;
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].contains("cpu") && words[0].contains("lots"), "{words:?}");
}
