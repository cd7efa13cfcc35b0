//! `nodepool render`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use scarpenter_core::lifecycle::Time;
use scarpenter_emission::emit::{check_live, emit, listed};
use scarpenter_emission::{Facts, Fault, Outcome, Pass, Refusal, Selection, churn, select};
use serde_json::Value;

use crate::BadInput;
use crate::catalog_source::SourceArgs;
use crate::print::{json, print};

use super::input::Wanted;
use super::{diff, explain, facts, input, report};

/// Exit codes: what is wrong with the spec, nothing is left, the data does not tell, and `--diff` found something.
const BAD_SPEC: u8 = 2;
const NOTHING_LEFT: u8 = 3;
const NO_DATA: u8 = 4;
const DIFFERS: u8 = 5;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "No cluster is read, so spec.location.regions must be set; the clock is not read either: the same files give the same bytes.\n\nExit code: 0 when all was rendered, 2 for an SCNodePool that means nothing, 3 when no type is left, 4 when the data does not tell, 5 when --diff found a difference, 1 for any other failure."
)]
pub(super) struct Args {
    /// SCNodePools in YAML or JSON, each gives one NodePool in the same order; `-` is the standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    filename: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// The NodePools as they are now (`kubectl get nodepools -o yaml`): types go from them as slowly as from a cluster.
    #[arg(long, value_name = "FILE")]
    current: Option<PathBuf>,
    /// Say why a type is in or out, with every rule that it misses and by how much, instead of printing the NodePool.
    #[arg(long, value_name = "TYPE", conflicts_with = "diff")]
    explain: Option<String>,
    /// Say what would change in the NodePools of `--current`, instead of printing the new ones.
    #[arg(long, requires = "current")]
    diff: bool,
    /// Also write what was chosen and why not the others, as the status of each SCNodePool in YAML.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How to print NodePools.
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Yaml,
    Json,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let documents = input::documents(&args.filename).context(BadInput)?;
    let current = args.current.as_deref().map(input::documents).transpose().context(BadInput)?;
    let mut wanted = Vec::new();
    for document in &documents {
        wanted.push(Wanted::read(document).context(BadInput)?);
    }
    let (catalog, notes) = match args.source.read() {
        Ok(read) => read,
        Err(error) => {
            eprintln!("scarpenter: no data: {error:#}");
            return Ok(ExitCode::from(NO_DATA));
        }
    };
    notes.iter().for_each(|note| eprintln!("scarpenter: {note}"));
    let facts = facts::facts(&catalog);
    let mut answer = Answer { args, facts: &facts, text: String::new(), reports: Vec::new(), code: 0 };
    for wanted in wanted {
        let live = |wanted: &Wanted| input::nodepool(current.as_deref()?, &wanted.intent.name);
        let done = wanted.and_then(|wanted| answer.add(&wanted, live(&wanted).as_ref()));
        if let Err(refusal) = done {
            eprintln!("scarpenter: {refusal}");
            answer.end_with(code(&refusal));
        }
    }
    print(&answer.text)?;
    if let Some(path) = &args.report {
        let stream: String = answer.reports.iter().map(|report| format!("---\n{report}")).collect();
        std::fs::write(path, stream).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(ExitCode::from(answer.code))
}

fn code(refusal: &Refusal) -> u8 {
    match refusal.reason.fault() {
        Fault::Spec => BAD_SPEC,
        Fault::Nothing => NOTHING_LEFT,
        Fault::Data => NO_DATA,
    }
}

/// What is printed, and how the command ends.
struct Answer<'a> {
    args: &'a Args,
    facts: &'a Facts<'a>,
    text: String,
    reports: Vec<String>,
    code: u8,
}

impl Answer<'_> {
    fn add(&mut self, wanted: &Wanted, live: Option<&Value>) -> Result<(), Refusal> {
        let intent = &wanted.intent;
        let named = |refusal: Refusal| Refusal {
            message: format!("{}: {}", intent.name, refusal.message),
            ..refusal
        };
        let selection = select(intent, self.facts).map_err(named)?;
        if let Some(name) = &self.args.explain {
            let known = selection.find(name).is_some();
            self.text.push_str(&explain::render(&intent.name, &selection, name));
            if !known {
                self.end_with(BAD_SPEC);
            }
            return Ok(());
        }
        if let Some(refusal) = selection.refusal() {
            eprint!("{}", explain::near(&selection));
            return Err(named(refusal));
        }
        if let Some(live) = live {
            check_live(intent, live).map_err(named)?;
        }
        for caution in selection.cautions() {
            eprintln!("scarpenter: {}: {caution}", intent.name);
        }
        let outcome = self.churn(wanted, &selection, live);
        let timestamp = facts::timestamp(self.facts);
        let data = (timestamp.as_deref(), self.facts.hash);
        let nodepool = emit(intent, &selection, &outcome.emitted, data).map_err(named)?;
        if self.args.report.is_some() {
            let report = report::report(intent, &selection, &outcome, data);
            self.reports.push(serde_saphyr::to_string(&report).expect("plain data is written to memory"));
        }
        self.print(&selection, &outcome, &nodepool, live);
        Ok(())
    }

    fn print(
        &mut self,
        selection: &Selection<'_>,
        outcome: &Outcome,
        nodepool: &Value,
        live: Option<&Value>,
    ) {
        if self.args.diff {
            let (text, differs) = diff::diff(selection, outcome, nodepool, live);
            self.text.push_str(&text);
            if differs {
                self.end_with(DIFFERS);
            }
            return;
        }
        let text = match self.args.output {
            Output::Yaml => serde_saphyr::to_string(nodepool).map(|text| format!("---\n{text}")).ok(),
            Output::Json => json(nodepool).ok(),
        };
        self.text.push_str(&text.expect("plain data is written to memory"));
    }

    /// What is listed: without a NodePool that is there, and without a status, all that is wanted and no more.
    fn churn(&self, wanted: &Wanted, selection: &Selection<'_>, live: Option<&Value>) -> Outcome {
        let of_status = || {
            let types = wanted.status.selected.iter().flat_map(|selected| &selected.instance_types);
            Some(types.map(|of| of.name.clone()).collect::<BTreeSet<String>>())
                .filter(|types| !types.is_empty())
        };
        let current = match live.and_then(listed) {
            Some((types, true)) => types,
            Some((types, false)) => of_status().unwrap_or(types),
            None => of_status().unwrap_or_default(),
        };
        // The data's own time stands for the clock, so that equal files give equal bytes.
        let now = self.facts.timestamp.unwrap_or(Time::from_millis(0));
        let rules = &wanted.intent.spec.churn;
        churn(Pass::Scheduled, selection, &current, &wanted.pending(), rules, now)
    }

    /// The first bad end counts; a difference only where nothing else is wrong.
    fn end_with(&mut self, code: u8) {
        if self.code == 0 || self.code == DIFFERS {
            self.code = code;
        }
    }
}
