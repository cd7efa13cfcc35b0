//! What a pod of a file is given before it is planned is what the API server writes into it.
//!
//! Random pods are sent as dry runs; what comes back must be read as the pod that was sent is read with the same
//! LimitRanges: requests, ports, spread and neighbours.

use std::sync::Arc;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use scarpenter_api::limit_range::Defaults;
use scarpenter_api::pod;
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Map, Value, json};

const PODS: u64 = 300;
const AT_ONCE: usize = 8;

/// LimitRanges of a namespace; of several, none names what another names, since the API server takes them in any order.
const NAMESPACES: [(&str, &[&str]); 4] = [
    ("admission-free", &[]),
    (
        "admission-defaults",
        &["{type: Container, defaultRequest: {cpu: 300m}}", "{type: Container, default: {memory: 8Gi}}"],
    ),
    (
        "admission-bounds",
        &["{type: Container, max: {memory: 8Gi}, min: {cpu: 100m, ephemeral-storage: 1Gi}}"],
    ),
    (
        "admission-pod",
        &[
            "{type: Pod, max: {cpu: 900}, min: {memory: 1}}, {type: Container, default: {ephemeral-storage: 9Gi}}",
        ],
    ),
];

pub(crate) fn add(trials: &mut Trials) {
    trials.add("admission::what_a_file_gets_is_what_the_api_server_writes", random_pods);
}

async fn random_pods(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    let mut ranges = Vec::new();
    for (name, items) in NAMESPACES {
        ranges.push(prepare(&client, name, items).await?);
    }
    let compared = stream::iter(0..PODS).map(|seed| {
        let index = usize::try_from(seed).unwrap_or(0) % NAMESPACES.len();
        compare(&client, seed, NAMESPACES[index].0, &ranges[index])
    });
    let admitted: Vec<bool> = compared.buffer_unordered(AT_ONCE).try_collect().await?;
    let count = admitted.iter().filter(|admitted| **admitted).count();
    ensure!(
        count * 10 >= admitted.len() * 9,
        "only {count} of {PODS} pods were admitted: too few to say anything"
    );
    Ok(())
}

async fn prepare(client: &Client, name: &str, items: &[&str]) -> anyhow::Result<Vec<Defaults>> {
    let object = |kind: Value| serde_json::from_value(kind).context("an object of this test");
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "own"}}))?;
    Api::namespaced(client.clone(), name).create(&PostParams::default(), &account).await?;
    let mut out = Vec::new();
    for (index, items) in items.iter().enumerate() {
        let limits: Value = serde_saphyr::from_str(&format!("[{items}]"))?;
        let range: LimitRange =
            object(json!({"metadata": {"name": format!("r{index}")}, "spec": {"limits": limits}}))?;
        // As it was written, so that what the API server fills in is filled in here, too.
        out.push(Defaults::parse(&range));
        Api::namespaced(client.clone(), name).create(&PostParams::default(), &range).await?;
    }
    Ok(out)
}

/// Whether the pod was admitted at all; what is malformed by chance is refused by the server.
async fn compare(client: &Client, seed: u64, namespace: &str, ranges: &[Defaults]) -> anyhow::Result<bool> {
    let mut own: Pod =
        serde_json::from_value(random_pod(seed)).with_context(|| format!("pod of seed {seed}"))?;
    own.metadata.namespace = Some(namespace.to_owned());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let written = match pods.create(&dry_run, &own).await {
        Ok(written) => written,
        Err(kube::Error::Api(status)) if status.code == 422 || status.code == 403 => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("dry run of seed {seed}")),
    };
    let spec = own.spec.as_mut().context("a spec")?;
    ranges.iter().for_each(|range| range.fill(spec));
    let (ours, theirs) = (pod::parse(&own), pod::parse(&written));
    ensure!(ours.invalid.is_empty(), "seed {seed}: {:?}", ours.invalid);
    let facts = |pod: &scarpenter_core::pod::Pod| {
        format!(
            "{}\n{:#?}\n{:#?}",
            pod.requests,
            (&pod.priority, &pod.host_ports, &pod.spread, &pod.volume_claims),
            (&pod.affinity, &pod.anti_affinity, &pod.preferred_affinity, &pod.preferred_anti_affinity)
        )
    };
    let (ours, theirs) = (facts(&ours), facts(&theirs));
    ensure!(
        ours == theirs,
        "seed {seed} in {namespace}: ours\n{ours}\nthe API server's\n{theirs}\nof {}",
        random_pod(seed)
    );
    Ok(true)
}

