//! What is written on a claim, and the choice for claims that users make.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use scarpenter_core::label::{self, label_value};
use scarpenter_core::offering::{CapacityType, Launch, Price};
use scarpenter_core::pod::{Pod, Toleration};
use scarpenter_core::pool::{Class, Pool, Tenancy};
use scarpenter_core::requirements::{Operator, Requirement, Requirements};
use scarpenter_core::resources::{PODS, Resources};
use scarpenter_core::snapshot::{OfferingId, Snapshot};
use scarpenter_core::topology::Namespaces;

use crate::ground::Ground;
use crate::output::{Alternative, PlannedClaim, Refusal};
use crate::pass::{Draft, Pass};
use crate::table;
use crate::{Caps, Input, Kind, Lessons, Rules, Unavailable, tolerate};

/// Most instance types that a claim lists, `minValues` aside. Karpenter lists 600 (SCH-40), and chooses among them at the
/// launch; a claim here is bound to its offering already, and the list says what else would do.
const MOST_TYPES: usize = 100;
/// How many other offerings a claim names.
const ALTERNATIVES: usize = 3;
/// Keys that never stand in a claim's requirements.
const NEVER_REQUIRED: [&str; 3] = [label::HOSTNAME, label::REGISTERED, label::INITIALIZED];

/// A claim that a user made, to be bound to an offering.
#[derive(Clone, Copy, Debug)]
pub struct ClaimInput<'a> {
    /// The catalog.
    pub snapshot: &'a Snapshot,
    /// Class that the claim names.
    pub class: &'a Class,
    /// Its `spec.requirements`.
    pub requirements: &'a [Requirement],
    /// Its `spec.resources.requests`.
    pub requests: &'a Resources,
    /// What cannot be bought now.
    pub unavailable: &'a Unavailable,
    /// What all pools together may have.
    pub caps: &'a Caps,
    /// Seconds since 1970.
    pub now: i64,
}

/// The cheapest offering that satisfies a user's claim (LIF-21); the capacity type is whatever its requirements allow.
///
/// # Errors
/// [`Refusal`] when there is none.
pub fn plan_claim(input: &ClaimInput<'_>) -> Result<Launch, Box<Refusal>> {
    let mut pool = Pool {
        class: input.class.name.clone(),
        requirements: input.requirements.to_vec(),
        ..Pool::default()
    };
    if !pool.requirements.iter().any(|line| line.key == label::CAPACITY_TYPE) {
        pool.requirements.push(Requirement::new(label::CAPACITY_TYPE, Operator::Exists, &[]));
    }
    let mut requests = input.requests.clone();
    requests.max(&Resources::new().with(PODS, 0));
    let pod = Pod { requests, ..Pod::default() };
    let classes = BTreeMap::from([(input.class.name.clone(), input.class.clone())]);
    let pass_input = Input {
        snapshot: input.snapshot,
        pods: &[pod],
        pools: &[pool],
        classes: &classes,
        nodes: &[],
        daemons: &[],
        unavailable: input.unavailable,
        caps: input.caps,
        namespaces: &Namespaces::new(),
        lessons: &Lessons::default(),
        rules: Rules::default(),
        now: input.now,
    };
    let plan = crate::plan(&pass_input);
    let refused = plan.unplaced.into_iter().next().map(|unplaced| Box::new(unplaced.refusal));
    let claim = plan.claims.into_iter().next();
    claim.map(|claim| claim.launch).ok_or_else(|| refused.expect("a pod without a claim has a refusal"))
}

/// What each request could be bought as, worked out once for equal ones: the first offering in stock of each type, in the
/// order of full prices.
#[derive(Debug, Default)]
pub(crate) struct Menus(HashMap<(usize, Rc<Requirements>), Rc<[OfferingId]>>);

impl Menus {
    fn of(&mut self, pass: &Pass<'_>, draft: &Draft) -> Rc<[OfferingId]> {
        let key = (draft.ground, Rc::clone(&draft.requirements));
        let menu = || {
            let (ground, snapshot) = (&pass.grounds[draft.ground], pass.market.snapshot);
            let mut options = snapshot.select(&draft.requirements);
            options.and(&ground.selection);
            let mut menu = snapshot.first_of_types(&options, |id| pass.market.in_stock(id));
            menu.sort_by_cached_key(|id| (ground.price(snapshot, *id), *id));
            menu.into()
        };
        Rc::clone(self.0.entry(key).or_insert_with(menu))
    }
}

