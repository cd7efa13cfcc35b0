//! What goes wrong, by a YAML file of rules.
//!
//! ```yaml
//! seed: 7                          # of the probabilities
//! rules:
//!   - vendor: hcloud               # where: also region, instanceType, capacityType; absent or "*" = any
//!     instanceType: ccx33
//!     call: CreateMachine          # which call; absent = every call that the fault fits
//!     skip: 1                      # how often: not the first so many,
//!     times: 2                     # then so many, absent = always,
//!     probability: 0.5             # each with this chance, absent = 1
//!     fault: {error: {reason: SOLD_OUT, retryAfter: 30s}}
//!   - fault: {listLag: 2s}
//!   - fault: hang
//! ```
//!
//! | fault | what happens |
//! |---|---|
//! | `delay: 2s`, `delayAnswer: 2s` | the call is carried out, or answered, so much later |
//! | `hang` | no answer until the plugin ends; nothing is done |
//! | `error: {code, reason, scope, retryAfter, message}` | this status, nothing is done; `code` follows from `reason` |
//! | `rateLimit: {calls, per}` | `RATE_LIMIT` once there were so many calls in such a time |
//! | `loseAnswer: aborted \| hang \| die` | it is done, but the caller is not told; `die` ends the process |
//! | `twice` | the same request is carried out twice at once |
//! | `nonsense: …` | the answer is spoilt, see [`Nonsense`] |
//! | `double` | a create makes two machines with one claim |
//! | `listLag: 2s` | list, get and delete do not see a machine that is younger |
//! | `omit` | the list leaves the machine out and says nothing |
//! | `uncovered` | the list leaves the machine's region out and says so |
//! | `hide` | `NOT_FOUND` for a live machine |
//! | `deleteTakes: 5s` | a deleted machine is still to be seen so long |
//! | `deleteSaysGone` | `NOT_FOUND` to a delete, nothing is done |
//! | `deleteIgnored` | OK to a delete, nothing is done |
//! | `problem: text` | `Validate` finds this |
//! | `machine: {bootDelay, neverJoins, joinsAs, memoryPercent, dropLabels, dropTaints, neverReady}` | of machines made while the rule holds |

mod rule;
mod span;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use scarpenter_provider::error::Call;
use tokio::time::Instant;

pub(crate) use rule::over_rate;
pub use rule::{ErrorFault, Fault, LostAs, MachineFault, Nonsense, RateFault, Rule, Rules, Subject};
pub use span::{BadSpan, Span, parse_span};

/// Rules and how often each has struck.
#[derive(Debug)]
pub struct Faults {
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    text: String,
    rules: Rules,
    tallies: Vec<Tally>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    /// Calls that the rule has matched.
    matched: u32,
    /// For `rateLimit`: when the window began, and calls in it.
    window: Option<(Instant, u32)>,
}

/// Why a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FaultsError {
    /// It cannot be read.
    #[error("read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It says what is not understood.
    #[error("understand the rules: {why}")]
    Parse {
        /// What.
        why: String,
    },
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self { path: None, state: Mutex::default() }
    }

    /// Rules of a text; for tests.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn from_text(text: &str) -> Result<Self, FaultsError> {
        Ok(Self { path: None, state: Mutex::new(State::parse(text)?) })
    }

    /// Rules of a file, which is read again whenever it changes.
    ///
    /// # Errors
    /// When it cannot be read or is not understood.
    pub fn from_file(path: &Path) -> Result<Self, FaultsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| FaultsError::Read { path: path.to_owned(), source })?;
        Ok(Self { path: Some(path.to_owned()), state: Mutex::new(State::parse(&text)?) })
    }

    /// Takes a changed file; tallies begin anew. A file that is gone or not understood changes nothing.
    pub(crate) fn refresh(&self) {
        let Some(path) = &self.path else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if text == state.text {
            return;
        }
        match State::parse(&text) {
            Ok(fresh) => {
                tracing::info!(path = %path.display(), rules = fresh.rules.rules.len(), "rules changed");
                *state = fresh;
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "changed rules are not understood"),
        }
    }

    /// What strikes this call; every rule that `pick` takes something of is counted.
    pub(crate) fn strike<T>(
        &self,
        subject: &Subject,
        call: Call,
        pick: impl Fn(&Fault) -> Option<T>,
    ) -> Vec<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { rules: Rules { seed, rules }, tallies, .. } = &mut *state;
        let matching =
            rules.iter().zip(tallies).enumerate().filter(|(_, (rule, _))| rule.matches(subject, call));
        let struck = matching.filter_map(|(index, (rule, tally))| {
            let picked = pick(&rule.fault)?;
            rule.strikes(&mut tally.matched, *seed, index).then_some(picked)
        });
        struck.collect()
    }

    /// The time to wait when a `rateLimit` rule is exceeded by this call.
    pub(crate) fn over_rate(&self, subject: &Subject, call: Call, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { rules, tallies, .. } = &mut *state;
        let waits = rules.rules.iter().zip(tallies).filter_map(|(rule, tally)| match &rule.fault {
            Fault::RateLimit(rate) if rule.matches(subject, call) => tally.over(rate, now),
            _ => None,
        });
        waits.collect::<Vec<_>>().into_iter().max()
    }
}

impl Tally {
    fn over(&mut self, rate: &RateFault, now: Instant) -> Option<Duration> {
        let (began, calls) = match self.window {
            Some((began, calls)) if now < began + rate.per.0 => (began, calls + 1),
            _ => (now, 1),
        };
        self.window = Some((began, calls));
        (calls > rate.calls).then(|| (began + rate.per.0).saturating_duration_since(now))
    }
}

