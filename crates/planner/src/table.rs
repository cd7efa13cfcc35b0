use std::collections::BTreeSet;

use scarpenter_core::pool::Class;
use scarpenter_core::resources::{self, Resources};
use scarpenter_core::snapshot::Snapshot;

use crate::Input;

/// Amounts by position in [`Names`].
pub(crate) type Amounts = Box<[i64]>;

/// The resources that a pass counts, so that amounts are plain rows of numbers.
#[derive(Debug)]
pub(crate) struct Names {
    names: Vec<String>,
    money: usize,
}

impl Names {
    /// Every resource that a pod, a daemon or a limit names.
    pub(crate) fn of(input: &Input<'_>) -> Self {
        let pods = input.pods.iter().map(|pod| &pod.requests);
        let daemons = input.daemons.iter().map(|daemon| &daemon.pod.requests);
        let limits = input.pools.iter().map(|pool| &pool.limits);
        let named =
            pods.chain(daemons).chain(limits).flat_map(|amounts| amounts.iter().map(|(name, _)| name));
        let always = [resources::MICRO_USD_PER_HOUR, resources::NODES];
        let names: BTreeSet<&str> = named.chain(always).collect();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let money = names
            .iter()
            .position(|name| name == resources::MICRO_USD_PER_HOUR)
            .expect("money is always among the names");
        Self { names, money }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Where money stands in a row.
    pub(crate) fn money(&self) -> usize {
        self.money
    }

    /// As a row; a name that is not counted is left out, a missing one is 0.
    pub(crate) fn row(&self, amounts: &Resources) -> Amounts {
        self.names.iter().map(|name| amounts.get(name)).collect()
    }

    /// As a row; a missing name is without end.
    pub(crate) fn limits(&self, limits: &Resources) -> Amounts {
        self.names.iter().map(|name| limits.find(name).unwrap_or(i64::MAX)).collect()
    }

    /// Back from a row, without zeros.
    pub(crate) fn resources(&self, row: &[i64]) -> Resources {
        let named = self.names.iter().cloned().zip(row.iter().copied());
        named.filter(|(_, amount)| *amount != 0).collect()
    }

    pub(crate) fn name(&self, at: usize) -> &str {
        &self.names[at]
    }
}

/// `a + b`, place by place.
pub(crate) fn sum(a: &[i64], b: &[i64]) -> Amounts {
    a.iter().zip(b).map(|(a, b)| a.saturating_add(*b)).collect()
}

/// Whether all that is needed is there; what is not asked for may be missing.
pub(crate) fn fits(need: &[i64], have: &[i64]) -> bool {
    need.iter().zip(have).all(|(need, have)| *need <= 0 || need <= have)
}

/// What the types of a snapshot have under one class.
#[derive(Debug)]
pub(crate) struct ClassTable {
    width: usize,
    capacity: Vec<i64>,
    allocatable: Vec<i64>,
}

impl ClassTable {
    pub(crate) fn new(names: &Names, snapshot: &Snapshot, class: &Class) -> Self {
        let width = names.len();
        let mut out = Self { width, capacity: Vec::new(), allocatable: Vec::new() };
        out.capacity.reserve(width * snapshot.types().len());
        out.allocatable.reserve(width * snapshot.types().len());
        for instance_type in snapshot.types() {
            let mut capacity = instance_type.capacity(class.boot_disk_gib, class.kubelet.max_pods);
            capacity.set(resources::NODES, 1);
            out.capacity.extend(names.row(&capacity));
            out.allocatable.extend(names.row(&crate::allocatable(instance_type, class)));
        }
        out
    }

    /// What a machine of the type counts towards limits, but for its price.
    pub(crate) fn capacity(&self, type_index: usize) -> &[i64] {
        &self.capacity[type_index * self.width..][..self.width]
    }

    /// What pods and daemon pods can have of it.
    pub(crate) fn allocatable(&self, type_index: usize) -> &[i64] {
        &self.allocatable[type_index * self.width..][..self.width]
    }
}
