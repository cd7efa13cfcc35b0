use std::ops::Range;

use crate::shape::Wish;
use crate::topology::Demand;

/// One way to read a pod's wishes: how many of those about other pods hold, and which of those about machines.
pub(super) struct Attempt {
    pub(super) soft: usize,
    pub(super) wishes: Range<usize>,
    /// Whether only what is there makes domains, as for the kube-scheduler, or also what could be bought.
    pub(super) only_present: bool,
}

/// A pod's wishes, the most wanted first: those about other pods are given up one by one, then those about machines, then
/// spreads that are wishes, then that a pool would rather not take it, and last that domains that could be bought count.
pub(super) fn attempts(wishes: &[Wish], demand: Option<&Demand>) -> Vec<Attempt> {
    let (soft, spreads) = demand.map(Demand::wishes).unwrap_or_default();
    let mut groups: Vec<Range<usize>> = Vec::new();
    for group in wishes.chunk_by(|a, b| a.weight == b.weight && a.lenient == b.lenient) {
        let start = groups.last().map_or(0, |last| last.end);
        groups.push(start..start + group.len());
    }
    let lenient = groups.pop_if(|group| wishes[group.start].lenient);
    let (Some(first), Some(last)) = (groups.first().cloned(), groups.last().cloned()) else {
        return Vec::new();
    };
    let attempt =
        |soft: usize, wishes: &Range<usize>| Attempt { soft, wishes: wishes.clone(), only_present: false };
    let mut out: Vec<Attempt> = (spreads..=soft).rev().map(|soft| attempt(soft, &first)).collect();
    out.extend(groups.iter().skip(1).map(|group| attempt(spreads, group)));
    out.extend((0..spreads).rev().map(|soft| attempt(soft, &last)));
    out.extend(lenient.iter().map(|group| attempt(0, group)));
    if demand.is_some_and(Demand::is_spread) {
        let bare = std::iter::once(&last).chain(&lenient);
        out.extend(bare.map(|group| Attempt { only_present: true, ..attempt(0, group) }));
    }
    out
}
