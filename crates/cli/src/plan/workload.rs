//! Pods of a file: those that stand there, and those that its workloads would make.

use std::collections::BTreeSet;

use anyhow::Context;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};
use k8s_openapi::api::core::v1::{Pod as KubePod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scarpenter_api::{daemon, pod};
use scarpenter_core::node::Daemon;
use scarpenter_core::pod::Pod;

use super::documents::{Object, Source};

/// More pods than this are refused: nobody reads such a plan, and a slip of a zero should not take the machine's memory.
const MOST_PODS: usize = 100_000;
const KINDS: &str = "Pod, Deployment, ReplicaSet, StatefulSet, Job, CronJob, DaemonSet or a List of them";

const VERSIONS_AND_KINDS: [(&str, &str); 7] = [
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
];

/// What the files want to run.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    pub(super) pods: Vec<Pod>,
    /// DaemonSets make no pod that waits, but take room on every machine.
    pub(super) daemons: Vec<Daemon>,
    /// What is to be said about it.
    pub(super) notes: Vec<String>,
}

impl Workloads {
    pub(super) fn read(sources: &[Source]) -> anyhow::Result<Self> {
        let mut out = Self::default();
        for source in sources {
            for object in source.objects()? {
                if source.is_folder() && !VERSIONS_AND_KINDS.contains(&object.version_and_kind()) {
                    out.notes.push(format!("{object} is left out: it makes no pods"));
                } else {
                    out.add(object).with_context(|| source.to_string())?;
                }
            }
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = out.pods.iter().find(|pod| !seen.insert(&pod.key)) {
            let sources: Vec<String> = sources.iter().map(Source::to_string).collect();
            anyhow::bail!("{}: pod {} appears twice", sources.join(", "), twice.key);
        }
        Ok(out)
    }

    fn add(&mut self, object: Object) -> anyhow::Result<()> {
        match object.version_and_kind() {
            ("v1", "Pod") => {
                let pod = object.parse(&mut self.notes)?;
                self.add_pod(pod)
            }
            ("apps/v1", "Deployment") => {
                let Deployment { metadata, spec, .. } = object.parse(&mut self.notes)?;
                self.add_template(&metadata, Some(spec.template), spec.replicas)
            }
            ("apps/v1", "ReplicaSet") => {
                let ReplicaSet { metadata, spec, .. } = object.parse(&mut self.notes)?;
                self.add_template(&metadata, spec.template, spec.replicas)
            }
            ("apps/v1", "StatefulSet") => {
                let StatefulSet { metadata, spec, .. } = object.parse(&mut self.notes)?;
                self.add_template(&metadata, Some(spec.template), spec.replicas)
            }
            ("apps/v1", "DaemonSet") => {
                let daemon_set = object.parse::<DaemonSet>(&mut self.notes)?;
                self.daemons.push(daemon::parse(&daemon_set));
                Ok(())
            }
            ("batch/v1", "Job") => {
                let Job { metadata, spec, .. } = object.parse(&mut self.notes)?;
                self.add_job(&metadata, spec.unwrap_or_default())
            }
            ("batch/v1", "CronJob") => {
                let CronJob { metadata, spec, .. } = object.parse(&mut self.notes)?;
                self.add_job(&metadata, spec.job_template.spec.unwrap_or_default())
            }
            (api_version, _) => anyhow::bail!("{object} ({api_version}) makes no pods: expected {KINDS}"),
        }
    }

    /// A pod that is bound or finished wants no machine.
    fn add_pod(&mut self, mut object: KubePod) -> anyhow::Result<()> {
        if object.metadata.name.is_none() {
            let number = self.pods.len();
            object.metadata.name =
                object.metadata.generate_name.take().map(|prefix| format!("{prefix}{number}"));
        }
        anyhow::ensure!(object.metadata.name.is_some(), "a Pod has neither name nor generateName");
        anyhow::ensure!(self.pods.len() < MOST_PODS, "more than {MOST_PODS} pods");
        let key = pod::key(&object);
        if object.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) || pod::is_terminal(&object) {
            self.notes.push(format!("pod {key} is left out: it has a node already"));
            return Ok(());
        }
        let containers = object.spec.iter().map(|spec| spec.containers.len()).sum::<usize>();
        anyhow::ensure!(containers > 0, "pod {key} has no container");
        // A pod of a file has no UID yet; its name tells it from the others as well.
        object.metadata.uid.get_or_insert_with(|| format!("{}.{}", key.namespace, key.name));
        self.pods.push(pod::parse(&object));
        Ok(())
    }

    fn add_template(
        &mut self,
        owner: &ObjectMeta,
        template: Option<PodTemplateSpec>,
        replicas: Option<i32>,
    ) -> anyhow::Result<()> {
        let template = template.unwrap_or_default();
        let name = owner.name.clone().unwrap_or_default();
        for number in 0..replicas.unwrap_or(1) {
            let mut metadata = template.metadata.clone().unwrap_or_default();
            metadata.name = Some(format!("{name}-{number}"));
            metadata.namespace = owner.namespace.clone();
            self.add_pod(KubePod { metadata, spec: template.spec.clone(), ..KubePod::default() })?;
        }
        Ok(())
    }

    /// As many pods as run at once.
    fn add_job(&mut self, owner: &ObjectMeta, spec: JobSpec) -> anyhow::Result<()> {
        let parallelism = spec.parallelism.unwrap_or(1);
        let at_once = spec.completions.map_or(parallelism, |completions| completions.min(parallelism));
        self.add_template(owner, Some(spec.template), Some(at_once))
    }
}
