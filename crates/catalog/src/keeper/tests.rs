//! The whole client against a Keeper that is played on loopback; what single files decide is tested there.

mod bad_input;
mod mutated;
mod played;
mod recorded;

use std::sync::Mutex;
use std::time::Duration;

use played::{Data, Fault, Played};
use serde_json::Value;

use super::*;
use crate::rows::Table;
use crate::testing::{TestDatabase, lines};

/// Limits under which nothing waits, and a silent Keeper is given up soon.
fn hasty() -> Limits {
    Limits { step: Duration::ZERO, window: Duration::ZERO, ..Limits::default() }
}

fn keeper(played: &Played) -> Keeper {
    Keeper::with_limits(&played.address, None, hasty()).unwrap()
}

async fn load(played: &Played) -> Result<Catalog, Error> {
    keeper(played).catalog(&Rates::default(), &()).await
}

/// The same rows in a database, written as the crawler writes them.
fn database(data: &Data) -> TestDatabase {
    let out = TestDatabase::empty();
    let tables = [RegionRow::TABLE, ZoneRow::TABLE, ServerRow::TABLE, ScoreRow::TABLE, PriceRow::TABLE];
    for (Table { name, columns }, (_, rows)) in tables.into_iter().zip(data.tables()) {
        for row in rows {
            let cells: Vec<String> = columns.iter().map(|column| cell(column, &row[*column])).collect();
            out.run(&format!("INSERT INTO {name} VALUES ({})", cells.join(", ")));
        }
    }
    out
}

fn cell(column: &str, value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(value) => u8::from(*value).to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if matches!(column, "status" | "allocation" | "unit" | "cpu_architecture") => {
            format!("'{}'", text.to_uppercase())
        }
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => format!("'{}'", other.to_string().replace('\'', "''")),
    }
}

/// Both currencies of the small data, as the played Keeper converts them.
fn rates() -> Rates {
    ["EUR=2", "CNY=0.5"].into_iter().map(|rate| rate.parse::<crate::Rate>().unwrap()).collect()
}

fn types(catalog: &Catalog) -> Vec<String> {
    catalog.snapshot.types().iter().map(|of| format!("{of:?}")).collect()
}

#[tokio::test]
async fn a_keeper_and_the_database_it_serves_give_the_same_catalog() {
    let played = Played::small().await;
    let fetched = load(&played).await.unwrap();
    let database = database(&Data::small());
    let read = crate::open_sqlite(&database.path(), &rates()).unwrap();
    assert_eq!(lines(&fetched), lines(&read));
    assert_eq!(types(&fetched), types(&read));
    assert_eq!(fetched.scores, read.scores);
    assert!(fetched.scores.find("bogomips", "{}").is_some());
    assert_eq!((fetched.report.oldest, fetched.report.date), (read.report.oldest, read.report.date));
    assert!(fetched.report.offerings > 10, "{}", fetched.report);
}

#[tokio::test]
async fn every_trap_of_the_small_data_comes_out_right() {
    let lines = lines(&load(&Played::small().await).await.unwrap());
    for expected in [
        "aws us-east-1/us-east-1c c8a.large on-demand 107800",
        "aws eu-north-1/eu-north-1a m5.large on-demand 102000",
        "alicloud us-east-1/us-east-1a ecs.g7.large on-demand 250000",
        "gcp us-central1/us-central1-a e2-standard-4 spot 40200",
        "gcp europe-west1/europe-west1-b e2-standard-4 on-demand 147500",
        "gcp us-central1/us-central1-a m2-ultramegamem-416 spot 84371000",
        "hcloud fsn1/fsn1 cax11 on-demand 17600",
        "hcloud nbg1/nbg1 cax11 on-demand 17600",
        "hcloud fsn1/fsn1 ccx33 on-demand 443800",
        "hcloud fsn1/fsn1 gex44 on-demand 22400000",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
    }
    for never in
        ["mac2", "p3.2xlarge", "no-such", "us-west-2z", "eu-west-9", " 100", "us-west-2b m5", "98", "335004"]
    {
        assert!(!lines.iter().any(|line| line.contains(never)), "{never} is in {lines:#?}");
    }
}

#[tokio::test]
async fn what_rates_are_given_go_before_the_keepers_own() {
    let played = Played::small().await;
    let given: Rates = ["EUR=1.5"].into_iter().map(|rate| rate.parse::<crate::Rate>().unwrap()).collect();
    let catalog = keeper(&played).load(&given, &()).await.unwrap();
    assert!(lines(&catalog).contains(&"hcloud fsn1/fsn1 cax11 on-demand 13200".to_owned()));
}

