//! What is said of the catalog. Nothing in it moves with the time alone: it stands in conditions, and a write is dear.

use jiff::tz::TimeZone;
use scarpenter_api::condition::{self, Status};
use scarpenter_api::reason;
use scarpenter_catalog::Catalog;
use scarpenter_catalog::store::Kept;

use super::shelf::{Problem, State};

/// Why there is no catalog; `None` when there is one.
pub(super) fn missing(state: &State) -> Option<String> {
    if state.catalog.is_some() {
        return None;
    }
    let source = state.source.as_deref().unwrap_or("nowhere");
    let problem = state.problem.as_ref().map(|problem| format!(": {}", problem.words()));
    Some(format!(
        "nothing is bought before the first catalog has come from {source}{}",
        problem.unwrap_or_default()
    ))
}

/// Condition `CatalogReady`.
pub(super) fn verdict(state: &State) -> (Status, &'static str, String) {
    if let Some(words) = missing(state) {
        return (Status::False, reason::NO_CATALOG, words);
    }
    let Some(catalog) = &state.catalog else {
        return (Status::False, reason::NO_CATALOG, String::new());
    };
    match &state.problem {
        None => {
            (Status::True, condition::CATALOG_READY, format!("{}{}", what_it_is(catalog), unheard(state)))
        }
        Some(Problem::Failed(words)) => {
            (Status::False, reason::CATALOG_NOT_FETCHED, format!("{words}; used on is {}", Kept::of(catalog)))
        }
        Some(Problem::Refused(words)) => (Status::False, reason::CATALOG_REFUSED, words.clone()),
        Some(Problem::NotKept(words)) => {
            let words = format!("{words}; the catalog in use is lost with this process");
            (Status::False, reason::CATALOG_NOT_KEPT, words)
        }
    }
}

/// Where it is from and of which day; not how many offerings it has, which moves with every fetch.
fn what_it_is(catalog: &Catalog) -> String {
    let report = &catalog.report;
    let (source, origin) = (&report.source, &report.provenance.source);
    let origin =
        if origin.is_empty() || origin == source { String::new() } else { format!(" (from {origin})") };
    let date = report.date.map(|date| format!(", prices of {}", date.to_zoned(TimeZone::UTC).date()));
    format!("{source}{origin}{}", date.unwrap_or_default())
}

/// Vendors that say nothing of what they sell now, though they should.
fn unheard(state: &State) -> String {
    let words =
        state.unheard.iter().map(|(vendor, why)| format!("; {vendor} does not say what it sells now: {why}"));
    words.collect()
}

#[cfg(test)]
mod tests {
    use scarpenter_catalog::{Rates, sample};

    use super::*;

    fn state(problem: Option<Problem>) -> State {
        State {
            catalog: Some(sample(&Rates::default())),
            source: Some("keeper http://k".to_owned()),
            problem,
            ..State::default()
        }
    }

    #[test]
    fn without_a_catalog_it_is_said_what_is_waited_for_and_what_went_wrong() {
        let mut state = State { source: Some("keeper http://k".to_owned()), ..State::default() };
        let (status, reason, words) = verdict(&state);
        assert_eq!((status, reason), (Status::False, reason::NO_CATALOG));
        assert_eq!(words, "nothing is bought before the first catalog has come from keeper http://k");
        state.problem = Some(Problem::Failed("it is down".to_owned()));
        assert!(missing(&state).is_some_and(|words| words.ends_with("from keeper http://k: it is down")));
    }

    #[test]
    fn with_one_it_is_said_what_is_used() {
        let (status, _, words) = verdict(&state(None));
        assert_eq!(status, Status::True);
        assert!(words.starts_with("built-in sample (from ") && words.contains("), prices of 20"), "{words}");
        let (status, reason, words) = verdict(&state(Some(Problem::Failed("it is down".to_owned()))));
        assert_eq!((status, reason), (Status::False, reason::CATALOG_NOT_FETCHED));
        assert!(words.starts_with("it is down; used on is the catalog of "), "{words}");
    }
}
