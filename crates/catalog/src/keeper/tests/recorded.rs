//! The real Keeper's recorded answers, and the real catalog played by our Keeper. Not run where they are not at hand.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::read::GzDecoder;

use super::super::client::Sink as _;
use super::super::fetch::SCORE;
use super::super::list::{List, Rows, Shape};
use super::played::from_database;
use super::*;
use crate::testing::real_catalog;

fn folder(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SCARPENTER_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("keeper/responses");
    if folder.is_dir() {
        return Some(folder);
    }
    // Not `eprintln`, which the test harness keeps to itself.
    let line = format!("not run: {test} needs keeper/responses in the folder that SCARPENTER_SHARED names\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

fn recording(folder: &Path, name: &str) -> Vec<u8> {
    let plain = folder.join(format!("{name}.json"));
    if plain.is_file() {
        return std::fs::read(plain).unwrap();
    }
    let packed = std::fs::File::open(folder.join(format!("{name}.json.gz"))).unwrap();
    let mut body = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut body).unwrap();
    body
}

/// Some recorded lists that are not long, to be changed.
pub(super) fn recordings() -> &'static [Vec<u8>] {
    static ALL: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let Some(folder) = folder("changed recordings") else { return Vec::new() };
        let names = [
            "server_prices_aws_c8a.large",
            "server_prices_alicloud_cny",
            "servers_gpu",
            "benchmark_configs",
            "regions_hcloud",
            "servers_monthly_upcloud",
            "error_422_unknown_vendor",
            "healthcheck",
            "stats",
        ];
        names.iter().map(|name| recording(&folder, name)).collect()
    })
}

fn read(shape: &Shape, body: &[u8]) -> Rows {
    let mut list = List::new(shape);
    body.chunks(16_000).for_each(|chunk| list.feed(chunk).unwrap());
    list.end().unwrap()
}

#[test]
fn every_row_of_every_recorded_table_and_price_list_can_be_read() {
    let Some(folder) = folder("every recorded row") else { return };
    let price = Shape::of(&PriceRow::TABLE, |row| PriceRow::read(row).price);
    let scored = Shape::new(&SCORE, |row| (row.text(0).len(), row.text(1).len(), row.number(2)));
    for (name, shape, count) in [
        ("table_region", Shape::of(&RegionRow::TABLE, |row| RegionRow::read(row).active), 253),
        ("table_zone", Shape::of(&ZoneRow::TABLE, |row| ZoneRow::read(row).active), 562),
        ("table_server", Shape::of(&ServerRow::TABLE, |row| ServerRow::read(row).vcpus), 5833),
        ("server_prices_hcloud_all", price.clone(), 70),
        ("server_prices_gcp_spot_us-central1", price.clone(), 20),
        ("server_prices_default", price.clone(), 25),
        ("server_prices_inactive_server", price.clone(), 10),
        ("server_prices_aws_spot_us-west-2", price, 0),
        ("servers_aws_us-west-2_passmark_st", scored.clone(), 25),
        ("servers_geekbench_single", scored.clone(), 1),
        ("servers_unknown_benchmark_id", scored, 3),
    ] {
        let rows = read(&shape, &recording(&folder, name));
        assert_eq!((rows.count, rows.bad, rows.first_bad.as_str()), (count, 0, ""), "{name}");
    }
}

#[tokio::test]
async fn recorded_tables_and_the_real_prices_give_the_catalog_of_the_database() {
    const VENDORS: [&str; 4] = ["hcloud", "ovh", "upcloud", "vultr"];
    let test = "the catalog of recorded answers";
    let (Some(folder), Some(path)) = (folder(test), real_catalog(test)) else { return };
    let data = from_database(&path, "vendor_id IN ('hcloud', 'ovh', 'upcloud', 'vultr')");
    let played = Played::of(data).await;
    for (target, name) in [
        ("/healthcheck", "healthcheck"),
        ("/stats", "stats"),
        ("/table/region", "table_region"),
        ("/table/zone", "table_zone"),
        ("/table/server", "table_server"),
        ("/benchmark_configs", "benchmark_configs"),
    ] {
        played.verbatim(target, recording(&folder, name));
    }
    let fetched = load(&played).await.unwrap();
    let read = crate::open_sqlite(&path, &rates()).unwrap();
    let of_vendors = |catalog: &Catalog| -> Vec<String> {
        let lines = lines(catalog).into_iter();
        lines.filter(|line| VENDORS.iter().any(|vendor| line.starts_with(vendor))).collect()
    };
    assert_eq!(of_vendors(&fetched), of_vendors(&read));
    assert_eq!(of_vendors(&fetched).len(), lines(&fetched).len());
    let (mut fetched, mut read) = (types(&fetched), types(&read));
    fetched.sort();
    read.sort();
    assert_eq!(fetched.len(), read.len());
    for (fetched, read) in fetched.iter().zip(&read) {
        assert_eq!(fetched, read);
    }
}

