//! One world from its first plan to its last.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod as KubePod;
use scarpenter_core::pod::{PodKey, Toleration};
use scarpenter_planner::{Lessons, Nomination, Plan};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Verdict, key, parse};
use crate::facts::Facts;
use crate::hopeless;
use crate::machine::{Machine, daemon_pods};
use crate::trace::Trace;
use crate::world::{World, text};

/// After so many rounds a world must have come to rest.
const MOST_ROUNDS: usize = 6;

/// Whether the scheduler may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each planned pod may go to its planned machine only: the plan is put to the scheduler as it stands.
    Verbatim,
    /// The scheduler chooses; what it leaves over is planned again, as in a running system.
    Free,
}

/// What happened in a world in which nothing was wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) pods: usize,
    pub(crate) bought: usize,
    /// Pods that the first plan put somewhere.
    pub(crate) planned: usize,
    /// Of these, pods that needed another plan.
    pub(crate) again: usize,
    /// Pods that got nothing in the end, by the reason.
    pub(crate) refused: BTreeMap<String, usize>,
    /// Of these, pods that were shown every machine there is.
    pub(crate) hopeless: usize,
}

/// Why a game ended early.
pub(crate) enum Stop {
    /// Scheduler and planner disagree.
    Wrong(Box<Wrong>),
    /// The control plane does not answer as it should.
    Broken(anyhow::Error),
}

/// A disagreement.
pub(crate) struct Wrong {
    /// What is wrong, the same words for the same kind.
    pub(crate) what: &'static str,
    /// All that happened.
    pub(crate) trace: String,
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Broken(error)
    }
}

/// Plays a world.
pub(crate) async fn play(cluster: &mut Cluster, world: &World, mode: Mode) -> Result<Tally, Stop> {
    let mut game = Game::begin(cluster, world, mode).await?;
    for round in 0..MOST_ROUNDS {
        if game.round(round).await? {
            return Ok(game.tally);
        }
    }
    Err(game.wrong("no end: machines are bought round after round"))
}

struct Game<'g> {
    cluster: &'g mut Cluster,
    world: &'g World,
    mode: Mode,
    machines: Vec<Machine>,
    waiting: BTreeSet<PodKey>,
    planned_first: BTreeSet<PodKey>,
    /// Pods that were refused by an empty machine that was bought for them: pool and offering.
    refused_by: BTreeSet<(PodKey, String)>,
    tally: Tally,
    trace: Trace,
}

/// Where a plan puts a pod, and what it has to tolerate there.
type Places = BTreeMap<PodKey, (String, Vec<Toleration>)>;

impl<'g> Game<'g> {
    async fn begin(cluster: &'g mut Cluster, world: &'g World, mode: Mode) -> anyhow::Result<Self> {
        cluster.clear().await?;
        cluster.put_nodes(&world.nodes).await?;
        cluster.put_pods(&world.bound).await?;
        let daemons: Vec<Value> = world.nodes.iter().flat_map(|node| daemon_pods(world, node)).collect();
        cluster.put_pods(&daemons).await?;
        let waiting: BTreeSet<PodKey> = world.pods.iter().map(|pod| key(&parse(pod))).collect();
        Ok(Self {
            cluster,
            world,
            mode,
            machines: Vec::new(),
            tally: Tally { pods: waiting.len(), ..Tally::default() },
            waiting,
            planned_first: BTreeSet::new(),
            refused_by: BTreeSet::new(),
            trace: Trace::default(),
        })
    }

    /// Plans, buys and lets the scheduler decide; whether that was the end.
    async fn round(&mut self, number: usize) -> Result<bool, Stop> {
        let facts = self.facts().await?;
        let plan = facts.plan();
        self.trace.plan(number, &plan);
        self.demand_that_each_pod_is_decided(&plan)?;
        self.demand_that_nothing_is_bought_in_vain(&plan)?;
        // The last round has shown that the scheduler refuses all of these, with everything where it is now.
        if number > 0 && plan.claims.is_empty() && plan.nominated.is_empty() {
            return self.end(&facts, &plan).await;
        }
        let places = self.buy(&plan).await?;
        if number == 0 {
            self.planned_first = places.keys().cloned().collect();
        }
        let mut verdicts = self.release(&facts, &places).await?;
        verdicts.retain(|pod, _| self.waiting.contains(pod));
        for machine in &mut self.machines {
            machine.release();
        }
        self.remember_refusals(&plan, &verdicts);
        let before = self.waiting.len();
        self.waiting.retain(|pod| !matches!(verdicts.get(pod), Some(Verdict::Bound(_))));
        if self.mode == Mode::Verbatim {
            self.demand_that_the_plan_holds(&places, &verdicts)?;
        }
        if number > 0 {
            self.tally.again += places.keys().filter(|pod| self.planned_first.contains(*pod)).count();
        }
        if plan.claims.is_empty() && !plan.nominated.is_empty() && self.waiting.len() == before {
            return Err(self.wrong("a pod waits for a node that does not take it"));
        }
        Ok(false)
    }

