//! What equal pods have in common, worked out once.

use std::collections::BTreeMap;
use std::rc::Rc;

use scarpenter_core::pod::{Pod, Toleration};
use scarpenter_core::requirements::{BadRequirement, Requirement};

use super::{Pass, invalid};
use crate::Kind;
use crate::output::Refusal;
use crate::refusal::Verdict;
use crate::shape::{Ask, Profile, Shape};
use crate::topology::{Demand, Reach};

/// So many shapes are remembered: equal pods come one after another.
const SHAPES: usize = 4096;

/// All that decides where a pod may go, whatever its size.
pub(super) type ProfileKey<'a> = (
    &'a BTreeMap<String, String>,
    &'a [Vec<Requirement>],
    Vec<(i32, &'a [Requirement])>,
    &'a [Toleration],
    &'a [Vec<Requirement>],
    Option<&'a BTreeMap<Kind, String>>,
);

impl<'a> Pass<'a> {
    /// Shape and demand of a pod, worked out once for equal pods.
    pub(super) fn asked(&mut self, pod: &'a Pod) -> Result<(Rc<Shape>, Option<Rc<Demand>>), BadRequirement> {
        let demand = self.topology.demand(pod)?;
        let profile = self.profile(pod)?;
        let need = self.names.need(pod);
        if let Some(shape) = self.shapes.get(&(profile.id, need.clone())) {
            return Ok((Rc::clone(shape), demand));
        }
        if self.shapes.len() >= SHAPES {
            self.shapes.clear();
            self.reaches.clear();
        }
        let id = self.shapes_seen;
        self.shapes_seen += 1;
        let shape = Shape::new(&self.grounds, &profile, need.clone(), id);
        let shape = Rc::new(shape);
        self.shapes.insert((profile.id, need), Rc::clone(&shape));
        Ok((shape, demand))
    }

    fn profile(&mut self, pod: &'a Pod) -> Result<Rc<Profile>, BadRequirement> {
        let preferred =
            pod.preferred_terms.iter().map(|term| (term.weight, term.requirements.as_slice())).collect();
        let unfit = self.input.lessons.unfit.get(&pod.uid);
        let key: ProfileKey<'a> =
            (&pod.node_selector, &pod.required_terms, preferred, &pod.tolerations, &pod.volume_terms, unfit);
        if let Some(profile) = self.profiles.get(&key) {
            return Ok(Rc::clone(profile));
        }
        let ask =
            Ask { input: self.input, market: &self.market, grounds: &self.grounds, spots: &self.spots, pod };
        let profile = Rc::new(Profile::new(ask, self.profiles.len())?);
        self.profiles.insert(key, Rc::clone(&profile));
        Ok(profile)
    }

    /// Why a pod gets nothing, as everything stands now; `None` when enough was refused in this pass.
    pub(super) fn refuse(&mut self, pod: &'a Pod) -> Option<Refusal> {
        let (shape, demand) = match self.asked(pod) {
            Ok(asked) => asked,
            Err(error) => return Some(invalid(&error)),
        };
        if self.refusals.is_full_for(shape.id, self.input.rules.most_refusals) {
            return None;
        }
        let reach = self.reach(&shape, demand.as_deref());
        let verdicts = demand.map(|demand| self.topology.verdicts(&demand, &reach)).unwrap_or_default();
        let mut memory = std::mem::take(&mut self.refusals);
        let refusal = memory.of(self, pod, shape.id, &shape, &verdicts);
        self.refusals = memory;
        Some(refusal)
    }

    /// What rules about other pods leave for a pod, as everything stands now.
    ///
    /// # Errors
    /// [`BadRequirement`] when the pod is malformed.
    pub(crate) fn look(&mut self, pod: &'a Pod) -> Result<(Rc<Shape>, Vec<Verdict>), BadRequirement> {
        let (shape, demand) = self.asked(pod)?;
        let reach = self.reach(&shape, demand.as_deref());
        let verdicts = demand.map(|demand| self.topology.verdicts(&demand, &reach));
        Ok((shape, verdicts.unwrap_or_default()))
    }

    /// Domains that machines for a pod could be in, worked out once for equal pods.
    pub(super) fn reach(&mut self, shape: &Shape, demand: Option<&Demand>) -> Rc<Reach> {
        let Some(demand) = demand else { return Rc::default() };
        let key = (shape.id, demand.spread_over().clone());
        let (topology, market) = (&self.topology, &self.market);
        let reach = || Rc::new(topology.reach(market, shape, demand.spread_over()));
        Rc::clone(self.reaches.entry(key).or_insert_with(reach))
    }
}
