//! The approver of kubelet certificates: only a live claim's machine gets one, and only in its own name.

pub mod decide;
