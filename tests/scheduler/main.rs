//! The planner against the real kube-scheduler.
//!
//! A seed makes a world: a small catalog of three vendors, pools, nodes that were there before, and pods with all kinds
//! of wishes. The planner plans, its machines are put up as bare nodes of a real control plane, and the real scheduler
//! decides. Each world is played twice.
//!
//! **Verbatim:** an extender lets each planned pod go to its planned machine only, in the planner's order. The
//! scheduler's own plugins see all nodes and pods, so a pod is bound exactly when that machine suits it there and then.
//! Demanded: every planned pod is bound to its planned machine; every refused pod stays refused, also when an empty
//! machine of every offering and pool is put up for it (unless limits or stock kept it out).
//!
//! **Free:** the scheduler chooses as in a running cluster, so a pod may take the place that was meant for another;
//! what is left over is planned again. Demanded: this ends within a few rounds; in the end the pods that wait are
//! exactly those that the planner refuses; no machine is bought twice for a pod that one of its kind refused while it
//! was empty.
//!
//! In both: a plan decides on each pod exactly once, and a pass with its claims still in flight buys nothing more.
//! One stronger demand would be wrong: that each pod be bound to its planned machine though the scheduler may choose,
//! since it chooses by other scores.
//!
//! ```text
//! cargo test -p scarpenter-tests --test scheduler                    # the committed seeds, as in CI
//! cargo test -p scarpenter-tests --test scheduler -- seed_17 --exact # one of them
//! SCARPENTER_SEEDS=500 SCARPENTER_FROM=1000 cargo test -p scarpenter-tests --test scheduler -- seed_
//! SCARPENTER_WITHOUT=spread,ports …                                  # leaves features of pods out, to find a cause
//! ```
//!
//! A failure prints the smallest world that still fails, as YAML, with the plans and the scheduler's words, and leaves
//! it in the target folder.
#![allow(clippy::unwrap_used)]

mod cluster;
mod facts;
mod hopeless;
mod machine;
mod play;
mod requests;
mod shrink;
mod steer;
mod trace;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use scarpenter_playground::{ControlPlane, Options, Program};
use scarpenter_tests::harness::{Trials, run};
use tokio::sync::{Mutex, MutexGuard};

use cluster::Cluster;
use play::{Mode, Stop, Tally, play};
use shrink::shrink;
use steer::Steering;
use world::{Feature, World};

/// Seeds of an ordinary run: so many, from 0.
const SEEDS: u64 = 50;
/// Seeds that once found something and are not among the first ones.
const FOUND: [u64; 10] = [73, 91, 94, 113, 210, 213, 215, 223, 231, 233];

/// Controllers that would take away nodes without a kubelet, or pods without a container.
const LEFT_OUT: &str = "-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller,\
    -garbage-collector-controller,-daemonset-controller,-ttl-controller,-device-taint-eviction-controller,\
    -persistentvolume-attach-detach-controller,-resourceclaim-controller,-ephemeral-volume-controller";

/// What all trials share: they take turns, since each has the whole cluster to itself.
struct Shared {
    steering: Steering,
    cluster: Mutex<Option<Cluster>>,
    tallies: std::sync::Mutex<BTreeMap<u64, [Tally; 2]>>,
    without: Vec<Feature>,
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    let steering = Steering::default();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scheduler.json");
    std::fs::write(&file, steer::configuration(steering.serve()?))?;
    let options = Options::default()
        .flag(Program::Scheduler, format!("--config={}", file.display()))
        .flag(Program::ControllerManager, format!("--controllers={LEFT_OUT}"))
        .flag(Program::ApiServer, "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount");
    let mut trials = Trials::new(options);
    let shared = Arc::new(Shared {
        steering,
        cluster: Mutex::new(None),
        tallies: std::sync::Mutex::default(),
        without: without()?,
    });
    for seed in seeds()? {
        let shared = shared.clone();
        trials.add(&format!("seed_{seed}"), async move |plane| shared.try_seed(&plane, seed).await);
    }
    let own = shared.clone();
    trials.add("the_requests_of_a_thousand_pods_are_the_schedulers_own_sums", async move |plane| {
        let mut cluster = own.turn(&plane).await?;
        requests::compare(cluster.as_mut().context("the cluster is open")?, 479).await
    });
    let code = run(trials);
    shared.tell();
    Ok(code)
}

