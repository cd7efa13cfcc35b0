//! What a pod asks for in all: our sum and the scheduler's, compared by nodes that have exactly so much, or a unit less.

use k8s_openapi::api::core::v1::Pod;
use scarpenter_core::pod::PodKey;
use scarpenter_core::resources::{PODS, Resources, format_quantity};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Verdict, key, parse};
use crate::world::draw::Draw;
use crate::world::{self, OVERHEAD};

const PODS_IN_ALL: usize = 1000;
const AT_A_TIME: usize = 50;
const PROBE: &str = "example.com/probe";
const THING: &str = "example.com/thing";

/// A pod, what we think it asks for, and of what one node has a unit too little.
struct Probe {
    pod: Value,
    sum: Resources,
    short_of: String,
}

/// Random pods against nodes made to measure.
pub(crate) async fn compare(cluster: &mut Cluster, seed: u64) -> anyhow::Result<()> {
    let mut draw = Draw::new(seed);
    for _ in 0..PODS_IN_ALL / AT_A_TIME {
        let probes: Vec<Probe> = (0..AT_A_TIME).map(|_| probe(&mut draw)).collect();
        cluster.clear().await?;
        let (mut nodes, mut pods) = (Vec::new(), Vec::new());
        for (number, probe) in probes.iter().enumerate() {
            let less = probe.sum.clone().with(&probe.short_of, probe.sum.get(&probe.short_of) - 1);
            for (name, has) in [(fit(number), &probe.sum), (short(number), &less)] {
                let has = json!(scarpenter_api::quantity::write(has));
                nodes.push(world::node(&name, &json!({PROBE: name}), json!({}), &has, &has));
                let mut pod = probe.pod.clone();
                pod["metadata"] = json!({"name": name, "namespace": "n0"});
                pod["spec"]["nodeSelector"] = json!({PROBE: name});
                pods.push(pod);
            }
        }
        cluster.put_nodes(&nodes).await?;
        cluster.until_seen(nodes.len()).await?;
        cluster.put_pods(&pods).await?;
        let verdicts = cluster.settle().await?;
        for pod in cluster.pods().await? {
            judge(&probes, &pod, &verdicts[&key(&pod)]);
        }
    }
    cluster.clear().await
}

fn judge(probes: &[Probe], pod: &Pod, verdict: &Verdict) {
    let PodKey { name, .. } = key(pod);
    let (kind, number) = name.split_once('-').expect("probes have a kind and a number");
    let Probe { pod: given, sum, short_of } =
        &probes[number.parse::<usize>().expect("the number of a probe is a number")];
    let seen = scarpenter_api::pod::requests(pod);
    assert_eq!(seen, *sum, "the API server's object says otherwise than the file: {given}");
    match (kind, verdict) {
        ("fit", Verdict::Refused(words)) => panic!("we count {sum}, the scheduler more: {words}\n{given}"),
        ("short", Verdict::Bound(_)) => {
            let amount = format_quantity(short_of, sum.get(short_of));
            panic!("we count {amount} of {short_of}, the scheduler less\n{given}");
        }
        _ => {}
    }
}

fn fit(number: usize) -> String {
    format!("fit-{number}")
}

fn short(number: usize) -> String {
    format!("short-{number}")
}

fn probe(draw: &mut Draw) -> Probe {
    loop {
        let pod = pod(draw);
        let sum = scarpenter_api::pod::requests(&parse(&pod));
        let named: Vec<String> = sum
            .iter()
            .filter(|(name, amount)| *amount > 0 && *name != PODS)
            .map(|(name, _)| name.to_owned())
            .collect();
        if !named.is_empty() {
            let short_of = draw.pick(&named).clone();
            return Probe { pod, sum, short_of };
        }
    }
}

fn pod(draw: &mut Draw) -> Value {
    let main: Vec<Value> = (0..draw.between(1, 3)).map(|number| container(draw, "main", number)).collect();
    let mut init: Vec<Value> =
        (0..draw.between(0, 4)).map(|number| container(draw, "start", number)).collect();
    for step in &mut init {
        if draw.chance(50) {
            step["restartPolicy"] = json!("Always");
        }
    }
    let spec = json!({"containers": main, "initContainers": init, "terminationGracePeriodSeconds": 0});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
    if draw.chance(20) {
        // Less than the containers together is not admitted.
        let sum = scarpenter_api::pod::requests(&parse(&pod));
        let more = |draw: &mut Draw, name| format_quantity(name, sum.get(name) + draw.between(1, 900) as i64);
        pod["spec"]["resources"]["requests"] = match draw.between(0, 2) {
            0 => json!({"cpu": more(draw, "cpu")}),
            1 => json!({"memory": more(draw, "memory")}),
            _ => json!({"cpu": more(draw, "cpu"), "memory": more(draw, "memory")}),
        };
    }
    if draw.chance(20) {
        let (class, overhead) = OVERHEAD;
        pod["spec"]["runtimeClassName"] = json!(class);
        pod["spec"]["overhead"] = json!({"cpu": overhead[0], "memory": overhead[1]});
    }
    pod
}

fn container(draw: &mut Draw, name: &str, number: usize) -> Value {
    let (mut requests, mut limits) = (json!({}), json!({}));
    for resource in ["cpu", "memory", "ephemeral-storage"] {
        let least = draw.between(1, 3000) as i64;
        let most = least + draw.between(0, 500) as i64;
        let way = draw.between(0, 3);
        let part = draw.between(0, 4);
        if part == 0 || part == 2 {
            requests[resource] = json!(written(way, resource, least));
        }
        if part == 1 || part == 2 {
            limits[resource] = json!(written(way, resource, most));
        }
    }
    if draw.chance(15) {
        limits[THING] = json!(draw.between(1, 3).to_string());
    }
    json!({
        "name": format!("{name}{number}"),
        "image": "none",
        "resources": {"requests": requests, "limits": limits},
    })
}

/// In one of the ways in which people write.
fn written(way: usize, name: &str, amount: i64) -> String {
    match way {
        0 if name == "cpu" => format!("{}.{:03}", amount / 1000, amount % 1000),
        1 if name != "cpu" => format!("{amount}Ki"),
        2 if name != "cpu" => format!("{amount}k"),
        _ => format_quantity(name, amount),
    }
}
