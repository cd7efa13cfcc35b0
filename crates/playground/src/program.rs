//! The programs of a control plane.

use std::fmt;

/// A program of the throw-away control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Service accounts, certificates, garbage collection, node lifecycle, …
    ControllerManager,
    /// Binds pods to nodes.
    Scheduler,
    /// The command line of a person who looks on; nothing here runs it.
    Kubectl,
    /// Makes a machine a node. No part of the control plane: built only when asked for, by [`Binaries::kubelet`].
    ///
    /// [`Binaries::kubelet`]: crate::Binaries::kubelet
    Kubelet,
}

impl Program {
    /// Those of the control plane, in the order in which they are built.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kubectl];

    /// The file name, such as `kube-apiserver`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kubelet => "kubelet",
        }
    }

    /// The Go package it is built from.
    pub(crate) const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
