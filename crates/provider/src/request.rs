//! What the controller asks for.

use std::fmt;

use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, sha256_hex};
use scarpenter_core::offering::{Arch, CapacityType, Place};
use scarpenter_core::resources::Resources;

use crate::machine::Image;

pub use scarpenter_core::snapshot::{LiveOffering, LiveOfferings};

/// Settings of one vendor as the class has them: free JSON, understood by the plugin alone.
pub type Settings = serde_json::Map<String, serde_json::Value>;

/// All that is needed to make one machine. A retry sends the same.
#[derive(Clone, PartialEq)]
pub struct CreateMachine {
    /// UID of Namespace `kube-system`.
    pub cluster: ClusterId,
    /// Idempotency key.
    pub claim: ClaimUid,
    /// NodePool of the claim.
    pub pool: String,
    /// Name of claim, node and host.
    pub name: String,
    /// The vendor's name of the type.
    pub instance_type: String,
    /// Where.
    pub place: Place,
    /// How long it is promised.
    pub capacity_type: CapacityType,
    /// Architecture of the type.
    pub arch: Arch,
    /// What it boots.
    pub image: Image,
    /// `vendors.<vendor>.settings` of the class.
    pub settings: Settings,
    /// Wanted boot disk; `None` = the plan's.
    pub boot_disk_gib: Option<u32>,
    /// The Ignition document: secret, not shown by `Debug`.
    pub user_data: Vec<u8>,
    /// What the catalog promises; only the simulator reads it.
    pub expected_capacity: Resources,
}

impl CreateMachine {
    /// Tag `scarpenter-params`: two machines of one claim with the same value are equal.
    #[must_use]
    pub fn params(&self) -> String {
        params(&self.instance_type, &self.place, self.capacity_type, &self.image, &self.user_data)
    }
}

impl fmt::Debug for CreateMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateMachine")
            .field("claim", &self.claim)
            .field("name", &self.name)
            .field("instance_type", &self.instance_type)
            .field("place", &self.place)
            .field("capacity_type", &self.capacity_type)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

/// First 16 hex digits of SHA-256 over type, region, zone, capacity type, image and the SHA-256 of the user data,
/// one a line. Both sides use this one function.
#[must_use]
pub fn params(
    instance_type: &str,
    place: &Place,
    capacity_type: CapacityType,
    image: &Image,
    user_data: &[u8],
) -> String {
    let text = format!(
        "{instance_type}\n{}\n{}\n{}\n{image}\n{}\n",
        place.region,
        place.zone.as_deref().unwrap_or_default(),
        capacity_type.as_str(),
        sha256_hex(user_data),
    );
    let mut hex = sha256_hex(text.as_bytes());
    hex.truncate(16);
    hex
}

/// Which machine: by claim, with what is known about its whereabouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindMachine {
    /// UID of Namespace `kube-system`.
    pub cluster: ClusterId,
    /// Whose machine.
    pub claim: ClaimUid,
    /// The vendor's id, when known.
    pub machine: Option<MachineId>,
    /// Where it was to be made; `None` = look everywhere.
    pub place: Option<Place>,
}

/// Which machines are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteMachine {
    /// UID of Namespace `kube-system`: machines of others are never touched.
    pub cluster: ClusterId,
    /// All machines of this claim go.
    pub claim: ClaimUid,
    /// The vendor's id, when known: it goes too, though a lagging list may not show it.
    pub machine: Option<MachineId>,
    /// Where it was to be made; `None` = look everywhere.
    pub place: Option<Place>,
    /// Only `machine` goes and others of the claim stay: for the sweep, which finds doubles.
    pub only_this_machine: bool,
}

/// One node class, as far as it concerns a vendor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassCheck {
    /// UID of Namespace `kube-system`.
    pub cluster: String,
    /// Name of the class.
    pub node_class: String,
    /// Regions that it names; empty = all.
    pub regions: Vec<String>,
    /// Images that it names.
    pub images: Vec<PlacedImage>,
    /// `vendors.<vendor>.settings`.
    pub settings: Settings,
    /// Wanted boot disk; `None` = the plan's.
    pub boot_disk_gib: Option<u32>,
}

/// An image and where it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedImage {
    /// Region; `None` = every one.
    pub region: Option<String>,
    /// Architecture; `None` = every one.
    pub arch: Option<Arch>,
    /// The image.
    pub image: Image,
}

/// One thing about a class that a person can put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path in the class; empty when none is at fault.
    pub field: String,
    /// Region that it holds for; `None` = all.
    pub region: Option<String>,
    /// Whether anything can be bought in spite of it.
    pub severity: Severity,
    /// What is wrong and what to do.
    pub message: String,
}

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Works, but not as written.
    Warning,
    /// Nothing can be bought where it applies.
    Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(zone: Option<&str>) -> Place {
        Place { region: "fsn1".into(), zone: zone.map(str::to_owned), zone_id: None }
    }

    #[test]
    fn params_are_a_fixed_text_that_machines_carry_for_years() {
        let image = Image::Flatcar("stable".into());
        let tag = params("ccx33", &place(None), CapacityType::OnDemand, &image, b"{}");
        let digest = sha256_hex(b"{}");
        let text = format!("ccx33\nfsn1\n\non-demand\nflatcar:stable\n{digest}\n");
        assert_eq!(tag, sha256_hex(text.as_bytes())[..16]);
        assert_eq!(tag, "0df4a018bb8323c4");
    }

    #[test]
    fn each_parameter_counts() {
        let image = Image::Id("1".into());
        let tags = [
            params("a", &place(None), CapacityType::OnDemand, &image, b""),
            params("b", &place(None), CapacityType::OnDemand, &image, b""),
            params("a", &place(Some("z")), CapacityType::OnDemand, &image, b""),
            params("a", &place(None), CapacityType::Spot, &image, b""),
            params("a", &place(None), CapacityType::OnDemand, &Image::Flatcar("1".into()), b""),
            params("a", &place(None), CapacityType::OnDemand, &image, b"x"),
        ];
        let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
        assert_eq!(distinct.len(), tags.len());
    }
}
