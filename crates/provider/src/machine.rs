//! Machines as a vendor reports them, and what they boot.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, Vendor};
use scarpenter_core::offering::CapacityType;

/// A machine as the vendor reports it; whose it is comes from its tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The vendor's id.
    pub id: MachineId,
    /// Tag `scarpenter-claim`.
    pub claim: ClaimUid,
    /// Tag `scarpenter-cluster`.
    pub cluster: ClusterId,
    /// Its name at the vendor.
    pub name: String,
    /// Tag `scarpenter-pool`; empty where the vendor has no room for it.
    pub pool: String,
    /// Whose machine it is.
    pub vendor: Vendor,
    /// The vendor's own region name.
    pub region: String,
    /// The vendor's own zone name, where it has zones.
    pub zone: Option<String>,
    /// The vendor's name of its type.
    pub instance_type: String,
    /// How long it is promised.
    pub capacity_type: CapacityType,
    /// What it does.
    pub state: MachineState,
    /// IP addresses, public and private.
    pub addresses: Vec<String>,
    /// When the vendor made it, seconds since 1970.
    pub created: u64,
    /// Tag `scarpenter-params`: see [`crate::request::params`].
    pub params: String,
}

/// What a machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineState {
    /// Being made or starting.
    Pending,
    /// Running.
    Running,
    /// Going away, or shutting down.
    Stopping,
    /// Off, failed or taken back, and still there: counts as dead.
    Stopped,
    /// The vendor says something that the plugin does not know.
    Unknown,
}

/// All machines of a cluster that one vendor runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineList {
    /// Each once, by id.
    pub machines: Vec<Machine>,
    /// Where the list is complete.
    pub covered: Coverage,
}

/// Where a list of machines is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Everywhere.
    All,
    /// In these regions only: of others nothing may be concluded.
    Regions(BTreeSet<String>),
}

impl Coverage {
    /// Whether a machine of `region` that is not in the list is certainly not there.
    #[must_use]
    pub fn covers(&self, region: &str) -> bool {
        match self {
            Self::All => true,
            Self::Regions(regions) => regions.contains(region),
        }
    }
}

/// What a machine boots. Its text form, `id:<id>` or `flatcar:<channel>`, is part of a machine's parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Image {
    /// The vendor's own id of an image.
    Id(String),
    /// The newest Flatcar image of this channel that the vendor publishes.
    Flatcar(String),
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id:{id}"),
            Self::Flatcar(channel) => write!(f, "flatcar:{channel}"),
        }
    }
}

/// A text that is no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no image: expected id:<id> or flatcar:<channel>")]
pub struct BadImage {
    /// What was written.
    pub text: String,
}

impl FromStr for Image {
    type Err = BadImage;

    fn from_str(text: &str) -> Result<Self, BadImage> {
        match text.split_once(':') {
            Some(("id", id)) if !id.is_empty() => Ok(Self::Id(id.to_owned())),
            Some(("flatcar", channel)) if !channel.is_empty() => Ok(Self::Flatcar(channel.to_owned())),
            _ => Err(BadImage { text: text.to_owned() }),
        }
    }
}
