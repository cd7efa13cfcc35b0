//! Golden scenarios of the planner: one file of objects in, the plan out.
//!
//! `cases/NAME.yaml` holds pods, pools, classes and DaemonSets as users write them, a `Catalog`, and where it matters a
//! `Situation` with what cannot be bought and the places that there are; `cases/NAME.json` is the plan.
//! `UPDATE_GOLDEN=1` writes the plans anew: read the difference before committing it.
//! A bug report about a bad plan becomes a case.
#![allow(clippy::unwrap_used)]

mod case;
mod outcome;

use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/cases");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    cases.sort();
    cases
}

#[test]
fn every_scenario_gives_the_plan_beside_it() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let cases = cases();
    assert!(cases.len() > 10, "the cases are there");
    let mut different = Vec::new();
    for path in cases {
        let case = case::Case::read(&path);
        let plan = outcome::write(&case.plan());
        let golden = path.with_extension("json");
        if update {
            std::fs::write(&golden, &plan).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != plan {
            different.push(format!("{}:\n{plan}", path.display()));
        }
    }
    assert!(different.is_empty(), "set UPDATE_GOLDEN=1 to accept these plans\n{}", different.join("\n"));
}

#[test]
fn the_order_of_objects_does_not_matter() {
    for path in cases() {
        let mut case = case::Case::read(&path);
        let plan = case.plan();
        case.reverse();
        assert_eq!(outcome::write(&case.plan()), outcome::write(&plan), "{}", path.display());
    }
}
