//! `plan`: what would be bought for the pods of a file, offline.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context;
use scarpenter_catalog::Catalog;
use scarpenter_core::pod::Pod;
use scarpenter_planner::{Caps, Explanation, Input, Lessons, Plan, Rules, Unavailable};

use crate::BadInput;
use crate::catalog_source::SourceArgs;
use crate::explain::words;
use crate::print::{json, print};

pub(crate) mod contract;
pub(crate) mod documents;
mod intent;
mod table;
mod workload;

use contract::PlanDocument;
use documents::Source;
use intent::Intent;
use workload::Workloads;

/// Exit code of a plan that leaves pods over.
const SOME_UNPLACED: u8 = 3;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 when every pod gets a machine, 3 when some do not, 2 for bad input, 1 for any other failure."
)]
pub(crate) struct Args {
    /// Pods, or workloads that make pods, in YAML or JSON: a file, a folder (its *.yaml, *.yml and *.json), or `-` for the
    /// standard input; may be repeated. Claims, volumes, StorageClasses, LimitRanges, Namespaces and PriorityClasses among
    /// them are planned with.
    #[arg(short = 'f', long = "filename", value_name = "PODS", required = true)]
    filenames: Vec<Source>,
    /// NodePools; without it, and without any in the class file, the two of the built-in example.
    #[arg(long, value_name = "FILE")]
    nodepool: Option<Source>,
    /// ScarpenterNodeClasses; without it, and without any in the pool file, the one of the built-in example.
    #[arg(long, value_name = "FILE")]
    nodeclass: Option<Source>,
    #[command(flatten)]
    source: SourceArgs,
    /// Most machines, as the controller's option of this name; without it no cap.
    #[arg(long, value_name = "N")]
    max_machines: Option<u64>,
    /// Say of each pod what every rule leaves of the offerings, which rule took the cheapest away, and what to change.
    #[arg(long)]
    explain: bool,
    /// How to print the plan: as a table, or in version 1 of its contract as JSON or YAML.
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Table,
    Json,
    Yaml,
}

/// Exit code 0 when every pod is placed, 3 when some are not, 2 for bad input.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let inputs = Inputs::read(&args).context(BadInput)?;
    for note in &inputs.notes {
        eprintln!("scarpenter: {note}");
    }
    let plan = inputs.plan();
    let explanations = args.explain.then(|| inputs.explain(&plan));
    let least = inputs.lower_bound(&plan);
    let document = || PlanDocument::new(&plan).at_least(least).explained(explanations.as_deref());
    let text = match args.output {
        Output::Table => {
            let bound = table::bound(&plan, least);
            match &explanations {
                None => format!("{}{bound}", table::render(&plan)),
                Some(explanations) => {
                    format!("{}{bound}\n{}", table::without_refusals(&plan), words::render(explanations))
                }
            }
        }
        Output::Json => json(&document())?,
        Output::Yaml => serde_saphyr::to_string(&document()).context("write the plan as YAML")?,
    };
    print(&text)?;
    Ok(if plan.unplaced.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SOME_UNPLACED) })
}

/// Everything that the planner needs, read from files.
struct Inputs {
    workloads: Workloads,
    intent: Intent,
    catalog: Catalog,
    caps: Caps,
    notes: Vec<String>,
}

impl Inputs {
    fn read(args: &Args) -> anyhow::Result<Self> {
        let workloads = Workloads::read(&args.filenames)?;
        let intent = Intent::read(args.nodepool.as_ref(), args.nodeclass.as_ref())?;
        let (catalog, mut notes) = args.source.read()?;
        notes.push(catalog.report.to_string());
        notes.extend(intent.notes.clone());
        notes.extend(workloads.notes.clone());
        let caps = Caps { max_machines: args.max_machines, ..Caps::default() };
        Ok(Self { workloads, intent, catalog, caps, notes })
    }

    fn plan(&self) -> Plan {
        self.with_input(scarpenter_planner::plan)
    }

    fn explain(&self, plan: &Plan) -> Vec<Explanation> {
        self.with_input(|input| scarpenter_planner::explain_all(input, plan))
    }

    /// What machines for the pods that get one cost at least.
    fn lower_bound(&self, plan: &Plan) -> u64 {
        let placed: BTreeSet<&str> =
            plan.claims.iter().flat_map(|claim| &claim.pods).map(|(_, uid)| uid.as_str()).collect();
        let pods: Vec<Pod> =
            self.workloads.pods.iter().filter(|pod| placed.contains(pod.uid.as_str())).cloned().collect();
        self.with_input(|input| scarpenter_planner::lower_bound(&Input { pods: &pods, ..*input }))
    }

    fn with_input<T>(&self, work: impl FnOnce(&Input<'_>) -> T) -> T {
        work(&Input {
            snapshot: &self.catalog.snapshot,
            pods: &self.workloads.pods,
            pools: &self.intent.pools,
            classes: &self.intent.classes,
            nodes: &[],
            daemons: &self.workloads.daemons,
            unavailable: &Unavailable::default(),
            caps: &self.caps,
            namespaces: &self.workloads.namespaces,
            lessons: &Lessons::default(),
            rules: Rules { most_pods: usize::MAX, most_refusals: usize::MAX, ..Rules::default() },
            now: 0,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
