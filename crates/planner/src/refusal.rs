//! Why a pod gets nothing, and what each rule leaves of the offerings.

use scarpenter_core::pod::Pod;

use crate::explain::{Advice, RuleLine};
use crate::output::Refusal;
use crate::pass::Pass;

mod advice;
mod asked;
mod labels;
mod memory;
mod rest;
mod rules;
mod topology;

pub(crate) use asked::Asked;
pub(crate) use memory::Memory;
pub(crate) use topology::Verdict;

/// A refusal that needs no table.
pub(crate) fn plain(reason: &str, message: String) -> Refusal {
    Refusal { reason: reason.to_owned(), message, removed: Vec::new(), until: None }
}

/// Why a pod is not looked at, when it cannot be read or asks for what is not decided here.
pub(crate) fn unreadable(pod: &Pod) -> Option<Refusal> {
    if !pod.invalid.is_empty() {
        return Some(plain("invalid", format!("the pod is malformed: {}", pod.invalid.join("; "))));
    }
    if !pod.undecided.is_empty() {
        let undecided = pod.undecided.join(" and ");
        let message = format!("the pod has {undecided}, which scarpenter does not support yet");
        return Some(plain("undecided", message));
    }
    let problems = (!pod.volume_problems.is_empty()).then(|| pod.volume_problems.join("; "))?;
    Some(plain("volume", format!("the pod's volumes cannot be used: {problems}")))
}

/// Why nothing was found for a pod, with the limits and caps as they stand now.
fn refused(pass: &Pass<'_>, asked: &Asked<'_>, counts: bool) -> Refusal {
    if let Some(refusal) = nothing_to_look_at(pass) {
        return refusal;
    }
    let mut table = if counts { rules::Table::new(pass, asked) } else { rules::Table::quick(pass, asked) };
    match table.run() {
        Err(refusal) => *refusal,
        Ok(()) => {
            let message = rest::no_room_together(asked.pod);
            Refusal { removed: table.removed, ..plain("capacity", message) }
        }
    }
}

/// Why no pod can get anything at all.
pub(crate) fn nothing_to_look_at(pass: &Pass<'_>) -> Option<Refusal> {
    if pass.grounds.is_empty() {
        return Some(plain("no-nodepool", "no NodePool with a ScarpenterNodeClass".to_owned()));
    }
    let none = pass.market.snapshot.is_empty();
    none.then(|| plain("catalog", "the catalog has no offering".to_owned()))
}

/// What every rule leaves for a pod, and what to change about those that take the cheapest away.
pub(crate) fn lines(pass: &Pass<'_>, asked: &Asked<'_>) -> (Vec<RuleLine>, Vec<Advice>) {
    let lines = rules::Table::recording(pass, asked).lines();
    let advice = advice::of(pass, asked, &lines);
    (lines, advice)
}
