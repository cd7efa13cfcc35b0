//! Builds and runs a throw-away Kubernetes control plane.