    /// Nothing more can be done; the pods that wait are those that were refused.
    async fn end(&mut self, facts: &Facts, plan: &Plan) -> Result<bool, Stop> {
        self.tally.planned = self.planned_first.len();
        self.tally.bought = self.machines.len();
        for unplaced in &plan.unplaced {
            *self.tally.refused.entry(unplaced.refusal.reason.clone()).or_default() += 1;
        }
        // Both modes end in the same machines, or nearly so; one look is enough.
        if self.mode == Mode::Verbatim {
            let taken = hopeless::try_everything(self.cluster, self.world, facts, plan).await?;
            self.tally.hopeless = taken.tried;
            if let Some(words) = taken.fitted {
                self.trace.say(&words);
                return Err(self.wrong("a pod that was refused fits a machine that could be bought"));
            }
        }
        Ok(true)
    }

    async fn facts(&self) -> anyhow::Result<Facts> {
        self.facts_with(&[]).await
    }

    /// As if these had already been bound where there is room for them.
    async fn facts_with(&self, nominated: &[Nomination]) -> anyhow::Result<Facts> {
        let pods = self.cluster.pods().await?;
        let mut running: Vec<KubePod> =
            pods.into_iter().filter(|pod| !self.waiting.contains(&key(pod))).collect();
        let own = self.world.pods.iter().map(parse::<KubePod>);
        let mut waiting: Vec<KubePod> = own.filter(|pod| self.waiting.contains(&key(pod))).collect();
        for nomination in nominated {
            let Some(place) = waiting.iter().position(|pod| key(pod) == nomination.pod) else { continue };
            let mut pod = waiting.remove(place);
            pod.spec.get_or_insert_default().node_name = Some(nomination.node.clone());
            running.push(pod);
        }
        Ok(Facts::gather(self.world, &self.machines, &running, &waiting, &Lessons::default()))
    }

    /// Makes the machines; first it is made sure that a pass before they are up buys nothing more.
    async fn buy(&mut self, plan: &Plan) -> Result<Places, Stop> {
        let first = self.machines.len();
        let mut places = Places::new();
        for (number, planned) in plan.claims.iter().enumerate() {
            let machine = Machine::new(self.world, planned, first + number);
            for (pod, uid) in &planned.pods {
                let tolerations = planned.tolerations.get(uid).cloned().unwrap_or_default();
                places.insert(pod.clone(), (machine.name.clone(), tolerations));
            }
            self.machines.push(machine);
        }
        for nomination in &plan.nominated {
            let place = (nomination.node.clone(), nomination.tolerations.clone());
            places.insert(nomination.pod.clone(), place);
        }
        let again = self.facts_with(&plan.nominated).await?.plan();
        let unplaced = |plan: &Plan| -> BTreeSet<PodKey> {
            plan.unplaced.iter().map(|unplaced| unplaced.pod.clone()).collect()
        };
        if !again.claims.is_empty() || unplaced(&again) != unplaced(plan) {
            self.trace.say("The next pass, with these claims in flight:");
            self.trace.plan(0, &again);
            return Err(self.wrong("a pass with claims in flight decides otherwise"));
        }
        for machine in &mut self.machines[first..] {
            machine.is_up = true;
        }
        let nodes: Vec<Value> = self.machines[first..].iter().map(|machine| machine.node.clone()).collect();
        self.cluster.put_nodes(&nodes).await?;
        let daemons: Vec<Value> = nodes.iter().flat_map(|node| daemon_pods(self.world, node)).collect();
        self.cluster.put_pods(&daemons).await?;
        self.cluster.until_seen(self.world.nodes.len() + self.machines.len()).await?;
        Ok(places)
    }

    /// Shows the pods that wait to the scheduler, in the planner's order; those that were refused come last.
    async fn release(&mut self, facts: &Facts, places: &Places) -> anyhow::Result<BTreeMap<PodKey, Verdict>> {
        self.cluster.steer_nobody();
        self.cluster.remove_pods(&self.waiting).await?;
        let (planned, refused): (Vec<_>, Vec<_>) =
            facts.in_order().into_iter().partition(|pod| places.contains_key(pod));
        for pod in &planned {
            self.show(pod, &places[pod]).await?;
        }
        for pod in &refused {
            self.cluster.steer(pod, self.open_nodes());
            self.cluster.put_pod(self.object(pod)).await?;
        }
        let mut verdicts = self.cluster.settle().await?;
        while self.mode == Mode::Verbatim && self.ask_again(&planned, places, &verdicts).await? {
            verdicts = self.cluster.settle().await?;
        }
        Ok(verdicts)
    }

    async fn show(
        &self,
        pod: &PodKey,
        (node, tolerations): &(String, Vec<Toleration>),
    ) -> anyhow::Result<()> {
        match self.mode {
            Mode::Verbatim => self.cluster.steer(pod, [node.clone()]),
            Mode::Free => self.cluster.steer(pod, self.open_nodes()),
        }
        self.cluster.put_pod(&tolerating(self.object(pod), tolerations)).await?;
        if self.mode == Mode::Verbatim {
            self.cluster.verdict(pod).await?;
        }
        Ok(())
    }

