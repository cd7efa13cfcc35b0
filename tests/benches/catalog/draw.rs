//! Sets of requirements as pods might have them, drawn from what the catalog holds.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use scarpenter_core::label;
use scarpenter_core::requirements::{BadRequirement, Operator, Requirement, Requirements};
use scarpenter_core::snapshot::{Offering, OfferingId, Snapshot};

/// Most requirements in a set.
const MOST: usize = 6;
/// So often a set asks around one offering that there is; else every value is drawn by itself.
const AROUND_ONE: f64 = 0.75;

/// Keys, how often each is drawn, and whether its values are integers.
const KEYS: [(&str, u32, bool); 18] = [
    (label::VENDOR, 8, false),
    (label::INSTANCE_TYPE, 4, false),
    (label::ARCH, 6, false),
    (label::OS, 1, false),
    (label::REGION, 6, false),
    (label::ZONE, 4, false),
    (label::UNIQUE_REGION, 3, false),
    (label::UNIQUE_ZONE, 2, false),
    (label::AWS_ZONE_ID, 1, false),
    (label::CAPACITY_TYPE, 5, false),
    (label::INSTANCE_FAMILY, 4, false),
    (label::INSTANCE_CPU, 8, true),
    (label::INSTANCE_MEMORY, 8, true),
    (label::INSTANCE_GPU_COUNT, 3, true),
    (label::INSTANCE_GPU_MODEL, 1, false),
    (label::CPU_MANUFACTURER, 3, false),
    (label::CPU_ALLOCATION, 3, false),
    (label::PRICE, 6, true),
];
const BENCHMARK_WEIGHT: u32 = 1;

struct Key {
    key: String,
    weight: u32,
    number: bool,
    values: Vec<String>,
}

/// Draws from one catalog.
pub(crate) struct Draw<'a> {
    snapshot: &'a Snapshot,
    ids: Vec<OfferingId>,
    keys: Vec<Key>,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        let values = |key: &str| snapshot.known_values(key).into_iter().map(str::to_owned).collect();
        let key =
            |key: &str, weight, number| Key { values: values(key), key: key.to_owned(), weight, number };
        let benchmarks = label::BENCHMARKS.map(|name| format!("{}{name}", label::BENCHMARK_PREFIX));
        let keys = KEYS.into_iter().map(|(name, weight, number)| key(name, weight, number));
        let keys = keys.chain(benchmarks.iter().map(|name| key(name, BENCHMARK_WEIGHT, true))).collect();
        Self { snapshot, ids: snapshot.offerings().map(|offering| offering.id()).collect(), keys }
    }

    /// One to six requirements.
    pub(crate) fn requirements(&self, random: &mut StdRng) -> Result<Requirements, BadRequirement> {
        let around = random.random_bool(AROUND_ONE).then(|| self.offering(random));
        let lines: Vec<Requirement> =
            (0..random.random_range(1..=MOST)).map(|_| self.requirement(random, around.as_ref())).collect();
        Requirements::from_list(&lines)
    }

    fn offering(&self, random: &mut StdRng) -> Offering<'a> {
        self.snapshot.offering(*self.ids.choose(random).expect("the catalog has offerings"))
    }

    fn requirement(&self, random: &mut StdRng, around: Option<&Offering<'_>>) -> Requirement {
        let key = self.keys.choose_weighted(random, |key| key.weight).expect("the weights are above 0");
        let own = around.and_then(|offering| offering.label(&key.key)).map(|value| value.into_owned());
        match random.random_range(0..20) {
            0 => Requirement::new(&key.key, Operator::Exists, &[]),
            1 => Requirement::new(&key.key, Operator::DoesNotExist, &[]),
            2..17 if key.number => self.bound(random, key, own),
            2..6 => self.values(random, key, Operator::NotIn, 3, None),
            _ => self.values(random, key, Operator::In, 5, own),
        }
    }

    /// A bound that `own`, where there is one, keeps to.
    fn bound(&self, random: &mut StdRng, key: &Key, own: Option<String>) -> Requirement {
        let at: i64 = self.value(random, key).parse().unwrap_or_default();
        let above = match own.and_then(|own| own.parse::<i64>().ok()) {
            Some(own) => own > at,
            None => random.random_bool(0.5),
        };
        let operator = match (above, random.random_bool(0.5)) {
            (true, true) => Operator::Gt,
            (true, false) => Operator::Gte,
            (false, true) => Operator::Lt,
            (false, false) => Operator::Lte,
        };
        Requirement::new(&key.key, operator, &[&at.to_string()])
    }

    /// Up to `most` values, `own` among them.
    fn values(
        &self,
        random: &mut StdRng,
        key: &Key,
        operator: Operator,
        most: usize,
        own: Option<String>,
    ) -> Requirement {
        let more = (0..random.random_range(1..=most)).map(|_| self.value(random, key));
        let mut values: Vec<String> = own.into_iter().chain(more).collect();
        values.truncate(most);
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        Requirement::new(&key.key, operator, &values)
    }

    /// A value that something has; of a price that of an offering, since prices are not listed.
    fn value(&self, random: &mut StdRng, key: &Key) -> String {
        match key.values.choose(random) {
            Some(value) => value.clone(),
            None => self.offering(random).price().micro_usd().to_string(),
        }
    }
}
