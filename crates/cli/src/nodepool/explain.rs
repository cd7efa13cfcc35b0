//! Why a type is in or out.

use std::fmt::Write;

use scarpenter_core::nearest::nearest;
use scarpenter_emission::{Failure, Judged, Selection, Step};

/// So many types are named that come near.
const NEAR: usize = 5;

/// All that speaks against a type, or for it.
pub(super) fn render(pool: &str, selection: &Selection<'_>, name: &str) -> String {
    let Some(of) = selection.find(name) else {
        let hint = nearest(name, selection.types.iter().map(Judged::name));
        let hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
        return format!("{pool}: {} has no type {name} in this data{hint}\n", selection.adapter().vendor);
    };
    let mut out = format!("{pool}: {name} of family {}, {}", of.family(), price(of));
    if let Some(score) = of.score {
        let _ = write!(out, ", score {score}");
    }
    out.push_str(if of.is_wanted() { ", is in.\n" } else { ", is out:\n" });
    for failure in &of.failures {
        let _ = writeln!(out, "  {}", words(failure));
    }
    out.push_str(&family(selection, of));
    out
}

fn family(selection: &Selection<'_>, of: &Judged<'_>) -> String {
    let Some(ranked) = &selection.ranked else { return String::new() };
    let Some(at) = ranked.families.iter().position(|family| family.name == of.family()) else {
        return format!("  No size of family {} was left to rank.\n", of.family());
    };
    let family = &ranked.families[at];
    let median = family.value.map_or_else(|| "not measured".to_owned(), |value| format!("median {value:.4}"));
    let kept = if family.kept { "kept" } else { "not kept" };
    format!(
        "  Family {} is number {} of {} ({median}), {kept}.\n",
        family.name,
        at + 1,
        ranked.families.len()
    )
}

/// The types that come nearest, where none is left.
pub(super) fn near(selection: &Selection<'_>) -> String {
    let mut out = String::new();
    for of in selection.nearest_misses(NEAR) {
        let failures: Vec<String> = of.failures.iter().map(words).collect();
        let _ = writeln!(out, "  near: {}: {}", of.name(), failures.join("; "));
    }
    out
}

fn words(failure: &Failure) -> String {
    let margin = failure.margin.map_or_else(String::new, |margin| format!(" (misses by {margin:.1} %)"));
    let step = match failure.step {
        Step::Ineligible => "provider: ",
        Step::Template => "template: ",
        Step::Ranking => "ranking: ",
        Step::Filter(_) | Step::Missing(_) => "",
    };
    format!("{step}{}{margin}", failure.words)
}

fn price(of: &Judged<'_>) -> String {
    of.price()
        .map_or_else(|| "without a price".to_owned(), |micro| format!("${}/h", super::report::dollars(micro)))
}
