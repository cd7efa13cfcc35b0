//! NodePools that `scarpenter nodepool render` prints, held against the definitions that providers of Karpenter publish.
//!
//! Each published definition is applied under a group of its own, so that all are asked side by side.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Value, json};

pub(crate) fn add(trials: &mut Trials) {
    trials.add("emission::what_is_rendered_is_admitted_by_its_providers_published_definition", admitted);
    trials.add("emission::what_the_published_definitions_refuse_is_what_is_known_of_them", refused);
}

/// Folder of the definition, group and kind of the node class, region, and further fields of the spec.
const POOLS: [(&str, &str, &str, &str, &str); 10] = [
    (
        "aws",
        "karpenter.k8s.aws",
        "EC2NodeClass",
        "us-east-1",
        "ranking: {score: {benchmark: {id: 'geekbench:score', config: {cores: single}}}, band: {withinPercent: 12}, families: {min: 3, max: 6}}",
    ),
    (
        "azure",
        "karpenter.azure.com",
        "AKSNodeClass",
        "westeurope",
        "selector: {gpu: {count: {max: 0}}}, location: {regions: [westeurope], zones: [westeurope-1, westeurope-2]}",
    ),
    ("gcp", "karpenter.k8s.gcp", "GCENodeClass", "us-central1", "selector: {vcpus: {min: 2, max: 16}}"),
    (
        "alicloud-ack",
        "karpenter.alibabacloud.com",
        "ECSNodeClass",
        "eu-central-1",
        "selector: {vcpus: {max: 8}}",
    ),
    (
        "alicloud-cloudpilot",
        "karpenter.k8s.alibabacloud",
        "ECSNodeClass",
        "eu-central-1",
        "selector: {architectures: [amd64]}",
    ),
    (
        "hcloud",
        "karpenter.hetzner.cloud",
        "HCloudNodeClass",
        "fsn1",
        "ranking: {objective: Price, families: {max: 2}}",
    ),
    ("core", "karpenter.itsh.dev", "HCloudNodeClass", "fsn1", "selector: {vcpus: {max: 8}}"),
    ("upcloud", "karpenter.k8s.upcloud", "UpCloudNodeClass", "de-fra1", "selector: {vcpus: {max: 8}}"),
    ("core", "karpenter.ovhcloud.sh", "OVHNodeClass", "GRA11", "selector: {vcpus: {max: 8}}"),
    ("core", "karpenter.vultr.com", "VultrNodeClass", "ewr", "selector: {vcpus: {max: 8}}"),
];

const FOLDERS: [&str; 8] =
    ["core", "aws", "azure", "gcp", "alicloud-ack", "alicloud-cloudpilot", "hcloud", "upcloud"];

/// The folder of published data; `None`, and a line on stderr, where it is absent.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let shared = std::env::var_os("SCARPENTER_SHARED").map_or(beside, PathBuf::from);
    let there = shared.join("keeper/catalog.sqlite").exists() && shared.join("crds").exists();
    if !there {
        eprintln!("NOT RUN: emission against published definitions, since SCARPENTER_SHARED is not there");
    }
    there.then_some(shared)
}

/// Serves a published definition as `<folder>.<suffix>`.
async fn publish(client: &Client, shared: &Path, folder: &str, suffix: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(shared.join("crds").join(folder).join("nodepools.yaml"))?;
    let mut crd: CustomResourceDefinition = serde_saphyr::from_str(&text)?;
    crd.spec.group = format!("{folder}.{suffix}");
    crd.metadata.name = Some(format!("{}.{}", crd.spec.names.plural, crd.spec.group));
    crate::schema::apply(client, &[crd]).await
}

