use std::ops::Range;
use std::rc::Rc;

use scarpenter_core::label;
use scarpenter_core::node::Daemon;
use scarpenter_core::pod::{Pod, Taint, untolerated};
use scarpenter_core::pool::{Class, Pool, Tenancy};
use scarpenter_core::requirements::{BadRequirement, Requirements, ValueSet};
use scarpenter_core::snapshot::{OfferingId, Selection, Snapshot};

use crate::market::Market;
use crate::table::{self, Amounts, ClassTable, Names};
use crate::tolerate;

/// One pool over one catalog: what it may buy, what daemons take of it, and what its limits leave.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) class: Class,
    /// Why nothing can be bought for it, whatever the pod.
    pub(crate) broken: Option<String>,
    /// Template requirements and labels, pool, class and tenancy.
    pub(crate) requirements: Requirements,
    /// Vendors and regions of the class.
    pub(crate) of_class: Selection,
    /// What the template's requirements leave of all offerings.
    pub(crate) of_pool: Selection,
    /// Both, of vendors that can be asked.
    pub(crate) selection: Selection,
    /// Whether a pod that names no capacity type may only be given on-demand.
    pub(crate) on_demand_by_default: bool,
    /// What is left of the limits.
    pub(crate) left: Amounts,
    table: Rc<ClassTable>,
    /// By type, what daemons take wherever that type stands.
    overhead: Option<Vec<i64>>,
    /// Daemons that run only in some places.
    local: Vec<(Selection, Amounts)>,
    /// By position among all daemons, where each runs.
    daemons: Vec<(usize, Vec<Selection>)>,
    money: usize,
    /// Where ports of the host stand in a row.
    ports: Range<usize>,
    limited: bool,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(
        market: &Market<'_>,
        names: &Names,
        pool: &'a Pool,
        class: Option<&Class>,
        table: Rc<ClassTable>,
        used: &[i64],
    ) -> Self {
        let mut broken = class.is_none().then(|| {
            format!(
                "NodePool {} names ScarpenterNodeClass {}, which does not exist or is not ready",
                pool.name, pool.class
            )
        });
        let class = class.cloned().unwrap_or_default();
        let requirements = template(pool, &class).unwrap_or_else(|error| {
            broken = Some(format!("NodePool {}: {error}", pool.name));
            Requirements::new()
        });
        let of_class = of_class(market.snapshot, &class);
        let of_pool = market.snapshot.select(&requirements);
        let mut selection = of_class.clone();
        selection.and(&of_pool);
        selection.and(&market.usable);
        let mut left = names.limits(&pool.limits);
        for (left, used) in left.iter_mut().zip(used).filter(|(left, _)| **left != i64::MAX) {
            *left = left.saturating_sub(*used);
        }
        Self {
            pool,
            class,
            broken,
            on_demand_by_default: requirements.get(label::CAPACITY_TYPE).is_none(),
            requirements,
            of_class,
            of_pool,
            selection,
            limited: !pool.limits.is_empty(),
            left,
            table,
            overhead: None,
            local: Vec::new(),
            daemons: Vec::new(),
            money: names.money(),
            ports: names.ports(),
        }
    }

    /// Counts what daemons will take of each machine (SCH-24).
    pub(crate) fn add_daemons(&mut self, snapshot: &Snapshot, names: &Names, daemons: &[Daemon]) {
        for (at, daemon) in daemons.iter().enumerate() {
            if !self.takes_daemon(&daemon.pod) {
                continue;
            }
            let row = names.need(&daemon.pod);
            let terms = self.daemon_terms(&daemon.pod);
            let selections: Vec<Selection> = terms.iter().map(|term| snapshot.select(term)).collect();
            self.daemons.push((at, selections.clone()));
            let (everywhere, local): (Vec<_>, Vec<_>) =
                selections.into_iter().partition(Selection::is_everywhere);
            let united = everywhere.into_iter().reduce(|mut all, one| {
                all.types.or(&one.types);
                all
            });
            if let Some(selection) = united {
                self.add_overhead(&selection, &row, snapshot.types().len());
            }
            // Where two alternatives of one place both hold, too much is kept free, never too little.
            self.local.extend(local.into_iter().map(|selection| (selection, row.clone())));
        }
    }

    fn takes_daemon(&self, pod: &Pod) -> bool {
        let mut taints = self.pool.taints.clone();
        if self.class.tenancy == Tenancy::SinglePod {
            // The value is a pod's UID, which no daemon can know.
            taints.push(tolerate::pod_taint("?"));
        }
        untolerated(&taints, &pod.tolerations, false).is_none()
    }

    /// What a daemon's alternatives ask of an offering, those that this template rules out left out.
    fn daemon_terms(&self, pod: &Pod) -> Vec<Requirements> {
        let mut template = self.requirements.clone();
        for key in [label::REGISTERED, label::INITIALIZED] {
            template.require(key, ValueSet::one_of(["true"]));
        }
        let selector = Requirements::from_labels(&pod.node_selector);
        let none = [Vec::new()];
        let terms = if pod.required_terms.is_empty() { &none[..] } else { &pod.required_terms[..] };
        let terms =
            terms.iter().filter_map(|term| Some(Requirements::from_list(term).ok()?.intersect(&selector)));
        terms.filter(|term| defines(&template, term).is_none()).collect()
    }

    fn add_overhead(&mut self, selection: &Selection, row: &[i64], types: usize) {
        let ports = self.ports.clone();
        let all = self.overhead.get_or_insert_with(|| vec![0; types * row.len()]);
        for index in selection.types.iter() {
            let own = &mut all[index * row.len()..][..row.len()];
            for (total, amount) in own.iter_mut().zip(row) {
                *total = total.saturating_add(*amount);
            }
            take_once(&mut own[ports.clone()]);
        }
    }

    /// What daemons take of a machine of this offering.
    pub(crate) fn daemons_on(&self, snapshot: &Snapshot, id: OfferingId) -> Amounts {
        let width = self.left.len();
        let index = snapshot.offering(id).type_index();
        let mut out: Amounts = match &self.overhead {
            Some(all) => all[index * width..][..width].into(),
            None => vec![0; width].into(),
        };
        for (_, row) in self.local.iter().filter(|(selection, _)| snapshot.contains(selection, id)) {
            out = table::sum(&out, row);
        }
        take_once(&mut out[self.ports.clone()]);
        out
    }

    /// Positions of the daemons that run on a machine of this offering.
    pub(crate) fn daemons_there(&self, snapshot: &Snapshot, id: OfferingId) -> Vec<usize> {
        let runs = |(_, selections): &&(usize, Vec<Selection>)| {
            selections.iter().any(|selection| snapshot.contains(selection, id))
        };
        self.daemons.iter().filter(runs).map(|(at, _)| *at).collect()
    }

    /// Whether a machine of this type has room for `need` beside the daemons of every place; `exact` when only this type
    /// will do.
    pub(crate) fn type_has_room(&self, type_index: usize, need: &[i64], exact: bool) -> bool {
        let have = self.table.allocatable(type_index, exact);
        match &self.overhead {
            None => table::fits(need, have),
            Some(all) => {
                let daemons = &all[type_index * need.len()..][..need.len()];
                need.iter().zip(daemons).zip(have).all(|((need, daemons), have)| {
                    *need <= 0 && *daemons <= 0 || need.saturating_add(*daemons) <= *have
                })
            }
        }
    }

    /// The same, with the daemons of that place too.
    pub(crate) fn has_room(&self, snapshot: &Snapshot, id: OfferingId, need: &[i64], exact: bool) -> bool {
        let index = snapshot.offering(id).type_index();
        if self.local.is_empty() {
            return self.type_has_room(index, need, exact);
        }
        let daemons = self.daemons_on(snapshot, id);
        table::fits(&table::sum(need, &daemons), self.table.allocatable(index, exact))
    }

    /// What is free of a machine of this offering beside its daemons.
    pub(crate) fn room(&self, snapshot: &Snapshot, id: OfferingId, exact: bool) -> Amounts {
        let index = snapshot.offering(id).type_index();
        let daemons = self.daemons_on(snapshot, id);
        let have = self.table.allocatable(index, exact).iter().zip(&daemons);
        have.map(|(have, daemons)| have.saturating_sub(*daemons)).collect()
    }

    /// Whether daemons take anything anywhere.
    pub(crate) fn has_daemons(&self) -> bool {
        self.overhead.is_some() || self.has_local_daemons()
    }

    /// Whether what daemons take depends on the place.
    pub(crate) fn has_local_daemons(&self) -> bool {
        !self.local.is_empty()
    }

    /// What most machines have at most, of the types in `selection`.
    pub(crate) fn most(&self, selection: &Selection) -> Amounts {
        let mut out = vec![0; self.left.len()];
        for index in selection.types.iter() {
            for (most, have) in out.iter_mut().zip(self.table.allocatable(index, true)) {
                *most = (*most).max(*have);
            }
        }
        out.into()
    }

    /// What a machine of this offering counts towards the limits, its price included.
    pub(crate) fn counted(&self, snapshot: &Snapshot, id: OfferingId) -> Amounts {
        let offering = snapshot.offering(id);
        let mut out: Amounts = self.table.capacity(offering.type_index()).into();
        out[self.money] = i64::try_from(self.price(snapshot, id)).unwrap_or(i64::MAX);
        out
    }

    /// What a machine of this offering costs an hour with all that is charged beside it, in micro-USD.
    pub(crate) fn price(&self, snapshot: &Snapshot, id: OfferingId) -> u64 {
        let offering = snapshot.offering(id);
        offering.price().micro_usd().saturating_add(self.extra(offering.type_index()))
    }

    /// What is charged beside a machine of the type, in micro-USD an hour.
    pub(crate) fn extra(&self, type_index: usize) -> u64 {
        self.table.extras.as_ref().map_or(0, |extras| extras.of(type_index))
    }

    /// The first offering of a selection, in the order of [`Self::price`], that `accept` takes.
    pub(crate) fn first(
        &self,
        snapshot: &Snapshot,
        selection: &Selection,
        accept: impl Fn(OfferingId) -> bool,
    ) -> Option<OfferingId> {
        match &self.table.extras {
            None => snapshot.first(selection, accept),
            Some(extras) => extras.first(snapshot, selection, accept),
        }
    }

    /// Whether the limits leave enough for one more machine of this type, its price aside.
    pub(crate) fn limits_allow_type(&self, type_index: usize) -> bool {
        !self.limited
            || self
                .table
                .capacity(type_index)
                .iter()
                .zip(&self.left)
                .all(|(counted, left)| *left == i64::MAX || *counted <= *left)
    }

    /// Whether the limits leave enough for one more machine of this offering.
    pub(crate) fn limits_allow(&self, snapshot: &Snapshot, id: OfferingId) -> bool {
        let offering = snapshot.offering(id);
        let money = self.left[self.money];
        self.limits_allow_type(offering.type_index())
            && i64::try_from(self.price(snapshot, id)).is_ok_and(|price| price <= money)
    }

    /// Takes a machine's share off what is left.
    pub(crate) fn reserve(&mut self, counted: &[i64]) {
        self.change(counted, |left, counted| left.saturating_sub(counted));
    }

    /// Gives it back.
    pub(crate) fn give_back(&mut self, counted: &[i64]) {
        self.change(counted, |left, counted| left.saturating_add(counted));
    }

    fn change(&mut self, counted: &[i64], by: impl Fn(i64, i64) -> i64) {
        for (left, counted) in self.left.iter_mut().zip(counted).filter(|(left, _)| **left != i64::MAX) {
            *left = by(*left, *counted);
        }
    }

    /// Whether its requirements ask that several values stay possible.
    pub(crate) fn wants_many(&self) -> bool {
        self.requirements.iter().any(|(_, set)| set.min_values().is_some())
    }

    /// Taints that a machine of this pool keeps until the end, that of a single-pod machine aside.
    pub(crate) fn taints(&self) -> &'a [Taint] {
        &self.pool.taints
    }
}

