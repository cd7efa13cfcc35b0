use crate::offering::CapacityType;

use super::{Bits, Row};

/// Which types are sold in a place, or anywhere.
#[derive(Clone, Debug, Default)]
struct Sold {
    on_demand: Bits,
    spot: Bits,
}

impl Sold {
    fn none(types: usize) -> Self {
        Self { on_demand: Bits::none(types), spot: Bits::none(types) }
    }

    fn of(&self, capacity: CapacityType) -> &Bits {
        match capacity {
            CapacityType::OnDemand => &self.on_demand,
            CapacityType::Spot => &self.spot,
        }
    }

    fn insert(&mut self, row: &Row) {
        let types = match row.capacity {
            CapacityType::OnDemand => &mut self.on_demand,
            CapacityType::Spot => &mut self.spot,
        };
        types.insert(row.instance_type as usize);
    }
}

/// Which types are sold where, so that those without an offering in a set of places are left out at once.
#[derive(Debug, Default)]
pub(super) struct Reach {
    places: Vec<Sold>,
    anywhere: Sold,
}

/// More places than this are taken for everywhere: adding up more sets costs more than it spares.
const FEW_PLACES: usize = 64;

impl Reach {
    pub(super) fn new(types: usize, places: usize, rows: &[Row]) -> Self {
        let mut out = Self { places: vec![Sold::none(types); places], anywhere: Sold::none(types) };
        for row in rows {
            out.places[row.place as usize].insert(row);
            out.anywhere.insert(row);
        }
        out
    }

    /// Keeps in `types` those that are sold in one of `places` by one of the capacity types; some others may stay
    /// where places are many.
    pub(super) fn narrow(
        &self,
        types: &mut Bits,
        places: &Bits,
        capacities: impl Iterator<Item = CapacityType> + Clone,
    ) {
        let few = places.iter().nth(FEW_PLACES).is_none();
        let mut sold = Bits::none(types.limit());
        if few {
            for place in places.iter() {
                capacities.clone().for_each(|capacity| sold.or(self.places[place].of(capacity)));
            }
        } else {
            capacities.for_each(|capacity| sold.or(self.anywhere.of(capacity)));
        }
        types.and(&sold);
    }
}
