//! The catalog at one instant, indexed: all that the planner sees of it.

use crate::offering::{CapacityType, InstanceType, Place, Price};

/// Index of an instance type in a [`Snapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u32);

/// Collects types and offerings; [`SnapshotBuilder::build`] sorts and indexes them.
#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    types: Vec<InstanceType>,
    offerings: Vec<(TypeId, Place, CapacityType, Price)>,
}

impl SnapshotBuilder {
    /// Adds a type; one without offerings is still known by name.
    pub fn instance_type(&mut self, instance_type: InstanceType) -> TypeId {
        self.types.push(instance_type);
        TypeId(u32::try_from(self.types.len() - 1).unwrap_or(u32::MAX))
    }

    /// Adds an offering of a type. Of two with the same key the cheaper is kept.
    pub fn offering(&mut self, id: TypeId, place: Place, capacity: CapacityType, price: Price) {
        self.offerings.push((id, place, capacity, price));
    }

    /// Sorts and indexes.
    #[must_use]
    pub fn build(self) -> Snapshot {
        Snapshot { types: self.types }
    }
}

/// All offerings at one instant, immutable; share it by `Arc`.
#[derive(Debug, Default)]
pub struct Snapshot {
    types: Vec<InstanceType>,
}

impl Snapshot {
    /// All types.
    #[must_use]
    pub fn types(&self) -> &[InstanceType] {
        &self.types
    }
}
