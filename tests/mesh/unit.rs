//! Service units as systemd reads them, as far as the documents use them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};

use crate::disk::{PRESET, UNITS};

/// A service with its drop-ins.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) enabled: bool,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    section: String,
    key: String,
    value: String,
}

/// Reads the services of a disk; those that are masked, and those of which it has only drop-ins, are left out.
pub(crate) fn services(root: &Path) -> anyhow::Result<BTreeMap<String, Unit>> {
    let folder = root.join(UNITS);
    let preset = fs::read_to_string(root.join(PRESET)).context("read the preset")?;
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(&folder).context("read the folder of units")? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".service") || !entry.file_type()?.is_file() {
            continue;
        }
        let mut texts = vec![fs::read_to_string(entry.path())?];
        let mut dropins = match fs::read_dir(folder.join(format!("{name}.d"))) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?,
            Err(_) => Vec::new(),
        };
        dropins.sort();
        for dropin in dropins {
            texts.push(fs::read_to_string(dropin)?);
        }
        let enabled = preset.lines().any(|line| line == format!("enable {name}"));
        out.insert(name.clone(), Unit::parse(&name, enabled, &texts)?);
    }
    Ok(out)
}

impl Unit {
    pub(crate) fn parse(name: &str, enabled: bool, texts: &[impl AsRef<str>]) -> anyhow::Result<Self> {
        let mut lines = Vec::new();
        for text in texts {
            let mut section = String::new();
            for line in joined(text.as_ref()) {
                if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                    section = name.to_owned();
                } else {
                    let (key, value) =
                        line.split_once('=').with_context(|| format!("{name}: {line:?} is no assignment"))?;
                    ensure!(!section.is_empty(), "{name}: {line:?} stands before the first section");
                    let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                    lines.push(Line { section: section.clone(), key, value });
                }
            }
        }
        Ok(Self { name: name.to_owned(), enabled, lines })
    }

    /// All values of a setting that may stand several times; an empty one forgets those before it.
    pub(crate) fn all(&self, section: &str, key: &str) -> Vec<&str> {
        let mut out = Vec::new();
        for line in self.lines.iter().filter(|line| line.section == section && line.key == key) {
            if line.value.is_empty() { out.clear() } else { out.push(line.value.as_str()) }
        }
        out
    }

    /// The last value of a setting.
    pub(crate) fn last(&self, section: &str, key: &str) -> Option<&str> {
        self.all(section, key).pop()
    }

    /// The units that a setting names.
    pub(crate) fn named(&self, key: &str) -> Vec<&str> {
        self.all("Unit", key).into_iter().flat_map(str::split_whitespace).collect()
    }

    /// Whether it starts at boot.
    pub(crate) fn starts_at_boot(&self) -> bool {
        let wanted = self.all("Install", "WantedBy").into_iter().flat_map(str::split_whitespace);
        self.enabled && wanted.into_iter().any(|target| target == "multi-user.target")
    }
}

/// Lines without comments, those that end in a backslash joined with the next.
fn joined(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut open = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) || (line.is_empty() && open.is_empty()) {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(begin) => open.push_str(&format!("{begin} ")),
            None => out.push(format!("{}{line}", std::mem::take(&mut open))),
        }
    }
    out
}

/// Splits a command line or a list of assignments as systemd does, and puts in what `variables` say: `${NAME}` as part
/// of a word, `$NAME` alone as no, one or several words.
pub(crate) fn words(line: &str, variables: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
    let mut out = Vec::new();
    for word in split(line)? {
        ensure!(!word.text.contains('%'), "{line:?} holds a specifier, which is not played here");
        let value = |name: &str| variables.get(name).cloned().unwrap_or_default();
        match word.text.strip_prefix('$') {
            Some(name) if !word.quoted && !name.is_empty() && !name.starts_with('{') => {
                out.extend(value(name).split_whitespace().map(str::to_owned));
            }
            _ => out.push(filled(&word.text, value)?),
        }
    }
    Ok(out)
}

struct Word {
    text: String,
    quoted: bool,
}

fn split(line: &str) -> anyhow::Result<Vec<Word>> {
    let mut out = Vec::new();
    let mut characters = line.trim().chars().peekable();
    while characters.peek().is_some() {
        let mut word = Word { text: String::new(), quoted: false };
        let mut quote = None;
        for c in characters.by_ref() {
            match quote {
                Some(open) if c == open => quote = None,
                Some(_) => word.text.push(c),
                None if c == '"' || c == '\'' => (quote, word.quoted) = (Some(c), true),
                None if c.is_whitespace() => break,
                None => word.text.push(c),
            }
        }
        ensure!(quote.is_none(), "{line:?} ends within a quotation");
        if !word.text.is_empty() || word.quoted {
            out.push(word);
        }
    }
    Ok(out)
}

fn filled(text: &str, value: impl Fn(&str) -> String) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else {
            bail!("{text:?} has a brace that does not close")
        };
        out.push_str(before);
        out.push_str(&value(name));
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

/// Trials of the reading itself.
pub(crate) fn reading() -> anyhow::Result<()> {
    let own = "[Unit]\nAfter=a.service \\\n  b.service\n# After=c.service\n[Service]\nEnvironment=X=1\nExecStart=/a\n";
    let dropin =
        "[Unit]\nAfter=d.service\n[Service]\nExecStart=\nExecStart=/b ${X}y $Z \"$Z\" $EMPTY 'two words'\n";
    let unit = Unit::parse("x.service", false, &[own, dropin])?;
    ensure!(unit.named("After") == ["a.service", "b.service", "d.service"], "{unit:?}");
    let variables = [("X", "1"), ("Z", "p q")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let [line] = unit.all("Service", "ExecStart")[..] else { bail!("{unit:?}") };
    let line = words(line, &BTreeMap::from(variables))?;
    ensure!(line == ["/b", "1y", "p", "q", "$Z", "two words"], "{line:?}");
    ensure!(Unit::parse("x.service", false, &["After=a"]).is_err(), "a setting without a section");
    Ok(())
}
