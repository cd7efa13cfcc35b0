//! What the workspace must look like: which crate may use which, what stands at the top, how long a file may be.

mod arrows;
mod files;
