//! Where a catalog comes from: one trait, and what implements it.

use std::path::PathBuf;

use crate::{Catalog, Error, Rates, file, open_sqlite, sample};

/// Something that a whole catalog can be read from.
pub trait Source: Send + Sync {
    /// What errors and logs call it. Holds no secret.
    fn name(&self) -> String;

    /// Reads all of it. Never a part: what cannot be read in full is an error.
    ///
    /// A rate of `rates` goes before one that the source has itself.
    ///
    /// # Errors
    /// [`Error`], which names the source and says what to do.
    fn load(
        &self,
        rates: &Rates,
        progress: &dyn Progress,
    ) -> impl Future<Output = Result<Catalog, Error>> + Send;

    /// Whether there is, or may be, something else than in the state of the hash `known`, so that it is worth loading.
    ///
    /// # Errors
    /// As [`Source::load`].
    fn differs(&self, known: &str) -> impl Future<Output = Result<bool, Error>> + Send {
        let _ = known;
        std::future::ready(Ok(true))
    }
}

/// Hears how far a source has come. `()` does not listen.
pub trait Progress: Send + Sync {
    /// `done` of `of` steps are behind us, and `what` was the latest. `of` may grow on the way.
    fn told(&self, done: usize, of: usize, what: &str);
}

impl Progress for () {
    fn told(&self, _: usize, _: usize, _: &str) {}
}

/// A Spare Cores SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteFile(
    /// Where it is.
    pub PathBuf,
);

impl Source for SqliteFile {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    async fn load(&self, rates: &Rates, _: &dyn Progress) -> Result<Catalog, Error> {
        let (path, rates) = (self.0.clone(), rates.clone());
        blocking(move || open_sqlite(&path, &rates)).await
    }
}

/// A snapshot file of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile(
    /// Where it is.
    pub PathBuf,
);

impl Source for SnapshotFile {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    async fn load(&self, rates: &Rates, _: &dyn Progress) -> Result<Catalog, Error> {
        let (path, rates) = (self.0.clone(), rates.clone());
        blocking(move || file::read(&path, &rates)).await
    }
}

/// The catalog that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample;

impl Source for Sample {
    fn name(&self) -> String {
        "built-in sample".to_owned()
    }

    async fn load(&self, rates: &Rates, _: &dyn Progress) -> Result<Catalog, Error> {
        let rates = rates.clone();
        Ok(blocking(move || sample(&rates)).await)
    }
}

/// Runs what keeps a thread busy where that holds up no other task.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("reading rows does not panic and is not cancelled")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{TestDatabase, lines, rates};

    #[tokio::test]
    async fn a_database_and_the_sample_are_read_as_they_are_without_the_trait() {
        let database = TestDatabase::small();
        let source = SqliteFile(database.path());
        assert_eq!(source.name(), database.path().display().to_string());
        assert_eq!(lines(&source.load(&rates(), &()).await.unwrap()), database.lines());
        let snapshot = SnapshotFile(database.path().with_extension("scc"));
        file::write(&snapshot.0, &database.read()).unwrap();
        assert_eq!(lines(&snapshot.load(&rates(), &()).await.unwrap()), database.lines());
        let rates = Rates::default();
        assert_eq!(lines(&Sample.load(&rates, &()).await.unwrap()), lines(&sample(&rates)));
    }

    #[tokio::test]
    async fn a_missing_database_is_an_error_that_names_it() {
        let error = SqliteFile("/nowhere/c.sqlite".into()).load(&Rates::default(), &()).await.unwrap_err();
        assert!(error.to_string().contains("/nowhere/c.sqlite"), "{error}");
    }
}
