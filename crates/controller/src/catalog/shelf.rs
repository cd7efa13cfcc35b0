//! The catalog in use, read by every pass, replaced as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scarpenter_api::condition::Status;
use scarpenter_catalog::Catalog;
use scarpenter_core::name::Vendor;
use scarpenter_core::snapshot::{LiveOfferings, Overlaid, Snapshot};
use tokio::sync::watch;

use super::words;

/// Holds the catalog in use, what vendors say beside it, and what is to be said of both.
#[derive(Debug)]
pub(crate) struct Shelf {
    state: Mutex<State>,
    /// Why there is no catalog, as long as there is none.
    missing: watch::Sender<Option<String>>,
    /// One at a time works out what the planner sees.
    laying: tokio::sync::Mutex<()>,
}

/// What is known of the catalog.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The one in use.
    pub(super) catalog: Option<Catalog>,
    /// What is fetched from.
    pub(super) source: Option<String>,
    /// What was wrong with the latest fetch.
    pub(super) problem: Option<Problem>,
    /// Vendors that could not be asked what they sell now, and why.
    pub(super) unheard: BTreeMap<Vendor, String>,
    /// What vendors say they sell now.
    pub(super) live: BTreeMap<Vendor, LiveOfferings>,
    /// What the planner sees.
    pub(super) snapshot: Arc<Snapshot>,
}

/// What was wrong with the latest fetch, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It failed.
    Failed(String),
    /// It brought a catalog that must not be used.
    Refused(String),
    /// It brought a good one that cannot be kept on disk.
    NotKept(String),
}

impl Shelf {
    /// Nothing is there yet; `source` says where the first is to come from.
    pub(crate) fn new(source: Option<String>) -> Self {
        let state = State { source, ..State::default() };
        let missing = watch::Sender::new(words::missing(&state));
        Self { state: Mutex::new(state), missing, laying: tokio::sync::Mutex::default() }
    }

    /// What the planner sees now. A pass asks once.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// Takes the outcome of a fetch: the catalog to use from now on, if there is a new one, and what was wrong.
    /// Whether the planner sees other things now.
    pub(crate) async fn settle(&self, catalog: Option<Catalog>, problem: Option<Problem>) -> bool {
        let changed = {
            let mut state = self.state();
            state.problem = problem;
            let known = state.catalog.as_ref().map(|known| Arc::clone(&known.snapshot));
            let changed = catalog
                .as_ref()
                .is_some_and(|new| known.is_none_or(|known| !Arc::ptr_eq(&known, &new.snapshot)));
            state.catalog = catalog.or_else(|| state.catalog.take());
            changed
        };
        if changed {
            self.lay().await;
        }
        self.missing.send_replace(words::missing(&self.state()));
        changed
    }

    /// Takes what a vendor says it sells now, `None` when it says nothing any more.
    /// How many offerings became what, if the planner sees other things now.
    pub(crate) async fn hear(&self, vendor: &Vendor, live: Option<LiveOfferings>) -> Option<Overlaid> {
        {
            let mut state = self.state();
            if state.live.get(vendor) == live.as_ref() {
                return None;
            }
            match live {
                Some(live) => state.live.insert(vendor.clone(), live),
                None => state.live.remove(vendor),
            };
        }
        Some(self.lay().await.remove(vendor).unwrap_or_default())
    }

    /// Says why a vendor could not be asked what it sells now, or that it could. Whether that is news.
    pub(crate) fn unheard(&self, vendor: &Vendor, why: Option<String>) -> bool {
        let mut state = self.state();
        let before = match why.clone() {
            Some(why) => state.unheard.insert(vendor.clone(), why),
            None => state.unheard.remove(vendor),
        };
        before != why
    }

    /// Condition `CatalogReady`: status, reason, message.
    pub(crate) fn verdict(&self) -> (Status, &'static str, String) {
        words::verdict(&self.state())
    }

    /// Says why there is no catalog, as long as there is none.
    pub(crate) fn missing(&self) -> watch::Receiver<Option<String>> {
        self.missing.subscribe()
    }

    /// Works out what the planner sees, which takes a part of a second, and then shows it at once.
    async fn lay(&self) -> BTreeMap<Vendor, Overlaid> {
        let _one = self.laying.lock().await;
        let (catalog, live) = {
            let state = self.state();
            (state.catalog.clone(), state.live.clone())
        };
        let Some(Catalog { snapshot, .. }) = catalog else { return BTreeMap::new() };
        let (snapshot, counts) = if live.is_empty() {
            (snapshot, BTreeMap::new())
        } else {
            let laid = tokio::task::spawn_blocking(move || snapshot.overlay(&live)).await;
            let (snapshot, counts) =
                laid.expect("laying one list over another does not panic and is not cancelled");
            (Arc::new(snapshot), counts)
        };
        self.state().snapshot = snapshot;
        counts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Problem {
    /// As metrics count it.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Failed(_) => "failed",
            Self::Refused(_) => "refused",
            Self::NotKept(_) => "not_kept",
        }
    }

    pub(super) fn words(&self) -> &str {
        match self {
            Self::Failed(words) | Self::Refused(words) | Self::NotKept(words) => words,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_catalog::{Rates, sample};
    use scarpenter_core::snapshot::LiveOffering;

    use super::*;

    fn gone(key: &scarpenter_core::offering::OfferingKey) -> LiveOfferings {
        let place = scarpenter_core::offering::Place {
            region: key.region.clone(),
            zone: key.zone.clone(),
            zone_id: None,
        };
        let row = LiveOffering {
            instance_type: key.instance_type.clone(),
            place,
            capacity_type: key.capacity_type,
            price: None,
            available: false,
        };
        LiveOfferings { offerings: vec![row], instance_types: Vec::new() }
    }

    #[tokio::test]
    async fn what_a_vendor_says_stays_when_the_catalog_is_replaced() {
        let shelf = Shelf::new(None);
        assert!(shelf.settle(Some(sample(&Rates::default())), None).await);
        let key = shelf.snapshot().offerings().next().unwrap().key();
        assert_eq!(shelf.hear(&key.vendor, Some(gone(&key))).await.unwrap().withdrawn, 1);
        assert_eq!(shelf.snapshot().find(&key), None);
        assert!(shelf.settle(Some(sample(&Rates::default())), None).await);
        assert_eq!(shelf.snapshot().find(&key), None);
        assert_eq!(shelf.hear(&key.vendor, Some(gone(&key))).await, None, "it is no news");
        assert!(shelf.hear(&key.vendor, None).await.is_some());
        assert!(shelf.snapshot().find(&key).is_some());
    }

    #[tokio::test]
    async fn a_failed_fetch_changes_nothing_but_what_is_said() {
        let shelf = Shelf::new(Some("keeper http://k".to_owned()));
        assert!(!shelf.settle(None, Some(Problem::Failed("it is down".to_owned()))).await);
        assert!(shelf.missing().borrow().as_ref().unwrap().contains("it is down"));
        assert!(shelf.settle(Some(sample(&Rates::default())), None).await);
        assert_eq!(*shelf.missing().borrow(), None);
        let before = shelf.snapshot();
        assert!(!shelf.settle(None, Some(Problem::Failed("it is down".to_owned()))).await);
        assert!(Arc::ptr_eq(&before, &shelf.snapshot()));
        assert_eq!(shelf.verdict().0, Status::False);
        assert!(!shelf.settle(None, None).await);
        assert_eq!(shelf.verdict().0, Status::True);
    }
}
