//! Requests: the client writes, the server scaffold reads and refuses what breaks the contract.

use scarpenter_core::offering::Place;
use scarpenter_core::resources::Resources;

use super::{Wrong, arch, capacity_type, image, json, optional, place, require};
use crate::pb;
use crate::request::{ClassCheck, CreateMachine, DeleteMachine, FindMachine, PlacedImage};

const LONGEST_NAME: usize = 63;

impl From<CreateMachine> for pb::CreateMachineRequest {
    fn from(create: CreateMachine) -> Self {
        let params = create.params();
        Self {
            cluster_id: create.cluster.to_string(),
            claim_uid: create.claim.to_string(),
            pool: create.pool,
            name: create.name,
            offering: Some(pb::Offering {
                instance_type: create.instance_type,
                place: Some(create.place.into()),
                capacity_type: pb::CapacityType::from(create.capacity_type).into(),
                architecture: pb::Architecture::from(create.arch).into(),
            }),
            image: Some(create.image.into()),
            settings: Some(json::to_struct(create.settings)),
            boot_disk_gib: create.boot_disk_gib.unwrap_or_default(),
            user_data: create.user_data,
            params,
            expected_capacity: create
                .expected_capacity
                .iter()
                .map(|(name, n)| (name.to_owned(), n))
                .collect(),
        }
    }
}

impl TryFrom<pb::CreateMachineRequest> for CreateMachine {
    type Error = Wrong;

    fn try_from(request: pb::CreateMachineRequest) -> Result<Self, Wrong> {
        let offering = request.offering.ok_or("offering is missing")?;
        let create = Self {
            cluster: require("cluster_id", request.cluster_id)?.as_str().into(),
            claim: require("claim_uid", request.claim_uid)?.as_str().into(),
            pool: request.pool,
            name: host_name(request.name)?,
            instance_type: require("instance_type", offering.instance_type)?,
            place: place(offering.place)?,
            capacity_type: capacity_type(offering.capacity_type)?,
            arch: arch(offering.architecture)?,
            image: image(request.image)?,
            settings: json::from_struct(request.settings),
            boot_disk_gib: (request.boot_disk_gib > 0).then_some(request.boot_disk_gib),
            user_data: request.user_data,
            expected_capacity: request.expected_capacity.into_iter().collect::<Resources>(),
        };
        if create.params() == request.params {
            Ok(create)
        } else {
            Err(format!("params are {:?}, these parameters give {:?}", request.params, create.params()))
        }
    }
}

fn host_name(name: String) -> Result<String, Wrong> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if good {
        Ok(name)
    } else {
        Err(format!("name {name:?} is no host name of at most {LONGEST_NAME} characters"))
    }
}

/// A hint: absent or without a region is no hint.
fn hint(hint: Option<pb::Place>) -> Option<Place> {
    place(hint).ok()
}

impl From<FindMachine> for pb::GetMachineRequest {
    fn from(find: FindMachine) -> Self {
        Self {
            cluster_id: find.cluster.to_string(),
            claim_uid: find.claim.to_string(),
            machine_id: find.machine.map(|id| id.to_string()).unwrap_or_default(),
            place: find.place.map(Into::into),
        }
    }
}

impl TryFrom<pb::GetMachineRequest> for FindMachine {
    type Error = Wrong;

    fn try_from(request: pb::GetMachineRequest) -> Result<Self, Wrong> {
        Ok(Self {
            cluster: require("cluster_id", request.cluster_id)?.as_str().into(),
            claim: require("claim_uid", request.claim_uid)?.as_str().into(),
            machine: optional(request.machine_id).map(|id| id.as_str().into()),
            place: hint(request.place),
        })
    }
}

impl From<FindMachine> for pb::GetConsoleOutputRequest {
    fn from(find: FindMachine) -> Self {
        let pb::GetMachineRequest { cluster_id, claim_uid, machine_id, place } = find.into();
        Self { cluster_id, claim_uid, machine_id, place }
    }
}

impl TryFrom<pb::GetConsoleOutputRequest> for FindMachine {
    type Error = Wrong;

    fn try_from(request: pb::GetConsoleOutputRequest) -> Result<Self, Wrong> {
        let pb::GetConsoleOutputRequest { cluster_id, claim_uid, machine_id, place } = request;
        pb::GetMachineRequest { cluster_id, claim_uid, machine_id, place }.try_into()
    }
}

impl From<DeleteMachine> for pb::DeleteMachineRequest {
    fn from(delete: DeleteMachine) -> Self {
        Self {
            cluster_id: delete.cluster.to_string(),
            claim_uid: delete.claim.to_string(),
            machine_id: delete.machine.map(|id| id.to_string()).unwrap_or_default(),
            place: delete.place.map(Into::into),
            only_this_machine: delete.only_this_machine,
        }
    }
}

impl TryFrom<pb::DeleteMachineRequest> for DeleteMachine {
    type Error = Wrong;

    fn try_from(request: pb::DeleteMachineRequest) -> Result<Self, Wrong> {
        if request.only_this_machine && request.machine_id.is_empty() {
            return Err("only_this_machine needs machine_id".to_owned());
        }
        Ok(Self {
            cluster: require("cluster_id", request.cluster_id)?.as_str().into(),
            claim: require("claim_uid", request.claim_uid)?.as_str().into(),
            machine: optional(request.machine_id).map(|id| id.as_str().into()),
            place: hint(request.place),
            only_this_machine: request.only_this_machine,
        })
    }
}

impl From<ClassCheck> for pb::ValidateRequest {
    fn from(check: ClassCheck) -> Self {
        let images = check.images.into_iter().map(|placed| pb::PlacedImage {
            region: placed.region.unwrap_or_default(),
            architecture: placed.arch.map_or(0, |arch| pb::Architecture::from(arch).into()),
            image: Some(placed.image.into()),
        });
        Self {
            cluster_id: check.cluster,
            node_class: check.node_class,
            regions: check.regions,
            images: images.collect(),
            settings: Some(json::to_struct(check.settings)),
            boot_disk_gib: check.boot_disk_gib.unwrap_or_default(),
        }
    }
}

impl TryFrom<pb::ValidateRequest> for ClassCheck {
    type Error = Wrong;

    fn try_from(request: pb::ValidateRequest) -> Result<Self, Wrong> {
        let images = request.images.into_iter().map(|placed| {
            let any_arch = placed.architecture == pb::Architecture::Unspecified as i32;
            Ok::<_, Wrong>(PlacedImage {
                region: optional(placed.region),
                arch: if any_arch { None } else { Some(arch(placed.architecture)?) },
                image: image(placed.image)?,
            })
        });
        Ok(Self {
            cluster: require("cluster_id", request.cluster_id)?,
            node_class: request.node_class,
            regions: request.regions,
            images: images.collect::<Result<_, _>>()?,
            settings: json::from_struct(request.settings),
            boot_disk_gib: (request.boot_disk_gib > 0).then_some(request.boot_disk_gib),
        })
    }
}