impl State {
    fn parse(text: &str) -> Result<Self, FaultsError> {
        let rules: Rules = if text.trim().is_empty() {
            Rules::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| FaultsError::Parse { why: error.to_string() })?
        };
        for rule in &rules.rules {
            rule.check().map_err(|why| FaultsError::Parse { why })?;
        }
        let tallies = vec![Tally::default(); rules.rules.len()];
        Ok(Self { text: text.to_owned(), rules, tallies })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn hcloud(instance_type: &str) -> Subject {
        Subject {
            vendor: "hcloud".into(),
            region: Some("fsn1".into()),
            instance_type: Some(instance_type.into()),
            capacity_type: Some("on-demand".into()),
        }
    }

    fn hangs(faults: &Faults, subject: &Subject, call: Call) -> usize {
        faults.strike(subject, call, |fault| matches!(fault, Fault::Hang).then_some(())).len()
    }

    #[test]
    fn the_example_in_the_documentation_is_understood() {
        let text: String = include_str!("faults.rs")
            .lines()
            .skip_while(|line| !line.contains("```yaml"))
            .skip(1)
            .take_while(|line| !line.contains("```"))
            .map(|line| format!("{}\n", line.trim_start_matches("//!")))
            .collect();
        assert_eq!(State::parse(&text).unwrap().rules.rules.len(), 3);
    }

    #[test]
    fn every_fault_of_the_table_is_understood() {
        for fault in [
            "{delay: 2s}",
            "{delayAnswer: 20ms}",
            "hang",
            "{error: {code: UNAVAILABLE}}",
            "{error: {reason: QUOTA, scope: region, message: full}}",
            "{rateLimit: {calls: 3600, per: 1h}}",
            "{loseAnswer: aborted}",
            "twice",
            "{nonsense: emptyId}",
            "double",
            "{listLag: 2s}",
            "omit",
            "uncovered",
            "hide",
            "{deleteTakes: 5s}",
            "deleteSaysGone",
            "deleteIgnored",
            "{problem: no such subnet}",
            "{machine: {bootDelay: 1m, neverJoins: true, joinsAs: other, memoryPercent: 94, dropLabels: true}}",
        ] {
            let text = format!("rules:\n  - fault: {fault}\n");
            assert!(Faults::from_text(&text).is_ok(), "{fault}: {:?}", Faults::from_text(&text));
        }
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        for rule in [
            "{fault: hangs}",
            "{fault: hang, vendr: hcloud}",
            "{fault: hang, call: CreateMachines}",
            "{fault: hang, capacityType: reserved}",
            "{fault: {delay: 2}}",
            "{fault: {error: {code: NOPE}}}",
            "{fault: {error: {message: x}}}",
            "{fault: {error: {reason: SOLD_OUT, scope: planet}}}",
            "{fault: hang, probability: 2}",
        ] {
            assert!(Faults::from_text(&format!("rules:\n  - {rule}\n")).is_err(), "{rule}");
        }
    }

    #[test]
    fn a_rule_strikes_where_and_as_often_as_it_says() {
        let text = "rules:\n  - {instanceType: cx22, call: GetMachine, skip: 1, times: 2, fault: hang}\n";
        let faults = Faults::from_text(text).unwrap();
        assert_eq!(hangs(&faults, &hcloud("cx32"), Call::GetMachine), 0);
        assert_eq!(hangs(&faults, &hcloud("cx22"), Call::CreateMachine), 0);
        let struck: Vec<_> = (0..5).map(|_| hangs(&faults, &hcloud("cx22"), Call::GetMachine)).collect();
        assert_eq!(struck, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_probability_is_the_same_in_every_run_and_about_right() {
        let run = || {
            let faults = Faults::from_text("seed: 3\nrules: [{probability: 0.3, fault: hang}]").unwrap();
            (0..1000).map(|_| hangs(&faults, &hcloud("cx22"), Call::GetMachine)).collect::<Vec<_>>()
        };
        let struck = run();
        assert_eq!(struck, run());
        assert!((250..350).contains(&struck.iter().sum::<usize>()));
    }

    #[test]
    fn a_rate_limit_opens_again_with_the_next_window() {
        let faults = Faults::from_text("rules: [{fault: {rateLimit: {calls: 2, per: 10s}}}]").unwrap();
        let began = Instant::now();
        let after = |seconds| {
            faults.over_rate(&hcloud("cx22"), Call::GetMachine, began + Duration::from_secs(seconds))
        };
        assert_eq!((after(0), after(1)), (None, None));
        assert_eq!(after(4), Some(Duration::from_secs(6)));
        assert_eq!(after(10), None);
    }

    #[test]
    fn a_changed_file_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults.yaml");
        std::fs::write(&path, "rules: []").unwrap();
        let faults = Faults::from_file(&path).unwrap();
        let now = || {
            faults.refresh();
            hangs(&faults, &hcloud("cx22"), Call::GetMachine)
        };
        assert_eq!(now(), 0);
        std::fs::write(&path, "rules: [{fault: hang}]").unwrap();
        assert_eq!(now(), 1);
        std::fs::write(&path, "rules: [{fault: ha").unwrap();
        assert_eq!(now(), 1);
        std::fs::write(&path, "").unwrap();
        assert_eq!(now(), 0);
    }
}
