//! What the definition of the resource checks, checked again where no API server has done so.

use crate::refusal::{Reason, Refusal};

use super::{Normalize, Objective, Selector, Spec};

pub(super) fn check(name: &str, spec: &Spec) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > 63 {
        let message =
            format!("metadata.name {name:?} must have 1 to 63 characters, since it is a label value");
        return Err(Reason::InvalidTemplate.because(message));
    }
    metadata(spec)?;
    selector(&spec.selector)?;
    ranking(spec)?;
    if spec.churn.remove_margin_percent > 100
        || !(1..=30).contains(&spec.churn.remove_after_refreshes)
        || spec.churn.max_removals_per_refresh > 1000
    {
        return Err(Reason::InvalidSelector.because(
            "spec.churn: removeMarginPercent goes from 0 to 100, removeAfterRefreshes from 1 to 30, maxRemovalsPerRefresh from 0 to 1000",
        ));
    }
    Ok(())
}

fn metadata(spec: &Spec) -> Result<(), Refusal> {
    let metadata = &spec.node_pool_template.metadata;
    let own = |key: &str| {
        key.starts_with("karpenter.sparecores.com/") || key.starts_with("karpenter.sh/nodepool-hash")
    };
    let label = metadata.labels.keys().find(|key| *key == "app.kubernetes.io/managed-by" || own(key));
    match label.or_else(|| metadata.annotations.keys().find(|key| own(key))) {
        Some(key) => Err(Reason::InvalidTemplate.because(format!(
            "spec.nodePoolTemplate.metadata: {key} is written by the controller, take it out"
        ))),
        None => Ok(()),
    }
}

fn selector(selector: &Selector) -> Result<(), Refusal> {
    let (memory, per_vcpu) = (&selector.memory, selector.memory.per_vcpu);
    let range = |range: Option<super::Range>| range.map_or((None, None), |range| (range.min, range.max));
    for (field, (min, max)) in [
        ("vcpus", range(selector.vcpus)),
        ("gpu.count", range(selector.gpu.count)),
        ("memory", (memory.min_gib, memory.max_gib)),
        ("memory.perVcpu", (per_vcpu.min_gib, per_vcpu.max_gib)),
    ] {
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            return Err(invalid(field, "its least may not be above its most"));
        }
        if [min, max].into_iter().flatten().any(|bound| !(bound.is_finite() && bound >= 0.0)) {
            return Err(invalid(field, "bounds are numbers of at least 0"));
        }
    }
    for (field, price) in
        [("maxHourly", &selector.price.max_hourly), ("maxHourlyPerVcpu", &selector.price.max_hourly_per_vcpu)]
    {
        if price.as_ref().is_some_and(|price| micro(price).is_none()) {
            return Err(invalid(
                &format!("price.{field}"),
                "a price is text such as \"0.50\", above 0, with at most six decimals",
            ));
        }
    }
    words("architectures", &selector.architectures, &["amd64", "arm64"])?;
    words("cpu.allocations", &selector.cpu.allocations, &["Shared", "Burstable", "Dedicated"])?;
    match selector.benchmarks.iter().position(|one| one.min.is_some() == one.max.is_some()) {
        Some(at) => Err(invalid(&format!("benchmarks[{at}]"), "it has either min or max")),
        None => Ok(()),
    }
}

fn words(field: &str, values: &[String], known: &[&str]) -> Result<(), Refusal> {
    match values.iter().find(|value| !known.contains(&value.as_str())) {
        Some(value) => Err(invalid(field, &format!("{value:?} is none of {}", known.join(", ")))),
        None => Ok(()),
    }
}

fn invalid(field: &str, what: &str) -> Refusal {
    Reason::InvalidSelector.because(format!("spec.selector.{field}: {what}"))
}

fn ranking(spec: &Spec) -> Result<(), Refusal> {
    let Some(ranking) = &spec.ranking else { return Ok(()) };
    let bad = |what: &str| Err(Reason::InvalidRanking.because(format!("spec.ranking: {what}")));
    if ranking.score.is_none() && ranking.objective != Objective::Price {
        return bad("it needs a score, unless its objective is Price");
    }
    if ranking
        .score
        .as_ref()
        .is_some_and(|score| score.benchmark.is_some() == score.workload_profile.is_some())
    {
        return bad("score is either a benchmark or a workloadProfile");
    }
    if ranking.normalize == Normalize::PerPrice {
        return bad("normalize is None or PerVcpu; objective ScorePerPrice divides by the price");
    }
    let families = ranking.families.unwrap_or_default();
    if ranking.band.is_none() && families.max.is_none() {
        return bad("it needs a band or families.max, else it leaves nothing out");
    }
    if ranking.band.is_some_and(|band| band.within_percent > 100) {
        return bad("band.withinPercent goes from 0 to 100");
    }
    if families.min == 0 || families.max.is_some_and(|max| max < families.min) {
        return bad("families.min is at least 1 and not above families.max");
    }
    Ok(())
}

/// Micro-USD of a price such as `0.50`; `None` for what is none.
pub(crate) fn micro(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction).filter(|micro| *micro > 0)
}
