//! What a vendor remembers of a machine that it sold: all that the state file keeps.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, Vendor};
use scarpenter_core::offering::CapacityType;
use scarpenter_provider::CreateMachine;
use serde::{Deserialize, Serialize};

use crate::faults::{MachineFault, Subject};
use crate::vendor::Traits;

/// A machine as it was sold.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sold {
    pub(crate) id: MachineId,
    pub(crate) vendor: Vendor,
    /// `None` on a machine that is none of ours.
    pub(crate) tags: Option<Tags>,
    pub(crate) name: String,
    pub(crate) region: String,
    pub(crate) zone: String,
    pub(crate) instance_type: String,
    pub(crate) capacity_type: CapacityType,
    /// Seconds since 1970.
    pub(crate) created: u64,
    #[serde(with = "base64_text")]
    pub(crate) user_data: Vec<u8>,
    pub(crate) capacity: BTreeMap<String, i64>,
    #[serde(default)]
    pub(crate) faults: MachineFault,
    /// Deletion was asked for.
    #[serde(default)]
    pub(crate) going: bool,
}

/// Whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tags {
    pub(crate) cluster: ClusterId,
    pub(crate) claim: ClaimUid,
    pub(crate) pool: String,
    pub(crate) params: String,
}

impl Sold {
    pub(crate) fn new(vendor: &Vendor, create: CreateMachine, id: MachineId, created: u64) -> Self {
        let params = create.params();
        let tags = Tags { cluster: create.cluster, claim: create.claim, pool: create.pool, params };
        let zone = create
            .place
            .zone
            .unwrap_or_else(|| Traits::of(vendor.as_str()).default_zone(&create.place.region));
        Self {
            id,
            vendor: vendor.clone(),
            tags: Some(tags),
            name: create.name,
            region: create.place.region,
            zone,
            instance_type: create.instance_type,
            capacity_type: create.capacity_type,
            created,
            user_data: create.user_data,
            capacity: create.expected_capacity.iter().map(|(name, n)| (name.to_owned(), n)).collect(),
            faults: MachineFault::default(),
            going: false,
        }
    }

    /// A private address of its own, from the number in its id.
    pub(crate) fn address(&self) -> IpAddr {
        let number = self.id.as_str().rsplit('-').next().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let [.., a, b, c] = number.unwrap_or_default().to_be_bytes();
        Ipv4Addr::new(10, a, b, c).into()
    }

    /// Whether it serves this claim of this cluster.
    pub(crate) fn serves(&self, cluster: &ClusterId, claim: &ClaimUid) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.cluster == *cluster && tags.claim == *claim)
    }

    /// Whether it belongs to this cluster.
    pub(crate) fn belongs_to(&self, cluster: &ClusterId) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.cluster == *cluster)
    }

    /// What rules are matched against.
    pub(crate) fn subject(&self) -> Subject {
        Subject {
            vendor: self.vendor.to_string(),
            region: Some(self.region.clone()),
            instance_type: Some(self.instance_type.clone()),
            capacity_type: Some(self.capacity_type.as_str().to_owned()),
        }
    }
}

impl fmt::Debug for Sold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sold").field("id", &self.id).field("tags", &self.tags).finish_non_exhaustive()
    }
}

mod base64_text {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}
