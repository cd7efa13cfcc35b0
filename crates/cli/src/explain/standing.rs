use k8s_openapi::api::core::v1::Pod as KubePod;
use kube::ResourceExt;
use scarpenter_api::{condition, pod};
use scarpenter_core::label;
use scarpenter_core::pod::Pod;
use scarpenter_index::{ClaimRecord, View};

/// Where a pod is, as far as buying for it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has run to its end.
    Finished(String),
    /// It is on a node.
    Bound(String),
    /// A DaemonSet of that name owns it.
    OfDaemonSet(String),
    /// Its kubelet made it.
    Static,
    /// Its gates keep the scheduler from looking at it.
    Gated(Vec<String>),
    /// The scheduler makes room for it on that node.
    MakingRoom(String),
    /// A claim is on its way for it, in words.
    Awaited(String),
    /// The scheduler has not refused it; what it said last.
    NotYetRefused(Option<String>),
    /// It is somebody else's.
    OfOthers,
    /// A machine is to be bought for it.
    Pending,
}

impl Standing {
    pub(super) fn of(pod: &KubePod, view: &View, all_pods: bool) -> Self {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        if pod::is_terminal(pod) {
            let phase = status.and_then(|status| status.phase.clone());
            return Self::Finished(phase.unwrap_or_default());
        }
        let filled = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
        if let Some(node) = spec.and_then(|spec| filled(&spec.node_name)) {
            return Self::Bound(place(view, &node));
        }
        if pod::is_daemon(pod) {
            let owner = pod.owner_references().iter().find(|owner| owner.kind == "DaemonSet");
            return Self::OfDaemonSet(owner.map(|owner| owner.name.clone()).unwrap_or_default());
        }
        if pod::is_mirror(pod) {
            return Self::Static;
        }
        let gates = spec.and_then(|spec| spec.scheduling_gates.clone()).unwrap_or_default();
        if !gates.is_empty() {
            return Self::Gated(gates.into_iter().map(|gate| gate.name).collect());
        }
        if let Some(node) = status.and_then(|status| filled(&status.nominated_node_name)) {
            return Self::MakingRoom(node);
        }
        let uid = pod.uid().unwrap_or_default();
        let own = |claim: &&ClaimRecord| claim.claim.deleted.is_none() && claim.pods.contains(&uid);
        // Others may have taken the room on a machine that was meant for it.
        let promised = || view.places().iter().any(|place| place.open && place.promised.contains(&uid));
        if let Some(claim) = view.claims().find(own).filter(|_| promised()) {
            return Self::Awaited(on_its_way(claim));
        }
        if !pod::is_provisionable(pod) {
            return Self::NotYetRefused(scheduled(pod));
        }
        if !all_pods && is_of_others(&pod::parse(pod), view) { Self::OfOthers } else { Self::Pending }
    }

    /// Whether nothing is to be planned for it.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self, Self::NotYetRefused(_) | Self::OfOthers | Self::Pending)
    }

    /// A stable identifier.
    pub(super) fn identifier(&self) -> &'static str {
        match self {
            Self::Finished(_) => "finished",
            Self::Bound(_) => "bound",
            Self::OfDaemonSet(_) => "daemon-set",
            Self::Static => "static",
            Self::Gated(_) => "gated",
            Self::MakingRoom(_) => "making-room",
            Self::Awaited(_) => "awaits-machine",
            Self::NotYetRefused(_) => "not-unschedulable",
            Self::OfOthers => "of-others",
            Self::Pending => "pending",
        }
    }

    /// One sentence about it; none when there is nothing but to plan.
    pub(super) fn sentence(&self) -> Option<String> {
        Some(match self {
            Self::Finished(phase) => format!("it has run to its end ({phase}) and wants no machine"),
            Self::Bound(place) => format!("it is bound to {place}, so nothing is bought for it"),
            Self::OfDaemonSet(name) => {
                format!(
                    "DaemonSet {name} owns it: it runs on the node it was made for, and nothing is bought for it"
                )
            }
            Self::Static => "its node's kubelet made it, so nothing is bought for it".to_owned(),
            Self::Gated(gates) => format!(
                "it is held back by its schedulingGates ({}): nobody looks at it until they are gone",
                gates.join(", ")
            ),
            Self::MakingRoom(node) => {
                format!(
                    "the kube-scheduler makes room for it on node {node} by preemption, so nothing is bought for it"
                )
            }
            Self::Awaited(words) => format!("its machine is on its way: {words}"),
            Self::NotYetRefused(said) => {
                let said = said.as_ref().map(|said| format!(" (it says: {said})")).unwrap_or_default();
                format!(
                    "the kube-scheduler has not called it Unschedulable{said}, and nothing is bought before; \
                     this is what would come of it:"
                )
            }
            Self::OfOthers => format!(
                "others' NodePools serve this cluster too, and the pod names no key of {}: it is left to them \
                 unless the controller runs with --all-pods; this is what would come of it then:",
                label::VENDOR.split('/').next().unwrap_or_default()
            ),
            Self::Pending => return None,
        })
    }
}

fn place(view: &View, node: &str) -> String {
    match view.node(node).and_then(|record| view.claim_of_node(record)) {
        Some(record) => format!("node {node}, the machine of nodeclaim {}", record.claim.name),
        None => format!("node {node}"),
    }
}

fn on_its_way(record: &ClaimRecord) -> String {
    let claim = &record.claim;
    let bought = claim
        .launch
        .as_ref()
        .map(|launch| format!(", {} at {}", launch.offering, launch.price_per_hour_micro_usd));
    let conditions = record.object.conditions();
    let is_done = |name: &&str| condition::is_true(conditions, name);
    let done = condition::CLAIM_DEPENDENTS.into_iter().take_while(is_done).last();
    let next = condition::CLAIM_DEPENDENTS.into_iter().find(|name| !condition::is_true(conditions, name));
    let why = next.and_then(|next| condition::find(conditions, next)).map(|own| own.message.as_str());
    let why = why.filter(|why| !why.is_empty()).map(|why| format!(" ({why})")).unwrap_or_default();
    let state = match (done, next) {
        (_, None) => "it is Initialized, and the pod is about to be bound".to_owned(),
        (None, Some(next)) => format!("not {next} yet{why}"),
        (Some(done), Some(next)) => format!("{done}, not {next} yet{why}"),
    };
    format!("nodeclaim {}{}: {state}", claim.name, bought.unwrap_or_default())
}

/// What the scheduler said last.
fn scheduled(pod: &KubePod) -> Option<String> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let said = conditions.into_iter().find(|own| own.type_ == "PodScheduled")?;
    let words = [said.reason.clone(), said.message.clone()].into_iter().flatten();
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(": "))
}

/// Where somebody else's NodePools exist, only pods that name one of our keys are ours.
fn is_of_others(pod: &Pod, view: &View) -> bool {
    let shared = view.pools().any(|pool| !pool.is_ours());
    let no_pool = !view.pools().any(|pool| pool.is_ours());
    let named = pod.node_selector.keys().any(|key| label::is_ours(key))
        || pod.required_terms.iter().flatten().any(|line| label::is_ours(&line.key));
    (shared || no_pool) && !named
}
