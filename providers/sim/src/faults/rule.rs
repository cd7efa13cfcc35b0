//! One rule: where, how often, what.

use scarpenter_core::offering::CapacityType;
use scarpenter_provider::Scope;
use scarpenter_provider::error::Call;
use scarpenter_provider::failure::{Cause, Failure, code_named, status};
use serde::{Deserialize, Serialize};
use tonic::{Code, Status};

use super::span::Span;

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Of the probabilities.
    #[serde(default)]
    pub seed: u64,
    /// All that apply strike, in this order.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Vendor; absent or `*` = any.
    pub vendor: Option<String>,
    /// Region; absent or `*` = any.
    pub region: Option<String>,
    /// Instance type; absent or `*` = any.
    pub instance_type: Option<String>,
    /// Capacity type; absent or `*` = any.
    pub capacity_type: Option<String>,
    /// Name of the RPC; absent or `*` = any.
    pub call: Option<String>,
    /// The first so many calls are spared.
    #[serde(default)]
    pub skip: u32,
    /// Then so many are struck; absent = all.
    pub times: Option<u32>,
    /// Chance of each.
    pub probability: Option<f64>,
    /// What happens.
    pub fault: Fault,
}

/// What a call is about; a call about no offering matches only rules that name none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Whose plugin is called.
    pub vendor: String,
    /// Region of the offering.
    pub region: Option<String>,
    /// Type of the offering.
    pub instance_type: Option<String>,
    /// Capacity type of the offering.
    pub capacity_type: Option<String>,
}

/// What happens; the table is at [the module](super).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the table at the module says what each does")]
pub enum Fault {
    Delay(Span),
    DelayAnswer(Span),
    Hang,
    Error(ErrorFault),
    RateLimit(RateFault),
    LoseAnswer(LostAs),
    Twice,
    Nonsense(Nonsense),
    Double,
    ListLag(Span),
    Omit,
    Uncovered,
    Hide,
    DeleteTakes(Span),
    DeleteSaysGone,
    DeleteIgnored,
    Problem(String),
    Machine(MachineFault),
}

/// A status.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorFault {
    /// gRPC code; absent = the one that goes with the reason.
    pub code: Option<String>,
    /// Reason in `ErrorInfo`.
    pub reason: Option<String>,
    /// Scope in `ErrorInfo`.
    pub scope: Option<String>,
    /// Delay in `RetryInfo`.
    pub retry_after: Option<Span>,
    /// Text.
    pub message: Option<String>,
}

/// So many calls in such a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateFault {
    /// How many.
    pub calls: u32,
    /// In what time.
    pub per: Span,
}

/// How an answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LostAs {
    /// `ABORTED`.
    Aborted,
    /// Never answered.
    Hang,
    /// The process ends at once, as if killed.
    Die,
}

/// How an answer breaks the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Nonsense {
    /// The machine serves another claim.
    WrongClaim,
    /// The machine is of another cluster.
    WrongCluster,
    /// The machine has no id.
    EmptyId,
    /// The machine's state is a number that nobody knows.
    UnknownState,
    /// The machine is of another type.
    WrongType,
    /// OK without a machine.
    NoMachine,
    /// The list names a machine twice.
    ListedTwice,
    /// The capabilities are another vendor's.
    OtherVendor,
    /// The capabilities are of another contract.
    OtherContract,
}

/// What goes wrong inside a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MachineFault {
    /// How long it takes to boot, instead of the usual.
    pub boot_delay: Option<Span>,
    /// Its kubelet never comes.
    pub never_joins: bool,
    /// Its kubelet comes under this name.
    pub joins_as: Option<String>,
    /// It has so much of the memory that was promised.
    pub memory_percent: Option<u32>,
    /// Its kubelet brings no labels of ours.
    pub drop_labels: bool,
    /// Its kubelet brings no taints of ours.
    pub drop_taints: bool,
    /// Its node never becomes ready.
    pub never_ready: bool,
}

