//! Files of SCNodePools and NodePools.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use scarpenter_api::scnodepool::{GROUP, KIND, VERSION};
use scarpenter_api::{SCNodePool, SCNodePoolStatus};
use scarpenter_core::lifecycle::Time;
use scarpenter_emission::{Intent, Pending};
use serde_json::Value;

/// An SCNodePool as a file has it.
pub(super) struct Wanted {
    pub(super) intent: Intent,
    pub(super) status: SCNodePoolStatus,
}

impl Wanted {
    /// Reads one document; a refusal of its content is the inner error.
    pub(super) fn read(document: &Value) -> anyhow::Result<Result<Self, scarpenter_emission::Refusal>> {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let wanted = format!("{GROUP}/{VERSION}");
        ensure!(
            kind == KIND && version == wanted,
            "a document is {kind:?} of {version:?}; {KIND} of {wanted} is wanted"
        );
        // Emission's own reading comes first, since it names unknown fields.
        let intent = match Intent::parse(name, document.get("spec").cloned().unwrap_or_default()) {
            Ok(intent) => intent,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let object: SCNodePool =
            serde_json::from_value(document.clone()).with_context(|| format!("{KIND} {name}"))?;
        for (field, duration) in [
            ("refresh.interval", &object.spec.refresh.interval),
            ("churn.stepInterval", &object.spec.churn.step_interval),
        ] {
            if let Some(problem) = duration.problem() {
                bail!("{KIND} {name}: spec.{field}: {problem}");
            }
        }
        Ok(Ok(Self { intent, status: object.status.unwrap_or_default() }))
    }

    /// What its status says is to go.
    pub(super) fn pending(&self) -> Vec<Pending> {
        let entries = self.status.pending_removals.iter().map(|entry| Pending {
            name: entry.name.clone(),
            since: Time::from_millis(entry.since.as_ref().map_or(0, |time| time.0.as_millisecond())),
            refreshes: u32::try_from(entry.refreshes).unwrap_or(0),
            reason: entry.reason.clone(),
            margin: entry.margin_percent,
            due: entry.due,
        });
        entries.collect()
    }
}

/// All documents of a file, or of the standard input for `-`; those of a list one by one.
pub(super) fn documents(path: &Path) -> anyhow::Result<Vec<Value>> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text).context("read the standard input")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    }
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("read {}", path.display()))?;
    let mut out = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match document.get("items").and_then(Value::as_array).filter(|_| is_list) {
            Some(items) => out.extend(items.iter().cloned()),
            None => out.push(document),
        }
    }
    ensure!(!out.is_empty(), "{} holds no object", path.display());
    Ok(out)
}

/// The NodePool of that name among the documents of a file.
pub(super) fn nodepool(documents: &[Value], name: &str) -> Option<Value> {
    let is_it = |document: &&Value| document["kind"] == "NodePool" && document["metadata"]["name"] == name;
    documents.iter().find(is_it).cloned()
}
