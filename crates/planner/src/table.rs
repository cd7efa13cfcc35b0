use std::collections::{BTreeMap, BTreeSet};

use scarpenter_core::pool::Class;
use scarpenter_core::resources::{self, Resources};
use scarpenter_core::snapshot::Snapshot;

use crate::Input;

mod extras;

use extras::Extras;

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
///
/// Many types are alike in all that is counted, so each such kind of hardware is worked out once.
#[derive(Debug)]
pub(crate) struct ClassTable {
    /// By type, its kind of hardware.
    kinds: Vec<usize>,
    capacity: Vec<Amounts>,
    allocatable: Vec<Amounts>,
    /// What a machine costs beside its own price.
    pub(crate) extras: Option<Extras>,
}

/// CPUs, memory, disk, GPUs and their maker.
type Hardware<'a> = (u32, u64, u64, u32, &'a str);

impl ClassTable {
    pub(crate) fn new(names: &Names, snapshot: &Snapshot, class: &Class) -> Self {
        let mut known: BTreeMap<Hardware<'_>, usize> = BTreeMap::new();
        let extras = Extras::new(snapshot, class);
        let mut out = Self { kinds: Vec::new(), capacity: Vec::new(), allocatable: Vec::new(), extras };
        for each in snapshot.types() {
            let hardware =
                (each.cpu, each.memory_mib, each.storage_gb, each.gpu_count, each.gpu_manufacturer.as_str());
            let kind = *known.entry(hardware).or_insert_with(|| {
                let capacity = each.capacity(class.boot_disk_gib, class.kubelet.max_pods);
                out.capacity.push(names.row(&capacity.with(resources::NODES, 1)));
                out.allocatable.push(names.row(&crate::allocatable(each, class)));
                out.capacity.len() - 1
            });
            out.kinds.push(kind);
        }
        out
    }

    /// What a machine of the type counts towards limits, but for its price.
    pub(crate) fn capacity(&self, type_index: usize) -> &[i64] {
        &self.capacity[self.kinds[type_index]]
    }

    /// What pods and daemon pods can have of it.
    pub(crate) fn allocatable(&self, type_index: usize) -> &[i64] {
        &self.allocatable[self.kinds[type_index]]
    }
}
