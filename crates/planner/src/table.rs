use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use scarpenter_core::node::Node;
use scarpenter_core::pod::Pod;
use scarpenter_core::pool::Class;
use scarpenter_core::resources::{self, Resources};
use scarpenter_core::snapshot::Snapshot;

use crate::{Input, Kind};

mod extras;
mod ports;

use extras::Extras;
use ports::Ports;

/// Amounts by position in [`Names`].
pub(crate) type Amounts = Box<[i64]>;

/// All that a pass counts, so that amounts are plain rows of numbers: resources, ports of a host, of each of which there
/// is one, and attached volumes by driver.
#[derive(Debug)]
pub(crate) struct Names {
    names: Vec<String>,
    ports: Ports,
    drivers: Vec<String>,
    money: usize,
}

impl Names {
    /// Every resource that a pod, a daemon or a limit names, every port that pods ask for, and every driver of their
    /// volumes that some node limits.
    pub(crate) fn of(input: &Input<'_>) -> Self {
        let pods = || input.pods.iter().chain(input.daemons.iter().map(|daemon| &daemon.pod));
        let limits = input.pools.iter().map(|pool| &pool.limits);
        let amounts = pods().map(|pod| &pod.requests).chain(limits);
        let named = amounts.flat_map(|amounts| amounts.iter().map(|(name, _)| name));
        let always = [resources::MICRO_USD_PER_HOUR, resources::NODES];
        let names: BTreeSet<&str> = named.chain(always).collect();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let money = names
            .iter()
            .position(|name| name == resources::MICRO_USD_PER_HOUR)
            .expect("money is always among the names");
        let limited: BTreeSet<&String> =
            input.nodes.iter().flat_map(|node| node.attach_limits.keys()).collect();
        let asked: BTreeSet<&String> =
            input.pods.iter().flat_map(|pod| &pod.attachments).map(|volume| &volume.driver).collect();
        Self {
            names,
            ports: Ports::of(pods().flat_map(|pod| &pod.host_ports)),
            drivers: limited.intersection(&asked).map(|driver| (*driver).clone()).collect(),
            money,
        }
    }

    /// Where money stands in a row.
    pub(crate) fn money(&self) -> usize {
        self.money
    }

    /// Resources as a row; a name that is not counted is left out, a missing one is 0.
    pub(crate) fn row(&self, amounts: &Resources) -> Amounts {
        self.fill(|name| amounts.get(name), |_| 0, |_| 0)
    }

    /// What a pod needs.
    pub(crate) fn need(&self, pod: &Pod) -> Amounts {
        let taken = self.ports.taken(&pod.host_ports);
        let volumes = |driver: &str| {
            let own = pod.attachments.iter().filter(|volume| volume.driver == driver);
            i64::try_from(own.count()).unwrap_or(i64::MAX)
        };
        self.fill(|name| pod.requests.get(name), |port| i64::from(taken.contains(&port)), volumes)
    }

    /// What a new machine has of these; of what only nodes limit, without end.
    fn offered(&self, amounts: &Resources) -> Amounts {
        self.fill(|name| amounts.get(name), |_| 1, |_| i64::MAX)
    }

    /// What is free of a node, `amounts` of its resources.
    pub(crate) fn free(&self, amounts: &Resources, node: &Node) -> Amounts {
        let taken = self.ports.taken(&node.host_ports);
        let volumes = |driver: &str| {
            let Some(limit) = node.attach_limits.get(driver) else { return i64::MAX };
            let attached = node.attached.iter().filter(|volume| volume.driver == driver).count();
            i64::from(*limit) - i64::try_from(attached).unwrap_or(i64::MAX)
        };
        self.fill(|name| amounts.get(name), |port| i64::from(!taken.contains(&port)), volumes)
    }

    /// Limits as a row; a missing name is without end.
    pub(crate) fn limits(&self, limits: &Resources) -> Amounts {
        self.fill(|name| limits.find(name).unwrap_or(i64::MAX), |_| i64::MAX, |_| i64::MAX)
    }

