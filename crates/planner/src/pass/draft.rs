use std::collections::BTreeSet;
use std::rc::Rc;

use scarpenter_core::pod::{Pod, PodKey, Toleration};
use scarpenter_core::requirements::Requirements;
use scarpenter_core::snapshot::{OfferingId, Selection};

use crate::ground::Ground;
use crate::shape::Offer;
use crate::table::Amounts;

/// A claim that this pass makes.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) ground: usize,
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
    /// Shapes of pods for which enlarging it was dearer than a machine of their own.
    pub(crate) full_for: BTreeSet<usize>,
}

/// A pod in a claim.
#[derive(Clone, Debug)]
pub(crate) struct Passenger {
    pub(crate) key: PodKey,
    pub(crate) uid: String,
    pub(crate) tolerated: Vec<Toleration>,
}

impl Passenger {
    pub(crate) fn new(pod: &Pod, tolerated: Vec<Toleration>) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone(), tolerated }
    }
}

impl Draft {
    /// Whether an offering could serve this claim and the offer, judged quickly: most pairs have no type in common.
    pub(crate) fn meets(&self, offer: &Offer) -> bool {
        let ((first, last), (least, most)) = (self.span, offer.span);
        first <= most && least <= last && self.options.meets(&offer.selection)
    }

    /// The same claim narrowed to what another pod may have too, for `total` in all; `None` when nothing is left.
    ///
    /// The machine is not chosen anew, nor the pod added.
    pub(crate) fn with(&self, ground: &Ground<'_>, offer: &Offer, total: Amounts) -> Option<Self> {
        if self.requirements.conflict_with(&offer.requirements).is_some() {
            return None;
        }
        let mut options = self.options.clone();
        options.and(&offer.selection);
        options.types.retain(|index| ground.type_has_room(index, &total));
        let span = options.types.span()?;
        Some(Self {
            ground: self.ground,
            pods: self.pods.clone(),
            requirements: Rc::new(self.requirements.intersect(&offer.requirements)),
            options,
            span,
            need: total,
            launch: self.launch,
            full_for: BTreeSet::new(),
        })
    }
}
