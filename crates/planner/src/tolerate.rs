use scarpenter_core::label;
use scarpenter_core::pod::{Taint, TaintEffect, Toleration};
use scarpenter_core::requirements::Requirements;

/// The taint that keeps everyone but one pod off a machine.
pub(crate) fn pod_taint(uid: &str) -> Taint {
    Taint { key: label::POD_TAINT.to_owned(), value: uid.to_owned(), effect: TaintEffect::NoSchedule }
}

/// The toleration of exactly this taint.
pub(crate) fn of(taint: &Taint) -> Toleration {
    Toleration { key: Some(taint.key.clone()), value: Some(taint.value.clone()), effect: Some(taint.effect) }
}

/// Tolerations to add so that a pod may go where these taints are; `Err` is the first taint that keeps it away.
///
/// A taint of the architecture is tolerated for a pod that selects that architecture, by its label or by listing
/// instance types: such a pod has said all that the taint asks about.
pub(crate) fn missing<'t>(
    taints: &'t [Taint],
    tolerations: &[Toleration],
    requirements: &Requirements,
) -> Result<Vec<Toleration>, &'t Taint> {
    let uncovered = taints.iter().filter(|taint| !tolerations.iter().any(|own| own.covers(taint)));
    uncovered
        .map(|taint| if selects_arch(requirements, taint) { Ok(of(taint)) } else { Err(taint) })
        .collect()
}

fn selects_arch(requirements: &Requirements, taint: &Taint) -> bool {
    if taint.key != label::ARCH || taint.effect == TaintEffect::NoExecute {
        return false;
    }
    let lists = |key: &str| requirements.get(key).is_some_and(|set| set.listed().is_some());
    match requirements.get(label::ARCH) {
        Some(set) => {
            set.allows(Some(&taint.value))
                && (set.listed().is_some() || !set.allows(Some(other_arch(&taint.value))))
        }
        None => lists(label::INSTANCE_TYPE),
    }
}

fn other_arch(arch: &str) -> &'static str {
    if arch == "arm64" { "amd64" } else { "arm64" }
}