/// Two daemons that want one port cannot both run: it is taken once.
fn take_once(ports: &mut [i64]) {
    ports.iter_mut().for_each(|taken| *taken = (*taken).min(1));
}

/// All that a pool's template says of its machines.
fn template(pool: &Pool, class: &Class) -> Result<Requirements, BadRequirement> {
    let mut out = Requirements::from_list(&pool.requirements)?;
    for (key, value) in &pool.labels {
        out.require(key, ValueSet::one_of([value.as_str()]));
    }
    // A claim that a user made has no pool.
    if !pool.name.is_empty() {
        out.require(label::NODEPOOL, ValueSet::one_of([pool.name.as_str()]));
    }
    out.require(label::NODE_CLASS, ValueSet::one_of([class.name.as_str()]));
    out.require(label::TENANCY, ValueSet::one_of([class.tenancy.label()]));
    Ok(out)
}

fn of_class(snapshot: &Snapshot, class: &Class) -> Selection {
    let mut out = snapshot.everything();
    for (index, (vendor, place)) in snapshot.places().enumerate() {
        let named = class.vendors.get(vendor);
        if named.is_none_or(|regions| !regions.is_empty() && !regions.contains(&place.region)) {
            out.places.remove(index);
        }
    }
    out
}

/// First key that `wish` asks for and `template` cannot give: one that no offering carries must be defined here
/// or may be missing; of all others something must be left.
pub(crate) fn defines<'w>(template: &Requirements, wish: &'w Requirements) -> Option<&'w str> {
    wish.iter()
        .find(|(key, set)| match template.get(key) {
            Some(own) => own.intersect(set).is_empty(),
            None => set.is_empty() || !Snapshot::carries(key) && !set.allows(None),
        })
        .map(|(key, _)| key)
}
