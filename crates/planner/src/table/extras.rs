use std::collections::BTreeMap;

use scarpenter_core::offering::Price;
use scarpenter_core::pool::Class;
use scarpenter_core::snapshot::{Bits, OfferingId, Selection, Snapshot};

/// What machines of a class cost beside their own price, in micro-USD an hour.
#[derive(Debug)]
pub(crate) struct Extras {
    by_type: Vec<u64>,
    /// Types by what they cost more, those that cost least more first: within one set the order of choosing is that of the snapshot.
    groups: Vec<(u64, Bits)>,
}

impl Extras {
    /// `None` when nothing costs more, so that a class without extras is chosen for as fast as ever.
    pub(crate) fn new(snapshot: &Snapshot, class: &Class) -> Option<Self> {
        let of_type = |each: &_| class.extra_micro_usd_per_hour(each);
        let by_type: Vec<u64> = snapshot.types().iter().map(of_type).collect();
        if by_type.iter().all(|extra| *extra == 0) {
            return None;
        }
        let mut groups: BTreeMap<u64, Bits> = BTreeMap::new();
        for (index, extra) in by_type.iter().enumerate() {
            groups.entry(*extra).or_insert_with(|| Bits::none(by_type.len())).insert(index);
        }
        Some(Self { by_type, groups: groups.into_iter().collect() })
    }

    pub(crate) fn of(&self, type_index: usize) -> u64 {
        self.by_type[type_index]
    }

    /// The first offering of a selection, in the order of its full price, that `accept` takes.
    pub(crate) fn first(
        &self,
        snapshot: &Snapshot,
        selection: &Selection,
        accept: impl Fn(OfferingId) -> bool,
    ) -> Option<OfferingId> {
        let mut best: Option<(u64, OfferingId)> = None;
        for (extra, types) in self.groups.iter().filter(|(_, types)| types.meets(&selection.types)) {
            let mut group = selection.clone();
            group.types.and(types);
            let found = match best {
                None => snapshot.first(&group, &accept),
                Some((most, _)) => {
                    let Some(most) = most.checked_sub(*extra) else { break };
                    snapshot.first_up_to(&group, Price::from_micro_usd(most), &accept)
                }
            };
            let full = |id| (snapshot.offering(id).price().micro_usd().saturating_add(*extra), id);
            best = best.into_iter().chain(found.map(full)).min();
        }
        best.map(|(_, id)| id)
    }
}
