//! Generated types ↔ domain types. Reading checks; what breaks the contract is a sentence that says how.

pub(crate) mod answer;
mod json;
mod request;

use scarpenter_core::offering::{Arch, CapacityType, Place};

use crate::machine::Image;
use crate::pb;

/// What is wrong with a message.
pub(crate) type Wrong = String;

pub(crate) fn require(field: &str, text: String) -> Result<String, Wrong> {
    if text.is_empty() { Err(format!("{field} is empty")) } else { Ok(text) }
}

pub(crate) fn optional(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl From<CapacityType> for pb::CapacityType {
    fn from(capacity: CapacityType) -> Self {
        match capacity {
            CapacityType::OnDemand => Self::OnDemand,
            CapacityType::Spot => Self::Spot,
        }
    }
}

pub(crate) fn capacity_type(number: i32) -> Result<CapacityType, Wrong> {
    match pb::CapacityType::try_from(number) {
        Ok(pb::CapacityType::OnDemand) => Ok(CapacityType::OnDemand),
        Ok(pb::CapacityType::Spot) => Ok(CapacityType::Spot),
        Ok(pb::CapacityType::Unspecified) | Err(_) => Err(format!("capacity type {number} is not known")),
    }
}

impl From<Arch> for pb::Architecture {
    fn from(arch: Arch) -> Self {
        match arch {
            Arch::Amd64 => Self::Amd64,
            Arch::Arm64 => Self::Arm64,
        }
    }
}

pub(crate) fn arch(number: i32) -> Result<Arch, Wrong> {
    match pb::Architecture::try_from(number) {
        Ok(pb::Architecture::Amd64) => Ok(Arch::Amd64),
        Ok(pb::Architecture::Arm64) => Ok(Arch::Arm64),
        Ok(pb::Architecture::Unspecified) | Err(_) => Err(format!("architecture {number} is not known")),
    }
}

impl From<Place> for pb::Place {
    fn from(place: Place) -> Self {
        Self {
            region: place.region,
            zone: place.zone.unwrap_or_default(),
            zone_id: place.zone_id.unwrap_or_default(),
        }
    }
}

pub(crate) fn place(place: Option<pb::Place>) -> Result<Place, Wrong> {
    let pb::Place { region, zone, zone_id } = place.ok_or("place is missing")?;
    Ok(Place { region: require("region", region)?, zone: optional(zone), zone_id: optional(zone_id) })
}

impl From<Image> for pb::Image {
    fn from(image: Image) -> Self {
        let source = match image {
            Image::Id(id) => pb::image::Source::Id(id),
            Image::Flatcar(channel) => pb::image::Source::FlatcarChannel(channel),
        };
        Self { source: Some(source) }
    }
}

pub(crate) fn image(image: Option<pb::Image>) -> Result<Image, Wrong> {
    match image.and_then(|image| image.source).ok_or("image is missing")? {
        pb::image::Source::Id(id) => Ok(Image::Id(require("image id", id)?)),
        pb::image::Source::FlatcarChannel(channel) => {
            Ok(Image::Flatcar(require("flatcar channel", channel)?))
        }
    }
}
