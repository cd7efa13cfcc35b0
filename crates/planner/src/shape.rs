use std::rc::Rc;

use scarpenter_core::label;
use scarpenter_core::offering::CapacityType;
use scarpenter_core::pod::{Pod, Taint, TaintEffect, Toleration};
use scarpenter_core::requirements::{BadRequirement, Requirements, ValueSet};
use scarpenter_core::snapshot::{OfferingId, Selection, Snapshot};

use crate::Input;
use crate::ground::{Ground, defines};
use crate::market::Market;
use crate::places::{Fit, Spot};
use crate::table::{Amounts, type_index};
use crate::{places, tolerate};

/// What pods have in common that may go to the same machines, whatever their size: worked out once.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Its number.
    pub(crate) id: usize,
    /// What must hold: alternatives.
    pub(crate) terms: Vec<Requirements>,
    /// Whether only one type by name will do.
    pub(crate) exact: bool,
    /// What is wanted, the most wanted first; those that tolerate what a pool would rather not take come last.
    pub(crate) wishes: Vec<Wish>,
    /// What could be bought if its volumes were anywhere, where they are not.
    anywhere: Option<Vec<Wish>>,
    /// Places that exist and may take it, in the order in which they are tried.
    pub(crate) fits: Vec<Fit>,
}

/// What equal pods have in common: those of a profile that need the same.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Equal for equal shapes.
    pub(crate) id: usize,
    pub(crate) profile: Rc<Profile>,
    pub(crate) need: Amounts,
    /// Wishes of the profile, as far as types have room.
    pub(crate) wishes: Vec<Wish>,
    /// The same if its volumes were anywhere, where they are not.
    anywhere: Option<Vec<Wish>>,
}

/// One of the alternatives, with some of the preferences that can be met.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Sum of the weights of the preferences in it.
    pub(crate) weight: i64,
    /// Whether it tolerates taints of effect `PreferNoSchedule`.
    pub(crate) lenient: bool,
    /// By pool, what it may buy for this; `None` when nothing.
    pub(crate) offers: Vec<Option<Offer>>,
}

/// What one pool may buy for one wish.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The template's requirements and the wish's.
    pub(crate) requirements: Rc<Requirements>,
    /// Offerings that match and, in a shape, whose type has room for one such pod.
    pub(crate) selection: Selection,
    /// The first and the last of those types.
    pub(crate) span: (usize, usize),
    /// Tolerations that the pod must be given.
    pub(crate) tolerated: Vec<Toleration>,
}

/// All that a profile is worked out from.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'p, 'a> {
    pub(crate) input: &'p Input<'a>,
    pub(crate) market: &'p Market<'a>,
    pub(crate) grounds: &'p [Ground<'a>],
    pub(crate) spots: &'p [Spot<'a>],
    pub(crate) pod: &'p Pod,
}

impl Profile {
    pub(crate) fn new(ask: Ask<'_, '_>, id: usize) -> Result<Self, BadRequirement> {
        let terms = terms(ask.pod)?;
        let volumes: Vec<Requirements> = ask
            .pod
            .volume_terms
            .iter()
            .map(|term| Requirements::from_list(term))
            .collect::<Result<_, _>>()?;
        let preferences = if ask.input.rules.respect_preferences { preferences(ask.pod) } else { Vec::new() };
        let bound: Vec<Requirements> = match volumes.as_slice() {
            [] => terms.clone(),
            volumes => {
                volumes.iter().flat_map(|volume| terms.iter().map(|term| term.intersect(volume))).collect()
            }
        };
        let wishes = ask.wishes(&bound, &preferences);
        let anywhere = (!volumes.is_empty()).then(|| ask.wishes(&terms, &[]));
        let fits = places::fitting(ask.spots, &terms, &volumes, ask.pod);
        Ok(Self { id, exact: terms.iter().all(names_one_type), terms, wishes, anywhere, fits })
    }

    /// Whether a machine for one could be a machine for the other, judged by pools and offerings.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let meet = |own: &Wish, theirs: &Wish| {
            let mut pairs = own.offers.iter().zip(&theirs.offers);
            pairs.any(|(own, theirs)| matches!((own, theirs), (Some(own), Some(theirs)) if own.meets(theirs)))
        };
        self.wishes.iter().any(|own| other.wishes.iter().any(|theirs| meet(own, theirs)))
    }
}

fn terms(pod: &Pod) -> Result<Vec<Requirements>, BadRequirement> {
    let selector = Requirements::from_labels(&pod.node_selector);
    let mut terms = Vec::new();
    for term in &pod.required_terms {
        terms.push(Requirements::from_list(term)?.intersect(&selector));
    }
    if terms.is_empty() {
        terms.push(selector);
    }
    Ok(terms)
}

fn names_one_type(term: &Requirements) -> bool {
    let listed = term.get(label::INSTANCE_TYPE).and_then(ValueSet::listed);
    listed.is_some_and(|types| types.len() == 1)
}

