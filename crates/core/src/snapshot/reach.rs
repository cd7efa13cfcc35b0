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

    /// Whether any of `types` is sold in a place by one of the capacity types.
    pub(super) fn any_in(
        &self,
        place: usize,
        types: &Bits,
        mut capacities: impl Iterator<Item = CapacityType>,
    ) -> bool {
        capacities.any(|capacity| self.places[place].of(capacity).meets(types))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offering::Price;

    const TYPES: usize = 90;
    const PLACES: usize = 100;

    /// Type `t` is sold on demand in place `t`, and every tenth also by spot in place `t + 1`.
    fn rows() -> Vec<Row> {
        let row = |instance_type, place, capacity| Row {
            price: Price::from_micro_usd(1),
            place,
            instance_type,
            capacity,
            terms: 0,
        };
        let types = 0..u32::try_from(TYPES).unwrap_or_default();
        let spot = types.clone().step_by(10).map(|of| row(of, of + 1, CapacityType::Spot));
        types.map(|of| row(of, of, CapacityType::OnDemand)).chain(spot).collect()
    }

    fn left(places: &[usize], capacities: &[CapacityType]) -> Vec<usize> {
        let mut types = Bits::all(TYPES);
        let mut chosen = Bits::none(PLACES);
        places.iter().for_each(|place| chosen.insert(*place));
        let reach = Reach::new(TYPES, PLACES, &rows());
        reach.narrow(&mut types, &chosen, capacities.iter().copied());
        types.iter().collect()
    }

    #[test]
    fn of_few_places_only_what_is_sold_there_by_that_capacity_type_is_left() {
        use CapacityType::{OnDemand, Spot};
        assert_eq!(left(&[3, 11, 95], &[OnDemand]), [3, 11]);
        assert_eq!(left(&[3, 11, 95], &[Spot]), [10]);
        assert_eq!(left(&[3, 11, 95], &[OnDemand, Spot]), [3, 10, 11]);
        assert!(left(&[3], &[]).is_empty() && left(&[], &[OnDemand, Spot]).is_empty());
    }

    #[test]
    fn of_many_places_all_that_is_sold_by_that_capacity_type_is_left() {
        let all: Vec<usize> = (0..PLACES).collect();
        assert_eq!(left(&all, &[CapacityType::Spot]), (0..TYPES).step_by(10).collect::<Vec<_>>());
        assert_eq!(left(&all, &[CapacityType::OnDemand]).len(), TYPES);
    }
}