/// A real Keeper over the real catalog, at the address that `SCARPENTER_KEEPER` names, with the key of
/// `SCARPENTER_KEEPER_KEY` if there is one.
///
/// Where it converts, prices may differ by the rounding to four digits, and by that of the rate found from them; all else must be equal.
#[tokio::test]
async fn a_real_keeper_gives_the_catalog_of_its_database() {
    let test = "the catalog of a real Keeper";
    let Some(path) = real_catalog(test) else { return };
    let Some(address) = std::env::var_os("SCARPENTER_KEEPER") else {
        std::io::stderr()
            .write_all(format!("not run: {test} needs its address in SCARPENTER_KEEPER\n").as_bytes())
            .unwrap();
        return;
    };
    let key = std::env::var("SCARPENTER_KEEPER_KEY").ok().map(|key| Key::new(&key).unwrap());
    let keeper = Keeper::new(address.to_str().unwrap(), key).unwrap();
    let fetched = keeper.load(&Rates::default(), &()).await.unwrap();
    let own = &fetched.report.provenance;
    let mut rates = own.rates.clone();
    if rates.get("CNY").is_none() {
        let dearest = |catalog: &Catalog| dearest(catalog, "alicloud");
        let yuan: Rates = [crate::Rate::new("CNY", 1.0).unwrap()].into_iter().collect();
        let in_yuan = crate::open_sqlite(&path, &yuan).unwrap();
        rates.set("CNY", dearest(&fetched) / dearest(&in_yuan)).unwrap();
    }
    let read = crate::open_sqlite(&path, &rates).unwrap();
    let line = format!(
        "real Keeper: {}\n{}\ndatabase: {}\n",
        own.rates.get("EUR").unwrap(),
        fetched.report,
        read.report
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    let (fetched_lines, read_lines) = (lines(&fetched), lines(&read));
    assert_eq!(fetched_lines.len(), read_lines.len());
    for (fetched, read) in fetched_lines.iter().zip(&read_lines) {
        let [(offering, price), (same, exact)] = [fetched, read].map(|line| line.rsplit_once(' ').unwrap());
        assert_eq!(offering, same);
        let [price, exact]: [i64; 2] = [price, exact].map(|price| price.parse().unwrap());
        let rounding = if offering.starts_with("alicloud") { 51 + exact / 500_000 } else { 0 };
        assert!((price - exact).abs() <= rounding, "{fetched}\n{read}");
    }
    let (fetched, read) = (bought(&fetched), bought(&read));
    assert_eq!(fetched.len(), read.len());
    for (fetched, read) in fetched.iter().zip(&read) {
        assert_eq!(fetched, read);
    }
}

/// The types that can be bought: of others the Keeper gives no scores.
fn bought(catalog: &Catalog) -> Vec<String> {
    let all = types(catalog).into_iter().enumerate();
    let bought = all.filter(|(index, _)| catalog.snapshot.offerings_of(*index).next().is_some());
    let scores = |index| -> Vec<_> {
        catalog.scores.of(index).map(|(of, score)| format!("{} {} {score}", of.id(), of.config())).collect()
    };
    let mut bought: Vec<String> = bought.map(|(index, of)| format!("{of} {:?}", scores(index))).collect();
    bought.sort();
    bought
}

fn dearest(catalog: &Catalog, vendor: &str) -> f64 {
    let of = lines(catalog).into_iter().filter(|line| line.starts_with(vendor));
    of.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).fold(0.0, f64::max)
}
