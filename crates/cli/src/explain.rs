//! `explain`: what comes of one pod of a cluster, and why.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use scarpenter_core::pod::PodKey;
use scarpenter_planner::{Explanation, Outcome};

use crate::BadInput;
use crate::catalog_source::SourceArgs;
use crate::controller::micro_usd;
use crate::print::{json, print};

mod cluster;
pub(crate) mod document;
mod facts;
mod standing;
pub(crate) mod words;

use cluster::{Cluster, ClusterArgs};
use document::{AnswerDocument, Told};
use facts::Facts;
use standing::Standing;

/// Exit code when nothing is bought for the pod.
const REFUSED: u8 = 3;
/// What only the controller knows.
const NOT_SEEN: &str = "not seen from outside: what the controller remembers (offerings that were sold out or over quota \
                        lately, what machines turned out to have), its options but for those given here, and live prices";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Say what comes of a pod of the cluster, what each rule leaves of the offerings, and what to change.
    Pod(Box<PodArgs>),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 when the pod has or gets a place, 3 when it gets none, 2 for bad input, 1 for any other failure."
)]
struct PodArgs {
    /// The pod; without a namespace it is looked for in `default`.
    #[arg(value_name = "NAMESPACE/NAME")]
    pod: Name,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    source: SourceArgs,
    /// Most machines, as the controller's option of this name; without it no cap.
    #[arg(long, value_name = "N")]
    max_machines: Option<u64>,
    /// Most money an hour in USD, as the controller's option of this name; without it no cap.
    #[arg(long, value_name = "USD", value_parser = micro_usd)]
    max_usd_per_hour: Option<u64>,
    /// The controller takes pods that name none of our keys although other NodePools exist.
    #[arg(long)]
    all_pods: bool,
    /// How to print the answer: for a person, or in version 1 of its contract as JSON or YAML.
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
}

#[derive(Clone, Debug)]
struct Name(PodKey);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
        let is_name = |part: &str| !part.is_empty() && !part.contains('/');
        if !is_name(namespace) || !is_name(name) {
            return Err("a pod is named as NAMESPACE/NAME".to_owned());
        }
        Ok(Self(PodKey::new(namespace, name)))
    }
}

/// Exit code 0 when the pod has or gets a place, 3 when it gets none, 2 for bad input.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let What::Pod(args) = args.what;
    let Name(key) = &args.pod;
    let mut cluster = Cluster::read(&args.cluster, key).await?;
    let Some(pod) = cluster.pod.clone() else {
        return Err(anyhow::anyhow!("there is no pod {key}").context(BadInput));
    };
    let standing = Standing::of(&pod, &cluster.view, args.all_pods);
    let told = Told::of(&pod, &cluster.events);
    let mut notes = cluster.notes.clone();
    let explanation = if standing.is_settled() {
        None
    } else {
        let catalog = args.source.open()?;
        cluster.suppose_refused();
        let facts = Facts::gather(
            &cluster.view,
            (args.max_machines, args.max_usd_per_hour),
            jiff::Timestamp::now().as_second(),
        );
        notes.extend(facts.notes.iter().cloned());
        facts.explain(&catalog.snapshot, key)
    };
    let failed = explanation.as_ref().is_some_and(is_refused);
    let answer =
        Answer { key, standing: &standing, explanation: explanation.as_ref(), notes: &notes, told: &told };
    let text = match args.output {
        Output::Text => answer.text(),
        Output::Json => json(&answer.document())?,
        Output::Yaml => serde_saphyr::to_string(&answer.document()).context("write the answer as YAML")?,
    };
    print(&text)?;
    Ok(if failed { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn is_refused(explanation: &Explanation) -> bool {
    matches!(explanation.outcome, Outcome::Refused(_) | Outcome::Deferred)
}

/// All that is said of the pod.
struct Answer<'a> {
    key: &'a PodKey,
    standing: &'a Standing,
    explanation: Option<&'a Explanation>,
    /// What is to be known beside: pools that are left out, objects that could not be read.
    notes: &'a [String],
    told: &'a Told,
}

impl Answer<'_> {
    fn text(&self) -> String {
        let mut out = String::new();
        if let Some(sentence) = self.standing.sentence() {
            out.push_str(&words::paragraph("", &format!("{}: {sentence}", self.key)));
        }
        if let Some(explanation) = self.explanation {
            out.push_str(&words::render(std::slice::from_ref(explanation)));
        }
        for note in self.notes {
            out.push_str(&words::paragraph("  ", note));
        }
        out.push_str(&self.told.text());
        if self.explanation.is_some() {
            out.push_str(&words::paragraph("", NOT_SEEN));
        }
        out
    }

    fn document(&self) -> AnswerDocument<'_> {
        let explained = self.explanation.is_some();
        AnswerDocument {
            version: 1,
            pod: self.key.to_string(),
            state: self.standing.identifier(),
            message: self.standing.sentence(),
            explanation: self.explanation.map(document::ExplanationDocument::new),
            notes: self.notes,
            told: self.told,
            not_seen: explained.then_some(NOT_SEEN),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