    /// Shows planned pods that were refused once more, since a verdict may be older than what it is about; whether one
    /// of them is bound now.
    async fn ask_again(
        &self,
        planned: &[PodKey],
        places: &Places,
        verdicts: &BTreeMap<PodKey, Verdict>,
    ) -> anyhow::Result<bool> {
        let mut bound = false;
        for pod in planned.iter().filter(|pod| matches!(verdicts[*pod], Verdict::Refused(_))) {
            self.cluster.remove_pods([pod]).await?;
            self.show(pod, &places[pod]).await?;
            bound |= matches!(self.cluster.verdict(pod).await?, Verdict::Bound(_));
        }
        Ok(bound)
    }

    fn open_nodes(&self) -> Vec<String> {
        let machines = self.machines.iter().map(|machine| machine.name.clone());
        self.world.open_nodes().chain(machines).collect()
    }

    fn object(&self, pod: &PodKey) -> &'g Value {
        let own = self.world.pods.iter().find(|object| {
            text(&object["metadata"]["name"]) == pod.name
                && text(&object["metadata"]["namespace"]) == pod.namespace
        });
        own.expect("a waiting pod is one of the world's")
    }

    /// A pod of which a plan says nothing waits for nobody knows what.
    fn demand_that_each_pod_is_decided(&mut self, plan: &Plan) -> Result<(), Stop> {
        let claims = plan.claims.iter().flat_map(|claim| &claim.pods).map(|(pod, _)| pod);
        let nominated = plan.nominated.iter().map(|nomination| &nomination.pod);
        let unplaced = plan.unplaced.iter().map(|unplaced| &unplaced.pod);
        let mut decided: Vec<&PodKey> = claims.chain(nominated).chain(unplaced).collect();
        decided.sort();
        if !decided.into_iter().eq(&self.waiting) {
            return Err(self.wrong("a plan decides not exactly once on each pod"));
        }
        Ok(())
    }

    /// The most painful loop of all: a machine for a pod, which stays empty, and then another of the same.
    fn demand_that_nothing_is_bought_in_vain(&mut self, plan: &Plan) -> Result<(), Stop> {
        for claim in &plan.claims {
            let what = format!("{} {}", claim.pool, claim.launch.offering);
            if let Some((pod, _)) =
                claim.pods.iter().find(|(pod, _)| self.refused_by.contains(&(pod.clone(), what.clone())))
            {
                self.trace.say(&format!("{pod} has been refused by an empty {what}"));
                return Err(self.wrong("a machine is bought again that refused its pod while it was empty"));
            }
        }
        Ok(())
    }

    fn remember_refusals(&mut self, plan: &Plan, verdicts: &BTreeMap<PodKey, Verdict>) {
        let taken: BTreeSet<&String> = verdicts
            .values()
            .filter_map(|verdict| if let Verdict::Bound(node) = verdict { Some(node) } else { None })
            .collect();
        let new = &self.machines[self.machines.len() - plan.claims.len()..];
        for machine in new.iter().filter(|machine| !taken.contains(&machine.name)) {
            let what = format!("{} {}", machine.planned.pool, machine.planned.launch.offering);
            for (pod, _) in &machine.planned.pods {
                if let Some(Verdict::Refused(words)) = verdicts.get(pod) {
                    self.trace.say(&format!("{} stays empty, {pod} waits: {words}", machine.name));
                    self.refused_by.insert((pod.clone(), what.clone()));
                }
            }
        }
    }

    fn demand_that_the_plan_holds(
        &mut self,
        places: &Places,
        verdicts: &BTreeMap<PodKey, Verdict>,
    ) -> Result<(), Stop> {
        let mut what = None;
        for (pod, verdict) in verdicts {
            match (places.get(pod), verdict) {
                (Some((node, _)), Verdict::Refused(words)) => {
                    self.trace.say(&format!("{pod} was to be on {node}: {words}"));
                    what = what.or(Some("a pod is not bound to its planned machine"));
                }
                (None, Verdict::Bound(node)) => {
                    self.trace.say(&format!("{pod} was refused and is on {node}"));
                    what = what.or(Some("a pod that was refused fits a machine that is there"));
                }
                _ => {}
            }
        }
        what.map_or(Ok(()), |what| Err(self.wrong(what)))
    }

    fn wrong(&mut self, what: &'static str) -> Stop {
        let trace = self.trace.end(self.world);
        Stop::Wrong(Box::new(Wrong { what, trace }))
    }
}

fn tolerating(pod: &Value, more: &[Toleration]) -> Value {
    let mut pod = pod.clone();
    let own = &mut pod["spec"]["tolerations"];
    let mut all = own.as_array().cloned().unwrap_or_default();
    all.extend(more.iter().map(|toleration| {
        json!({
            "key": toleration.key,
            "operator": if toleration.value.is_some() { "Equal" } else { "Exists" },
            "value": toleration.value,
            "effect": toleration.effect.map(|effect| effect.as_str()),
        })
    }));
    *own = json!(all);
    pod
}
