use std::collections::BTreeMap;

use crate::label;
use crate::name::Vendor;
use crate::offering::{CapacityType, InstanceType, Place, Price, Terms};

use super::column::{Column, Columns};
use super::reach::Reach;
use super::terms::TermsTable;
use super::{PlaceData, Row, Snapshot, TypeId};

/// A place that a [`SnapshotBuilder`] has given a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(u32);

/// Collects types and offerings; [`SnapshotBuilder::build`] sorts and indexes them.
///
/// A [`TypeId`] that it gives out is its own: in the finished snapshot types are numbered anew.
#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    types: Vec<InstanceType>,
    by_name: BTreeMap<(Vendor, String), TypeId>,
    places: Vec<PlaceData>,
    by_place: BTreeMap<(Vendor, String, Option<String>), u32>,
    rows: Vec<Row>,
    terms: TermsTable,
}

impl SnapshotBuilder {
    /// Adds a type; one without offerings is still known by name. The first of a vendor's name is kept.
    pub fn instance_type(&mut self, instance_type: InstanceType) -> TypeId {
        let key = (instance_type.vendor.clone(), instance_type.name.clone());
        *self.by_name.entry(key).or_insert_with(|| {
            self.types.push(instance_type);
            TypeId(number(self.types.len() - 1))
        })
    }

    /// Adds a place of a vendor; the first of that region and zone is kept.
    pub fn place(&mut self, vendor: &Vendor, place: Place) -> PlaceId {
        let key = (vendor.clone(), place.region.clone(), place.zone.clone());
        let number = *self.by_place.entry(key).or_insert_with(|| {
            self.places.push(PlaceData::new(vendor.clone(), place));
            number(self.places.len() - 1)
        });
        PlaceId(number)
    }

    /// Adds an offering whose price in USD is all that is known of it. Of two with the same key the cheaper is kept.
    pub fn offering(&mut self, id: TypeId, place: Place, capacity: CapacityType, price: Price) {
        let vendor = self.types[id.index()].vendor.clone();
        let place = self.place(&vendor, place);
        self.offer(id, place, capacity, price, Terms::usd(price));
    }

    /// Adds an offering of a type in a place of the same vendor. Of two with the same key the cheaper is kept, and of
    /// two at one price the one that was seen last.
    pub fn offer(&mut self, id: TypeId, place: PlaceId, capacity: CapacityType, price: Price, terms: Terms) {
        debug_assert_eq!(self.types[id.index()].vendor, self.places[place.0 as usize].vendor);
        let terms = self.terms.push(terms);
        self.rows.push(Row { price, place: place.0, instance_type: id.0, capacity, terms });
    }

    /// Sorts and indexes.
    #[must_use]
    pub fn build(self) -> Snapshot {
        // Numbering by name makes comparing numbers the same as comparing names.
        let (types, type_ranks) = sort(self.types, |a, b| (&a.vendor, &a.name).cmp(&(&b.vendor, &b.name)));
        let (places, place_ranks) = sort(self.places, |a, b| {
            (&a.vendor, &a.place.region, &a.place.zone).cmp(&(&b.vendor, &b.place.region, &b.place.zone))
        });
        let mut rows = self.rows;
        for row in &mut rows {
            row.instance_type = type_ranks[row.instance_type as usize];
            row.place = place_ranks[row.place as usize];
        }
        let key = |row: &Row| (row.instance_type, row.place, row.capacity);
        let mut terms = self.terms;
        terms.shrink();
        rows.sort_unstable_by(|a, b| {
            let better = |row: &Row| (std::cmp::Reverse(terms.get(row.terms).observed), terms.get(row.terms));
            (key(a), a.price).cmp(&(key(b), b.price)).then_with(|| better(a).cmp(&better(b)))
        });
        rows.dedup_by_key(|row| key(row));
        rows.sort_unstable_by_key(|row| (row.price, row.capacity, row.place, row.instance_type));
        rows.shrink_to_fit();
        let columns = columns(&types);
        let (starts, of_type) = by_type(types.len(), &rows);
        let place_columns = place_columns(&places);
        let reach = Reach::new(types.len(), places.len(), &rows);
        let mut snapshot = Snapshot {
            types,
            places,
            rows,
            starts,
            of_type,
            cheapest_first: Vec::new(),
            columns,
            place_columns,
            reach,
            terms,
        };
        snapshot.cheapest_first = cheapest_first(&snapshot);
        snapshot
    }
}

pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a catalog has fewer than four thousand million rows")
}

/// Sorts `items` and says at which place each old one now stands.
fn sort<T>(items: Vec<T>, compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> (Vec<T>, Vec<u32>) {
    let mut numbered: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    numbered.sort_by(|(_, a), (_, b)| compare(a, b));
    let mut ranks = vec![0; numbered.len()];
    for (rank, (old, _)) in numbered.iter().enumerate() {
        ranks[*old] = number(rank);
    }
    (numbered.into_iter().map(|(_, item)| item).collect(), ranks)
}

/// For each type the numbers of its offerings, in price order: starts and the one list they start in.
fn by_type(types: usize, rows: &[Row]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; types + 1];
    for row in rows {
        starts[row.instance_type as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut of_type = vec![0; rows.len()];
    for (id, row) in rows.iter().enumerate() {
        let at = &mut next[row.instance_type as usize];
        of_type[*at as usize] = number(id);
        *at += 1;
    }
    (starts, of_type)
}

/// Types that are sold, those with the cheapest offering first.
fn cheapest_first(snapshot: &Snapshot) -> Vec<u32> {
    let mut out: Vec<(u32, u32)> = (0..snapshot.types.len())
        .filter_map(|id| Some((*snapshot.of_type(id).first()?, number(id))))
        .collect();
    out.sort_unstable();
    out.into_iter().map(|(_, id)| id).collect()
}

fn columns(types: &[InstanceType]) -> Columns {
    let mut cells: BTreeMap<String, Vec<(String, u32)>> = BTreeMap::new();
    for (id, instance_type) in types.iter().enumerate() {
        for (key, value) in instance_type.labels() {
            cells.entry(key).or_default().push((value, number(id)));
        }
    }
    cells.into_iter().map(|(key, cells)| (key, Column::new(types.len(), cells))).collect()
}

fn place_columns(places: &[PlaceData]) -> Columns {
    let mut cells: BTreeMap<&str, Vec<(String, u32)>> = BTreeMap::new();
    for (id, place) in places.iter().enumerate() {
        for (key, value) in &place.labels {
            cells.entry(key).or_default().push((value.clone(), number(id)));
        }
    }
    cells.into_iter().map(|(key, cells)| (key.to_owned(), Column::new(places.len(), cells))).collect()
}

impl PlaceData {
    fn new(vendor: Vendor, place: Place) -> Self {
        use label::label_value;
        let unique = |name: &str| label_value(&format!("{vendor}.{name}"));
        let mut labels =
            vec![(label::REGION, label_value(&place.region)), (label::UNIQUE_REGION, unique(&place.region))];
        if let Some(zone) = &place.zone {
            labels.push((label::ZONE, label_value(zone)));
            labels.push((label::UNIQUE_ZONE, unique(zone)));
        }
        if let Some(id) = &place.zone_id {
            labels.push((label::AWS_ZONE_ID, label_value(id)));
        }
        Self { vendor, place, labels }
    }
}