impl MachineFault {
    /// Both: what `other` says wins.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            boot_delay: other.boot_delay.or(self.boot_delay),
            never_joins: self.never_joins || other.never_joins,
            joins_as: other.joins_as.or(self.joins_as),
            memory_percent: other.memory_percent.or(self.memory_percent),
            drop_labels: self.drop_labels || other.drop_labels,
            drop_taints: self.drop_taints || other.drop_taints,
            never_ready: self.never_ready || other.never_ready,
        }
    }
}

impl ErrorFault {
    /// The status that goes out. Checked when the file was read, so what is not known cannot be here.
    pub(crate) fn status(&self) -> Status {
        let code = self.code().unwrap_or(Code::Unknown);
        let scope = self.scope.as_deref().and_then(Scope::parse);
        let message = self.message.clone().unwrap_or_else(|| "said to fail".to_owned());
        status(code, self.reason.as_deref(), scope, self.retry_after.map(|span| span.0), message)
    }

    fn code(&self) -> Option<Code> {
        match (&self.code, &self.reason) {
            (Some(name), _) => code_named(name),
            (None, Some(reason)) => Some(match reason.as_str() {
                "SOLD_OUT" | "QUOTA" | "RATE_LIMIT" => Code::ResourceExhausted,
                "INVALID" => Code::InvalidArgument,
                "AUTH" => Code::Unauthenticated,
                "CONFLICT" => Code::AlreadyExists,
                _ => return None,
            }),
            (None, None) => None,
        }
    }
}

impl Rule {
    pub(super) fn check(&self) -> Result<(), String> {
        let known = |call: &str| call == "*" || Call::ALL.iter().any(|known| known.as_str() == call);
        if let Some(call) = self.call.as_deref().filter(|call| !known(call)) {
            return Err(format!("no call is named {call:?}"));
        }
        let sold = |capacity: &str| capacity == "*" || CapacityType::parse(capacity).is_some();
        if let Some(capacity) = self.capacity_type.as_deref().filter(|capacity| !sold(capacity)) {
            return Err(format!("{capacity:?} is no capacity type"));
        }
        if self.probability.is_some_and(|chance| !(0.0..=1.0).contains(&chance)) {
            return Err("a probability is between 0 and 1".to_owned());
        }
        match &self.fault {
            Fault::Error(error) if error.code().is_none() => {
                Err("an error needs a code or a reason that is known".to_owned())
            }
            Fault::Error(ErrorFault { scope: Some(scope), .. }) if Scope::parse(scope).is_none() => {
                Err(format!("{scope:?} is no scope"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn matches(&self, subject: &Subject, call: Call) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| wanted == "*" || Some(wanted) == found)
        };
        is(&self.call, Some(call.as_str()))
            && is(&self.vendor, Some(&subject.vendor))
            && is(&self.region, subject.region.as_deref())
            && is(&self.instance_type, subject.instance_type.as_deref())
            && is(&self.capacity_type, subject.capacity_type.as_deref())
    }

    /// Counts a call that matches and says whether it is struck.
    pub(super) fn strikes(&self, matched: &mut u32, seed: u64, index: usize) -> bool {
        let number = *matched;
        *matched = matched.saturating_add(1);
        let Some(after_skip) = number.checked_sub(self.skip) else { return false };
        self.times.is_none_or(|times| after_skip < times)
            && self.probability.is_none_or(|chance| draw(seed, index, number) < chance)
    }
}

/// A number from 0 to 1 that depends on nothing but its arguments (splitmix64).
fn draw(seed: u64, index: usize, number: u32) -> f64 {
    let stream = u64::try_from(index).unwrap_or_default() << 32 | u64::from(number);
    let mut bits = seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    f64::from(u32::try_from(bits >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

/// The failure of a call over its rate.
pub(crate) fn over_rate(wait: std::time::Duration) -> Status {
    Failure::new(Cause::RateLimit, "too many calls").with_retry_after(wait).into()
}
