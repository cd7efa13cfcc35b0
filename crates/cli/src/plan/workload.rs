//! Pods of a file: those that stand there, and those that its workloads would make.

use std::collections::BTreeSet;

use anyhow::Context;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod as KubePod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scarpenter_api::{daemon, pod};
use scarpenter_core::node::Daemon;
use scarpenter_core::pod::Pod;
use scarpenter_core::topology::Namespaces;

use super::documents::{Object, Source};

mod surroundings;

use surroundings::Surroundings;

/// More pods than this are refused: nobody reads such a plan, and a slip of a zero should not take the machine's memory.
const MOST_PODS: usize = 100_000;
const KINDS: &str = "Pod, Deployment, ReplicaSet, StatefulSet, Job, CronJob, DaemonSet or a List of them, and beside them \
                     PersistentVolumeClaim, PersistentVolume, StorageClass, LimitRange, Namespace or PriorityClass";

/// What the files want to run.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    pub(super) pods: Vec<Pod>,
    /// DaemonSets make no pod that waits, but take room on every machine.
    pub(super) daemons: Vec<Daemon>,
    /// Labels of the namespaces that the files hold.
    pub(super) namespaces: Namespaces,
    /// What is to be said about it.
    pub(super) notes: Vec<String>,
}

/// Objects of the files, taken apart but not planned with: what says how pods are planned may come after them.
#[derive(Default)]
struct Files {
    makers: Vec<Maker>,
    daemon_sets: Vec<DaemonSet>,
    surroundings: Surroundings,
    notes: Vec<String>,
}

/// What makes pods.
struct Maker {
    pod: KubePod,
    /// Pods are this one, or so many that are numbered after it.
    replicas: Option<i32>,
    /// Claims that each of them gets for itself.
    claims: Vec<PersistentVolumeClaim>,
}

impl Workloads {
    pub(super) fn read(sources: &[Source]) -> anyhow::Result<Self> {
        let mut files = Files::default();
        for source in sources {
            for object in source.objects()? {
                files.add(object, source.is_folder()).with_context(|| source.to_string())?;
            }
        }
        let names = || sources.iter().map(Source::to_string).collect::<Vec<_>>().join(", ");
        let out = files.admit().with_context(names)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = out.pods.iter().find(|pod| !seen.insert(&pod.key)) {
            anyhow::bail!("{}: pod {} appears twice", names(), twice.key);
        }
        Ok(out)
    }
}

impl Files {
    fn add(&mut self, object: Object, in_folder: bool) -> anyhow::Result<()> {
        let notes = &mut self.notes;
        match object.version_and_kind() {
            kind if surroundings::VERSIONS_AND_KINDS.contains(&kind) => {
                return self.surroundings.add(object, notes);
            }
            ("v1", "Pod") => {
                let pod = object.parse(notes)?;
                self.makers.push(Maker { pod, replicas: None, claims: Vec::new() });
            }
            ("apps/v1", "Deployment") => {
                let Deployment { metadata, spec, .. } = object.parse(notes)?;
                self.add_template(&metadata, Some(spec.template), spec.replicas, None);
            }
            ("apps/v1", "ReplicaSet") => {
                let ReplicaSet { metadata, spec, .. } = object.parse(notes)?;
                self.add_template(&metadata, spec.template, spec.replicas, None);
            }
            ("apps/v1", "StatefulSet") => {
                let StatefulSet { metadata, spec, .. } = object.parse(notes)?;
                self.add_template(&metadata, Some(spec.template), spec.replicas, spec.volume_claim_templates);
            }
            ("apps/v1", "DaemonSet") => self.daemon_sets.push(object.parse(notes)?),
            ("batch/v1", "Job") => {
                let Job { metadata, spec, .. } = object.parse(notes)?;
                self.add_job(&metadata, spec.unwrap_or_default());
            }
            ("batch/v1", "CronJob") => {
                let CronJob { metadata, spec, .. } = object.parse(notes)?;
                self.add_job(&metadata, spec.job_template.spec.unwrap_or_default());
            }
            _ if in_folder => notes.push(format!("{object} is left out: it makes no pods")),
            (api_version, _) => anyhow::bail!("{object} ({api_version}) makes no pods: expected {KINDS}"),
        }
        Ok(())
    }

