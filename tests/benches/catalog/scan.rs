//! What a program without an index would do: look at the labels of every offering, cheapest first.

use std::collections::BTreeMap;

use scarpenter_core::label;
use scarpenter_core::offering::place_labels;
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::snapshot::{OfferingId, Snapshot};

type Labels = BTreeMap<String, String>;

/// All offerings in the order of choosing, with labels made once from the types and places themselves.
pub(crate) struct Scan {
    types: Vec<Labels>,
    places: Vec<Labels>,
    rows: Vec<Row>,
}

struct Row {
    id: OfferingId,
    instance_type: usize,
    place: usize,
    capacity: &'static str,
    price: String,
}

impl Scan {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut places: Vec<Labels> = snapshot.places().map(|_| Labels::new()).collect();
        let mut rows = Vec::with_capacity(snapshot.len());
        for offering in snapshot.offerings() {
            let (capacity, price) = (offering.capacity_type(), offering.price());
            let labels = &mut places[offering.place_index()];
            if labels.is_empty() {
                *labels = place_labels(&offering.instance_type().vendor, offering.place(), capacity, price);
                labels.retain(|key, _| key != label::CAPACITY_TYPE && key != label::PRICE);
            }
            rows.push(Row {
                id: offering.id(),
                instance_type: offering.type_index(),
                place: offering.place_index(),
                capacity: capacity.as_str(),
                price: price.micro_usd().to_string(),
            });
        }
        Self { types: snapshot.types().iter().map(|each| each.labels()).collect(), places, rows }
    }

    pub(crate) fn cheapest(&self, set: &Requirements) -> Option<OfferingId> {
        let keys: Vec<(&str, &ValueSet)> = set.iter().collect();
        let matches = |row: &&Row| keys.iter().all(|(key, set)| set.allows(self.label(row, key)));
        self.rows.iter().find(matches).map(|row| row.id)
    }

    fn label<'s>(&'s self, row: &'s Row, key: &str) -> Option<&'s str> {
        match key {
            label::CAPACITY_TYPE => Some(row.capacity),
            label::PRICE => Some(&row.price),
            _ => {
                let of_type = self.types[row.instance_type].get(key);
                of_type.or_else(|| self.places[row.place].get(key)).map(String::as_str)
            }
        }
    }
}