fn api(client: &Client, folder: &str, suffix: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(&format!("{folder}.{suffix}"), "v1", "NodePool");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// What the server says against a NodePool, in a dry run.
async fn refusal(
    client: &Client,
    (folder, suffix): (&str, &str),
    nodepool: &Value,
) -> anyhow::Result<Option<String>> {
    let mut object = nodepool.clone();
    object["apiVersion"] = format!("{folder}.{suffix}/v1").into();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match api(client, folder, suffix).create(&params, &serde_json::from_value(object)?).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// One NodePool for each of [`POOLS`].
fn rendered(shared: &Path) -> anyhow::Result<Vec<Value>> {
    let mut input = String::new();
    for (at, (_, group, kind, region, more)) in POOLS.into_iter().enumerate() {
        let location = if more.contains("location:") { "" } else { "location: {regions: [REGION]}, " };
        let location = location.replace("REGION", region);
        input += &format!(
            "---\n{{apiVersion: karpenter.sparecores.com/v1alpha1, kind: SCNodePool, metadata: {{name: pool-{at}}}, spec: {{nodePoolTemplate: {{spec: {{weight: 7, disruption: {{consolidationPolicy: WhenEmpty}}, template: {{spec: {{nodeClassRef: {{group: {group}, kind: {kind}, name: x}}}}}}}}}}, {location}{more}}}}}\n"
        );
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_scarpenter-on-trial"))
        .args(["nodepool", "render", "-f", "-", "--rate", "EUR=1.10", "--rate", "CNY=0.14", "--catalog"])
        .arg(shared.join("keeper/catalog.sqlite"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("its standard input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "render: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout)?)?)
}

async fn admitted(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let Some(shared) = shared() else { return Ok(()) };
    let client = plane.client().await?;
    let suffix = "admits.example.com";
    for folder in FOLDERS {
        publish(&client, &shared, folder, suffix).await?;
    }
    let nodepools = tokio::task::spawn_blocking({
        let shared = shared.clone();
        move || rendered(&shared)
    });
    let nodepools = nodepools.await??;
    ensure!(nodepools.len() == POOLS.len(), "{} of {} pools", nodepools.len(), POOLS.len());
    let mut wrong = Vec::new();
    for ((folder, group, ..), nodepool) in POOLS.into_iter().zip(&nodepools) {
        if let Some(said) = refusal(&client, (folder, suffix), nodepool).await? {
            wrong.push(format!("{group} by {folder}: {said}"));
        }
    }
    ensure!(wrong.is_empty(), "{} refused:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

fn nodepool(spec: Value) -> Value {
    json!({"apiVersion": "", "kind": "NodePool", "metadata": {"name": "case"}, "spec": spec})
}

fn spec(line: &Value) -> Value {
    json!({"disruption": {"consolidateAfter": "0s"}, "template": {"spec": {
        "nodeClassRef": {"group": "g", "kind": "K", "name": "x"}, "requirements": [line],
    }}})
}

async fn refused(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let Some(shared) = shared() else { return Ok(()) };
    let client = plane.client().await?;
    let suffix = "refuses.example.com";
    for folder in FOLDERS {
        publish(&client, &shared, folder, suffix).await?;
    }
    let all_but = |folder: &str| FOLDERS.into_iter().filter(|own| *own != folder).collect::<Vec<_>>();
    let exists = |key: &str| spec(&json!({"key": key, "operator": "Exists"}));
    let values = |more: Value| {
        let mut line = json!({"key": "a.example.org/b", "operator": "In"});
        line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        spec(&line)
    };
    let mut hasty = exists("a.example.org/b");
    hasty["disruption"] = json!({"consolidationPolicy": "WhenEmpty"});
    let cases = [
        ("a plain key", exists("a.example.org/b"), vec![]),
        ("a key of aws", exists("karpenter.k8s.aws/foo"), vec!["aws", "alicloud-ack"]),
        ("a key of azure", exists("karpenter.azure.com/foo"), vec!["azure"]),
        ("the host", exists("kubernetes.io/hostname"), all_but("alicloud-cloudpilot")),
        ("a key of Karpenter's", exists("karpenter.sh/x"), all_but("alicloud-cloudpilot")),
        ("Gte", values(json!({"operator": "Gte", "values": ["3"]})), vec!["alicloud-ack"]),
        ("no consolidateAfter", hasty, all_but("core")),
        ("no values", values(json!({"values": []})), FOLDERS.to_vec()),
        ("minValues", values(json!({"values": ["a"], "minValues": 2})), FOLDERS.to_vec()),
        ("64 characters", values(json!({"values": ["x".repeat(64)]})), vec![]),
    ];
    let mut wrong = Vec::new();
    for (name, spec, expected) in cases {
        for folder in FOLDERS {
            let said = refusal(&client, (folder, suffix), &nodepool(spec.clone())).await?;
            if said.is_some() != expected.contains(&folder) {
                wrong.push(format!("{name} by {folder}: {said:?}"));
            }
        }
    }
    for folder in FOLDERS {
        if changes_its_kind(&client, (folder, suffix)).await? {
            wrong.push(format!("{folder} lets the kind of node class change"));
        }
    }
    ensure!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Whether the kind of the node class may change in a NodePool that is there.
async fn changes_its_kind(client: &Client, (folder, suffix): (&str, &str)) -> anyhow::Result<bool> {
    let api = api(client, folder, suffix);
    let mut object = nodepool(spec(&json!({"key": "a.example.org/b", "operator": "Exists"})));
    object["apiVersion"] = format!("{folder}.{suffix}/v1").into();
    object["metadata"]["name"] = "there".into();
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let change = json!({"spec": {"template": {"spec": {"nodeClassRef": {"kind": "Other"}}}}});
    match api.patch("there", &PatchParams::default(), &Patch::Merge(change)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(false),
        Err(error) => Err(error.into()),
    }
}
