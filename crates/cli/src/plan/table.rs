//! The plan as a person reads it.

use std::fmt::Write;

use scarpenter_core::offering::{Arch, OfferingKey, Price};
use scarpenter_planner::{Plan, PlannedClaim, Refusal};

type Row = [String; 9];

const HEAD: [&str; 9] =
    ["POD", "NODEPOOL", "VENDOR", "TYPE", "REGION", "ZONE", "CAPACITY", "ARCH", "USD/HOUR"];

/// One block for each machine, then the pods that get none, then the sum.
pub(super) fn render(plan: &Plan) -> String {
    let mut out = String::new();
    if !plan.claims.is_empty() {
        let mut rows = vec![HEAD.map(str::to_owned)];
        plan.claims.iter().for_each(|claim| rows.extend(block(claim)));
        out.push_str(&align(&rows));
    }
    for unplaced in &plan.unplaced {
        out.push_str(&if out.is_empty() { String::new() } else { "\n".to_owned() });
        out.push_str(&refused(&unplaced.pod.to_string(), &unplaced.refusal));
    }
    let total: u64 = plan.claims.iter().map(|claim| claim.launch.price_per_hour_micro_usd.micro_usd()).sum();
    let (machines, left) = (plan.claims.len(), plan.unplaced.len());
    let left = if left == 0 { String::new() } else { format!("; {left} without") };
    let gap = if out.is_empty() { "" } else { "\n" };
    let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    let _ = writeln!(
        out,
        "{gap}{}, {} placed{left}, {} together",
        plural(machines, "machine"),
        plural(placed, "pod"),
        Price::from_micro_usd(total)
    );
    out
}

/// The offering in the row of the first pod, further pods below it, then what would do as well.
fn block(claim: &PlannedClaim) -> Vec<Row> {
    let launch = &claim.launch;
    let mut rows = Vec::new();
    for (at, (key, _)) in claim.pods.iter().enumerate() {
        rows.push(if at == 0 {
            row(&key.to_string(), &claim.pool, &launch.offering, launch.arch, launch.price_per_hour_micro_usd)
        } else {
            let mut row = Row::default();
            row[0] = key.to_string();
            row
        });
    }
    if claim.extras > Price::default() {
        let mut row = Row::default();
        row[0] = "  of it extras".to_owned();
        row[8] = usd(claim.extras);
        rows.push(row);
    }
    for other in &claim.alternatives {
        rows.push(row("  or", "", &other.offering, other.arch, other.price));
    }
    rows
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
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
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
