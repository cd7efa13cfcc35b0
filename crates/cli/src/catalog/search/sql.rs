//! `search` and SQL, asked the same of the whole catalog, answer the same.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use scarpenter_catalog::{Catalog, Rates, open_sqlite};

use super::tests::query;
use super::*;

const EUR: f64 = 1.1;
const CNY: f64 = 0.14;
/// So many rows are compared of each answer, beside their number.
const ROWS: usize = 500;

/// Every offering with the facts that are asked for, in the words of pods.
///
/// It repeats in SQL what an offering is: a price above 0 of what its vendor sells, on Linux, by the hour, in a currency
/// with a rate, of an architecture that Kubernetes knows.
const OFFERINGS: &str = "
CREATE TEMP TABLE offering AS
WITH placed AS (
    SELECT r.vendor_id, r.region_id, z.zone_id,
        CASE r.vendor_id WHEN 'hcloud' THEN json_extract(r.aliases, '$[0]') ELSE r.api_reference END AS region,
        CASE r.vendor_id
            WHEN 'hcloud' THEN json_extract(r.aliases, '$[0]')
            WHEN 'azure' THEN CASE z.api_reference WHEN '0' THEN NULL ELSE r.api_reference || '-' || z.api_reference END
            WHEN 'vultr' THEN z.zone_id
            ELSE z.api_reference END AS zone,
        CASE WHEN r.vendor_id = 'aws' AND z.zone_id != z.api_reference THEN z.zone_id END AS aws_zone_id
    FROM region r JOIN zone z USING (vendor_id, region_id)
    WHERE r.status = 'ACTIVE' AND z.status = 'ACTIVE'
), priced AS (
    SELECT s.vendor_id AS vendor, s.api_reference AS type, region, zone, aws_zone_id,
        CASE p.allocation WHEN 'SPOT' THEN 'spot' ELSE 'on-demand' END AS capacity,
        CAST(ROUND(ROUND(p.price * 1e6) / 1e6 * CASE p.currency WHEN 'EUR' THEN ?1 WHEN 'CNY' THEN ?2 ELSE 1.0 END * 1e6)
            AS INTEGER) AS price,
        CASE WHEN s.cpu_architecture = 'ARM64' OR s.vendor_id = 'gcp' AND (s.api_reference LIKE 'c4a-%'
            OR s.api_reference LIKE 'n4a-%' OR s.api_reference LIKE 't2a-%') THEN 'arm64' ELSE 'amd64' END AS arch,
        s.vcpus AS cpu, s.memory_amount AS memory, CAST(s.gpu_count AS INTEGER) AS gpus, s.gpu_model, s.family,
        s.cpu_manufacturer, lower(s.cpu_allocation) AS allocation, s.server_id
    FROM server_price p
    JOIN server s ON s.vendor_id = p.vendor_id AND s.server_id = p.server_id
    JOIN placed l ON l.vendor_id = p.vendor_id AND l.region_id = p.region_id AND l.zone_id = p.zone_id
    WHERE p.status = 'ACTIVE' AND s.status = 'ACTIVE' AND p.price > 0 AND lower(p.operating_system) = 'linux'
        AND p.unit = 'HOUR' AND p.allocation IN ('ONDEMAND', 'SPOT') AND p.currency IN ('USD', 'EUR', 'CNY')
        AND s.cpu_architecture IN ('X86_64', 'ARM64') AND s.vcpus > 0 AND s.memory_amount > 0
), scored AS (
    SELECT vendor_id, server_id,
        MAX(CASE benchmark_id WHEN 'passmark:cpu_single_threaded_test' THEN CAST(ROUND(score) AS INTEGER) END) AS passmark_single,
        MAX(CASE benchmark_id WHEN 'passmark:cpu_mark' THEN CAST(ROUND(score) AS INTEGER) END) AS passmark,
        MAX(CASE benchmark_id WHEN 'stress_ng:bestn' THEN CAST(ROUND(score) AS INTEGER) END) AS stress,
        MAX(CASE WHEN json_extract(config, '$.cores') = 'single' THEN CAST(ROUND(score) AS INTEGER) END) AS geekbench_single,
        MAX(CASE WHEN json_extract(config, '$.cores') = 'multi' THEN CAST(ROUND(score) AS INTEGER) END) AS geekbench_multi
    FROM benchmark_score WHERE status = 'ACTIVE' GROUP BY vendor_id, server_id
)
SELECT priced.*, passmark_single, passmark, stress, geekbench_single, geekbench_multi
FROM priced LEFT JOIN scored ON scored.vendor_id = vendor AND scored.server_id = priced.server_id";

