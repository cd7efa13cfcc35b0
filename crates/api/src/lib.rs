//! The Kubernetes objects: CRD structs, constants, and their way to and from core.
