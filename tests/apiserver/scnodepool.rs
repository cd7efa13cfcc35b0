//! SCNodePool on a real API server: what its definition admits and refuses.

use std::sync::Arc;

use anyhow::Context;
use kube::api::{Api, PostParams};
use scarpenter_api::{SCNodePool, crds};
use scarpenter_playground::ControlPlane;
use scarpenter_tests::harness::Trials;
use serde_json::{Value, json};

pub(crate) fn add(trials: &mut Trials) {
    trials.add("scnodepool::each_rule_of_the_definition_admits_and_refuses", verdicts);
    trials.add("scnodepool::what_is_stored_is_what_was_written_and_the_defaults", stored);
}

/// A name that says what is tried, where the value goes, the value, and words of the refusal; none: it is admitted.
type Case = (&'static str, &'static str, Value, &'static str);

fn cases() -> Vec<Case> {
    let score = json!({"benchmark": {"id": "a:b"}});
    let profile = json!({"workloadProfile": "web"});
    let both = json!({"benchmark": {"id": "a:b"}, "workloadProfile": "web"});
    let range = |min: f64, max: f64| json!({"min": min, "max": max});
    let gib = |min: f64, max: f64| json!({"minGiB": min, "maxGiB": max});
    vec![
        ("nothing optional", "/selector", json!({}), ""),
        ("R2 vcpus", "/selector/vcpus", json!({"min": 2, "max": 2}), ""),
        ("R2 vcpus turned", "/selector/vcpus", json!({"min": 3, "max": 2}), "min may not be above max"),
        ("vcpus of 0", "/selector/vcpus", json!({"min": 0}), "greater than or equal to 1"),
        ("R2 memory", "/selector/memory", gib(3.8, 4.0), ""),
        ("R2 memory turned", "/selector/memory", gib(4.0, 3.8), "minGiB may not be above maxGiB"),
        ("R2 memory a vCPU", "/selector/memory", json!({"perVcpu": gib(2.0, 4.0)}), ""),
        ("R2 memory a vCPU turned", "/selector/memory", json!({"perVcpu": gib(4.0, 2.0)}), "minGiB may not"),
        ("no memory", "/selector/memory", json!({"minGiB": 0}), "greater than 0"),
        ("R2 GPUs", "/selector/gpu", json!({"count": range(0.0, 0.0)}), ""),
        ("R2 GPUs turned", "/selector/gpu", json!({"count": range(1.0, 0.5)}), "min may not be above max"),
        ("R3 min", "/selector/benchmarks", json!([{"id": "a:b", "min": 1}]), ""),
        ("R3 max", "/selector/benchmarks", json!([{"id": "a:b", "max": 1}]), ""),
        ("R3 none", "/selector/benchmarks", json!([{"id": "a:b"}]), "either min or max"),
        ("R3 both", "/selector/benchmarks", json!([{"id": "a:b", "min": 1, "max": 2}]), "either min or max"),
        (
            "a config",
            "/selector/benchmarks",
            json!([{"id": "a:b", "min": 1, "config": {"x": {"y": [1]}}}]),
            "",
        ),
        ("R4 a price without a score", "/ranking", json!({"objective": "Price", "families": {"max": 2}}), ""),
        ("R4 no score", "/ranking", json!({"objective": "Score", "families": {"max": 2}}), "needs a score"),
        ("R5 a profile", "/ranking", json!({"score": profile, "families": {"max": 2}}), ""),
        ("R5 neither", "/ranking", json!({"score": {}, "families": {"max": 2}}), "either a benchmark"),
        ("R5 both", "/ranking", json!({"score": both, "families": {"max": 2}}), "either a benchmark"),
        ("R6 a band", "/ranking", json!({"score": score, "band": {"withinPercent": 0}}), ""),
        ("R6 no bound", "/ranking", json!({"score": score}), "needs a band or families.max"),
        (
            "R6 a least number alone",
            "/ranking",
            json!({"score": score, "families": {"min": 2}}),
            "needs a band",
        ),
        ("R6 families", "/ranking", json!({"score": score, "families": {"min": 2, "max": 2}}), ""),
        (
            "R6 turned",
            "/ranking",
            json!({"score": score, "families": {"min": 3, "max": 2}}),
            "families.min may",
        ),
        ("R7", "/selector/price", json!({"maxHourly": "0.50", "maxHourlyPerVcpu": "0.000001"}), ""),
        ("R7 zero", "/selector/price", json!({"maxHourly": "0.00"}), "a price must be above 0"),
        ("R7 zero a vCPU", "/selector/price", json!({"maxHourlyPerVcpu": "0"}), "a price must be above 0"),
        ("a price of words", "/selector/price", json!({"maxHourly": "cheap"}), "should match"),
        ("a number as price", "/selector/price", json!({"maxHourly": 0.5}), "must be of type string"),
        (
            "R8",
            "/nodePoolTemplate/metadata",
            json!({"labels": {"owner": "me"}, "annotations": {"a/b": "c"}}),
            "",
        ),
        (
            "R8 managed-by",
            "/nodePoolTemplate/metadata",
            json!({"labels": {"app.kubernetes.io/managed-by": "me"}}),
            "are not for templates",
        ),
        (
            "R8 managed-by as annotation",
            "/nodePoolTemplate/metadata",
            json!({"annotations": {"app.kubernetes.io/managed-by": "me"}}),
            "",
        ),
        (
            "R8 our label",
            "/nodePoolTemplate/metadata",
            json!({"labels": {"karpenter.sparecores.com/x": "y"}}),
            "are not for templates",
        ),
        (
            "R8 our annotation",
            "/nodePoolTemplate/metadata",
            json!({"annotations": {"karpenter.sparecores.com/x": "y"}}),
            "are not for templates",
        ),
        (
            "R8 a hash",
            "/nodePoolTemplate/metadata",
            json!({"annotations": {"karpenter.sh/nodepool-hash-version": "v9"}}),
            "are not for templates",
        ),
        ("R9", "/refresh", json!({"interval": "10m"}), ""),
        ("R9 too soon", "/refresh", json!({"interval": "9m59s"}), "at least 10m"),
        ("R9 a step", "/churn", json!({"stepInterval": "1m", "maxRemovalsPerRefresh": 0}), ""),
        ("R9 a step too soon", "/churn", json!({"stepInterval": "59s"}), "at least 1m"),
        (
            "a margin of 101 percent",
            "/churn",
            json!({"removeMarginPercent": 101}),
            "less than or equal to 100",
        ),
        ("flags", "/selector/cpu", json!({"flags": {"anyOf": ["sve", "sve2"]}}), ""),
        ("flags in capitals", "/selector/cpu", json!({"flags": {"anyOf": ["SVE"]}}), "should match"),
        ("a flag twice", "/selector/cpu", json!({"flags": {"anyOf": ["sve", "sve"]}}), "Duplicate value"),
        ("an allocation", "/selector/cpu", json!({"allocations": ["dedicated"]}), "supported values"),
        ("an unknown profile", "/selector/workloadProfiles", json!([{"name": "new", "min": 0.8}]), ""),
        (
            "a profile twice",
            "/selector/workloadProfiles",
            json!([{"name": "web", "min": 0.8}, {"name": "web", "min": 0.9}]),
            "Duplicate value",
        ),
        (
            "a class without a kind",
            "/nodePoolTemplate/spec/template/spec/nodeClassRef",
            json!({"group": "a", "name": "b"}),
            "Required value",
        ),
        (
            "a class of an empty kind",
            "/nodePoolTemplate/spec/template/spec/nodeClassRef/kind",
            json!(""),
            "at least 1 char",
        ),
    ]
}

fn spec() -> Value {
    json!({"nodePoolTemplate": {"spec": {"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    }}}}})
}

/// Puts `value` at `path`, making the objects on the way.
fn put(spec: &mut Value, path: &str, value: Value) {
    let mut at = spec;
    for step in path.split('/').skip(1) {
        at = &mut at[step];
    }
    *at = value;
}

/// What the server says against it.
async fn refusal(api: &Api<kube::api::DynamicObject>, name: &str, spec: &Value) -> anyhow::Result<String> {
    let object = json!({
        "apiVersion": "karpenter.sparecores.com/v1alpha1", "kind": "SCNodePool", "metadata": {"name": name}, "spec": spec,
    });
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&params, &serde_json::from_value(object)?).await {
        Ok(_) => Ok(String::new()),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(status.message.clone()),
        Err(error) => Err(error.into()),
    }
}

async fn verdicts(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    crate::schema::apply(&client, &crds::all()).await?;
    let resource = kube::api::ApiResource::erase::<SCNodePool>(&());
    let api = Api::all_with(client, &resource);
    let mut wrong = Vec::new();
    for (name, path, value, words) in cases() {
        let mut spec = spec();
        put(&mut spec, path, value);
        let said = refusal(&api, "case", &spec).await?;
        if words.is_empty() != said.is_empty() || !said.contains(words) {
            wrong.push(format!("{name}: {said:?}"));
        }
    }
    for (length, admitted) in [(63, true), (64, false)] {
        let said = refusal(&api, &"n".repeat(length), &spec()).await?;
        if said.is_empty() != admitted || !admitted && !said.contains("at most 63 characters") {
            wrong.push(format!("R1 {length}: {said:?}"));
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

async fn stored(plane: Arc<ControlPlane>) -> anyhow::Result<()> {
    let client = plane.client().await?;
    crate::schema::apply(&client, &crds::all()).await?;
    let mut spec = spec();
    let template = json!({"weight": 30, "newField": {"of": ["a newer Karpenter"]}, "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
    }});
    put(&mut spec, "/nodePoolTemplate/spec", template.clone());
    let object = json!({"metadata": {"name": "stored"}, "spec": spec});
    let own: SCNodePool = serde_json::from_value(object)?;
    let api: Api<SCNodePool> = Api::all(client);
    let made = api.create(&PostParams::default(), &own).await?;
    assert_eq!(made.spec, own.spec, "the server's defaults are those of the type");
    let kept = Value::Object(made.spec.node_pool_template.spec.clone());
    assert_eq!(kept, template, "fields that the definition does not know are kept");
    api.delete("stored", &kube::api::DeleteParams::default()).await.context("delete it")?;
    Ok(())
}
