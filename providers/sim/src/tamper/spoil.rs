//! Answers that break the contract.

use scarpenter_provider::pb;

use crate::faults::Nonsense;

/// An answer that can be spoilt; a nonsense that does not fit it changes nothing.
pub(super) trait Spoil {
    fn spoil(&mut self, _how: Nonsense) {}
}

impl Spoil for pb::ValidateResponse {}
impl Spoil for pb::DeleteMachineResponse {}
impl Spoil for pb::GetConsoleOutputResponse {}

impl Spoil for pb::ListOfferingsResponse {
    fn spoil(&mut self, how: Nonsense) {
        match how {
            Nonsense::ListedTwice => self.offerings.extend(self.offerings.first().cloned()),
            Nonsense::WrongType => self.offerings.iter_mut().for_each(|row| row.instance_type.clear()),
            _ => {}
        }
    }
}

impl Spoil for pb::GetCapabilitiesResponse {
    fn spoil(&mut self, how: Nonsense) {
        match how {
            Nonsense::OtherVendor => self.vendor.push_str("-not"),
            Nonsense::OtherContract => self.contract_version = 99,
            _ => {}
        }
    }
}

impl Spoil for pb::CreateMachineResponse {
    fn spoil(&mut self, how: Nonsense) {
        spoil_one(&mut self.machine, how);
    }
}

impl Spoil for pb::GetMachineResponse {
    fn spoil(&mut self, how: Nonsense) {
        spoil_one(&mut self.machine, how);
    }
}

impl Spoil for pb::ListMachinesResponse {
    fn spoil(&mut self, how: Nonsense) {
        if how == Nonsense::ListedTwice {
            self.machines.extend(self.machines.first().cloned());
        }
        if let Some(first) = self.machines.first_mut() {
            spoil_machine(first, how);
        }
    }
}

fn spoil_one(machine: &mut Option<pb::Machine>, how: Nonsense) {
    if how == Nonsense::NoMachine {
        *machine = None;
    }
    if let Some(machine) = machine {
        spoil_machine(machine, how);
    }
}

fn spoil_machine(machine: &mut pb::Machine, how: Nonsense) {
    match how {
        Nonsense::WrongClaim => machine.claim_uid = "00000000-0000-4000-8000-000000000000".to_owned(),
        Nonsense::WrongCluster => machine.cluster_id = "00000000-0000-4000-8000-000000000001".to_owned(),
        Nonsense::EmptyId => machine.id.clear(),
        Nonsense::UnknownState => machine.state = 99,
        Nonsense::WrongType => machine.instance_type.push_str("-not"),
        Nonsense::NoMachine | Nonsense::ListedTwice | Nonsense::OtherVendor | Nonsense::OtherContract => {}
    }
}