/// What is written for a claim of a pass.
pub(crate) fn planned(pass: &Pass<'_>, menus: &mut Menus, draft: &Draft) -> PlannedClaim {
    let ground = &pass.grounds[draft.ground];
    let snapshot = pass.market.snapshot;
    let daemons = ground.daemons_on(snapshot, draft.launch);
    let mut taints = ground.taints().to_vec();
    let single = (ground.class.tenancy == Tenancy::SinglePod).then(|| draft.pods.first()).flatten();
    let own = single.map(|pod| tolerate::pod_taint(&pod.uid));
    taints.extend(own.clone());
    let tolerations = draft.pods.iter().map(|pod| {
        let extra = own.iter().map(tolerate::of);
        (pod.uid.clone(), pod.tolerated.iter().cloned().chain(extra).collect::<Vec<Toleration>>())
    });
    let mut requirements = requirements(pass, &menus.of(pass, draft), ground, draft);
    let relaxed = relax_min_values(pass, draft, &mut requirements);
    PlannedClaim {
        pool: ground.pool.name.clone(),
        class: ground.class.name.clone(),
        pods: draft.pods.iter().map(|pod| (pod.key.clone(), pod.uid.clone())).collect(),
        launch: launch(pass, ground, draft),
        extras: Price::from_micro_usd(ground.extra(snapshot.offering(draft.launch).type_index())),
        alternatives: alternatives(pass, ground, draft),
        requirements,
        min_values_relaxed: ground.wants_many().then_some(relaxed),
        labels: labels(ground, &draft.requirements),
        taints,
        startup_taints: ground.pool.startup_taints.clone(),
        requests: pass.names.resources(&table::sum(&draft.need, &daemons)),
        tolerations: tolerations.filter(|(_, tolerations)| !tolerations.is_empty()).collect(),
    }
}

/// Binds a claim to an offering.
fn launch(pass: &Pass<'_>, ground: &Ground<'_>, draft: &Draft) -> Launch {
    let offering = pass.market.snapshot.offering(draft.launch);
    let (class, instance_type) = (&ground.class, offering.instance_type());
    let mut labels = offering.labels();
    labels.insert(label::TENANCY.to_owned(), class.tenancy.label().to_owned());
    Launch {
        offering: offering.key(),
        zone_id: offering.place().zone_id.clone(),
        arch: instance_type.arch,
        price_per_hour_micro_usd: Price::from_micro_usd(ground.price(pass.market.snapshot, draft.launch)),
        capacity: instance_type.capacity(class.boot_disk_gib, class.kubelet.max_pods),
        allocatable: promised(pass, ground, draft),
        labels,
    }
}

/// What the pass counted on: the next one must not count on more while the machine is on its way.
fn promised(pass: &Pass<'_>, ground: &Ground<'_>, draft: &Draft) -> Resources {
    let instance_type = pass.market.snapshot.offering(draft.launch).instance_type();
    let kind = Kind {
        class: ground.class.name.clone(),
        vendor: instance_type.vendor.clone(),
        instance_type: instance_type.name.clone(),
    };
    match pass.input.lessons.allocatable.get(&kind) {
        Some(learned) => learned.clone(),
        None if draft.exact => crate::allocatable(instance_type, &ground.class),
        None => crate::allocatable::prudent(instance_type, &ground.class),
    }
}

/// Whether an offering of the claim's options would do now.
fn would_do<'p>(
    pass: &'p Pass<'_>,
    ground: &'p Ground<'_>,
    draft: &'p Draft,
) -> impl Fn(OfferingId) -> bool + 'p {
    move |id| pass.market.in_stock(id) && ground.has_room(pass.market.snapshot, id, &draft.need, draft.exact)
}

