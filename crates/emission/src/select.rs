//! Which types a pool shall list, and why the others not.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapter::Adapter;
use crate::benchmark::Wanted;
use crate::facts::{self, Facts, Market, Row};
use crate::filter::{Failure, Filters, Step};
use crate::rank::{self, Ranked};
use crate::refusal::{Reason, Refusal};
use crate::spec::{Intent, PriceBasis, Unbenchmarked};
use crate::template::Constraints;

/// What was chosen for one SCNodePool.
#[derive(Debug)]
pub struct Selection<'a> {
    pub(crate) constraints: Constraints,
    /// Regions whose prices count.
    pub regions: Vec<String>,
    pub(crate) zones: Vec<String>,
    /// Families, where there is a ranking.
    pub ranked: Option<Ranked>,
    /// All types of the vendor, by name.
    pub types: Vec<Judged<'a>>,
}

/// A type with all that speaks against it.
#[derive(Debug)]
pub struct Judged<'a> {
    pub(crate) row: Row<'a>,
    /// Nothing of a type that is wanted.
    pub failures: Vec<Failure>,
    /// What it was measured at, where families are ranked by a score.
    pub score: Option<f64>,
}

/// Why a type that is listed is no longer wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The template forbids it.
    Contradicted(String),
    /// It is not sold, or the provider cannot launch it.
    Gone(String),
    /// It misses something, by so many percent; `None` where that is no number.
    Fails(String, Option<f64>),
}

/// How many types were left out at which step; each counts once, at the first that it fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Excluded {
    /// The provider cannot launch them, or they have no price in the regions.
    pub provider_ineligible: usize,
    /// The template forbids them.
    pub template_constraints: usize,
    /// By selector.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<&'static str, usize>,
    /// Something that is needed is not known.
    pub missing_data: usize,
    /// Their family is not among the best.
    pub ranking: usize,
}

impl Excluded {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> usize {
        let filters: usize = self.filters.values().sum();
        self.provider_ineligible + self.template_constraints + filters + self.missing_data + self.ranking
    }

    /// The three steps that take most, in words.
    fn top(&self) -> String {
        let mut steps: Vec<(usize, &str)> =
            self.filters.iter().map(|(name, count)| (*count, *name)).collect();
        steps.extend([
            (self.provider_ineligible, "not launched by the provider or without a price"),
            (self.template_constraints, "the template's requirements"),
            (self.missing_data, "missing data"),
            (self.ranking, "ranking"),
        ]);
        steps.sort_by(|a, b| b.cmp(a));
        let words = steps.iter().filter(|(count, _)| *count > 0).take(3);
        words.map(|(count, name)| format!("{count} by {name}")).collect::<Vec<_>>().join(", ")
    }
}

/// Judges all types of the provider's vendor.
///
/// # Errors
/// [`Refusal`] when the intent means nothing, or the data does not tell.
pub fn select<'a>(intent: &Intent, facts: &'a Facts<'a>) -> Result<Selection<'a>, Refusal> {
    let constraints = Constraints::read(intent)?;
    let adapter = constraints.adapter;
    let regions = regions(adapter, intent, facts)?;
    let wanted = Wanted::find(intent, facts)?;
    let filters = Filters::read(&intent.spec.selector, &wanted)?;
    let fee = intent.spec.selector.price.include_managed_fee.unwrap_or(true);
    let auto_mode = match (adapter.auto_mode, facts.auto_mode) {
        (false, _) => None,
        (true, Some(fees)) => Some((fees, fee)),
        (true, None) => {
            return Err(Reason::EligibilityUnknown.because(
                "which types EKS Auto Mode launches, and its fee for each, stands in the region's price list for AmazonEKS, which was not given",
            ));
        }
    };
    let market = Market { vendor: adapter.vendor, regions: &regions, basis: constraints.basis, auto_mode };
    let rows = market.rows(facts.snapshot);
    let mut types = judge(intent, &constraints, &filters, rows);
    let ranked = keep_best(intent, &wanted, &mut types);
    let zones = facts::zones(facts.snapshot, adapter.vendor, &regions);
    Ok(Selection { constraints, regions, zones, ranked, types })
}