    fn add_template(
        &mut self,
        owner: &ObjectMeta,
        template: Option<PodTemplateSpec>,
        replicas: Option<i32>,
        claims: Option<Vec<PersistentVolumeClaim>>,
    ) {
        let PodTemplateSpec { metadata, spec } = template.unwrap_or_default();
        let mut metadata = metadata.unwrap_or_default();
        metadata.name = Some(owner.name.clone().unwrap_or_default());
        metadata.namespace = owner.namespace.clone();
        let pod = KubePod { metadata, spec, ..KubePod::default() };
        let (replicas, claims) = (Some(replicas.unwrap_or(1)), claims.unwrap_or_default());
        self.makers.push(Maker { pod, replicas, claims });
    }

    /// As many pods as run at once.
    fn add_job(&mut self, owner: &ObjectMeta, spec: JobSpec) {
        let parallelism = spec.parallelism.unwrap_or(1);
        let at_once = spec.completions.map_or(parallelism, |completions| completions.min(parallelism));
        self.add_template(owner, Some(spec.template), Some(at_once), None);
    }

    /// Makes the pods, in the order of the files.
    fn admit(mut self) -> anyhow::Result<Workloads> {
        let mut out = Workloads { notes: std::mem::take(&mut self.notes), ..Workloads::default() };
        for maker in std::mem::take(&mut self.makers) {
            let Some(replicas) = maker.replicas else {
                self.admit_pod(maker.pod, &mut out)?;
                continue;
            };
            for number in 0..replicas {
                let pod = self.replica(&maker, number);
                self.admit_pod(pod, &mut out)?;
            }
        }
        for set in &self.daemon_sets {
            let namespace = set.metadata.namespace.as_deref().unwrap_or("default");
            out.daemons.push(daemon::parse_under(set, self.surroundings.ranges_of(namespace)));
        }
        out.notes.extend(self.surroundings.notes());
        out.namespaces = self.surroundings.namespaces;
        Ok(out)
    }

    /// A numbered pod with claims of its own.
    fn replica(&mut self, maker: &Maker, number: i32) -> KubePod {
        let mut pod = maker.pod.clone();
        let name = format!("{}-{number}", pod.metadata.name.as_deref().unwrap_or_default());
        for template in &maker.claims {
            let volume = template.metadata.name.clone().unwrap_or_default();
            let claim_name = format!("{volume}-{name}");
            let mut claim = template.clone();
            claim.metadata.name = Some(claim_name.clone());
            claim.metadata.namespace = pod.metadata.namespace.clone();
            self.surroundings.add_claim(&claim);
            mount(&mut pod, volume, claim_name);
        }
        pod.metadata.name = Some(name);
        pod
    }

    /// A pod that is bound or finished wants no machine.
    fn admit_pod(&mut self, mut object: KubePod, out: &mut Workloads) -> anyhow::Result<()> {
        if object.metadata.name.is_none() {
            let number = out.pods.len();
            object.metadata.name =
                object.metadata.generate_name.take().map(|prefix| format!("{prefix}{number}"));
        }
        anyhow::ensure!(object.metadata.name.is_some(), "a Pod has neither name nor generateName");
        anyhow::ensure!(out.pods.len() < MOST_PODS, "more than {MOST_PODS} pods");
        let key = pod::key(&object);
        if object.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) || pod::is_terminal(&object) {
            out.notes.push(format!("pod {key} is left out: it has a node already"));
            return Ok(());
        }
        let containers = object.spec.iter().map(|spec| spec.containers.len()).sum::<usize>();
        anyhow::ensure!(containers > 0, "pod {key} has no container");
        // A pod of a file has no UID yet; its name tells it from the others as well.
        object.metadata.uid.get_or_insert_with(|| format!("{}.{}", key.namespace, key.name));
        out.pods.push(self.surroundings.admit(object));
        Ok(())
    }
}

/// Gives a pod a claim as volume `name`, in place of one of that name.
fn mount(pod: &mut KubePod, name: String, claim_name: String) {
    let volumes = pod.spec.get_or_insert_default().volumes.get_or_insert_default();
    volumes.retain(|volume| volume.name != name);
    let claim = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
    volumes.push(Volume { name, persistent_volume_claim: Some(claim), ..Volume::default() });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
