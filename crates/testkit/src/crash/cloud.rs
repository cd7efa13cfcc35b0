//! The fake cloud: machines, and a list that shows them late.

use rand::Rng;
use rand::rngs::SmallRng;
use scarpenter_core::name::MachineId;

use super::world::Request;

/// What a machine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Running,
    Stopped,
    Deleting,
    Gone,
}

/// One machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) id: MachineId,
    pub(super) claim: usize,
    pub(super) made: i64,
    pub(super) shown: i64,
    pub(super) power: Power,
    /// The request that made it; one that arrives twice may make two.
    pub(super) request: u64,
    /// The mesh key in its document.
    pub(super) key: Option<usize>,
}

impl Machine {
    /// It is there and not on its way out.
    pub(super) fn alive(&self) -> bool {
        matches!(self.power, Power::Running | Power::Stopped)
    }
}

/// All machines ever made, by number.
#[derive(Debug, Default)]
pub(super) struct Cloud {
    pub(super) machines: Vec<Machine>,
    /// Creates on their way, by claim.
    pub(super) flying: Vec<usize>,
}

impl Cloud {
    /// Makes a machine, shown in lists after `lag` at the latest.
    pub(super) fn make(&mut self, request: &Request, now: i64, lag: i64) -> usize {
        let number = self.machines.len();
        let id = MachineId::new(format!("m{number}"));
        self.machines.push(Machine {
            id,
            claim: request.claim,
            made: now,
            shown: now + lag,
            power: Power::Running,
            request: request.number,
            key: request.key,
        });
        number
    }

    /// Machines of a claim that are not gone.
    pub(super) fn of(&self, claim: usize) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(move |machine| machine.claim == claim && machine.power != Power::Gone)
    }

    /// Whether a list made now shows the machine: the late ones are there in one answer and missing in the next.
    pub(super) fn shows(machine: &Machine, now: i64, rng: &mut SmallRng) -> bool {
        machine.power != Power::Gone && (now >= machine.shown || rng.random_ratio(1, 4))
    }

    /// Numbers of a claim's machines in a list made now, the oldest first.
    pub(super) fn list(&self, claim: usize, now: i64, rng: &mut SmallRng) -> Vec<usize> {
        (0..self.machines.len())
            .filter(|number| self.machines[*number].claim == claim)
            .filter(|number| Self::shows(&self.machines[*number], now, rng))
            .collect()
    }

    /// The number behind an id.
    pub(super) fn number(&self, id: &MachineId) -> Option<usize> {
        self.machines.iter().position(|machine| machine.id == *id)
    }
}