#[tokio::test]
async fn without_a_key_three_regions_are_asked_for_at_a_time_and_nothing_that_needs_one() {
    let mut data = Data::small();
    let many: Vec<Value> = (0..10_000).map(|_| data.prices[0].clone()).collect();
    data.prices.extend(many);
    let played = Played::of(data).await;
    let catalog = load(&played).await.unwrap();
    let asked = played.asked();
    let of_aws: Vec<_> = asked.iter().filter(|target| target.contains("vendor_regions=aws")).collect();
    let regions: Vec<usize> = of_aws.iter().map(|target| target.matches("vendor_regions").count()).collect();
    assert_eq!(regions, [3, 1], "{of_aws:?}");
    assert!(!of_aws.iter().any(|target| target.contains("eu-west-9")), "closed: {of_aws:?}");
    assert!(!asked.iter().any(|target| target.contains("/table/server_prices")));
    assert!(asked.iter().any(|target| target.contains("vendor=hcloud") && target.contains("currency=EUR")));
    assert_eq!(lines(&catalog), lines(&load(&Played::small().await).await.unwrap()));
}

#[tokio::test]
async fn of_many_benchmarks_only_those_that_become_labels_are_asked_for() {
    let mut data = Data::small();
    for level in 0..30 {
        let mut row = data.scores[0].clone();
        row["benchmark_id"] = Value::from("compression_text:ratio");
        row["config"] = Value::from(format!("{{\"level\": {level}}}"));
        data.scores.push(row);
    }
    let played = Played::of(data).await;
    let catalog = load(&played).await.unwrap();
    assert_eq!(types(&catalog), types(&load(&Played::small().await).await.unwrap()));
    let asked = played.asked();
    let asked_for = |id: &str| asked.iter().filter(|target| target.contains(id)).count();
    assert_eq!((asked_for("compression"), asked_for("bogomips"), asked_for("geekbench")), (0, 0, 2));
}

#[tokio::test]
async fn with_a_key_the_bare_tables_give_the_same_catalog() {
    let played = Played::start(Data::small(), Some("s3cret"), None).await;
    let key = Some(Key::new("s3cret").unwrap());
    let keyed = Keeper::with_limits(&played.address, key, hasty()).unwrap();
    let catalog = keyed.catalog(&Rates::default(), &()).await.unwrap();
    assert_eq!(lines(&catalog), lines(&load(&Played::small().await).await.unwrap()));
    let asked = played.asked();
    assert!(asked.iter().any(|target| target == "/table/server_prices?vendor=hcloud"), "{asked:?}");
    assert!(!asked.iter().any(|target| target.contains("vendor_regions")), "{asked:?}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_asked_for_in_parts() {
    let longest = serde_json::to_vec(&Data::small().servers).unwrap().len() + 1000;
    let played = Played::small().await;
    let limits = Limits { body: longest, ..hasty() };
    let keeper = Keeper::with_limits(&played.address, None, limits).unwrap();
    let catalog = keeper.catalog(&Rates::default(), &()).await.unwrap();
    assert_eq!(lines(&catalog), lines(&load(&Played::small().await).await.unwrap()));
    let asked = played.asked();
    assert!(asked.iter().any(|target| target.contains("server_prices?vendor=aws&")), "{asked:#?}");
    assert!(asked.iter().any(|target| target.contains("vendor_regions=aws")), "{asked:#?}");
}

#[tokio::test]
async fn an_unchanged_database_is_not_fetched_again() {
    let played = Played::small().await;
    let keeper = keeper(&played);
    let health = keeper.changed(None).await.unwrap().unwrap();
    assert_eq!((health.hash.len(), health.updated.map(Timestamp::as_second)), (64, Some(1_796_044_581)));
    assert_eq!(keeper.changed(Some(&health.hash)).await.unwrap(), None);
    assert_eq!(keeper.changed(Some("another")).await.unwrap(), Some(health));
    assert_eq!(played.asked(), ["/healthcheck", "/healthcheck", "/healthcheck"]);
}

#[tokio::test]
async fn a_database_that_changes_on_the_way_is_fetched_once_anew() {
    let played = Played::small().await;
    played.fault("/table/zone", 1, Fault::NewDatabase);
    assert!(load(&played).await.is_ok());
    let count = |played: &Played, part: &str| played.asked().iter().filter(|target| *target == part).count();
    assert_eq!((count(&played, "/table/server"), count(&played, "/healthcheck")), (2, 2));

    let played = Played::small().await;
    played.fault("/table/zone", usize::MAX, Fault::NewDatabase);
    assert!(load(&played).await.is_ok(), "and then taken as it is");
    assert_eq!(count(&played, "/table/server"), 2);
}

/// What was told, as it is told.
#[derive(Default)]
struct Heard(Mutex<Vec<(usize, usize, String)>>);

impl Progress for Heard {
    fn told(&self, done: usize, of: usize, what: &str) {
        self.0.lock().unwrap().push((done, of, what.to_owned()));
    }
}

#[tokio::test]
async fn progress_is_told_step_by_step_and_ends_with_all_of_them() {
    let (played, heard) = (Played::small().await, Heard::default());
    keeper(&played).load(&Rates::default(), &heard).await.unwrap();
    let heard = heard.0.into_inner().unwrap();
    assert!(
        heard.iter().enumerate().all(|(index, (done, of, _))| *done == index + 1 && of >= done),
        "{heard:?}"
    );
    assert!(heard.last().is_some_and(|(done, of, _)| done == of), "{heard:?}");
    assert!(heard.iter().any(|(_, _, what)| what == "prices of hcloud"), "{heard:?}");
}
