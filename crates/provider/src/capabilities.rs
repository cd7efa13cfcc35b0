//! What a plugin is and can do.

use std::time::Duration;

use scarpenter_core::name::Vendor;
use scarpenter_core::offering::{Arch, CapacityType};

/// Version of the contract that this crate speaks.
pub const CONTRACT_VERSION: u32 = 1;

/// What a plugin is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whose machines it makes.
    pub vendor: Vendor,
    /// Largest user data that the vendor takes.
    pub user_data_limit: UserDataLimit,
    /// Capacity types that can be bought.
    pub capacity_types: Vec<CapacityType>,
    /// Architectures that can be bought.
    pub archs: Vec<Arch>,
    /// The longest time for which a create in flight, a queue and a lagging list together may hide a machine.
    pub settle: Duration,
    /// How many calls the vendor allows; `None` when unknown.
    pub rate_budget: Option<RateBudget>,
    /// Whether it serves `ListOfferings`.
    pub lists_offerings: bool,
    /// Whether it serves `GetConsoleOutput`.
    pub has_console: bool,
}

/// Largest user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserDataLimit {
    /// The limit, counted after the encoding.
    pub bytes: u64,
    /// How the vendor counts.
    pub encoding: Encoding,
}

/// How a vendor counts user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The bytes as they are.
    Raw,
    /// Base64 with padding, a third more.
    Base64,
}

impl UserDataLimit {
    /// What the vendor counts for a document of `raw` bytes.
    #[must_use]
    pub fn counted(&self, raw: usize) -> u64 {
        let raw = u64::try_from(raw).unwrap_or(u64::MAX);
        match self.encoding {
            Encoding::Raw => raw,
            Encoding::Base64 => raw.div_ceil(3).saturating_mul(4),
        }
    }

    /// Whether the vendor takes a document of `raw` bytes.
    #[must_use]
    pub fn takes(&self, raw: usize) -> bool {
        self.counted(raw) <= self.bytes
    }
}

/// So many calls in such a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateBudget {
    /// How many.
    pub calls: u32,
    /// In what time.
    pub per: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_counted_with_its_padding() {
        let limit = UserDataLimit { bytes: 8, encoding: Encoding::Base64 };
        assert!(limit.takes(6) && !limit.takes(7));
        let raw = UserDataLimit { bytes: 8, encoding: Encoding::Raw };
        assert!(raw.takes(8) && !raw.takes(9));
    }
}
