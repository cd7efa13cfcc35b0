//! One machine: as it was sold, and what has become of it since.

use std::sync::Arc;

use scarpenter_provider::failure::{Cause, Failure};
use scarpenter_provider::{CreateMachine, Machine, MachineState};
use tokio::time::Instant;

use crate::metal::Powered;
use crate::sold::Sold;

pub(super) struct Record {
    pub(super) sold: Sold,
    pub(super) powered: Arc<dyn Powered>,
    pub(super) made: Instant,
    pub(super) boots: Instant,
    pub(super) ends: Option<Instant>,
}

impl Record {
    /// As the contract reports it; `None` when it carries no tags of ours.
    pub(super) fn machine(&self) -> Option<Machine> {
        let sold = &self.sold;
        let tags = sold.tags.as_ref()?;
        Some(Machine {
            id: sold.id.clone(),
            claim: tags.claim.clone(),
            cluster: tags.cluster.clone(),
            name: sold.name.clone(),
            pool: tags.pool.clone(),
            vendor: sold.vendor.clone(),
            region: sold.region.clone(),
            zone: Some(sold.zone.clone()),
            instance_type: sold.instance_type.clone(),
            capacity_type: sold.capacity_type,
            state: self.state(),
            addresses: vec![sold.address().to_string()],
            created: sold.created,
            params: tags.params.clone(),
        })
    }

    fn state(&self) -> MachineState {
        if self.ends.is_some() {
            MachineState::Stopping
        } else if self.powered.is_off() {
            MachineState::Stopped
        } else if Instant::now() < self.boots {
            MachineState::Pending
        } else {
            MachineState::Running
        }
    }

    /// What a create is told when the machine of its claim exists.
    pub(super) fn answer_again(&self, create: &CreateMachine) -> Result<Machine, Failure> {
        if self.ends.is_some() {
            return Err(Failure::new(Cause::Unavailable, "the machine of this claim is on its way out"));
        }
        let machine = self.machine().filter(|machine| machine.params == create.params());
        machine.ok_or_else(|| Failure::new(Cause::Conflict, "the claim has a machine with other parameters"))
    }
}
