//! The plugin's own account of what it was asked and which machines there were.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

/// All lines of the account, read.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Times, in microseconds since 1970, at which a create of each claim was received.
    pub creates: BTreeMap<String, Vec<u64>>,
    /// Machines made for each claim.
    pub made: BTreeMap<String, Vec<String>>,
    /// Machines that went.
    pub gone: Vec<String>,
    /// Most machines at a time.
    pub most: u64,
}

impl Ledger {
    /// Reads the file; a line that is being written is left for the next time.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context("read the plugin's log"),
        };
        let mut ledger = Self::default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|line| ledger.take(&line));
        Ok(ledger)
    }

    fn take(&mut self, line: &Value) {
        let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        match line["event"].as_str() {
            Some("received") if line["call"] == "CreateMachine" => {
                self.creates.entry(word("claim")).or_default().extend(line["us"].as_u64());
            }
            Some("made") => {
                self.made.entry(word("claim")).or_default().push(word("machine"));
                self.most = self.most.max(line["machines"].as_u64().unwrap_or_default());
            }
            Some("gone") => self.gone.push(word("machine")),
            Some("kept") => self.correct(line["kept"].as_object().into_iter().flatten()),
            _ => {}
        }
    }

    /// What a plugin found when it was started again: one that is killed may not have written all that happened.
    fn correct<'a>(&mut self, kept: impl Iterator<Item = (&'a String, &'a Value)>) {
        let kept: BTreeMap<&String, &Value> = kept.collect();
        for (machine, claim) in &kept {
            let made = self.made.entry(claim.as_str().unwrap_or_default().to_owned()).or_default();
            if !made.contains(machine) {
                made.push((*machine).clone());
            }
        }
        let lost = self.made.values().flatten();
        let lost = lost.filter(|machine| !kept.contains_key(machine) && !self.gone.contains(machine));
        let lost: Vec<String> = lost.cloned().collect();
        self.gone.extend(lost);
    }

    /// How many machines were made.
    #[must_use]
    pub fn machines(&self) -> usize {
        self.made.values().map(Vec::len).sum()
    }

    /// Claims that more than one machine was made for.
    #[must_use]
    pub fn doubled(&self) -> Vec<&str> {
        let doubled = self.made.iter().filter(|(_, machines)| machines.len() > 1);
        doubled.map(|(claim, _)| claim.as_str()).collect()
    }

    /// No more than one machine for each of so many pods, none doubled, and all of them gone again.
    ///
    /// Fewer are fine: a pod that comes late may run where another has ended.
    ///
    /// # Errors
    /// Says what is too many.
    pub fn demand_at_most_one_each(&self, pods: usize) -> anyhow::Result<()> {
        let (doubled, machines, gone) = (self.doubled(), self.machines(), self.gone.len());
        anyhow::ensure!(doubled.is_empty(), "claims with more than one machine: {doubled:?}");
        anyhow::ensure!(machines <= pods, "{machines} machines were made for {pods} pods");
        anyhow::ensure!(gone == machines, "{gone} of {machines} machines are gone");
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"us":5,"event":"received","call":"CreateMachine","claim":"a"}
{"us":6,"event":"made","claim":"a","machine":"aws-1","machines":1}
{"us":7,"event":"received","call":"DeleteMachine","claim":"a"}
{"us":8,"event":"gone","machine":"aws-1","machines":0}
{"us":9,"event":"made","claim":"a","mach"#;

    #[test]
    fn lines_are_counted_and_one_that_is_cut_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), LINES).unwrap();
        let ledger = Ledger::read(file.path()).unwrap();
        assert_eq!(ledger.creates["a"], [5]);
        assert!(ledger.demand_at_most_one_each(1).is_ok() && ledger.demand_at_most_one_each(0).is_err());
    }

    #[test]
    fn what_a_killed_plugin_did_not_write_is_learned_from_what_the_next_finds() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines = r#"{"event":"made","claim":"a","machine":"aws-1","machines":1}
{"event":"kept","kept":{"aws-2":"b"}}
{"event":"gone","machine":"aws-2","machines":0}
"#;
        std::fs::write(file.path(), lines).unwrap();
        let ledger = Ledger::read(file.path()).unwrap();
        assert_eq!((ledger.machines(), ledger.gone.len()), (2, 2), "{ledger:?}");
        assert!(ledger.demand_at_most_one_each(2).is_ok());
    }

    #[test]
    fn a_second_machine_of_a_claim_is_refused() {
        let made = BTreeMap::from([("a".to_owned(), vec!["aws-1".to_owned(), "aws-2".to_owned()])]);
        let ledger = Ledger { made, gone: vec!["aws-1".into(), "aws-2".into()], ..Ledger::default() };
        assert!(ledger.demand_at_most_one_each(2).unwrap_err().to_string().contains("more than one machine"));
    }
}