impl Ask<'_, '_> {
    /// Each term alone, then with the heaviest preference that can be met beside it, then with the next one too, …; the
    /// most wanted first.
    fn wishes(self, terms: &[Requirements], preferences: &[(i64, Requirements)]) -> Vec<Wish> {
        let mut out: Vec<Wish> = terms.iter().flat_map(|term| self.levels(term, preferences)).collect();
        out.sort_by_key(|wish| std::cmp::Reverse(wish.weight));
        let prefers = |ground: &Ground<'_>| {
            ground.taints().iter().any(|taint| taint.effect == TaintEffect::PreferNoSchedule)
        };
        if self.grounds.iter().any(prefers) {
            out.extend(terms.iter().map(|term| self.wish(term, 0, true)));
        }
        out
    }

    /// A preference that nothing meets is left out, so it never refuses.
    fn levels(self, term: &Requirements, preferences: &[(i64, Requirements)]) -> Vec<Wish> {
        let mut levels = vec![self.wish(term, 0, false)];
        let mut wanted = (term.clone(), 0);
        for (weight, preference) in preferences {
            let more = (wanted.0.intersect(preference), wanted.1 + weight);
            let level = self.wish(&more.0, more.1, false);
            if level.offers.iter().flatten().any(|offer| offer.first(self.market).is_some()) {
                levels.push(level);
                wanted = more;
            }
        }
        levels
    }

    fn wish(self, requirements: &Requirements, weight: i64, lenient: bool) -> Wish {
        let chosen = self.market.snapshot.select(requirements);
        let offer = |ground| self.offer(ground, requirements, &chosen, lenient);
        Wish { weight, lenient, offers: self.grounds.iter().map(offer).collect() }
    }

    /// `chosen` is what the wish leaves of all offerings.
    fn offer(
        self,
        ground: &Ground<'_>,
        wish: &Requirements,
        chosen: &Selection,
        lenient: bool,
    ) -> Option<Offer> {
        if ground.broken.is_some() || defines(&ground.requirements, wish).is_some() {
            return None;
        }
        let refusing = |taint: &&Taint| !lenient || taint.effect != TaintEffect::PreferNoSchedule;
        let taints: Vec<Taint> = ground.taints().iter().filter(refusing).cloned().collect();
        let tolerated = tolerate::missing(&taints, &self.pod.tolerations, wish).ok()?;
        let mut selection = ground.selection.clone();
        selection.and(chosen);
        let implied = implied(wish, ground, &tolerated);
        for (key, set) in &implied {
            self.market.snapshot.narrow(&mut selection, key, set);
        }
        let unfit = self.input.lessons.unfit.get(&self.pod.uid).into_iter().flat_map(|kinds| kinds.keys());
        for kind in unfit.filter(|kind| kind.class == ground.class.name) {
            if let Some(index) = type_index(self.market.snapshot, kind) {
                selection.types.remove(index);
            }
        }
        let span = selection.types.span()?;
        let mut requirements = ground.requirements.intersect(wish);
        for (key, set) in implied {
            requirements.require(key, set);
        }
        Some(Offer { requirements: Rc::new(requirements), selection, span, tolerated })
    }
}

impl Shape {
    pub(crate) fn new(grounds: &[Ground<'_>], profile: &Rc<Profile>, need: Amounts, id: usize) -> Self {
        let roomy = |wishes: &[Wish]| -> Vec<Wish> {
            wishes.iter().map(|wish| wish.with_room(grounds, &need, profile.exact)).collect()
        };
        let wishes = roomy(&profile.wishes);
        let anywhere = profile.anywhere.as_ref().map(|wishes| roomy(wishes));
        Self { id, profile: Rc::clone(profile), need, wishes, anywhere }
    }

    /// What could be bought for the bare terms, wherever its volumes are.
    pub(crate) fn bare(&self) -> impl Iterator<Item = &Offer> {
        let wishes = self.anywhere.as_ref().unwrap_or(&self.wishes);
        wishes.iter().filter(|wish| wish.weight == 0).flat_map(|wish| wish.offers.iter().flatten())
    }
}

impl Wish {
    fn with_room(&self, grounds: &[Ground<'_>], need: &[i64], exact: bool) -> Self {
        let offers = self.offers.iter().zip(grounds).map(|(offer, ground)| {
            let mut offer = offer.clone()?;
            offer.selection.types.retain(|index| ground.type_has_room(index, need, exact));
            offer.span = offer.selection.types.span()?;
            Some(offer)
        });
        Self { offers: offers.collect(), ..*self }
    }
}

impl Offer {
    /// The cheapest offering that is not out of stock.
    fn first(&self, market: &Market<'_>) -> Option<OfferingId> {
        market.snapshot.first(&self.selection, |id| market.in_stock(id))
    }

    /// Whether the two can have an offering in common, judged quickly: most pairs have no type in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let ((first, last), (least, most)) = (self.span, other.span);
        first <= most && least <= last && self.selection.meets(&other.selection)
    }

    /// The same with labels narrowed, as rules about other pods do; `None` when nothing is left.
    pub(crate) fn narrowed(&self, snapshot: &Snapshot, by: &[(&str, ValueSet)]) -> Option<Self> {
        let mut out = self.clone();
        let mut requirements = Requirements::clone(&self.requirements);
        for (key, set) in by {
            requirements.require(key, set.clone());
            if Snapshot::carries(key) {
                snapshot.narrow(&mut out.selection, key, set);
            } else if self.requirements.get(key).is_none() && !set.allows(None)
                || requirements.get(key).is_some_and(ValueSet::is_empty)
            {
                // What neither offerings carry nor the pool defines, no machine of it will have.
                return None;
            }
        }
        out.span = out.selection.types.span()?;
        out.requirements = Rc::new(requirements);
        Some(out)
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
