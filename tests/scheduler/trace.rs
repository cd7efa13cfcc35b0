//! All that happened in a world, for whoever has to find out why.

use std::fmt::Write as _;

use scarpenter_planner::Plan;
use serde_json::Value;

use crate::world::World;

/// Words gathered while a world is played.
#[derive(Default)]
pub(crate) struct Trace(String);

impl Trace {
    pub(crate) fn say(&mut self, words: &str) {
        self.0.push_str(words);
        self.0.push('\n');
    }

    pub(crate) fn plan(&mut self, round: usize, plan: &Plan) {
        let _ = writeln!(self.0, "Plan {round}:");
        for (number, claim) in plan.claims.iter().enumerate() {
            let pods: Vec<String> = claim.pods.iter().map(|(pod, _)| pod.to_string()).collect();
            let _ = writeln!(
                self.0,
                "  buy {number}: {} {} at {} with {} for {}",
                claim.pool,
                claim.launch.offering,
                claim.launch.price_per_hour_micro_usd,
                claim.launch.allocatable,
                pods.join(" ")
            );
        }
        for nomination in &plan.nominated {
            let _ = writeln!(self.0, "  {} waits for {}", nomination.pod, nomination.node);
        }
        for unplaced in &plan.unplaced {
            let refusal = &unplaced.refusal;
            let _ =
                writeln!(self.0, "  {} gets nothing: {}: {}", unplaced.pod, refusal.reason, refusal.message);
        }
    }

    /// What was said, behind all objects of the world.
    pub(crate) fn end(&self, world: &World) -> String {
        let lists = [&world.classes, &world.pools, &world.daemons, &world.nodes, &world.bound, &world.pods];
        let objects = lists.into_iter().flatten().map(yaml).collect::<Vec<_>>().join("---\n");
        let snapshot = world.snapshot();
        let mut catalog = String::new();
        for index in 0..snapshot.types().len() {
            for id in snapshot.offerings_of(index) {
                let offering = snapshot.offering(id);
                let kind = offering.instance_type();
                let _ = writeln!(
                    catalog,
                    "# {} {} cpu={} MiB={} disk={} gpu={} {:?}",
                    offering.key(),
                    offering.price(),
                    kind.cpu,
                    kind.memory_mib,
                    kind.storage_gb,
                    kind.gpu_count,
                    kind.benchmarks
                );
            }
        }
        format!("{catalog}{objects}---\n{}", self.0)
    }
}

fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| format!("{object}\n"))
}
