//! One case of a scene: its pods, and what is said of them and of everything else.
//!
//! Cases of a scene run side by side under one controller, so each has instance types of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures::future::{LocalBoxFuture, join_all};
use k8s_openapi::api::core::v1::{Event, Node, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use scarpenter_api::{Condition, NodeClaim, NodePool, ScarpenterNodeClass};
use scarpenter_core::label;
use scarpenter_tests::stage::Stage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) const RUN_SECONDS: &str = "sim.scarpenter.sparecores.com/run-seconds";
pub(crate) const MACHINE_READY: &str = "scarpenter.sparecores.com/MachineReady";
/// Longer than any case may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);

/// Plays cases side by side; every one that fails is named. `CASE` in the environment selects those that it is part of.
pub(crate) async fn together(
    cases: Vec<(&str, LocalBoxFuture<'_, anyhow::Result<()>>)>,
) -> anyhow::Result<()> {
    let only = std::env::var("CASE").unwrap_or_default();
    let cases = cases.into_iter().filter(|(name, _)| name.contains(&only));
    let played = cases.map(|(name, case)| async move {
        let began = Instant::now();
        let outcome = case.await;
        let seconds = began.elapsed().as_secs_f64();
        eprintln!("    {name}: {} after {seconds:.1} s", if outcome.is_ok() { "ok" } else { "FAILED" });
        outcome.err().map(|error| format!("{name}: {error:#}"))
    });
    let failed: Vec<String> = join_all(played).await.into_iter().flatten().collect();
    ensure!(failed.is_empty(), "{} cases failed:\n\n{}", failed.len(), failed.join("\n\n"));
    Ok(())
}

/// What a case acts through.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) stage: &'a Stage,
}

