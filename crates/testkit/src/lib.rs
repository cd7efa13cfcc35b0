//! What tests share and nothing shipped uses: a cloud that misbehaves, and controllers that die in it.

pub mod crash;