fn alternatives(pass: &Pass<'_>, ground: &Ground<'_>, draft: &Draft) -> Vec<Alternative> {
    let snapshot = pass.market.snapshot;
    let would_do = would_do(pass, ground, draft);
    let mut seen = vec![draft.launch];
    while seen.len() <= ALTERNATIVES {
        let Some(next) = ground.first(snapshot, &draft.options, |id| !seen.contains(&id) && would_do(id))
        else {
            break;
        };
        seen.push(next);
    }
    let alternative = |id: &OfferingId| {
        let offering = snapshot.offering(*id);
        let price = Price::from_micro_usd(ground.price(snapshot, *id));
        Alternative { offering: offering.key(), arch: offering.instance_type().arch, price }
    };
    seen.iter().skip(1).map(alternative).collect()
}

/// All that the machine must be (SCH-40, SCH-42): the cheapest types by name, capacity types, and the rest as narrowed.
fn requirements(
    pass: &Pass<'_>,
    menu: &[OfferingId],
    ground: &Ground<'_>,
    draft: &Draft,
) -> Vec<Requirement> {
    let snapshot = pass.market.snapshot;
    let would_do = would_do(pass, ground, draft);
    let name = |id: &OfferingId| label_value(&snapshot.offering(*id).instance_type().name);
    let wanted = draft.requirements.get(label::INSTANCE_TYPE).and_then(|set| set.min_values());
    let most = MOST_TYPES.max(wanted.unwrap_or_default() as usize);
    let cheapest = menu
        .iter()
        .filter(|id| draft.options.types.contains(snapshot.offering(**id).type_index()) && would_do(**id));
    // What was chosen is listed even where limits passed over many that are cheaper.
    let listed = std::iter::once(&draft.launch).chain(cheapest).take(most);
    let types: BTreeSet<String> = listed.map(name).collect();
    let sold = |capacity: &CapacityType| {
        let of_it = |id| snapshot.offering(id).capacity_type() == *capacity;
        snapshot.first(&draft.options, |id| of_it(id) && would_do(id)).is_some()
    };
    let capacity: Vec<CapacityType> = draft.options.capacity_types().filter(sold).collect();
    let mut rest = Requirements::clone(&draft.requirements);
    for key in NEVER_REQUIRED {
        rest.remove(key);
    }
    let capacity = capacity.into_iter().map(|capacity| capacity.as_str().to_owned()).collect();
    let listed = [(label::CAPACITY_TYPE, capacity), (label::INSTANCE_TYPE, types.into_iter().collect())];
    let listed = listed.map(|(key, values)| Requirement {
        key: key.to_owned(),
        operator: Operator::In,
        values,
        min_values: rest.remove(key).and_then(|set| set.min_values()),
    });
    let mut out = rest.to_list();
    out.extend(listed);
    out.sort_by(|a, b| a.key.cmp(&b.key));
    out
}

/// Lowers `minValues` to what there is, where that is less (SCH-20); whether any was.
fn relax_min_values(pass: &Pass<'_>, draft: &Draft, lines: &mut [Requirement]) -> bool {
    let ground = &pass.grounds[draft.ground];
    let mut relaxed = false;
    for line in lines {
        let Some(least) = line.min_values else { continue };
        let room = (&*draft.need, draft.exact);
        let there = match line.key.as_str() {
            label::INSTANCE_TYPE => line.values.len(),
            key => pass.values(ground, &draft.requirements, &draft.options, room, key, least as usize),
        };
        if there < least as usize {
            line.min_values = u32::try_from(there).ok().filter(|there| *there > 0);
            relaxed = true;
        }
    }
    relaxed
}

/// Template labels, pool, class, and one value for every key that no offering decides (SCH-41).
fn labels(ground: &Ground<'_>, requirements: &Requirements) -> BTreeMap<String, String> {
    let mut out = ground.pool.labels.clone();
    for (key, set) in requirements.iter().filter(|(key, _)| !Snapshot::carries(key)) {
        // Where a missing label is allowed, none is put on.
        if !set.allows(None) && !NEVER_REQUIRED.contains(&key) && !out.contains_key(key) {
            out.extend(set.example().map(|value| (key.to_owned(), value)));
        }
    }
    out
}
