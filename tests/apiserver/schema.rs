//! Our definitions on a real API server: the same objects are admitted and refused as by the published ones.
//!
//! The published definitions are applied beside ours under a group of their own, so that both are asked the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use scarpenter_api::{Condition, NodeClaim, NodePool, ScarpenterNodeClass, condition};
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Value, json};

use crate::schema_cases::{Kind, Verdict, cases, changes};

const OURS: &str = "karpenter.sh";
const PUBLISHED: &str = "published.example.com";

pub(crate) fn add(trials: &mut Trials) {
    trials.add("the_same_objects_are_admitted_and_refused_as_by_the_published_definitions", verdicts);
    trials.add("the_example_is_admitted_and_read_back", example);
    trials.add("status_and_scale_are_subresources", subresources);
}

/// Applies definitions and waits until they are served; may run beside itself.
pub(crate) async fn apply(client: &kube::Client, crds: &[CustomResourceDefinition]) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds {
        let name = crd.metadata.name.clone().unwrap_or_default();
        api.patch(&name, &PatchParams::apply("scarpenter-tests").force(), &Patch::Apply(crd)).await?;
        let established = await_condition(api.clone(), &name, is_crd_established());
        tokio::time::timeout(std::time::Duration::from_secs(60), established).await??;
        let seen = api.get(&name).await?;
        let conditions = seen.status.and_then(|status| status.conditions).unwrap_or_default();
        let bad = conditions
            .iter()
            .find(|condition| condition.type_ == "NonStructuralSchema" && condition.status == "True");
        anyhow::ensure!(bad.is_none(), "{name}: {bad:?}");
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The published definitions under a group of their own; `None`, and a line on stderr, where they are absent.
fn published() -> Option<Vec<CustomResourceDefinition>> {
    let shared =
        std::env::var_os("SCARPENTER_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    if !shared.exists() {
        eprintln!("not run: comparison with the published definitions, since SCARPENTER_SHARED is not there");
        return None;
    }
    let read = |file: &str| {
        let text = std::fs::read_to_string(shared.join("crds/core").join(file)).unwrap();
        let mut crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        crd.spec.group = PUBLISHED.to_owned();
        crd.metadata.name = Some(format!("{}.{PUBLISHED}", crd.spec.names.plural));
        crd
    };
    Some(["nodepools.yaml", "nodeclaims.yaml"].map(read).to_vec())
}

fn api_of(client: &kube::Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::all_with(client.clone(), &resource)
}

fn object(group: &str, kind: Kind, name: &str, spec: &Value) -> DynamicObject {
    let value = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind.as_str(), "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(value).unwrap()
}

/// The spec as the server would store it, or what it says against it.
async fn ask(
    client: &kube::Client,
    group: &str,
    kind: Kind,
    spec: &Value,
) -> anyhow::Result<Result<Value, String>> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let answer =
        api_of(client, group, kind.as_str()).create(&params, &object(group, kind, "case", spec)).await;
    match answer {
        Ok(stored) => Ok(Ok(stored.data["spec"].clone())),
        Err(kube::Error::Api(status)) if status.code == 422 || status.code == 400 => {
            Ok(Err(status.message.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

async fn verdicts(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    apply(&client, &scarpenter_api::crds::all()).await?;
    let published = published();
    if let Some(crds) = &published {
        apply(&client, crds).await?;
    }
    let groups: &[&str] = if published.is_some() { &[PUBLISHED, OURS] } else { &[OURS] };
    let mut wrong = Vec::new();
    for case in cases() {
        let mut stored = Vec::new();
        for group in groups {
            let answer = ask(&client, group, case.kind, &case.spec).await?;
            let verdict = if answer.is_ok() { Verdict::Admitted } else { Verdict::Refused };
            if verdict != case.verdict {
                wrong.push(format!("{group} {}: {verdict:?}, {answer:?}", case.name));
            }
            stored.push(answer.ok());
        }
        if stored.windows(2).any(|pair| pair[0] != pair[1]) {
            wrong.push(format!("{}: stored differently: {stored:?}", case.name));
        }
    }
    for group in groups {
        wrong.extend(changed(&client, group).await?);
    }
    anyhow::ensure!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Rules about a change need an object that is there.
async fn changed(client: &kube::Client, group: &str) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (at, change) in changes().into_iter().enumerate() {
        let api = api_of(client, group, change.kind.as_str());
        let name = format!("change-{at}");
        api.create(&PostParams::default(), &object(group, change.kind, &name, &change.before)).await?;
        let patch = Patch::Merge(json!({"spec": change.patch}));
        let verdict = match api.patch(&name, &PatchParams::default(), &patch).await {
            Ok(_) => Verdict::Admitted,
            Err(kube::Error::Api(status)) if status.code == 422 => Verdict::Refused,
            Err(error) => return Err(error.into()),
        };
        if verdict != change.verdict {
            wrong.push(format!("{group} {}: {verdict:?}", change.name));
        }
        api.delete(&name, &kube::api::DeleteParams::default()).await?;
    }
    Ok(wrong)
}

async fn example(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    apply(&client, &scarpenter_api::crds::all()).await?;
    let text = std::fs::read_to_string(root().join("deploy/examples/default.yaml"))?;
    let documents: Vec<DynamicObject> = serde_saphyr::from_multiple(&text)?;
    assert_eq!(documents.len(), 3);
    for document in &documents {
        let types = document.types.as_ref().unwrap();
        let kind = GroupVersionKind::try_from(types)?;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
        let name = document.metadata.name.as_deref().unwrap();
        api.patch(name, &PatchParams::apply("scarpenter-tests").force(), &Patch::Apply(document)).await?;
    }

    let class = Api::<ScarpenterNodeClass>::all(client.clone()).get("default").await?;
    assert_eq!(class.problems(), Vec::<String>::new());
    let file: ScarpenterNodeClass = serde_json::from_value(serde_json::to_value(&documents[0])?)?;
    assert_eq!(class.spec, file.spec, "the server's defaults are those of the types");

    let pools: Api<NodePool> = Api::all(client);
    for (name, document) in [("default", &documents[1]), ("default-arm64", &documents[2])] {
        let pool = pools.get(name).await?;
        let file: NodePool = serde_json::from_value(serde_json::to_value(document)?)?;
        assert_eq!(pool.spec, file.spec, "the server's defaults are those of the types");
        pool.to_pool().map_err(|problems| anyhow::anyhow!(problems.join("; ")))?;
    }
    Ok(())
}

async fn subresources(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    apply(&client, &scarpenter_api::crds::all()).await?;
    let claims: Api<NodeClaim> = Api::all(client.clone());
    let spec =
        cases().into_iter().find(|case| case.kind == Kind::NodeClaim && case.verdict == Verdict::Admitted);
    let claim: NodeClaim = serde_json::from_value(json!({
        "metadata": {"name": "subresources"}, "spec": spec.unwrap().spec,
    }))?;
    let made = claims.create(&PostParams::default(), &claim).await?;

    let look =
        condition::Look { generation: made.metadata.generation, now: k8s_openapi::jiff::Timestamp::now() };
    let created = made.metadata.creation_timestamp.as_ref().unwrap().0;
    let mut conditions: Vec<Condition> = Vec::new();
    condition::complete(&mut conditions, look, created, &condition::CLAIM_DEPENDENTS);
    let patch = Patch::Merge(json!({"status": {"conditions": conditions, "capacity": {"cpu": "2"}}}));
    let seen = claims.patch_status("subresources", &PatchParams::default(), &patch).await?;
    assert_eq!(seen.conditions(), conditions, "what was written is what is read");
    assert_eq!(seen.metadata.generation, made.metadata.generation, "a status write is no new generation");

    let pool: NodePool = serde_json::from_value(json!({
        "metadata": {"name": "subresources"},
        "spec": {"replicas": 1, "template": {"spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "requirements": []}}},
    }))?;
    let pools: Api<NodePool> = Api::all(client);
    pools.create(&PostParams::default(), &pool).await?;
    let scale = pools
        .patch_scale("subresources", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}})))
        .await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(3));
    assert_eq!(pools.get("subresources").await?.spec.replicas, Some(3));
    Ok(())
}