/// What is asked of `search`; the same as a condition; what a row is; the order before price.
const QUESTIONS: &[(&[&str], &str, &str, &str)] = &[
    (&["--where", "vendor=aws"], "vendor = 'aws' AND capacity = 'on-demand'", REGION, ""),
    (
        &["--where", "arch=arm64,instance-memory>=16384", "--rows", "type"],
        "arch = 'arm64' AND memory >= 16384 AND capacity = 'on-demand'",
        TYPE,
        "",
    ),
    (
        &["--where", "region=us-central1,instance-cpu>=2,instance-cpu<=8", "--rows", "zone"],
        "region = 'us-central1' AND cpu BETWEEN 2 AND 8 AND capacity = 'on-demand'",
        ZONE,
        "",
    ),
    (&["--where", "capacity=spot", "--rows", "zone"], "capacity = 'spot'", ZONE, ""),
    (&["--where", "capacity,vendor in (gcp,hcloud)"], "vendor IN ('gcp', 'hcloud')", REGION, ""),
    (
        &["--sort", "score", "--benchmark", "passmark-single-thread", "--rows", "type"],
        "capacity = 'on-demand'",
        TYPE,
        "passmark_single DESC NULLS LAST,",
    ),
    (
        &["--where", "vendor notin (aws,azure)", "--sort", "score"],
        "vendor NOT IN ('aws', 'azure') AND capacity = 'on-demand'",
        REGION,
        "stress DESC NULLS LAST,",
    ),
    (
        &["--sort", "score-per-price", "--benchmark", "passmark-cpu-mark", "--rows", "type"],
        "capacity = 'on-demand'",
        TYPE,
        "passmark * 1.0 / price DESC NULLS LAST,",
    ),
    (
        &[
            "--where",
            "capacity,vendor=gcp,geekbench-multi",
            "--sort",
            "score-per-price",
            "--benchmark",
            "geekbench-multi",
        ],
        "vendor = 'gcp' AND geekbench_multi IS NOT NULL",
        REGION,
        "geekbench_multi * 1.0 / price DESC NULLS LAST,",
    ),
    (&["--where", "instance-gpu-count>=1"], "gpus >= 1 AND capacity = 'on-demand'", REGION, ""),
    (
        &["--where", "instance-gpu-model in (A100,H100),instance-gpu-count>1", "--rows", "zone"],
        "gpu_model IN ('A100', 'H100') AND gpus > 1 AND capacity = 'on-demand'",
        ZONE,
        "",
    ),
    (
        &["--where", "price-per-hour-microusd<=50000,instance-cpu>=4", "--rows", "zone"],
        "price <= 50000 AND cpu >= 4 AND capacity = 'on-demand'",
        ZONE,
        "",
    ),
    (
        &["--where", "price-per-hour-microusd>20000000,!instance-gpu-count"],
        "price > 20000000 AND gpus = 0 AND capacity = 'on-demand'",
        REGION,
        "",
    ),
    (
        &["--where", "cpu-allocation=dedicated,cpu-manufacturer!=Intel,vendor in (hcloud,ovh,upcloud,vultr)"],
        "allocation = 'dedicated' AND cpu_manufacturer IS NOT 'Intel' AND vendor IN ('hcloud', 'ovh', 'upcloud', 'vultr') \
         AND capacity = 'on-demand'",
        REGION,
        "",
    ),
    (
        &["--where", "geekbench-single>=2000,passmark-single-thread>3500", "--rows", "type"],
        "geekbench_single >= 2000 AND passmark_single > 3500 AND capacity = 'on-demand'",
        TYPE,
        "",
    ),
    (
        &["--where", "vendor=azure,!passmark-cpu-mark", "--rows", "type"],
        "vendor = 'azure' AND passmark IS NULL AND capacity = 'on-demand'",
        TYPE,
        "",
    ),
    (
        &["--where", "topology.k8s.aws/zone-id=usw2-az1,instance-family in (m7g,c7g,r7g)", "--rows", "zone"],
        "aws_zone_id = 'usw2-az1' AND family IN ('m7g', 'c7g', 'r7g') AND capacity = 'on-demand'",
        ZONE,
        "",
    ),
    (
        &["--where", "type in (ccx33,c8a.large)"],
        "type IN ('ccx33', 'c8a.large') AND capacity = 'on-demand'",
        REGION,
        "",
    ),
    (
        &["--where", "scarpenter.sparecores.com/region=alicloud.us-east-1,instance-cpu!=4", "--rows", "zone"],
        "vendor = 'alicloud' AND region = 'us-east-1' AND cpu != 4 AND capacity = 'on-demand'",
        ZONE,
        "",
    ),
];

