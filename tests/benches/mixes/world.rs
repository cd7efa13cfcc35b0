//! What is the same in every pass: a pool for each architecture, and a class that takes all vendors.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use scarpenter_core::kubelet::Kubelet;
use scarpenter_core::label;
use scarpenter_core::pod::Pod;
use scarpenter_core::pool::{Class, Pool};
use scarpenter_core::requirements::{Operator, Requirement};
use scarpenter_core::snapshot::Snapshot;
use scarpenter_core::topology::Namespaces;
use scarpenter_planner::{Caps, Input, Lessons, Plan, Rules, Unavailable, plan};

const CLASS: &str = "default";

/// Everything but the pods.
pub(crate) struct World<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) pools: Vec<Pool>,
    pub(crate) classes: BTreeMap<String, Class>,
    pub(crate) lessons: Lessons,
}

impl<'a> World<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        let class = Class {
            name: CLASS.to_owned(),
            vendors: snapshot.types().iter().map(|each| (each.vendor.clone(), Default::default())).collect(),
            boot_disk_gib: 40,
            kubelet: Kubelet { max_pods: 110, ..Kubelet::default() },
            ..Class::default()
        };
        Self {
            snapshot,
            pools: ["amd64", "arm64"].map(pool).into(),
            classes: BTreeMap::from([(CLASS.to_owned(), class)]),
            lessons: Lessons::default(),
        }
    }

    pub(crate) fn class(&self) -> &Class {
        &self.classes[CLASS]
    }

    pub(crate) fn with_input<T>(&self, pods: &[Pod], work: impl FnOnce(&Input<'_>) -> T) -> T {
        work(&Input {
            snapshot: self.snapshot,
            pods,
            pools: &self.pools,
            classes: &self.classes,
            nodes: &[],
            daemons: &[],
            unavailable: &Unavailable::default(),
            caps: &Caps::default(),
            namespaces: &Namespaces::new(),
            lessons: &self.lessons,
            rules: Rules { most_pods: usize::MAX, ..Rules::default() },
            now: 0,
        })
    }

    /// Plans so many times; the plan, and the median of what it took.
    pub(crate) fn timed(&self, pods: &[Pod], runs: usize) -> (Plan, Duration) {
        let mut took = Vec::new();
        let mut last = Plan::default();
        for _ in 0..runs {
            let started = Instant::now();
            last = self.with_input(pods, plan);
            took.push(started.elapsed());
        }
        took.sort_unstable();
        (last, took[runs / 2])
    }
}

fn pool(arch: &str) -> Pool {
    Pool {
        name: arch.to_owned(),
        class: CLASS.to_owned(),
        requirements: vec![Requirement::new(label::ARCH, Operator::In, &[arch])],
        ..Pool::default()
    }
}

/// What a plan pays an hour in micro-USD.
pub(crate) fn money(plan: &Plan) -> u64 {
    plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd()).sum()
}