fn random_pod(seed: u64) -> Value {
    let mut draw = StdRng::seed_from_u64(seed);
    let host_network = draw.random_ratio(1, 4);
    let init: Vec<Value> =
        (0..draw.random_range(0..3)).map(|index| container(&mut draw, &format!("i{index}"), true)).collect();
    let main: Vec<Value> =
        (0..draw.random_range(1..4)).map(|index| container(&mut draw, &format!("c{index}"), false)).collect();
    let spread = |draw: &mut StdRng| {
        json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}},
            "matchLabelKeys": keys(draw, &["version", "absent"])})
    };
    let term = |draw: &mut StdRng| {
        json!({"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            "matchLabelKeys": keys(draw, &["version"]), "mismatchLabelKeys": keys(draw, &["app", "absent"]),
            "namespaces": keys(draw, &["x"])})
    };
    let mut spec = json!({
        "serviceAccountName": "own", "hostNetwork": host_network, "initContainers": init, "containers": main,
        "topologySpreadConstraints": [spread(&mut draw)],
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(&mut draw)]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term(&mut draw)}]},
        },
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}}}],
    });
    if draw.random_ratio(1, 3) {
        // More than all containers together ask for, so that the server does not refuse it for that.
        let whole =
            |draw: &mut StdRng| json!({"cpu": format!("{}", draw.random_range(60..70)), "memory": "300Gi"});
        spec["resources"] = match draw.random_range(0..3) {
            0 => json!({"requests": whole(&mut draw)}),
            1 => json!({"limits": {"cpu": "80", "memory": "400Gi"}}),
            _ => json!({"requests": {"cpu": "70"}, "limits": {"cpu": "80", "memory": "400Gi"}}),
        };
    }
    json!({"metadata": {"name": format!("p{seed}"), "labels": {"app": "a", "version": "2"}}, "spec": spec})
}

fn keys(draw: &mut StdRng, from: &[&str]) -> Vec<String> {
    from.iter().filter(|_| draw.random_ratio(1, 2)).map(|key| (*key).to_owned()).collect()
}

fn container(draw: &mut StdRng, name: &str, init: bool) -> Value {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for (resource, less, more) in [
        ("cpu", ["250m", "1"], ["1500m", "2"]),
        ("memory", ["1Gi", "2Gi"], ["3Gi", "4Gi"]),
        ("ephemeral-storage", ["1Gi", "2Gi"], ["3Gi", "5Gi"]),
    ] {
        if draw.random_ratio(1, 2) {
            requests.insert(resource.to_owned(), json!(less.choose(draw)));
        }
        if draw.random_ratio(1, 3) {
            limits.insert(resource.to_owned(), json!(more.choose(draw)));
        }
    }
    let mut ports = Vec::new();
    if draw.random_ratio(1, 2) {
        let port = draw.random_range(1..1000);
        ports.push(json!({"containerPort": port}));
        if draw.random_ratio(1, 3) {
            ports.push(json!({"containerPort": port + 1000, "hostPort": port + 1000, "protocol": "UDP"}));
        }
    }
    let mut out = json!({"name": name, "image": "none", "ports": ports, "resources": {"requests": requests, "limits": limits}});
    if init && draw.random_ratio(1, 2) {
        out["restartPolicy"] = json!("Always");
    }
    out
}