    fn fill(
        &self,
        resource: impl Fn(&str) -> i64,
        port: impl Fn(usize) -> i64,
        driver: impl Fn(&str) -> i64,
    ) -> Amounts {
        let resources = self.names.iter().map(|name| resource(name));
        let ports = (0..self.ports.len()).map(port);
        resources.chain(ports).chain(self.drivers.iter().map(|name| driver(name))).collect()
    }

    /// Resources back from a row, without zeros.
    pub(crate) fn resources(&self, row: &[i64]) -> Resources {
        let named = self.names.iter().cloned().zip(row.iter().copied());
        named.filter(|(_, amount)| *amount != 0).collect()
    }

    /// The resource at a position, or how a person calls the port or driver that stands there.
    pub(crate) fn name(&self, at: usize) -> &str {
        if let Some(name) = self.names.get(at) {
            return name;
        }
        let at = at - self.names.len();
        self.ports.name(at).unwrap_or_else(|| &self.drivers[at - self.ports.len()])
    }

    /// Where ports of the host stand.
    pub(crate) fn ports(&self) -> Range<usize> {
        self.names.len()..self.names.len() + self.ports.len()
    }

    /// Where a resource stands.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
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
    prudent: Vec<Amounts>,
    /// By type, what the first machine of it showed.
    learned: HashMap<usize, Amounts>,
    /// What a machine costs beside its own price.
    pub(crate) extras: Option<Extras>,
}

/// CPUs, memory, disk, GPUs and their maker.
type Hardware<'a> = (u32, u64, u64, u32, &'a str);

impl ClassTable {
    pub(crate) fn new(names: &Names, input: &Input<'_>, class: &Class) -> Self {
        let snapshot = input.snapshot;
        let mut known: BTreeMap<Hardware<'_>, usize> = BTreeMap::new();
        let mut out = Self {
            kinds: Vec::new(),
            capacity: Vec::new(),
            allocatable: Vec::new(),
            prudent: Vec::new(),
            learned: learned(names, input, class),
            extras: Extras::new(snapshot, class),
        };
        for each in snapshot.types() {
            let hardware =
                (each.cpu, each.memory_mib, each.storage_gb, each.gpu_count, each.gpu_manufacturer.as_str());
            let kind = *known.entry(hardware).or_insert_with(|| {
                let capacity = each.capacity(class.boot_disk_gib, class.kubelet.max_pods);
                out.capacity.push(names.row(&capacity.with(resources::NODES, 1)));
                out.allocatable.push(names.offered(&crate::allocatable(each, class)));
                out.prudent.push(names.offered(&crate::allocatable::prudent(each, class)));
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

    /// What pods and daemon pods can have of it: what a machine of it showed, else what the catalog promises to those that
    /// ask for `exact`ly this type, and a little less to those that could have another.
    pub(crate) fn allocatable(&self, type_index: usize, exact: bool) -> &[i64] {
        if let Some(learned) = self.learned.get(&type_index) {
            return learned;
        }
        let promised = if exact { &self.allocatable } else { &self.prudent };
        &promised[self.kinds[type_index]]
    }
}

fn learned(names: &Names, input: &Input<'_>, class: &Class) -> HashMap<usize, Amounts> {
    let of_class = |(kind, amounts): (&Kind, &Resources)| {
        let index = type_index(input.snapshot, kind).filter(|_| kind.class == class.name)?;
        Some((index, names.offered(amounts)))
    };
    input.lessons.allocatable.iter().filter_map(of_class).collect()
}

/// Where the type of a kind stands in the catalog, if it is still sold.
pub(crate) fn type_index(snapshot: &Snapshot, kind: &Kind) -> Option<usize> {
    let wanted = (&kind.vendor, &kind.instance_type);
    snapshot.types().binary_search_by(|own| (&own.vendor, &own.name).cmp(&wanted)).ok()
}
