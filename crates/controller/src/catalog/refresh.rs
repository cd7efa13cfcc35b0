//! Fetches the catalog from time to time, and when a file of it changes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use scarpenter_catalog::store::{Store, StoreError, Verdict};
use scarpenter_catalog::{Catalog, Rates, sample};
use tokio::time::{Instant, sleep_until, timeout};

use super::shelf::Problem;
use super::{CatalogSettings, Fetch};
use crate::context::Context;
use crate::provisioner::chain;

/// Files are looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// First pause after a fetch that failed; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause while there is no catalog at all.
const LONGEST_PAUSE_WITHOUT: Duration = Duration::from_secs(60);
/// A fetch that takes longer hangs.
const FETCH_ENDS_WITHIN: Duration = Duration::from_secs(1800);

/// All that is needed to fetch and to keep.
pub(crate) struct Refresh {
    settings: CatalogSettings,
    store: Option<Store>,
    /// What the watched file was when it was fetched.
    seen: Option<(u64, Option<SystemTime>)>,
    failures: u32,
    /// Whether it was fetched before the start.
    is_fresh: bool,
}

/// What came of a fetch, as the shelf takes it.
type Outcome = (Option<Catalog>, Option<Problem>);

impl Refresh {
    /// Opens the store and says what to begin with: what was just fetched, what is kept, else the sample, but that only
    /// where no source was named.
    pub(crate) async fn open(settings: CatalogSettings) -> (Self, Outcome) {
        let seen = settings.watched.as_deref().and_then(stamp);
        let (folder, rates) = (settings.folder.clone(), settings.rates.clone());
        let opened = blocking(move || match &folder {
            Some(folder) => Store::open(folder, rates),
            None => Ok(Store::in_memory(rates)),
        });
        let (store, unusable) = match opened.await {
            Ok(store) => (store, None),
            Err(error) => {
                let words = chain(&error);
                tracing::error!(
                    error = words,
                    "the catalog's folder cannot be used; the catalog is not kept"
                );
                (Store::in_memory(settings.rates.clone()), Some(Problem::NotKept(words)))
            }
        };
        if let Some(moved) = store.moved_aside() {
            tracing::error!(moved, "the kept catalog is damaged");
        }
        let is_fresh = settings.first.is_some();
        let mut out = Self { settings, store: Some(store), seen, failures: 0, is_fresh };
        let (mut catalog, mut problem) = match out.settings.first.take() {
            Some(first) => out.offer(first).await,
            None => (None, None),
        };
        catalog = catalog.or_else(|| out.store.as_ref().and_then(Store::current));
        if catalog.is_none() && out.settings.source.is_none() {
            catalog = Some(sample(&out.settings.rates));
        }
        problem = problem.or(unusable);
        (out, (catalog, problem))
    }

    /// What is fetched from.
    pub(crate) fn source(&self) -> Option<String> {
        self.settings.source.as_ref().map(|source| source.name())
    }

    /// Fetches for ever.
    pub(crate) async fn run(mut self, context: Arc<Context>) {
        if self.settings.source.is_none() && self.settings.folder.is_none() {
            return;
        }
        // What was only kept is not fresh.
        let mut due = if self.is_fresh { self.due(&context) } else { Instant::now() };
        loop {
            let cause = self.wait(due).await;
            let outcome = if cause == Cause::Folder { self.reload().await } else { self.fetch().await };
            let failed = matches!(outcome.1, Some(Problem::Failed(_)));
            settle(&context, outcome).await;
            // What another process has put there says nothing of our own source.
            if cause != Cause::Folder {
                self.failures = if failed { self.failures + 1 } else { 0 };
                due = self.due(&context);
            }
        }
    }

    fn due(&self, context: &Context) -> Instant {
        let missing = context.catalog.missing().borrow().is_some();
        let pause = pause(self.failures, missing, self.settings.refresh_every);
        // Controllers that were started together must not all ask at once, for ever.
        Instant::now() + pause.mul_f64(rand::random_range(0.9..1.1))
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, due: Instant) -> Cause {
        loop {
            if self.store.as_ref().is_some_and(Store::is_behind) {
                return Cause::Folder;
            }
            let seen = self.settings.watched.as_deref().and_then(stamp);
            if seen.is_some() && seen != self.seen {
                self.seen = seen;
                return Cause::File;
            }
            let next_look = Instant::now() + LOOK_EVERY;
            if self.settings.source.is_none() || due > next_look {
                sleep_until(next_look).await;
                continue;
            }
            sleep_until(due).await;
            return Cause::Due;
        }
    }

