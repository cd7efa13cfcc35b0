//! Why a look at a claim failed.

use std::time::Duration;

/// Why a look at a claim failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API server refused or could not be reached.
    #[error("{doing}")]
    Kubernetes {
        /// What we were doing.
        doing: &'static str,
        /// Its words.
        source: Box<kube::Error>,
    },
    /// The plugin's answer leaves open what happened.
    #[error("{doing}")]
    Provider {
        /// What we were doing.
        doing: &'static str,
        /// Its words.
        source: Box<scarpenter_provider::Error>,
    },
    /// The join material cannot be made.
    #[error("make the join material")]
    Join(#[source] Box<crate::join::Error>),
    /// The mesh does not give a key, or what it left cannot be noted.
    #[error("use the mesh of its class")]
    Mesh(#[source] Box<crate::mesh::Error>),
    /// Annotations of ours that cannot be read.
    #[error("the claim cannot be read: {0}; delete it, or mend the annotation")]
    Unreadable(String),
    /// Something that the step needs is not there, or not usable, for now.
    #[error("{0} is missing or not usable")]
    Missing(&'static str),
    /// What was seen is older than what is.
    #[error("{0} changed meanwhile")]
    Stale(&'static str),
}

impl Error {
    /// For `map_err` after a call to the API server.
    pub(crate) fn kubernetes(doing: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Kubernetes { doing, source: Box::new(source) }
    }

    /// For `map_err` after a call to a plugin.
    pub(crate) fn provider(doing: &'static str) -> impl FnOnce(scarpenter_provider::Error) -> Self {
        move |source| Self::Provider { doing, source: Box::new(source) }
    }

    /// A fixed word for metrics and logs.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            Self::Kubernetes { .. } if self.is_race() => "conflict",
            Self::Kubernetes { .. } => "kubernetes",
            Self::Provider { source, .. } => source.category(),
            Self::Join(_) => "join",
            Self::Mesh(error) => error.category(),
            Self::Unreadable(_) => "unreadable",
            Self::Missing(_) => "missing",
            Self::Stale(_) => "stale",
        }
    }

    /// Somebody else was faster; looking again is all there is to do.
    pub(crate) fn is_race(&self) -> bool {
        match self {
            Self::Kubernetes { source, .. } => {
                matches!(&**source, kube::Error::Api(status) if status.is_conflict() || status.is_not_found())
            }
            Self::Stale(_) => true,
            _ => false,
        }
    }

    /// When to look again, where somebody said so.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Provider { source, .. } => source.retry_after(),
            error if error.is_race() => Some(Duration::from_millis(50)),
            Self::Unreadable(_) => Some(Duration::from_secs(60)),
            Self::Missing(_) => Some(Duration::from_secs(5)),
            _ => None,
        }
    }
}
