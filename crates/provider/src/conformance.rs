//! One suite that any plugin, ours or not, can be run against: it finds out whether the promises of the contract hold.
//!
//! It makes and deletes real machines at whatever the plugin talks to, under cluster ids that nothing else uses,
//! and leaves nothing behind that a working `DeleteMachine` removes.

mod bench;
mod destroying;
mod finding;
mod making;
mod selling;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use scarpenter_core::name::MachineId;

use crate::client::Client;
use crate::request::CreateMachine;

use bench::Bench;

/// What the suite may buy, and how patient it is.
pub struct Setup {
    /// Template: cluster, claim and name are replaced; the offering must be one that can be bought.
    pub create: CreateMachine,
    /// How long a deleted machine may still be seen.
    pub gone_within: Duration,
    /// How long one check may take.
    pub check_within: Duration,
    /// A machine at the vendor without our tags.
    pub foreign: Option<Foreign>,
}

/// A machine that is none of ours and must survive.
pub struct Foreign {
    /// The vendor's id.
    pub id: MachineId,
    /// Asks the vendor, not the plugin, whether it is still there.
    pub is_alive: Box<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order in which they were run.
    pub checks: Vec<Check>,
}

/// One promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The promise, as a sentence.
    pub name: &'static str,
    /// Whether it holds.
    pub outcome: Outcome,
}

/// Whether a promise holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Passed,
    /// It does not.
    Failed(String),
    /// It was not looked at.
    Skipped(&'static str),
}

impl Report {
    /// Whether every promise that was looked at holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// Names of the promises that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        self.checks.iter().filter(|check| matches!(check.outcome, Outcome::Failed(_))).map(|check| check.name)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            match &check.outcome {
                Outcome::Passed => writeln!(f, "pass  {}", check.name)?,
                Outcome::Failed(why) => writeln!(f, "FAIL  {}: {why}", check.name)?,
                Outcome::Skipped(why) => writeln!(f, "skip  {}: {why}", check.name)?,
            }
        }
        Ok(())
    }
}

type Verdict = Result<(), String>;
type Running<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
type Test = for<'a> fn(&'a Bench) -> Running<'a>;

macro_rules! checks {
    ($($name:literal => $test:path,)*) => {
        &[$(($name, |bench| Box::pin($test(bench)))),*]
    };
}

const CHECKS: &[(&str, Test)] = checks! {
    "says who it is and what it can do" => making::says_who_it_is,
    "makes the machine that was asked for" => making::makes_what_was_asked_for,
    "makes one machine for one claim asked twice" => making::asked_twice,
    "makes one machine for one claim asked in parallel" => making::asked_in_parallel,
    "makes one machine for one claim whose answers were lost" => making::answers_lost,
    "refuses other parameters for a claim that has a machine" => making::other_parameters,
    "refuses bad arguments and makes nothing" => making::bad_arguments,
    "says what it sells now, or that it cannot" => selling::says_what_it_sells,
    "takes user data up to its limit" => making::user_data_at_the_limit,
    "refuses user data over its limit and makes nothing" => making::user_data_over_the_limit,
    "finds a machine by its claim alone" => finding::by_claim_alone,
    "lists every machine and where the list is complete" => finding::lists_every_machine,
    "knows nothing of a claim that has no machine" => finding::unknown_claim,
    "deletes a machine and says so until it is gone" => destroying::until_gone,
    "takes a delete twice" => destroying::twice,
    "calls the deletion of the unknown gone" => destroying::the_unknown,
    "deletes one machine alone when told to" => destroying::one_alone,
    "leaves the machines of another cluster alone" => destroying::other_cluster,
    "leaves nothing behind" => destroying::nothing_behind,
};
const FOREIGN: &str = "leaves machines without our tags alone";

/// Runs every check, one after another.
pub async fn run(client: &Client, setup: Setup) -> Report {
    let Setup { create, gone_within, check_within, foreign } = setup;
    let bench = Bench::new(client.clone(), create, gone_within);
    let mut checks = Vec::new();
    if let Some(foreign) = foreign {
        let outcome = within(check_within, Box::pin(destroying::foreign(&bench, &foreign))).await;
        checks.push(Check { name: FOREIGN, outcome });
    } else {
        checks.push(Check { name: FOREIGN, outcome: Outcome::Skipped("no such machine was given") });
    }
    for (name, test) in CHECKS {
        let outcome = within(check_within, test(&bench)).await;
        checks.push(Check { name, outcome });
    }
    Report { checks }
}

async fn within(limit: Duration, check: Running<'_>) -> Outcome {
    match tokio::time::timeout(limit, check).await {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(why)) => Outcome::Failed(why),
        Err(_) => Outcome::Failed(format!("not done within {limit:?}")),
    }
}
