//! `catalog sync`: fetches from a Keeper and stores what is not worse than before.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use jiff::Timestamp;
use scarpenter_catalog::Catalog;
use scarpenter_catalog::keeper::{Keeper, Key};
use scarpenter_catalog::source::Source;
use scarpenter_catalog::store::{Store, Verdict};

use crate::BadInput;
use crate::catalog_source::{FolderArgs, RateArgs};
use crate::print::print;

use super::progress::Told;
use super::words::count;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address of a Spare Cores Keeper, such as https://keeper.example.com.
    #[arg(long, value_name = "URL")]
    keeper: String,
    /// A file that holds the API key for it; without a key the Keeper answers in smaller parts and later.
    #[arg(long, value_name = "FILE")]
    keeper_api_key_file: Option<PathBuf>,
    /// Take the new catalog though it is older or much smaller than the stored one.
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    rates: RateArgs,
}

/// Exit code 0 when the new catalog is stored, 1 when the stored one is kept, 2 for bad input.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let keeper = keeper(args).context(BadInput)?;
    let rates = args.rates.rates().context(BadInput)?;
    let folder = args
        .folder
        .path()
        .context("there is no HOME: name a folder with --catalog-folder")
        .context(BadInput)?;
    let mut store = Store::open(&folder, rates.clone())?;
    if let Some(moved) = store.moved_aside() {
        eprintln!("scarpenter: {moved}");
    }
    let before = store.current();
    let told = Told::on_stderr();
    let fetched = keeper.load(&rates, &told).await;
    told.end();
    let new = match fetched {
        Ok(new) => new,
        Err(error) => {
            let kept = kept(before.as_ref(), &folder);
            return Err(
                anyhow::Error::new(error).context(format!("{kept}, since nothing new could be fetched"))
            );
        }
    };
    let words = stored(before.as_ref(), &new, &folder);
    let verdict = if args.accept { store.accept(new) } else { store.offer(new, Timestamp::now()) };
    match verdict? {
        Verdict::Taken => print(&words)?,
        Verdict::Refused(refusal) => anyhow::bail!("{refusal}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn keeper(args: &Args) -> anyhow::Result<Keeper> {
    let key = args.keeper_api_key_file.as_deref().map(key).transpose()?;
    Ok(Keeper::new(&args.keeper, key)?)
}

fn key(path: &Path) -> anyhow::Result<Key> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    Key::new(&text).with_context(|| path.display().to_string())
}

/// What goes on being used.
fn kept(before: Option<&Catalog>, folder: &Path) -> String {
    match before {
        Some(before) => format!("the catalog in {} is kept ({})", folder.display(), size(before)),
        None => format!("no catalog is stored in {}", folder.display()),
    }
}

fn stored(before: Option<&Catalog>, new: &Catalog, folder: &Path) -> String {
    let hash = |catalog: &Catalog| catalog.report.provenance.hash.clone();
    let same = before.is_some_and(|before| hash(before).is_some() && hash(before) == hash(new));
    let place = folder.display();
    let line = match before {
        Some(_) if same => format!("nothing has changed: {place} holds the same {}", size(new)),
        Some(before) => format!("{place} holds {} now, {} before", size(new), size(before)),
        None => format!("{place} holds {}", size(new)),
    };
    format!("{line}\n{}\n", new.report)
}

fn size(catalog: &Catalog) -> String {
    let report = &catalog.report;
    format!("{} of {}", count(report.offerings, "offering"), count(report.types, "type"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_catalog::{Rates, sample};

    use super::*;

    #[test]
    fn the_answer_says_what_is_stored_and_what_was_before() {
        let (mut old, mut new) = (sample(&Rates::default()), sample(&Rates::default()));
        let words = |before: Option<&Catalog>, new: &Catalog| {
            let text = stored(before, new, Path::new("/data"));
            text.lines().next().unwrap().to_owned()
        };
        new.report.offerings = 7;
        new.report.types = 1;
        assert_eq!(words(None, &new), "/data holds 7 offerings of 1 type");
        old.report.offerings = 9;
        old.report.types = 2;
        assert_eq!(
            words(Some(&old), &new),
            "/data holds 7 offerings of 1 type now, 9 offerings of 2 types before"
        );
        (old.report.provenance.hash, new.report.provenance.hash) = (Some("a".into()), Some("a".into()));
        assert_eq!(
            words(Some(&old), &new),
            "nothing has changed: /data holds the same 7 offerings of 1 type"
        );
        assert_eq!(kept(None, Path::new("/data")), "no catalog is stored in /data");
    }

    #[test]
    fn a_key_file_that_cannot_be_used_is_bad_input_that_does_not_show_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "s3 cret").unwrap();
        let words = format!("{:#}", key(&path).err().unwrap());
        assert!(words.contains("key") && !words.contains("s3"), "{words}");
        let missing = format!("{:#}", key(&folder.path().join("none")).err().unwrap());
        assert!(missing.starts_with("read "), "{missing}");
    }
}
