//! The hollow node: takes an Ignition document, bootstraps by TLS, registers, runs pods on paper.
//!
//! It does what a Flatcar machine would do with the document, and knows nothing but the document: it opens it,
//! takes the bootstrap kubeconfig, makes a key, asks for a client certificate, registers its Node with what the
//! document says, renews its Lease and plays the pods that are bound to it.
//! Everything a kubelet would be refused, it is refused by the same API server.
//!
//! # What it is not
//!
//! There is no metal, no container and no network behind it: `kubectl logs` finds nobody.
//! Certificates are not renewed; in the year they live no test ends.
//! With a [disk](Node::start_with_disk) it outlives the process that plays it, as a real machine outlives its vendor's API.
//! **Architecture invariant:** no vendor, and no way around the document.

mod admission;

mod certificate;

mod console;

mod disk;

mod duration;

mod lease;

mod life;

mod node;

mod pod;

mod pods;

mod registration;

mod spec;

pub use node::{Node, State};
pub use spec::{Faults, Spec};