fn regions(adapter: &Adapter, intent: &Intent, facts: &Facts<'_>) -> Result<Vec<String>, Refusal> {
    let wanted: BTreeSet<&String> = intent.spec.location.regions.iter().collect();
    if wanted.is_empty() {
        return Err(Reason::RegionsUnknown
            .because("no region is known here; name them in spec.location.regions, as nodes are labelled"));
    }
    let known = facts::regions(facts.snapshot, adapter.vendor);
    if let Some(unknown) = wanted.iter().find(|region| !known.contains(&region.as_str())) {
        let hint = scarpenter_core::nearest::nearest(unknown, known.iter().copied());
        let hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
        let message = format!("the data has no prices of {} in region {unknown:?}{hint}", adapter.vendor);
        return Err(Reason::UnknownRegion.because(message));
    }
    Ok(wanted.into_iter().cloned().collect())
}

fn judge<'a>(
    intent: &Intent,
    constraints: &Constraints,
    filters: &Filters<'_>,
    rows: Vec<Row<'a>>,
) -> Vec<Judged<'a>> {
    let selector = &intent.spec.selector;
    let mut unscored = Vec::new();
    let mut qualified = BTreeSet::new();
    let mut types = Vec::new();
    for row in rows {
        let mut failures = Vec::new();
        let ineligible = constraints.adapter.refuses(&row, selector);
        if let Some(words) = ineligible.or_else(|| no_price(constraints.basis, &row)) {
            failures.push(Failure { step: Step::Ineligible, words: words.to_owned(), margin: None });
        }
        let eligible = failures.is_empty();
        if let Some(words) = constraints.refuses(&row) {
            failures.push(Failure { step: Step::Template, words: words.to_owned(), margin: None });
        }
        failures.extend(filters.judge(&row));
        let (failed, missing) = filters.scores(&row);
        if eligible && failed.is_empty() && missing.is_empty() {
            qualified.insert(row.family());
        }
        failures.extend(failed);
        unscored.push(missing);
        types.push(Judged { row, failures, score: None });
    }
    for (of, missing) in types.iter_mut().zip(unscored) {
        let forgiven = match selector.unbenchmarked {
            Unbenchmarked::Exclude => false,
            Unbenchmarked::IncludeIfFamilyQualifies => qualified.contains(of.row.family()),
            Unbenchmarked::Include => true,
        };
        if !forgiven {
            of.failures.extend(missing);
        }
    }
    types
}

fn no_price(basis: PriceBasis, row: &Row<'_>) -> Option<&'static str> {
    let words = match basis {
        PriceBasis::OnDemand => "it has no on-demand price in the regions",
        PriceBasis::Spot => "it has no spot price in the regions",
    };
    row.price.is_none().then_some(words)
}

/// Ranks the families of those that are left, and lets the types of the others fail.
fn keep_best(intent: &Intent, wanted: &Wanted<'_>, types: &mut [Judged<'_>]) -> Option<Ranked> {
    let ranking = intent.spec.ranking.as_ref()?;
    for of in types.iter_mut() {
        of.score = wanted.rank.and_then(|(measured, _)| measured.of(of.row.index));
    }
    let left = types.iter().filter(|of| of.failures.is_empty()).map(|of| of.row);
    let (scored, mut unscored): (Vec<Row<'_>>, Vec<Row<'_>>) =
        left.partition(|row| rank::objective(ranking, wanted, row).is_some());
    if intent.spec.selector.unbenchmarked != Unbenchmarked::Include {
        unscored.clear();
    }
    let ranked = rank::rank(ranking, wanted, &scored, &unscored);
    for of in types.iter_mut().filter(|of| of.failures.is_empty()) {
        let family = ranked.family(of.row.family());
        if family.is_some_and(|family| family.kept) {
            continue;
        }
        let measured = rank::objective(ranking, wanted, &of.row).is_some();
        let margin = family.filter(|_| measured).and_then(|family| family.margin);
        let words = format!("family {} is not among those that are kept", of.row.family());
        of.failures.push(Failure { step: Step::Ranking, words, margin });
    }
    Some(ranked)
}

