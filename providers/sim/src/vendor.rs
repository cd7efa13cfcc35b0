//! What the vendors are like, as far as a plugin's caller can tell them apart.

use std::time::Duration;

use scarpenter_core::offering::CapacityType::{self, OnDemand, Spot};
use scarpenter_provider::capabilities::Encoding::{self, Base64, Raw};
use scarpenter_provider::capabilities::{RateBudget, UserDataLimit};

/// Limits and habits of one vendor.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Largest user data.
    pub user_data_limit: UserDataLimit,
    /// What it sells.
    pub capacity_types: &'static [CapacityType],
    /// Calls that it allows, where it says so.
    pub rate_budget: Option<RateBudget>,
    zones: Zones,
}

/// How a vendor names the zone that it chose itself.
#[derive(Clone, Copy, Debug)]
enum Zones {
    /// The region is the only zone.
    SameAsRegion,
    /// Region and this.
    Suffix(&'static str),
    /// Region in lower case and this.
    LowerSuffix(&'static str),
}

const BOTH: &[CapacityType] = &[OnDemand, Spot];
const ON_DEMAND: &[CapacityType] = &[OnDemand];

impl Traits {
    /// What a vendor is like; one that is not known is generous.
    #[must_use]
    pub fn of(vendor: &str) -> Self {
        match vendor {
            "aws" => Self::new(16 << 10, Raw, BOTH, Zones::Suffix("a")),
            "gcp" => Self::new(256 << 10, Raw, BOTH, Zones::Suffix("-a")),
            "azure" => Self::new(65_535, Raw, BOTH, Zones::Suffix("-1")),
            "alicloud" => Self::new(32 << 10, Raw, BOTH, Zones::Suffix("-a")),
            "hcloud" => Self::new(32 << 10, Raw, ON_DEMAND, Zones::SameAsRegion)
                .allowing(3600, Duration::from_secs(3600)),
            "ovh" => Self::new(65_535, Base64, ON_DEMAND, Zones::LowerSuffix("-a")),
            // Neither UpCloud nor Vultr publishes a size: these are ours.
            "upcloud" => Self::new(64 << 10, Raw, ON_DEMAND, Zones::SameAsRegion),
            "vultr" => Self::new(64 << 10, Base64, ON_DEMAND, Zones::SameAsRegion)
                .allowing(30, Duration::from_secs(1)),
            _ => Self::new(64 << 10, Raw, BOTH, Zones::SameAsRegion),
        }
    }

    fn new(bytes: u64, encoding: Encoding, capacity_types: &'static [CapacityType], zones: Zones) -> Self {
        let user_data_limit = UserDataLimit { bytes, encoding };
        Self { user_data_limit, capacity_types, rate_budget: None, zones }
    }

    fn allowing(self, calls: u32, per: Duration) -> Self {
        Self { rate_budget: Some(RateBudget { calls, per }), ..self }
    }

    /// The zone that the vendor takes when none is asked for.
    #[must_use]
    pub fn default_zone(&self, region: &str) -> String {
        match self.zones {
            Zones::SameAsRegion => region.to_owned(),
            Zones::Suffix(suffix) => format!("{region}{suffix}"),
            Zones::LowerSuffix(suffix) => format!("{}{suffix}", region.to_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_named_as_the_vendor_names_it() {
        for (vendor, region, zone) in [
            ("aws", "us-west-2", "us-west-2a"),
            ("gcp", "us-central1", "us-central1-a"),
            ("azure", "westeurope", "westeurope-1"),
            ("hcloud", "fsn1", "fsn1"),
            ("ovh", "GRA11", "gra11-a"),
        ] {
            assert_eq!(Traits::of(vendor).default_zone(region), zone);
        }
    }
}