fn from_environment<T: FromStr>(name: &str, usual: T) -> anyhow::Result<T> {
    match std::env::var(name) {
        Ok(text) => text.parse().ok().with_context(|| format!("{name}={text} is no number")),
        Err(_) => Ok(usual),
    }
}

fn seeds() -> anyhow::Result<Vec<u64>> {
    let count = from_environment("SCARPENTER_SEEDS", SEEDS)?;
    let from = from_environment("SCARPENTER_FROM", 0)?;
    let found: &[u64] = if (count, from) == (SEEDS, 0) { &FOUND } else { &[] };
    Ok((from..from + count).chain(found.iter().copied()).collect())
}

fn without() -> anyhow::Result<Vec<Feature>> {
    let text = std::env::var("SCARPENTER_WITHOUT").unwrap_or_default();
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(|word| Feature::parse(word).with_context(|| format!("there is no feature {word}"))).collect()
}

impl Shared {
    async fn turn(&self, plane: &ControlPlane) -> anyhow::Result<MutexGuard<'_, Option<Cluster>>> {
        let mut turn = self.cluster.lock().await;
        if turn.is_none() {
            *turn = Some(Cluster::open(plane, self.steering.clone()).await?);
        }
        Ok(turn)
    }

    async fn try_seed(&self, plane: &ControlPlane, seed: u64) -> anyhow::Result<()> {
        let mut turn = self.turn(plane).await?;
        let cluster = turn.as_mut().context("the cluster is open")?;
        let world = World::draw(seed, &self.without);
        let mut tallies = Vec::new();
        for mode in [Mode::Verbatim, Mode::Free] {
            match play(cluster, &world, mode).await {
                Ok(tally) => tallies.push(tally),
                Err(Stop::Broken(error)) => return Err(error),
                Err(Stop::Wrong(wrong)) => {
                    let wrong = shrink(cluster, &world, mode, wrong).await?;
                    fail(seed, mode, &wrong)?;
                }
            }
        }
        let tallies: [Tally; 2] = tallies.try_into().ok().context("each world is played twice")?;
        self.tallies.lock().unwrap().insert(seed, tallies);
        Ok(())
    }

    /// What the seeds came to, on stderr.
    fn tell(&self) {
        let tallies = self.tallies.lock().unwrap();
        let sum = |of: &dyn Fn(&[Tally; 2]) -> usize| tallies.values().map(of).sum::<usize>();
        let mut reasons = BTreeMap::<&str, usize>::new();
        for (reason, count) in tallies.values().flat_map(|[verbatim, _]| &verbatim.refused) {
            *reasons.entry(reason).or_default() += count;
        }
        let planned = sum(&|[verbatim, _]| verbatim.planned);
        eprintln!(
            "{} worlds, {} pods: {planned} planned onto {} machines (free: {}), {} of them again where the scheduler \
             chose; {} refused were shown every machine; refused by reason: {reasons:?}",
            tallies.len(),
            sum(&|[verbatim, _]| verbatim.pods),
            sum(&|[verbatim, _]| verbatim.bought),
            sum(&|[_, free]| free.bought),
            sum(&|[_, free]| free.again),
            sum(&|[verbatim, _]| verbatim.hopeless),
        );
    }
}

fn fail(seed: u64, mode: Mode, wrong: &play::Wrong) -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scheduler-seed-{seed}.txt"));
    std::fs::write(&file, &wrong.trace)?;
    bail!(
        "{}\nseed {seed}, {mode:?}: {}\nagain: SCARPENTER_FROM={seed} SCARPENTER_SEEDS=1 cargo test -p scarpenter-tests \
         --test scheduler -- seed_{seed} --exact\nin {}",
        wrong.trace,
        wrong.what,
        file.display()
    );
}