impl Judged<'_> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.row.name()
    }

    /// Its family; of a type of none its name.
    #[must_use]
    pub fn family(&self) -> &str {
        self.row.family()
    }

    /// Its price in micro-USD an hour, on the basis that counts.
    #[must_use]
    pub fn price(&self) -> Option<u64> {
        self.row.price
    }

    /// Whether it is wanted.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.failures.is_empty()
    }

    fn verdict(&self) -> Option<Verdict> {
        let of_step = |step| self.failures.iter().find(|failure| failure.step == step);
        if let Some(failure) = of_step(Step::Template) {
            return Some(Verdict::Contradicted(failure.words.clone()));
        }
        if let Some(failure) = of_step(Step::Ineligible) {
            return Some(Verdict::Gone(failure.words.clone()));
        }
        let infinite = |failure: &Failure| failure.margin.unwrap_or(f64::INFINITY);
        let worst = self.failures.iter().max_by(|a, b| infinite(a).total_cmp(&infinite(b)))?;
        Some(Verdict::Fails(worst.words.clone(), worst.margin))
    }
}

impl Selection<'_> {
    /// The provider's adapter.
    #[must_use]
    pub fn adapter(&self) -> &'static Adapter {
        self.constraints.adapter
    }

    /// Which price counts.
    #[must_use]
    pub fn basis(&self) -> PriceBasis {
        self.constraints.basis
    }

    /// What the user should know.
    #[must_use]
    pub fn cautions(&self) -> &[&'static str] {
        &self.constraints.cautions
    }

    /// The types that are wanted, by name.
    pub fn wanted(&self) -> impl Iterator<Item = &Judged<'_>> {
        self.types.iter().filter(|of| of.is_wanted())
    }

    /// Names of the types that are wanted, in byte order.
    #[must_use]
    pub fn desired(&self) -> BTreeSet<String> {
        self.wanted().map(|of| of.name().to_owned()).collect()
    }

    /// The type of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Judged<'_>> {
        self.types.binary_search_by(|of| of.name().cmp(name)).ok().map(|at| &self.types[at])
    }

    /// Why a type that is listed is not wanted; `None` of one that is.
    #[must_use]
    pub fn verdict(&self, name: &str) -> Option<Verdict> {
        match self.find(name) {
            Some(of) => of.verdict(),
            None => Some(match self.constraints.refuses_name(name) {
                Some(words) => Verdict::Contradicted(words.to_owned()),
                None => Verdict::Gone("the data has no such type, or it is no longer sold".to_owned()),
            }),
        }
    }

    /// How many types were left out at which step.
    #[must_use]
    pub fn excluded(&self) -> Excluded {
        let mut out = Excluded::default();
        for failure in self.types.iter().filter_map(|of| of.failures.first()) {
            match failure.step {
                Step::Ineligible => out.provider_ineligible += 1,
                Step::Template => out.template_constraints += 1,
                Step::Filter(selector) => *out.filters.entry(selector).or_default() += 1,
                Step::Missing(_) => out.missing_data += 1,
                Step::Ranking => out.ranking += 1,
            }
        }
        out
    }

    /// The types that come nearest to being wanted: those with the fewest rules missed, by the least.
    #[must_use]
    pub fn nearest_misses(&self, most: usize) -> Vec<&Judged<'_>> {
        let worst = |of: &Judged<'_>| {
            let margins = of.failures.iter().map(|failure| failure.margin.unwrap_or(f64::INFINITY));
            margins.fold(0.0, f64::max)
        };
        let possible = |of: &&Judged<'_>| {
            let hopeless = |failure: &Failure| matches!(failure.step, Step::Ineligible | Step::Template);
            !of.is_wanted() && !of.failures.iter().any(hopeless)
        };
        let mut list: Vec<&Judged<'_>> = self.types.iter().filter(possible).collect();
        list.sort_by(|a, b| {
            a.failures.len().cmp(&b.failures.len()).then_with(|| worst(a).total_cmp(&worst(b)))
        });
        list.truncate(most);
        list
    }

    /// Why nothing is emitted: no type is wanted.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        if self.types.iter().any(Judged::is_wanted) {
            return None;
        }
        let vendor = self.adapter().vendor;
        let spot = self.basis() == PriceBasis::Spot && self.types.iter().all(|of| of.row.price.is_none());
        let because =
            if spot { format!("; the data has no spot prices of {vendor} there") } else { String::new() };
        Some(Reason::NoCandidates.because(format!(
            "none of {} types of {vendor} is left: {}{because}",
            self.types.len(),
            self.excluded().top()
        )))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
