use std::collections::BTreeSet;

use scarpenter_core::label;
use scarpenter_core::offering::CapacityType;
use scarpenter_core::pod::{Taint, TaintEffect};
use scarpenter_core::requirements::{Requirements, ValueSet};
use scarpenter_core::snapshot::Snapshot;

use super::super::{asked, labels, rest, topology};
use super::{Left, Step, Table, may_have, narrow};
use crate::ground::Ground;
use crate::shape::implied;
use crate::{tolerate, words};

impl Table<'_, '_> {
    /// What the pod asks of labels that offerings carry, vendor and type first.
    pub(super) fn labels_of_offerings(&mut self) -> Step {
        let snapshot = self.pass.market.snapshot;
        for key in keys(&self.asked.terms, true) {
            self.step(
                words::rule(&key),
                |table| asked::label(table, &key),
                |case| {
                    let term = case.term;
                    if let Some(set) = term.get(&key) {
                        case.left.choose(|selection| snapshot.narrow(selection, &key, set));
                    }
                },
                |table, before| (labels::of_offering(table, before, &key), None),
            )?;
        }
        Ok(())
    }

    /// What it asks of labels that only a pool can give.
    pub(super) fn labels_of_pools(&mut self) -> Step {
        for key in keys(&self.asked.terms, false) {
            self.step(
                words::rule(&key),
                |table| asked::label(table, &key),
                |case| {
                    if case.term.get(&key).is_some_and(|set| !may_have(case.ground, &key, set)) {
                        case.left.clear();
                    }
                },
                |table, _| (labels::of_pool(table, &key), None),
            )?;
        }
        Ok(())
    }

    pub(super) fn pools(&mut self) -> Step {
        self.step_on(
            "node-class",
            asked::broken,
            |ground, case| {
                if ground.broken.is_some() {
                    case.left.clear();
                }
            },
            rest::broken,
        )?;
        self.step_on(
            "class-vendor",
            asked::class_vendor,
            |ground, case| {
                case.left.choose(|selection| selection.and(&ground.of_class));
            },
            rest::class_vendor,
        )?;
        self.step_on(
            "pool-requirements",
            asked::pool_requirements,
            |ground, case| {
                case.left.choose(|selection| selection.and(&ground.of_pool));
            },
            rest::pool_requirements,
        )?;
        let named = self.asked.skips("capacity-type");
        self.step_on(
            "default-capacity-type",
            asked::only_on_demand,
            |ground, case| {
                if ground.on_demand_by_default && !named && case.term.get(label::CAPACITY_TYPE).is_none() {
                    let on_demand = ValueSet::one_of([CapacityType::OnDemand.as_str()]);
                    case.left.choose(|selection| selection.keep_capacity_types(&on_demand));
                }
            },
            rest::only_spot,
        )?;
        let (snapshot, tolerations) = (self.pass.market.snapshot, self.asked.tolerations);
        self.step_on(
            "taints",
            asked::taints,
            |ground, case| match tolerate::missing(&refusing(ground), tolerations, case.term) {
                Err(_) => case.left.clear(),
                Ok(tolerated) => {
                    // What is on-demand by default was narrowed above, where it may have been skipped.
                    let implied = implied(case.term, ground, &tolerated).into_iter();
                    for (key, set) in implied.filter(|(key, _)| *key != label::CAPACITY_TYPE) {
                        case.left.choose(|selection| snapshot.narrow(selection, key, &set));
                    }
                }
            },
            rest::taints,
        )
    }

    /// Where the pod's volumes and the rules about other pods let it be.
    pub(super) fn places(&mut self) -> Step {
        let snapshot = self.pass.market.snapshot;
        let alternatives = self.asked.volumes.clone();
        if !alternatives.is_empty() && !self.asked.skips("volume") {
            let cases = self.cases.iter().flat_map(|case| {
                alternatives.iter().map(move |term| {
                    let mut case = case.clone();
                    narrow(snapshot, &mut case, term);
                    case
                })
            });
            let narrowed = cases.collect();
            self.replace("volume", narrowed, asked::volume, |table, _| (rest::volume(table), None))?;
        }
        for verdict in self.asked.verdicts {
            self.step(
                verdict.rule,
                |_| topology::asked(verdict),
                |case| {
                    let mut only = Requirements::new();
                    only.require(&verdict.key, verdict.allowed.clone());
                    narrow(snapshot, case, &only);
                },
                |table, before| (topology::refused(table, before, verdict), None),
            )?;
        }
        Ok(())
    }

