//! What only a real API server can show: schemas, admission, watches, conflicts.

#![allow(clippy::unwrap_used)]

mod admission;
mod emission;
mod explain;
mod join;
mod k3s;
mod schema;
mod schema_cases;
mod scnodepool;

use scarpenter_playground::Options;
use scarpenter_tests::harness::{Trials, run};

fn main() -> std::process::ExitCode {
    let mut trials = Trials::new(Options::default());
    schema::add(&mut trials);
    explain::add(&mut trials);
    admission::add(&mut trials);
    scnodepool::add(&mut trials);
    emission::add(&mut trials);
    join::add(&mut trials);
    k3s::add(&mut trials);
    run(trials)
}
