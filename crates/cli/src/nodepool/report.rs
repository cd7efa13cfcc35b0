//! The status that a controller would write, without the clock.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Moment;
use k8s_openapi::jiff::Timestamp;
use scarpenter_api::scnodepool::{
    BandStatus, Excluded, FamilyStatus, PendingRemoval, SCNodePoolStatus, Selected, SelectedType,
};
use scarpenter_core::lifecycle::Time;
use scarpenter_emission::{Intent, Outcome, Ranked, Selection, selection_hash};

/// What was chosen, and why the rest was not.
pub(super) fn report(
    intent: &Intent,
    selection: &Selection<'_>,
    outcome: &Outcome,
    (timestamp, hash): (Option<&str>, Option<&str>),
) -> SCNodePoolStatus {
    SCNodePoolStatus {
        provider: Some(selection.adapter().id.to_owned()),
        regions: selection.regions.clone(),
        node_pool_name: Some(intent.name.clone()),
        price_basis: Some(selection.basis().as_str().to_owned()),
        data_timestamp: timestamp.and_then(|text| text.parse().ok()).map(Moment),
        data_hash: hash.map(str::to_owned),
        selected: Some(selected(selection, outcome)),
        excluded: Some(excluded(selection)),
        pending_removals: outcome.pending.iter().map(pending).collect(),
        ..SCNodePoolStatus::default()
    }
}

fn selected(selection: &Selection<'_>, outcome: &Outcome) -> Selected {
    let mut sizes: BTreeMap<&str, i64> = BTreeMap::new();
    let mut types = Vec::new();
    for name in &outcome.emitted {
        let known = selection.find(name);
        let family = known.map_or("", |of| of.family());
        *sizes.entry(family).or_default() += 1;
        types.push(SelectedType {
            name: name.clone(),
            family: family.to_owned(),
            score: known.and_then(|of| of.score),
            price: known.and_then(|of| of.price()).map(dollars),
            held: !known.is_some_and(|of| of.is_wanted()),
        });
    }
    Selected {
        count: count(outcome.emitted.len()),
        selection_hash: selection_hash(&outcome.emitted),
        band: selection.ranked.as_ref().and_then(band),
        families: selection.ranked.as_ref().map_or_else(Vec::new, |ranked| families(ranked, &sizes)),
        instance_types: types,
    }
}

fn band(ranked: &Ranked) -> Option<BandStatus> {
    let best = ranked.families.first()?;
    let last = ranked.families.iter().rfind(|family| family.kept && family.value.is_some())?;
    let (best_value, last_value) = (best.value?, last.value?);
    Some(BandStatus {
        reference: best.name.clone(),
        reference_value: best_value,
        lowest_kept: last_value,
        lowest_kept_delta_percent: 100.0 * (last_value - best_value).abs() / best_value,
        widened: ranked.widened,
        trimmed: ranked.trimmed,
    })
}

fn families(ranked: &Ranked, sizes: &BTreeMap<&str, i64>) -> Vec<FamilyStatus> {
    let listed =
        ranked.families.iter().enumerate().filter(|(_, family)| sizes.contains_key(family.name.as_str()));
    let status = |(at, family): (usize, &scarpenter_emission::Family)| FamilyStatus {
        name: family.name.clone(),
        rank: count(at + 1),
        objective: family.value,
        sizes: sizes[family.name.as_str()],
    };
    listed.map(status).collect()
}

fn excluded(selection: &Selection<'_>) -> Excluded {
    let counted = selection.excluded();
    Excluded {
        provider_ineligible: count(counted.provider_ineligible),
        template_constraints: count(counted.template_constraints),
        filters: counted.filters.iter().map(|(name, of)| ((*name).to_owned(), count(*of))).collect(),
        missing_data: count(counted.missing_data),
        ranking: count(counted.ranking),
    }
}

fn pending(entry: &scarpenter_emission::Pending) -> PendingRemoval {
    PendingRemoval {
        name: entry.name.clone(),
        since: moment(entry.since),
        refreshes: entry.refreshes.into(),
        reason: entry.reason.clone(),
        margin_percent: entry.margin,
        due: entry.due,
    }
}

fn moment(time: Time) -> Option<Moment> {
    Timestamp::from_millisecond(time.millis()).ok().map(Moment)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Micro-USD as dollars, with four decimals or as many as there are.
pub(super) fn dollars(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    text.strip_suffix("00").unwrap_or(&text).to_owned()
}
