//! Why no NodePool is made.

use std::fmt;

/// One word for it; the same word stands in the conditions of the SCNodePool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The template contradicts itself or its provider.
    InvalidTemplate,
    /// A selector means nothing.
    InvalidSelector,
    /// A benchmark is bounded on its wrong side.
    InvalidBenchmarkBound,
    /// The ranking means nothing.
    InvalidRanking,
    /// The node class is of no provider that is known.
    UnsupportedProvider,
    /// The provider does not sell that way.
    CapacityTypeUnsupported,
    /// The provider cannot take these architectures in one pool.
    ArchitectureUnsupported,
    /// No region was given, and none was found.
    RegionsUnknown,
    /// The data has no such region.
    UnknownRegion,
    /// The NodePool that is there has another kind of node class.
    NodeClassRefImmutable,
    /// What came out is no valid NodePool.
    ValidationFailed,
    /// The data has no such benchmark, or several configs of it.
    UnknownBenchmarkConfig,
    /// Which types the provider can launch is not known.
    EligibilityUnknown,
    /// No type is left.
    NoCandidates,
}

/// Of what kind a reason is, which decides how a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The SCNodePool must be changed.
    Spec,
    /// It is sound and leaves no type.
    Nothing,
    /// It may be sound; the data does not tell.
    Data,
}

impl Reason {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidTemplate => "InvalidTemplate",
            Self::InvalidSelector => "InvalidSelector",
            Self::InvalidBenchmarkBound => "InvalidBenchmarkBound",
            Self::InvalidRanking => "InvalidRanking",
            Self::UnsupportedProvider => "UnsupportedProvider",
            Self::CapacityTypeUnsupported => "CapacityTypeUnsupported",
            Self::ArchitectureUnsupported => "ArchitectureUnsupported",
            Self::RegionsUnknown => "RegionsUnknown",
            Self::UnknownRegion => "UnknownRegion",
            Self::NodeClassRefImmutable => "NodeClassRefImmutable",
            Self::ValidationFailed => "ValidationFailed",
            Self::UnknownBenchmarkConfig => "UnknownBenchmarkConfig",
            Self::EligibilityUnknown => "EligibilityUnknown",
            Self::NoCandidates => "NoCandidates",
        }
    }

    /// Of what kind it is.
    #[must_use]
    pub fn fault(self) -> Fault {
        match self {
            Self::NoCandidates => Fault::Nothing,
            Self::UnknownBenchmarkConfig | Self::EligibilityUnknown => Fault::Data,
            _ => Fault::Spec,
        }
    }

    pub(crate) fn because(self, message: impl Into<String>) -> Refusal {
        Refusal { reason: self, message: message.into() }
    }
}

/// Why no NodePool is made; the one that is there stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// In one word.
    pub reason: Reason,
    /// In one sentence: what, where, what to do.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.as_str(), self.message)
    }
}
