use std::borrow::Cow;
use std::rc::Rc;

use scarpenter_core::label;
use scarpenter_core::pod::{Pod, PodKey, Taint, Toleration};
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::snapshot::{OfferingId, Selection, Snapshot};

use crate::ground::Ground;
use crate::shape::Offer;
use crate::table::Amounts;
use crate::topology::{Place, SiteId};

/// A claim that this pass makes.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) ground: usize,
    /// Profile of its first pod.
    pub(crate) profile: usize,
    pub(crate) pods: Vec<Passenger>,
    pub(crate) requirements: Rc<Requirements>,
    /// Offerings that would do.
    pub(crate) options: Selection,
    /// The first and the last of their types.
    pub(crate) span: (usize, usize),
    /// Sum of its pods' requests.
    pub(crate) need: Amounts,
    /// The cheapest of the options that is allowed.
    pub(crate) launch: OfferingId,
    /// Whether each of its pods asks for this very type.
    pub(crate) exact: bool,
    /// Whether some rule counts one of its pods: its domains stay what they are.
    pub(crate) counted: bool,
    pub(crate) site: SiteId,
}

/// A pod in a claim.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passenger {
    pub(crate) key: PodKey,
    pub(crate) uid: String,
    pub(crate) need: Amounts,
    pub(crate) tolerated: Vec<Toleration>,
}

impl Passenger {
    pub(crate) fn new(pod: &Pod, need: &[i64], tolerated: Vec<Toleration>) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone(), need: need.into(), tolerated }
    }
}

/// What a claim is to become when a pod joins it: all but its pods.
#[derive(Debug)]
pub(crate) struct Change {
    /// What it may be, with the first and the last of the types; `None` when that stays as it is.
    pub(crate) narrowed: Option<(Rc<Requirements>, Selection, (usize, usize))>,
    pub(crate) need: Amounts,
    pub(crate) launch: OfferingId,
    pub(crate) exact: bool,
}

impl Draft {
    /// Whether an offering could serve this claim and the offer, judged quickly: most pairs have no type in common.
    pub(crate) fn meets(&self, offer: &Offer) -> bool {
        let ((first, last), (least, most)) = (self.span, offer.span);
        first <= most && least <= last && self.options.meets(&offer.selection)
    }

    /// The same claim narrowed to what another pod may have too, for `total` in all; `None` when nothing is left.
    ///
    /// The machine is not chosen anew, and types that have become too small may stay.
    pub(crate) fn with(&self, offer: &Offer, total: Amounts, exact: bool) -> Option<Change> {
        let change = |narrowed| Change { narrowed, need: total, launch: self.launch, exact };
        if Rc::ptr_eq(&self.requirements, &offer.requirements) {
            return Some(change(None));
        }
        if self.requirements.conflict_with(&offer.requirements).is_some() {
            return None;
        }
        let mut options = self.options.clone();
        options.and(&offer.selection);
        let span = options.types.span()?;
        let requirements = Rc::new(self.requirements.intersect(&offer.requirements));
        Some(change(Some((requirements, options, span))))
    }
}

impl Change {
    /// What the claim may be then.
    pub(crate) fn options<'c>(&'c self, draft: &'c Draft) -> &'c Selection {
        self.narrowed.as_ref().map_or(&draft.options, |(_, options, _)| options)
    }

    /// What the machine must be then.
    pub(crate) fn requirements<'c>(&'c self, draft: &'c Draft) -> &'c Requirements {
        self.narrowed.as_ref().map_or(&draft.requirements, |(requirements, ..)| requirements)
    }

    /// As [`pin`](Self::pin), for a claim that is there already.
    pub(crate) fn pin_in<'k>(
        &mut self,
        draft: &Draft,
        snapshot: &Snapshot,
        place: &impl Place,
        keys: impl Iterator<Item = &'k str>,
    ) -> bool {
        self.narrowed
            .get_or_insert_with(|| (Rc::clone(&draft.requirements), draft.options.clone(), draft.span));
        self.pin(snapshot, place, keys)
    }

    /// Keeps the domains that the machine is in, since pods are counted there; whether anything is left.
    pub(crate) fn pin<'k>(
        &mut self,
        snapshot: &Snapshot,
        place: &impl Place,
        keys: impl Iterator<Item = &'k str>,
    ) -> bool {
        let Some((requirements, options, span)) = &mut self.narrowed else { return true };
        let pinned = Rc::make_mut(requirements);
        for key in keys {
            let set = match place.label(key) {
                Some(value) => ValueSet::one_of([value.into_owned()]),
                None => ValueSet::absent(),
            };
            if Snapshot::carries(key) {
                snapshot.narrow(options, key, &set);
                pinned.require(key, set);
            } else if pinned.get(key).is_some() {
                pinned.require(key, set);
            }
            if pinned.get(key).is_some_and(ValueSet::is_empty) {
                return false;
            }
        }
        match options.types.span() {
            Some(left) => *span = left,
            None => return false,
        }
        true
    }

    /// Makes the claim so.
    pub(crate) fn apply(self, draft: &mut Draft) {
        if let Some((requirements, options, span)) = self.narrowed {
            (draft.requirements, draft.options, draft.span) = (requirements, options, span);
        }
        (draft.need, draft.launch, draft.exact) = (self.need, self.launch, self.exact);
    }
}

/// A claim as other pods' rules see it.
pub(crate) struct Planned<'p, 'a> {
    pub(crate) snapshot: &'p Snapshot,
    pub(crate) ground: &'p Ground<'a>,
    pub(crate) requirements: &'p Requirements,
    pub(crate) launch: OfferingId,
    /// Its number among the claims of the pass.
    pub(crate) number: usize,
}

impl Place for Planned<'_, '_> {
    fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        if key == label::HOSTNAME {
            return Some(format!("new machine {}", self.number + 1).into());
        }
        if Snapshot::carries(key) {
            return self.snapshot.offering(self.launch).label(key);
        }
        if let Some(value) = self.ground.pool.labels.get(key) {
            return Some(value.into());
        }
        let set = self.requirements.get(key).filter(|set| !set.allows(None))?;
        set.example().map(Cow::Owned)
    }

    fn taints(&self) -> &[Taint] {
        self.ground.taints()
    }
}