    /// Takes what another process has put into the folder, such as `scarpenter catalog sync`.
    async fn reload(&mut self) -> Outcome {
        match self.with_store(Store::reload).await {
            Ok(()) => {
                if let Some(moved) = self.store.as_ref().and_then(Store::moved_aside) {
                    tracing::error!(moved, "the kept catalog is damaged");
                }
                (self.store.as_ref().and_then(Store::current), None)
            }
            Err(error) => (None, Some(Problem::NotKept(chain(&error)))),
        }
    }

    async fn fetch(&mut self) -> Outcome {
        let Some(source) = &self.settings.source else { return (None, None) };
        let kept = self.store.as_ref().and_then(Store::current);
        let known = kept.as_ref().and_then(|kept| kept.report.provenance.hash.clone());
        match (fetch(&**source, &self.settings.rates, known).await, kept) {
            (Ok(Some(catalog)), _) => self.offer(catalog).await,
            (Ok(None), Some(mut kept)) => {
                kept.report.provenance.fetched = Some(Timestamp::now());
                (Some(kept), None)
            }
            (Ok(None), None) => (None, None),
            (Err(words), _) => (None, Some(Problem::Failed(words))),
        }
    }

    async fn offer(&mut self, new: Catalog) -> Outcome {
        let verdict = self.with_store(move |store| store.offer(new, Timestamp::now())).await;
        let current = self.store.as_ref().and_then(Store::current);
        match verdict {
            Ok(Verdict::Taken) => (current, None),
            Ok(Verdict::Refused(refusal)) => (None, Some(Problem::Refused(refusal.to_string()))),
            Err(error) => (current, Some(Problem::NotKept(chain(&error)))),
        }
    }

    /// Works on the store where waiting for its lock holds up no other task.
    async fn with_store<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let rates = self.settings.rates.clone();
        let mut store = self.store.take().unwrap_or_else(|| Store::in_memory(rates));
        let (store, out) = blocking(move || {
            let out = work(&mut store);
            (store, out)
        })
        .await;
        self.store = Some(store);
        out
    }
}

/// Why something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Due,
    File,
    Folder,
}

async fn fetch(source: &dyn Fetch, rates: &Rates, known: Option<String>) -> Result<Option<Catalog>, String> {
    match timeout(FETCH_ENDS_WITHIN, source.fetch(rates, known)).await {
        Ok(Ok(catalog)) => Ok(catalog),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => {
            Err(format!("{} was not done after {} minutes", source.name(), FETCH_ENDS_WITHIN.as_secs() / 60))
        }
    }
}

/// How long until the next fetch.
fn pause(failures: u32, missing: bool, every: Duration) -> Duration {
    if failures == 0 {
        return every;
    }
    let doubled = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16));
    let longest = if missing { every.min(LONGEST_PAUSE_WITHOUT) } else { every };
    doubled.min(longest)
}