impl<'a> Case<'a> {
    pub(crate) fn new(stage: &'a Stage) -> Self {
        Self { stage }
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.stage.client().clone(), self.stage.namespace())
    }

    pub(crate) fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.stage.client().clone())
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.stage.client().clone())
    }

    pub(crate) fn pools(&self) -> Api<NodePool> {
        Api::all(self.stage.client().clone())
    }

    pub(crate) fn classes(&self) -> Api<ScarpenterNodeClass> {
        Api::all(self.stage.client().clone())
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.stage.client().clone(), "kube-system")
    }

    /// Creates a pod that fills a small machine for a second, with changes.
    pub(crate) async fn pod(&self, name: &str, changes: Value) -> anyhow::Result<()> {
        let mut pod = json!({
            "metadata": {"name": name, "annotations": {RUN_SECONDS: "1"}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": {"cpu": "1200m", "memory": "256Mi"}},
                }],
            },
        });
        merge(&mut pod, changes);
        let pod: Pod = serde_json::from_value(pod)?;
        self.pods().create(&PostParams::default(), &pod).await.with_context(|| format!("create {name}"))?;
        Ok(())
    }

    /// Creates a class: the example's, with changes.
    pub(crate) async fn class(&self, name: &str, changes: Value) -> anyhow::Result<()> {
        let mut class = json!({
            "apiVersion": "scarpenter.sparecores.com/v1alpha1", "kind": "ScarpenterNodeClass",
            "metadata": {"name": name}, "spec": {},
        });
        merge(&mut class, changes);
        self.classes().create(&PostParams::default(), &serde_json::from_value(class)?).await?;
        Ok(())
    }

    /// Creates a pool of a class that only pods that name it get, with changes.
    pub(crate) async fn pool(&self, name: &str, class: &str, changes: Value) -> anyhow::Result<()> {
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": name},
            "spec": {
                "template": {"spec": {
                    "nodeClassRef": {"group": "scarpenter.sparecores.com", "kind": "ScarpenterNodeClass", "name": class},
                    "requirements": [],
                    "taints": [{"key": "trial", "value": name, "effect": "NoSchedule"}],
                }},
                "disruption": {
                    "consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s",
                    "budgets": [{"nodes": "100%", "reasons": ["Empty"]}],
                },
            },
        });
        merge(&mut pool, changes);
        self.pools().create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
        Ok(())
    }

    /// Waits until it is so.
    pub(crate) async fn until(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> anyhow::Result<Result<(), String>>,
    ) -> anyhow::Result<()> {
        self.stage.until(WITHIN, what, look).await
    }

    /// Waits until an object is so.
    pub(crate) async fn until_object<K>(
        &self,
        api: &Api<K>,
        name: &str,
        what: &str,
        is: impl Fn(&K) -> bool,
    ) -> anyhow::Result<K>
    where
        K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    {
        let mut found = None;
        self.until(&format!("{name}: {what}"), async || {
            let Some(object) = api.get_opt(name).await? else { return Ok(Err("it is not there".to_owned())) };
            let words = status(&object);
            let so = is(&object);
            found = Some(object);
            Ok(if so { Ok(()) } else { Err(words) })
        })
        .await?;
        found.context("it was so a moment ago")
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone<K>(&self, api: &Api<K>, name: &str) -> anyhow::Result<()>
    where
        K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    {
        self.until(&format!("{name} is gone"), async || {
            Ok(api.get_opt(name).await?.map_or(Ok(()), |object| Err(status(&object))))
        })
        .await
    }

    /// Waits until a pod has run to its end.
    pub(crate) async fn ran(&self, name: &str) -> anyhow::Result<Pod> {
        let pod = self
            .until_object(&self.pods(), name, "it ran", |pod| {
                phase(pod) != "Pending" && phase(pod) != "Running"
            })
            .await?;
        ensure!(phase(&pod) == "Succeeded", "{name}: {}", status(&pod));
        Ok(pod)
    }

    /// Waits until a pod runs, or has run.
    pub(crate) async fn running(&self, name: &str) -> anyhow::Result<Pod> {
        self.until_object(&self.pods(), name, "it runs", |pod| phase(pod) != "Pending").await
    }

    /// Waits until there is a claim for a pod that `is` so, and returns it.
    pub(crate) async fn claim(
        &self,
        pod: &str,
        what: &str,
        is: impl Fn(&NodeClaim) -> bool,
    ) -> anyhow::Result<NodeClaim> {
        let mut found = None;
        self.until(&format!("a claim for {pod}: {what}"), async || {
            let claims = self.claims_of(pod).await?;
            let words: Vec<String> = claims.iter().map(status).collect();
            found = claims.into_iter().find(&is);
            Ok(if found.is_some() { Ok(()) } else { Err(words.join(", ")) })
        })
        .await?;
        found.context("it was there a moment ago")
    }

    /// Claims that were made for a pod and are there.
    pub(crate) async fn claims_of(&self, pod: &str) -> anyhow::Result<Vec<NodeClaim>> {
        let uid = self.pods().get(pod).await?.uid().unwrap_or_default();
        let mut claims = self.claims().list(&ListParams::default()).await?.items;
        claims.retain(|claim| {
            claim.annotations().get(label::PODS).is_some_and(|pods| pods.split(',').any(|pod| pod == uid))
        });
        Ok(claims)
    }

    /// Waits for an event about an object that says all of `words`.
    pub(crate) async fn event(&self, about: &str, reason: &str, words: &[&str]) -> anyhow::Result<()> {
        self.event_about_any(&[about.to_owned()], reason, words).await
    }

    /// Waits for an event about one of some objects that says all of `words`.
    pub(crate) async fn event_about_any(
        &self,
        about: &[String],
        reason: &str,
        words: &[&str],
    ) -> anyhow::Result<()> {
        let events: Api<Event> = Api::all(self.stage.client().clone());
        self.until(
            &format!("an event {reason} about {} that says {words:?}", about.join(" or ")),
            async || {
                let mut list = Vec::new();
                for name in about {
                    let params = ListParams::default().fields(&format!("involvedObject.name={name}"));
                    list.extend(events.list(&params).await?.items);
                }
                let there = list.iter().any(|event| {
                    let message = event.message.as_deref().unwrap_or_default();
                    event.reason.as_deref() == Some(reason) && words.iter().all(|word| message.contains(word))
                });
                Ok(if there { Ok(()) } else { Err(list.iter().map(said).collect::<Vec<_>>().join("; ")) })
            },
        )
        .await
    }

    /// Waits until a pod's condition MachineReady has a status and a reason and says all of `words`.
    pub(crate) async fn machine_ready(
        &self,
        pod: &str,
        status: &str,
        reason: &str,
        words: &[&str],
    ) -> anyhow::Result<()> {
        let what = format!("MachineReady is {status} ({reason}) and says {words:?}");
        self.until_object(&self.pods(), pod, &what, |pod| {
            pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).any(|condition| {
                let message = condition.message.as_deref().unwrap_or_default();
                condition.type_ == MACHINE_READY
                    && condition.status == status
                    && condition.reason.as_deref() == Some(reason)
                    && words.iter().all(|word| message.contains(word))
            })
        })
        .await
        .map(drop)
    }

    pub(crate) async fn patch<K>(&self, api: &Api<K>, name: &str, patch: Value) -> anyhow::Result<()>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("patch {name}"))?;
        Ok(())
    }

    pub(crate) async fn delete<K>(&self, api: &Api<K>, name: &str) -> anyhow::Result<()>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        api.delete(name, &DeleteParams::default()).await.with_context(|| format!("delete {name}"))?;
        Ok(())
    }

    /// What the plugin was asked for an instance type.
    pub(crate) fn sold(&self, instance_type: &str) -> anyhow::Result<Sold> {
        let path = self.stage.log("any").with_file_name("audit.jsonl");
        let text = std::fs::read_to_string(path).context("read the plugin's log")?;
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Sold::read(&lines, instance_type))
    }

    /// Waits until every machine of an instance type is gone, and says what was sold.
    pub(crate) async fn until_sold_is_gone(&self, instance_type: &str) -> anyhow::Result<Sold> {
        self.until(&format!("all machines {instance_type} are gone"), async || {
            let sold = self.sold(instance_type)?;
            Ok(if sold.made == sold.gone { Ok(()) } else { Err(format!("{sold:?}")) })
        })
        .await?;
        self.sold(instance_type)
    }
}

