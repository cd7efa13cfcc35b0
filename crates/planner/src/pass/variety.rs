//! `minValues`: so many values must stay possible (SCH-20).

use std::collections::BTreeSet;

use scarpenter_core::requirements::Requirements;
use scarpenter_core::snapshot::Selection;

use super::Pass;
use crate::ground::Ground;

impl Pass<'_> {
    /// Whether the options span as many values of each key as the pool wants; always, when that is only a wish.
    pub(super) fn has_variety(
        &self,
        ground: &Ground<'_>,
        requirements: &Requirements,
        options: &Selection,
        need: &[i64],
        exact: bool,
    ) -> bool {
        if !ground.wants_many() || !self.input.rules.strict_min_values {
            return true;
        }
        let wanted = requirements.iter().filter_map(|(key, set)| Some((key, set.min_values()?)));
        wanted.into_iter().all(|(key, least)| {
            self.values(ground, requirements, options, (need, exact), key, least as usize) >= least as usize
        })
    }

    /// How many values of a key the options span, counted up to `enough`.
    pub(crate) fn values(
        &self,
        ground: &Ground<'_>,
        requirements: &Requirements,
        options: &Selection,
        (need, exact): (&[i64], bool),
        key: &str,
        enough: usize,
    ) -> usize {
        if !scarpenter_core::snapshot::Snapshot::carries(key) {
            return requirements.get(key).and_then(|set| set.listed()).map_or(0, BTreeSet::len);
        }
        let snapshot = self.market.snapshot;
        let mut seen = BTreeSet::new();
        for id in snapshot.selected(options) {
            if self.market.in_stock(id) && ground.has_room(snapshot, id, need, exact) {
                seen.extend(snapshot.offering(id).label(key));
            }
            if seen.len() >= enough {
                break;
            }
        }
        seen.len()
    }
}