fn stamp(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

/// Puts an outcome where all see it, and says what came of it.
pub(crate) async fn settle(context: &Context, (catalog, problem): Outcome) {
    if let Some(catalog) = &catalog {
        context.metrics.catalog(catalog);
    }
    let report = catalog.as_ref().map(|catalog| catalog.report.to_string());
    let changed = context.catalog.settle(catalog, problem.clone()).await;
    let outcome = match &problem {
        Some(problem) => problem.outcome(),
        None if changed => "taken",
        None => "unchanged",
    };
    context.metrics.catalog_refreshed(outcome);
    if let Some(problem) = problem {
        tracing::warn!(outcome, problem = problem.words(), "catalog not refreshed");
    }
    if changed {
        tracing::info!(report, "catalog in use");
        context.wake.pods.notify_one();
    }
    context.wake.classes.notify_one();
}

/// Runs what keeps a thread busy.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("the store does not panic and is not cancelled")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::Mutex;

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use scarpenter_core::offering::Place;
    use scarpenter_core::snapshot::{LiveOffering, LiveOfferings, Offering};

    use super::super::Fetched;
    use super::*;

    /// Answers one after another; at the end it is down.
    struct Script(Mutex<VecDeque<Fetched>>);

    impl Script {
        fn of(answers: impl IntoIterator<Item = Option<Catalog>>) -> Option<Box<dyn Fetch>> {
            Some(Box::new(Self(Mutex::new(answers.into_iter().map(Ok).collect()))))
        }
    }

    impl Fetch for Script {
        fn name(&self) -> String {
            "script".to_owned()
        }

        fn fetch<'a>(&'a self, _: &'a Rates, _: Option<String>) -> BoxFuture<'a, Fetched> {
            let down = || Err(scarpenter_catalog::Error::Missing { path: "/down".into() });
            let next = self.0.lock().unwrap().pop_front().unwrap_or_else(down);
            std::future::ready(next).boxed()
        }
    }

    fn whole() -> Catalog {
        sample(&Rates::default())
    }

    /// Without one of its vendors.
    fn shrunken() -> Catalog {
        let mut out = whole();
        let of_aws = |offering: &Offering<'_>| offering.instance_type().vendor.as_str() == "aws";
        let gone = out.snapshot.offerings().filter(of_aws).map(|offering| LiveOffering {
            instance_type: offering.instance_type().name.clone(),
            place: Place { zone_id: None, ..offering.place().clone() },
            capacity_type: offering.capacity_type(),
            price: None,
            available: false,
        });
        let gone = LiveOfferings { offerings: gone.collect(), instance_types: Vec::new() };
        out.snapshot = Arc::new(out.snapshot.overlay(&BTreeMap::from([("aws".into(), gone)])).0);
        out
    }

    fn len(catalog: Option<&Catalog>) -> Option<usize> {
        catalog.map(|catalog| catalog.snapshot.len())
    }

    #[tokio::test]
    async fn the_sample_is_used_only_where_no_source_was_named() {
        let (_, (catalog, problem)) = Refresh::open(CatalogSettings::default()).await;
        assert_eq!((len(catalog.as_ref()), problem), (Some(whole().snapshot.len()), None));
        let named = CatalogSettings { source: Script::of([]), ..CatalogSettings::default() };
        let (mut refresh, (catalog, problem)) = Refresh::open(named).await;
        assert!(catalog.is_none() && problem.is_none());
        let (catalog, problem) = refresh.fetch().await;
        assert!(
            catalog.is_none() && matches!(problem, Some(Problem::Failed(words)) if words.contains("/down"))
        );
    }

    #[tokio::test]
    async fn a_bad_fetch_keeps_the_good_one_and_says_so() {
        let source = Script::of([Some(whole()), Some(shrunken()), None]);
        let (mut refresh, _) = Refresh::open(CatalogSettings { source, ..CatalogSettings::default() }).await;
        let (catalog, problem) = refresh.fetch().await;
        assert!(catalog.is_some() && problem.is_none());
        let (catalog, problem) = refresh.fetch().await;
        let Some(Problem::Refused(words)) = problem else { panic!("{problem:?}") };
        assert!(catalog.is_none() && words.contains("(aws from "), "{words}");
        let (catalog, problem) = refresh.fetch().await;
        assert_eq!((len(catalog.as_ref()), problem), (Some(whole().snapshot.len()), None));
        assert!(
            catalog.unwrap().report.provenance.fetched.is_some(),
            "that nothing has changed is news of now"
        );
        assert!(matches!(refresh.fetch().await, (None, Some(Problem::Failed(_)))));
    }

    #[tokio::test]
    async fn what_was_kept_is_used_after_a_restart_without_network() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().to_owned();
        let settings =
            |source| CatalogSettings { source, folder: Some(folder.clone()), ..CatalogSettings::default() };
        let (mut first, _) = Refresh::open(settings(Script::of([Some(whole())]))).await;
        assert!(matches!(first.fetch().await, (Some(_), None)));
        let (again, (catalog, problem)) = Refresh::open(settings(Script::of([]))).await;
        assert_eq!((len(catalog.as_ref()), problem), (Some(whole().snapshot.len()), None));
        assert!(!again.is_fresh, "it is fetched at once");
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_used_is_told_of_and_stops_nobody() {
        let settings = CatalogSettings { folder: Some("/dev/null/x".into()), ..CatalogSettings::default() };
        let (_, (catalog, problem)) = Refresh::open(settings).await;
        assert!(catalog.is_some());
        assert!(matches!(problem, Some(Problem::NotKept(words)) if words.contains("/dev/null/x")));
    }

    #[tokio::test]
    async fn what_another_process_puts_into_the_folder_is_seen() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().to_owned();
        let settings = CatalogSettings { folder: Some(folder.clone()), ..CatalogSettings::default() };
        let (mut refresh, _) = Refresh::open(settings).await;
        let later = Instant::now() + Duration::from_secs(3600);
        assert_eq!(Store::open(&folder, Rates::default()).unwrap().accept(whole()).unwrap(), Verdict::Taken);
        assert!(matches!(refresh.wait(later).await, Cause::Folder));
        assert!(matches!(refresh.reload().await, (Some(_), None)));
        assert!(!refresh.store.as_ref().unwrap().is_behind());
    }

    #[test]
    fn pauses_grow_while_it_fails_and_stay_short_while_there_is_nothing() {
        let hour = Duration::from_secs(3600);
        assert_eq!(pause(0, false, hour), hour);
        let grown: Vec<u64> = (1..6).map(|failures| pause(failures, false, hour).as_secs()).collect();
        assert_eq!(grown, [5, 10, 20, 40, 80]);
        assert_eq!(pause(40, false, hour), hour);
        assert_eq!(pause(40, true, hour), Duration::from_secs(60));
        assert_eq!(pause(40, true, Duration::from_secs(3)), Duration::from_secs(3));
    }
}
