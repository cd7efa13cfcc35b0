//! A pod as the planner sees it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::requirements::Requirement;
use crate::resources::Resources;
use crate::topology::{PodTerm, Spread};

/// Namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl PodKey {
    /// `namespace/name`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Not placed.
    NoSchedule,
    /// Placed only when nothing else is left.
    PreferNoSchedule,
    /// Not placed, and evicted when already there.
    NoExecute,
}

impl TaintEffect {
    /// The Kubernetes word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// The effect that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute]
            .into_iter()
            .find(|effect| effect.as_str() == text)
    }
}

/// A mark on a node that pods must tolerate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, empty when there is none.
    pub value: String,
    /// Effect.
    pub effect: TaintEffect,
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect.as_str())
    }
}

/// What a pod puts up with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Key; `None` tolerates every key (operator Exists only).
    pub key: Option<String>,
    /// `None` is operator Exists; `Some` is Equal.
    pub value: Option<String>,
    /// Effect; `None` is every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether it covers `taint`.
    #[must_use]
    pub fn covers(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

/// First taint that none of `tolerations` covers, `PreferNoSchedule` included when `strict`.
#[must_use]
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration], strict: bool) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        (strict || taint.effect != TaintEffect::PreferNoSchedule)
            && !tolerations.iter().any(|toleration| toleration.covers(taint))
    })
}

/// A wish with a weight of 1 to 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// Weight.
    pub weight: i32,
    /// All of these together.
    pub requirements: Vec<Requirement>,
}

/// A wish to be near other pods, or far from them, with a weight of 1 to 100.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WeightedTerm {
    /// Weight.
    pub weight: i32,
    /// What is wished for.
    pub term: PodTerm,
}

/// A port of the node that a pod takes for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Number.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Address on which it listens; empty is every address (`0.0.0.0` and `::` are written so, too).
    pub ip: String,
}

/// A volume that a node must attach, as far as the number of attachments a node takes is concerned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// CSI driver.
    pub driver: String,
    /// What tells volumes of the driver apart: the PersistentVolume's handle, or the claim's namespace and name.
    pub volume: String,
}

/// A pod that wants a place, or holds one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Namespace and name.
    pub key: PodKey,
    /// UID.
    pub uid: String,
    /// Creation time in seconds since 1970.
    pub created: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// All it asks for as the kube-scheduler counts it, `pods: 1` included (SCH-22).
    pub requests: Resources,
    /// `nodeSelector`, with old keys renamed.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: alternatives, each a conjunction. Empty: none.
    pub required_terms: Vec<Vec<Requirement>>,
    /// Preferred node affinity.
    pub preferred_terms: Vec<Preference>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Priority; pods of a higher one are planned first.
    pub priority: i32,
    /// Topology spread constraints.
    pub spread: Vec<Spread>,
    /// Required pod affinity: all of these.
    pub affinity: Vec<PodTerm>,
    /// Required pod anti-affinity: all of these.
    pub anti_affinity: Vec<PodTerm>,
    /// Preferred pod affinity.
    pub preferred_affinity: Vec<WeightedTerm>,
    /// Preferred pod anti-affinity.
    pub preferred_anti_affinity: Vec<WeightedTerm>,
    /// Ports of the node that it takes.
    pub host_ports: Vec<HostPort>,
    /// Names of the PersistentVolumeClaims that it mounts, those of its ephemeral volumes included.
    pub volume_claims: Vec<String>,
    /// Where its volumes can be reached: alternatives, each a conjunction. Empty: anywhere.
    ///
    /// They narrow the machine, not the pod: domains of a spread are counted as if they were not there (SCH-34).
    pub volume_terms: Vec<Vec<Requirement>>,
    /// Volumes that its node must attach.
    pub attachments: Vec<Attachment>,
    /// What keeps its volumes from being used anywhere, in words (a claim that does not exist); refused with these words.
    pub volume_problems: Vec<String>,
    /// What it asks for that this version does not decide, in words, such as `a topologySpreadConstraint`.
    ///
    /// A pod with any is refused with these words and never placed.
    pub undecided: Vec<String>,
    /// Malformed parts, in words (an operator that does not exist, a `Gt` without a number); refused like the above.
    pub invalid: Vec<String>,
}