    pub(super) fn machines(&mut self) -> Step {
        let (market, snapshot) = (&self.pass.market, self.pass.market.snapshot);
        let (need, exact) = (self.asked.need, self.asked.exact);
        self.step_on(
            "vendor-unavailable",
            asked::vendors,
            |_, case| {
                case.left.choose(|selection| selection.and(&market.usable));
            },
            rest::vendors,
        )?;
        let ports: Vec<usize> = self.pass.names.ports().filter(|at| need[*at] > 0).collect();
        if !ports.is_empty() {
            self.step_on(
                "host-port",
                asked::host_ports,
                |ground, case| {
                    let free = |id| {
                        let daemons = ground.daemons_on(snapshot, id);
                        ports.iter().all(|at| daemons[*at] == 0)
                    };
                    if ground.has_daemons() {
                        case.left.retain(snapshot, free);
                    }
                },
                rest::host_ports,
            )?;
        }
        self.step_on(
            "capacity",
            asked::capacity,
            |ground, case| {
                case.left.choose(|selection| {
                    selection.types.retain(|index| ground.type_has_room(index, need, exact))
                });
                if ground.has_local_daemons() || matches!(case.left, Left::Listed(_)) {
                    case.left.retain(snapshot, |id| ground.has_room(snapshot, id, need, exact));
                }
            },
            rest::capacity,
        )?;
        let Some(unfit) = self.asked.unfit else { return Ok(()) };
        self.step_on(
            "unfit",
            asked::unfit,
            |ground, case| {
                let known = |id| rest::is_unfit(unfit, ground, snapshot, id);
                case.left.retain(snapshot, |id| !known(id));
            },
            rest::unfit,
        )
    }

    pub(super) fn market(&mut self) -> Step {
        let pass = self.pass;
        let (market, snapshot) = (&pass.market, pass.market.snapshot);
        self.step(
            "stock-out",
            |_| String::new(),
            |case| case.left.retain(snapshot, |id| market.in_stock(id)),
            |table, before| rest::stock_out(table, before),
        )?;
        if self.asked.strict_min_values {
            self.step_on(
                "min-values",
                asked::min_values,
                |ground, case| {
                    if rest::too_few_values(ground, case, snapshot).is_some() {
                        case.left.clear();
                    }
                },
                rest::min_values,
            )?;
        }
        self.step_on(
            "limits",
            asked::limits,
            |ground, case| {
                case.left.retain(snapshot, |id| ground.limits_allow(snapshot, id));
            },
            rest::limits,
        )?;
        self.step_on(
            "caps",
            asked::caps,
            |ground, case| {
                case.left.retain(snapshot, |id| pass.caps.allow(ground.price(snapshot, id)));
            },
            rest::caps,
        )
    }
}

/// Taints of a pool that keep pods off.
fn refusing(ground: &Ground<'_>) -> Vec<Taint> {
    let strict = ground.taints().iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    strict.cloned().collect()
}

/// Keys that the terms name, vendor and type first, then in text order.
fn keys(terms: &[Requirements], carried: bool) -> Vec<String> {
    let keys: BTreeSet<(usize, &str)> = terms
        .iter()
        .flat_map(Requirements::iter)
        .map(|(key, _)| key)
        .filter(|key| Snapshot::carries(key) == carried)
        .map(|key| match key {
            label::VENDOR => (0, key),
            label::INSTANCE_TYPE => (1, key),
            label::CAPACITY_TYPE => (3, key),
            label::PRICE => (4, key),
            _ => (2, key),
        })
        .collect();
    keys.into_iter().map(|(_, key)| key.to_owned()).collect()
}
