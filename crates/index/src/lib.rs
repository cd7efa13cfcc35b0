//! Watch events in, a view of the cluster out, ready to be planned on.
//!
//! The view is a plain struct with apply and remove; each rule is tested by applying objects and reading the answer.
//! **Architecture invariant:** no `await`, no client, no clock: what is not in an event is an argument.

mod claims;
mod nodes;
mod places;
mod pods;
mod surroundings;
mod usage;
mod view;
mod volumes;

pub use claims::ClaimRecord;
pub use nodes::NodeRecord;
pub use pods::PodRecord;
pub use view::View;
pub use volumes::Volumes;

#[cfg(test)]
mod tests;
