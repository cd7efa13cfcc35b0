//! Chance, all of it from one seed.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

/// Draws what a world is made of.
pub(crate) struct Draw(StdRng);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.random_ratio(percent, 100)
    }

    /// At least `least`, at most `most`.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        self.0.random_range(least..=most)
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        from.choose(&mut self.0).expect("there is something to choose from")
    }

    /// So many different ones, or all there are.
    pub(crate) fn some<T: Clone>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut all = from.to_vec();
        all.shuffle(&mut self.0);
        all.truncate(count);
        all
    }
}
