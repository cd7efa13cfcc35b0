use std::rc::Rc;

use super::groups::GroupId;

/// What a pod asks of where others are, and what others ask of where it is.
#[derive(Debug)]
pub(crate) struct Demand {
    /// Groups that count it.
    pub(super) matched: Rc<[GroupId]>,
    /// What must hold.
    pub(super) required: Vec<Rule>,
    /// What is wished for; the last is given up first.
    pub(super) soft: Vec<Rule>,
    /// How many of the wishes, from the first, are spreads: they are given up after preferences for nodes.
    pub(super) spreads: usize,
    /// Keys by which it is spread.
    pub(super) spread_over: SpreadKeys,
}

/// Keys of spreads by position, host names aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SpreadKeys {
    /// Of those that must hold: who lacks one of them makes no domain for any.
    pub(super) required: Vec<usize>,
    /// Of those that are wishes.
    pub(super) wished: Vec<usize>,
}

/// One rule about where other pods are.
#[derive(Debug)]
pub(crate) enum Rule {
    /// No domain much fuller than the emptiest.
    Spread {
        /// Pods that are counted.
        group: GroupId,
        /// How much fuller.
        max_skew: u32,
        /// While there are fewer domains, the emptiest holds nothing.
        min_domains: Option<u32>,
        /// Whether the pod itself is counted.
        own: bool,
    },
    /// Where such pods are already, by each of the keys.
    Near {
        /// One a term; all count pods that match every term.
        groups: Vec<GroupId>,
        /// Whether the pod itself would do, so that it may be the first.
        own: bool,
    },
    /// Where no such pod is.
    Apart {
        /// Pods that are avoided.
        group: GroupId,
    },
}

impl Demand {
    /// Rules that hold while so many of the wishes do.
    pub(super) fn rules(&self, soft: usize) -> impl Iterator<Item = &Rule> {
        self.required.iter().chain(&self.soft[..soft])
    }

    /// How many wishes there are, and how many of them are given up after preferences for nodes.
    pub(crate) fn wishes(&self) -> (usize, usize) {
        (self.soft.len(), self.spreads)
    }

    /// Keys by which it is spread.
    pub(crate) fn spread_over(&self) -> &SpreadKeys {
        &self.spread_over
    }

    /// Whether a spread must hold over more than hosts.
    pub(crate) fn is_spread(&self) -> bool {
        !self.spread_over.required.is_empty()
    }

    /// Whether where others land may change what it gets.
    pub(crate) fn waits_for_others(&self) -> bool {
        !self.required.is_empty()
    }

    /// Groups that the pod keeps away once it is placed.
    pub(super) fn repelled(&self) -> impl Iterator<Item = GroupId> {
        self.required.iter().filter_map(|rule| match rule {
            Rule::Apart { group } => Some(*group),
            Rule::Spread { .. } | Rule::Near { .. } => None,
        })
    }
}

impl Rule {
    /// Takes note of whether the pod is counted by its own rule.
    pub(super) fn set_own(&mut self, matched: &[GroupId]) {
        match self {
            Self::Spread { group, own, .. } => *own = matched.contains(group),
            Self::Near { groups, own } => *own = groups.iter().all(|group| matched.contains(group)),
            Self::Apart { .. } => {}
        }
    }

    /// The reason that a refusal by it is called by.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Spread { .. } => "spread",
            Self::Near { .. } => "pod-affinity",
            Self::Apart { .. } => "pod-anti-affinity",
        }
    }

    /// Groups that it looks at.
    pub(super) fn groups(&self) -> &[GroupId] {
        match self {
            Self::Spread { group, .. } | Self::Apart { group } => std::slice::from_ref(group),
            Self::Near { groups, .. } => groups,
        }
    }
}