const TYPE: &str = "vendor, type, capacity";
const REGION: &str = "vendor, type, region, capacity";
const ZONE: &str = "vendor, type, region, zone, capacity";

type Line = (String, String, String, Option<String>, String, u64);

fn by_sql(database: &Connection, condition: &str, row: &str, order: &str) -> Vec<Line> {
    let choosing = "price, capacity, vendor, region, zone, type";
    let sql = format!(
        "SELECT vendor, type, region, zone, capacity, price FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY {row} ORDER BY {choosing}) AS rank FROM offering WHERE {condition}
        ) WHERE rank = 1 ORDER BY {order} {choosing}"
    );
    let mut statement = database.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| {
        let price: i64 = row.get(5)?;
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, u64::try_from(price).unwrap()))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn by_search(catalog: &Catalog, words: &[&str]) -> Vec<Line> {
    let found = query(words).unwrap().find(&catalog.snapshot);
    let line = |id: &OfferingId| {
        let offering = catalog.snapshot.offering(*id);
        let key = offering.key();
        let capacity = key.capacity_type.as_str().to_owned();
        (
            key.vendor.to_string(),
            key.instance_type,
            key.region,
            key.zone,
            capacity,
            offering.price().micro_usd(),
        )
    };
    found.iter().map(line).collect()
}

/// The real catalog, or `None` after a line on stderr where it is not at hand.
fn real_catalog() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path =
        std::env::var_os("SCARPENTER_SHARED").map_or(beside, PathBuf::from).join("keeper/catalog.sqlite");
    if !path.is_file() {
        let line = "not run: search_and_sql_answer_the_same needs keeper/catalog.sqlite in the folder that \
                    SCARPENTER_SHARED names\n";
        // Not `eprintln`, which the test harness keeps to itself.
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    }
    Some(path)
}

#[test]
fn search_and_sql_answer_the_same() {
    let Some(path) = real_catalog() else { return };
    let mut rates = Rates::default();
    rates.set("EUR", EUR).unwrap();
    rates.set("CNY", CNY).unwrap();
    let catalog = open_sqlite(&path, &rates).unwrap();
    let database = Connection::open_in_memory().unwrap();
    let uri = format!("file:{}?mode=ro&immutable=1", path.display());
    database.execute("ATTACH DATABASE ?1 AS spare", [uri]).unwrap();
    database.execute(OFFERINGS, [EUR, CNY]).unwrap();
    for (words, condition, row, order) in QUESTIONS {
        let (sql, search) = (by_sql(&database, condition, row, order), by_search(&catalog, words));
        assert!(!sql.is_empty(), "{words:?} asks for nothing");
        assert_eq!(search.len(), sql.len(), "{words:?}");
        assert_eq!(search[..sql.len().min(ROWS)], sql[..sql.len().min(ROWS)], "{words:?}");
    }
}