/// What the plugin was asked for one instance type, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Sold {
    /// Regions of the creates that were received, in order.
    pub(crate) creates: Vec<String>,
    /// Claims that they named.
    pub(crate) claims: BTreeSet<String>,
    pub(crate) made: usize,
    pub(crate) gone: usize,
    /// Most at a time.
    pub(crate) most: usize,
}

impl Sold {
    fn read(lines: &[Value], instance_type: &str) -> Self {
        let mut sold = Self::default();
        let mut machines = BTreeMap::new();
        for line in lines {
            let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            match line["event"].as_str() {
                Some("received")
                    if line["call"] == "CreateMachine" && line["instanceType"] == instance_type =>
                {
                    sold.creates.push(word("region"));
                    sold.claims.insert(word("claim"));
                }
                Some("made") if sold.claims.contains(&word("claim")) => {
                    sold.made += 1;
                    machines.insert(word("machine"), ());
                    sold.most = sold.most.max(machines.len());
                }
                Some("gone") if machines.remove(&word("machine")).is_some() => sold.gone += 1,
                _ => {}
            }
        }
        sold
    }
}

fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(into.entry(key).or_insert(Value::Null), change);
            }
        }
        (into, change) => *into = change,
    }
}

/// A pod's `nodeSelector` for an exact type.
pub(crate) fn exactly(vendor: &str, instance_type: &str) -> Value {
    json!({"spec": {"nodeSelector": {label::VENDOR: vendor, label::INSTANCE_TYPE: instance_type}}})
}

/// Both changes.
pub(crate) fn and(mut one: Value, other: Value) -> Value {
    merge(&mut one, other);
    one
}

/// A pod that only this pool takes, and that takes what the pool is tainted with.
pub(crate) fn of_pool(pool: &str) -> Value {
    json!({"spec": {
        "nodeSelector": {label::NODEPOOL: pool},
        "tolerations": [{"key": "trial", "operator": "Exists"}],
    }})
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// Name, deletion and status of an object, in short.
fn status<K: Resource + Serialize>(object: &K) -> String {
    let going = if object.meta().deletion_timestamp.is_some() { " (going)" } else { "" };
    let value = serde_json::to_value(object).unwrap_or_default();
    let conditions = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let conditions: Vec<String> = conditions
        .iter()
        .map(|own| {
            let word = |key: &str| own[key].as_str().unwrap_or_default();
            format!("{}={} {} {}", word("type"), word("status"), word("reason"), word("message"))
        })
        .collect();
    format!(
        "{}{going} {} [{}]",
        object.meta().name.as_deref().unwrap_or_default(),
        value["status"]["phase"],
        conditions.join(" | ")
    )
}

fn said(event: &Event) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}: {}", word(&event.reason), word(&event.message))
}

/// A condition of an object, as `status reason message`.
pub(crate) fn condition(conditions: &[Condition], type_: &str) -> Option<String> {
    let found = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some(format!("{} {} {}", found.status.as_str(), found.reason, found.message))
}

/// Waits that nothing of a kind happens for so long.
pub(crate) async fn never(
    within: Duration,
    what: &str,
    mut happened: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let until = Instant::now() + within;
    while Instant::now() < until {
        if happened().await? {
            bail!("it happened: {what}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
