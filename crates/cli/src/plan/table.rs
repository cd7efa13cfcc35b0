//! The plan as a person reads it.

use std::fmt::Write;

use scarpenter_core::offering::{Arch, OfferingKey, Price};
use scarpenter_planner::{Plan, PlannedClaim, Refusal, Unplaced};

type Row = [String; 9];

const HEAD: [&str; 9] =
    ["POD", "NODEPOOL", "VENDOR", "TYPE", "REGION", "ZONE", "CAPACITY", "ARCH", "USD/HOUR"];

/// One block for each machine, then the pods that get none, then the sum.
pub(super) fn render(plan: &Plan) -> String {
    let refused = |unplaced: &Unplaced| refused(&unplaced.pod.to_string(), &unplaced.refusal);
    whole(plan, &plan.unplaced.iter().map(refused).collect::<Vec<_>>())
}

/// The same for whoever reads of the pods that get none elsewhere.
pub(super) fn without_refusals(plan: &Plan) -> String {
    whole(plan, &[])
}

fn whole(plan: &Plan, refused: &[String]) -> String {
    let mut out = String::new();
    if !plan.claims.is_empty() {
        let mut rows = vec![HEAD.map(str::to_owned)];
        let before = std::iter::once(None).chain(plan.claims.iter().map(Some));
        plan.claims.iter().zip(before).for_each(|(claim, before)| rows.extend(block(claim, before)));
        out.push_str(&align(&rows));
    }
    for block in refused {
        out.push_str(if out.is_empty() { "" } else { "\n" });
        out.push_str(block);
    }
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{gap}{}", sum(plan));
    out
}

fn total(plan: &Plan) -> u64 {
    plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd()).sum()
}

/// How far the total is from what machines for the same pods cost at least; nothing is said of a plan that buys nothing.
pub(super) fn bound(plan: &Plan, least: u64) -> String {
    let total = total(plan);
    match u128::from(total).saturating_mul(100).checked_div(u128::from(least)) {
        None => String::new(),
        Some(100) => "no plan costs less\n".to_owned(),
        Some(percent) => {
            format!("no plan costs less than {}; this is {percent} % of it\n", Price::from_micro_usd(least))
        }
    }
}

fn sum(plan: &Plan) -> String {
    let total = total(plan);
    let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    let bought = format!(
        "{} on {}, {} together",
        plural(placed, "pod"),
        plural(plan.claims.len(), "machine"),
        Price::from_micro_usd(total)
    );
    match plan.unplaced.len() {
        0 => bought,
        left => format!("{bought}; {} without a machine", plural(left, "pod")),
    }
}

/// The offering in the row of the first pod, what would do as well, and further pods below.
///
/// What would do as well is the same for all pods of a workload, and said of the first.
fn block(claim: &PlannedClaim, before: Option<&PlannedClaim>) -> Vec<Row> {
    let launch = &claim.launch;
    let Some(((first, _), others)) = claim.pods.split_first() else { return Vec::new() };
    let first = first.to_string();
    let mut rows =
        vec![row(&first, &claim.pool, &launch.offering, launch.arch, launch.price_per_hour_micro_usd)];
    if claim.extras > Price::default() {
        let mut row = Row::default();
        row[0] = "  of it extras".to_owned();
        row[8] = usd(claim.extras);
        rows.push(row);
    }
    if !before.is_some_and(|before| is_replica(claim, before)) {
        rows.extend(
            claim.alternatives.iter().map(|other| row("  or", "", &other.offering, other.arch, other.price)),
        );
    }
    rows.extend(others.iter().map(|(key, _)| {
        let mut row = Row::default();
        row[0] = key.to_string();
        row[1] = format!("same machine as {first}");
        row
    }));
    rows
}

/// Whether both are for pods of one workload, and bought and chosen from alike.
fn is_replica(claim: &PlannedClaim, before: &PlannedClaim) -> bool {
    let workload = |claim: &PlannedClaim| {
        let (key, _) = claim.pods.first()?;
        let (name, number) = key.name.rsplit_once('-')?;
        number.bytes().all(|digit| digit.is_ascii_digit()).then(|| (key.namespace.clone(), name.to_owned()))
    };
    workload(claim).is_some()
        && workload(claim) == workload(before)
        && claim.launch.offering == before.launch.offering
        && claim.alternatives == before.alternatives
}

fn row(pod: &str, pool: &str, key: &OfferingKey, arch: Arch, price: Price) -> Row {
    [
        pod.to_owned(),
        pool.to_owned(),
        key.vendor.to_string(),
        key.instance_type.clone(),
        key.region.clone(),
        key.zone.clone().unwrap_or_else(|| "-".to_owned()),
        key.capacity_type.as_str().to_owned(),
        arch.as_str().to_owned(),
        usd(price),
    ]
}

fn usd(price: Price) -> String {
    price.to_string().trim_start_matches('$').trim_end_matches("/h").to_owned()
}

fn refused(pod: &str, refusal: &Refusal) -> String {
    let mut out = format!("{pod}: no machine ({}): {}\n", refusal.reason, refusal.message);
    let width = refusal.removed.iter().map(|removed| removed.rule.len()).max().unwrap_or(0);
    for removed in &refusal.removed {
        let _ = writeln!(out, "  {:width$}  removed {}", removed.rule, plural(removed.offerings, "offering"));
    }
    out
}

fn align(rows: &[Row]) -> String {
    // Words behind which nothing stands need no column.
    let is_last = |row: &Row, column: usize| row[column + 1..].iter().all(String::is_empty);
    let cell = |row: &Row, column: usize| if is_last(row, column) { 0 } else { row[column].chars().count() };
    let width = |column: usize| rows.iter().map(|row| cell(row, column)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn plural(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
