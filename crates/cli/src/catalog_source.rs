//! Which catalog a command reads.

use std::path::PathBuf;

use anyhow::Context;
use scarpenter_catalog::store::Store;
use scarpenter_catalog::{Catalog, Rate, Rates};

use crate::BadInput;

#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// A Spare Cores SQLite database, or a file that `catalog snapshot` wrote; without it what `catalog sync` has stored,
    /// else the built-in sample.
    #[arg(long, value_name = "PATH")]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    rates: RateArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FolderArgs {
    /// Where `catalog sync` stores; by default scarpenter/catalog in the user's data folder.
    #[arg(long, value_name = "DIR")]
    catalog_folder: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RateArgs {
    /// US dollars for one unit of a currency, such as EUR=1.10 or EUR=1.10@2026-11-30 with its day; may be repeated.
    #[arg(long = "rate", value_name = "CURRENCY=USD")]
    rates: Vec<Rate>,
    /// A table of them, one a line; a --rate goes before it.
    #[arg(long = "rates", value_name = "FILE")]
    table: Option<PathBuf>,
}

impl SourceArgs {
    /// Reads the catalog, and says on the standard error which it is and what is not in it.
    pub(crate) fn open(&self) -> anyhow::Result<Catalog> {
        let catalog = self.open_quietly()?;
        tell(&catalog.report.to_string());
        Ok(catalog)
    }

    /// The same, without a word about a catalog that was meant.
    pub(crate) fn open_quietly(&self) -> anyhow::Result<Catalog> {
        let (catalog, notes) = self.read().context(BadInput)?;
        notes.iter().for_each(|note| tell(note));
        Ok(catalog)
    }

    /// The catalog with what is to be said about the choice of it.
    pub(crate) fn read(&self) -> anyhow::Result<(Catalog, Vec<String>)> {
        let rates = self.rates.rates()?;
        if let Some(path) = &self.catalog {
            return Ok((scarpenter_catalog::open(path, &rates)?, Vec::new()));
        }
        let mut notes = Vec::new();
        if let Some(stored) = self.folder.stored(&rates, &mut notes)? {
            return Ok((stored, notes));
        }
        notes.push(
            "no catalog is stored, so this is the built-in sample; `scarpenter catalog sync` fetches all"
                .to_owned(),
        );
        Ok((scarpenter_catalog::sample(&rates), notes))
    }
}

/// On the standard error, which is no part of the answer.
fn tell(words: &str) {
    eprintln!("scarpenter: {words}");
}

impl FolderArgs {
    /// The folder that is meant.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.catalog_folder
            .clone()
            .or_else(|| default_folder(|name| std::env::var_os(name).map(PathBuf::from)))
    }

    /// What is stored there; a folder that is not there is not made.
    fn stored(&self, rates: &Rates, notes: &mut Vec<String>) -> anyhow::Result<Option<Catalog>> {
        let Some(path) = self.path().filter(|path| path.exists()) else { return Ok(None) };
        let store = Store::open(&path, rates.clone())?;
        notes.extend(store.moved_aside().map(str::to_owned));
        Ok(store.current())
    }
}

impl RateArgs {
    /// The rates that were given, and USD.
    pub(crate) fn rates(&self) -> anyhow::Result<Rates> {
        let given = self.rates.iter().cloned();
        let Some(path) = &self.table else { return Ok(given.collect()) };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the table of rates {}", path.display()))?;
        let mut rates = Rates::parse_table(&text)
            .map_err(|(line, error)| anyhow::anyhow!("{}, line {line}: {error}", path.display()))?;
        rates.extend(given);
        Ok(rates)
    }
}

/// By the XDG base directory rules: a relative path there is to be ignored.
fn default_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let home = || Some(variable("HOME").filter(|path| path.is_absolute())?.join(".local/share"));
    Some(data.or_else(home)?.join("scarpenter/catalog"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_in_the_users_data() {
        let folder = |data: Option<&str>, home: Option<&str>| {
            default_folder(|name| match name {
                "XDG_DATA_HOME" => data.map(PathBuf::from),
                "HOME" => home.map(PathBuf::from),
                _ => None,
            })
        };
        let at_home = Some(PathBuf::from("/home/u/.local/share/scarpenter/catalog"));
        assert_eq!(folder(Some("/data"), Some("/home/u")), Some("/data/scarpenter/catalog".into()));
        for data in [None, Some(""), Some("relative")] {
            assert_eq!(folder(data, Some("/home/u")), at_home, "{data:?}");
        }
        assert_eq!(folder(None, None), None);
    }
}
