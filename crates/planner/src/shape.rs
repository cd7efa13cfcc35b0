use std::rc::Rc;

use scarpenter_core::label;
use scarpenter_core::offering::CapacityType;
use scarpenter_core::pod::{Pod, Toleration};
use scarpenter_core::requirements::{BadRequirement, Requirements, ValueSet};
use scarpenter_core::snapshot::{OfferingId, Selection};

use crate::ground::{Ground, defines};
use crate::market::Market;
use crate::table::{Amounts, Names};
use crate::tolerate;

/// What equal pods have in common: where they may go, worked out once.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) need: Amounts,
    pub(crate) tolerations: Vec<Toleration>,
    /// What must hold: alternatives.
    pub(crate) terms: Vec<Requirements>,
    /// What is wanted, the most wanted first; the last ones are the bare terms.
    pub(crate) wishes: Vec<Wish>,
}

/// One of the alternatives, with some of the preferences that can be met.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Sum of the weights of the preferences in it.
    pub(crate) weight: i64,
    /// By pool, what it may buy for this; `None` when nothing.
    pub(crate) offers: Vec<Option<Offer>>,
}

/// What one pool may buy for one wish.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The template's requirements and the wish's.
    pub(crate) requirements: Rc<Requirements>,
    /// Offerings that match and whose type has room for one such pod.
    pub(crate) selection: Selection,
    /// The first and the last of those types.
    pub(crate) span: (usize, usize),
    /// Tolerations that the pod must be given.
    pub(crate) tolerated: Vec<Toleration>,
}

impl Shape {
    pub(crate) fn new(
        market: &Market<'_>,
        names: &Names,
        grounds: &[Ground<'_>],
        pod: &Pod,
    ) -> Result<Self, BadRequirement> {
        let selector = Requirements::from_labels(&pod.node_selector);
        let mut terms = Vec::new();
        for term in &pod.required_terms {
            terms.push(Requirements::from_list(term)?.intersect(&selector));
        }
        if terms.is_empty() {
            terms.push(selector);
        }
        let mut out = Self {
            need: names.row(&pod.requests),
            tolerations: pod.tolerations.clone(),
            terms,
            wishes: Vec::new(),
        };
        let preferences = preferences(pod);
        for term in &out.terms {
            let levels = out.levels(market, grounds, term, &preferences);
            out.wishes.extend(levels);
        }
        out.wishes.sort_by_key(|wish| std::cmp::Reverse(wish.weight));
        Ok(out)
    }

    /// A term alone, then with the heaviest preference that can be met beside it, then with the next one too, …
    ///
    /// A preference that nothing meets is left out, so it never refuses.
    fn levels(
        &self,
        market: &Market<'_>,
        grounds: &[Ground<'_>],
        term: &Requirements,
        preferences: &[(i64, Requirements)],
    ) -> Vec<Wish> {
        let wish = |requirements: &Requirements, weight| {
            let chosen = market.snapshot.select(requirements);
            let offer = |ground| self.offer(market, ground, requirements, &chosen);
            Wish { weight, offers: grounds.iter().map(offer).collect() }
        };
        let mut levels = vec![wish(term, 0)];
        let mut wanted = (term.clone(), 0);
        for (weight, preference) in preferences {
            let more = (wanted.0.intersect(preference), wanted.1 + weight);
            let level = wish(&more.0, more.1);
            if level.offers.iter().flatten().any(|offer| offer.first(market).is_some()) {
                levels.push(level);
                wanted = more;
            }
        }
        levels
    }

    /// `chosen` is what the wish leaves of all offerings.
    fn offer(
        &self,
        market: &Market<'_>,
        ground: &Ground<'_>,
        wish: &Requirements,
        chosen: &Selection,
    ) -> Option<Offer> {
        if ground.broken.is_some() || defines(&ground.requirements, wish).is_some() {
            return None;
        }
        let tolerated = tolerate::missing(ground.taints(), &self.tolerations, wish).ok()?;
        let mut selection = ground.selection.clone();
        selection.and(chosen);
        let implied = implied(wish, ground, &tolerated);
        for (key, set) in &implied {
            market.snapshot.narrow(&mut selection, key, set);
        }
        selection.types.retain(|index| ground.type_has_room(index, &self.need));
        let span = selection.types.span()?;
        let mut requirements = ground.requirements.intersect(wish);
        for (key, set) in implied {
            requirements.require(key, set);
        }
        Some(Offer { requirements: Rc::new(requirements), selection, span, tolerated })
    }
}

impl Offer {
    /// The cheapest offering that is not out of stock.
    fn first(&self, market: &Market<'_>) -> Option<OfferingId> {
        market.snapshot.first(&self.selection, |id| market.in_stock(id))
    }
}

/// What follows for a pod in this pool: on-demand unless someone said otherwise, and, where a taint is tolerated
/// on the pod's behalf, the architecture that the taint names.
pub(crate) fn implied(
    wish: &Requirements,
    ground: &Ground<'_>,
    tolerated: &[Toleration],
) -> Vec<(&'static str, ValueSet)> {
    let mut out = Vec::new();
    if ground.on_demand_by_default && wish.get(label::CAPACITY_TYPE).is_none() {
        out.push((label::CAPACITY_TYPE, ValueSet::one_of([CapacityType::OnDemand.as_str()])));
    }
    for value in tolerated.iter().filter_map(|toleration| toleration.value.as_deref()) {
        out.push((label::ARCH, ValueSet::one_of([value])));
    }
    out
}

/// Preferences by weight, heaviest first; one that is malformed is none.
pub(crate) fn preferences(pod: &Pod) -> Vec<(i64, Requirements)> {
    let mut out: Vec<(i64, Requirements)> = pod
        .preferred_terms
        .iter()
        .filter_map(|term| Some((i64::from(term.weight), Requirements::from_list(&term.requirements).ok()?)))
        .collect();
    out.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    out
}
