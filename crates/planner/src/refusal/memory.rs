use std::collections::BTreeMap;

use scarpenter_core::pod::Pod;

use super::{Asked, Verdict, refused};
use crate::output::Refusal;
use crate::pass::Pass;
use crate::shape::Shape;

/// For so many kinds of pods every rule's share is counted; of more than that nobody reads it.
const COUNTED: usize = 64;

/// Refusals of this pass by shape: the next equal pod gets the same words for nothing, as long as nothing has changed that
/// they speak of.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: BTreeMap<usize, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    verdicts: Vec<Verdict>,
    room: Vec<i64>,
    refusal: Refusal,
}

impl Memory {
    /// Why nothing was found for a pod; `shape_id` is equal for pods that ask for the same.
    pub(crate) fn of(
        &mut self,
        pass: &Pass<'_>,
        pod: &Pod,
        shape_id: usize,
        shape: &Shape,
        verdicts: &[Verdict],
    ) -> Refusal {
        let counts = self.known.len() < COUNTED;
        let refuse = || refused(pass, &Asked::new(pass.input, pod, shape, verdicts), counts);
        // What a pod has learned of machines is its own.
        if pass.input.lessons.unfit.contains_key(&pod.uid) {
            return refuse();
        }
        let room = room(pass);
        if let Some(known) = self.known.get(&shape_id).filter(|known| known.holds(&room, verdicts)) {
            return known.refusal.clone();
        }
        let remembered = Remembered { verdicts: verdicts.to_vec(), room, refusal: refuse() };
        let refusal = remembered.refusal.clone();
        self.known.insert(shape_id, remembered);
        refusal
    }
}

impl Memory {
    /// Whether so many kinds of pods were refused, and this is none of them.
    pub(crate) fn is_full_for(&self, shape_id: usize, most: usize) -> bool {
        self.known.len() >= most && !self.known.contains_key(&shape_id)
    }
}

impl Remembered {
    /// Rules before the limits do not change while a pass goes on, but for those about other pods.
    fn holds(&self, room: &[i64], verdicts: &[Verdict]) -> bool {
        let counts_room = ["limits", "caps"].contains(&self.refusal.reason.as_str());
        self.verdicts == verdicts && (!counts_room || self.room == room)
    }
}

/// All that limits and caps leave.
fn room(pass: &Pass<'_>) -> Vec<i64> {
    let caps = [pass.caps.machines, pass.caps.micro_usd];
    let caps = caps.map(|left| left.map_or(i64::MAX, |left| i64::try_from(left).unwrap_or(i64::MAX)));
    let limits = pass.grounds.iter().flat_map(|ground| ground.left.iter().copied());
    limits.chain(caps).collect()
}
