//! One played vendor as a plugin.

use std::sync::Arc;

use scarpenter_core::name::{ClusterId, Vendor};
use scarpenter_core::offering::Arch;
use scarpenter_provider::error::Call;
use scarpenter_provider::failure::Cause;
use scarpenter_provider::request::{ClassCheck, LiveOfferings, Problem, Severity};
use scarpenter_provider::{
    Capabilities, CreateMachine, DeleteMachine, Deleted, Failure, FindMachine, Image, Machine, MachineList,
    Provider,
};

use crate::cloud::Cloud;
use crate::faults::{Fault, Subject};
use crate::vendor::Traits;

const CHANNELS: [&str; 4] = ["stable", "beta", "alpha", "lts"];

#[derive(Debug)]
pub(crate) struct Player {
    cloud: Arc<Cloud>,
    vendor: Vendor,
    traits: Traits,
}

impl Player {
    pub(crate) fn new(cloud: Arc<Cloud>, vendor: Vendor) -> Self {
        let traits = Traits::of(vendor.as_str());
        Self { cloud, vendor, traits }
    }
}

impl Provider for Player {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            vendor: self.vendor.clone(),
            user_data_limit: self.traits.user_data_limit,
            capacity_types: self.traits.capacity_types.to_vec(),
            archs: vec![Arch::Amd64, Arch::Arm64],
            settle: self.cloud.habits.settle,
            rate_budget: self.traits.rate_budget,
            lists_offerings: self.cloud.market.tells(),
            has_console: true,
        }
    }

    async fn validate(&self, check: ClassCheck) -> Result<Vec<Problem>, Failure> {
        let subject = Subject { vendor: self.vendor.to_string(), ..Subject::default() };
        let told = self.cloud.faults.strike(&subject, Call::Validate, |fault| match fault {
            Fault::Problem(text) => Some(text.clone()),
            _ => None,
        });
        let problem = |field: &str, message: String| Problem {
            field: field.to_owned(),
            region: None,
            severity: Severity::Error,
            message,
        };
        let unknown = check.images.into_iter().filter_map(|placed| match placed.image {
            Image::Flatcar(channel) if !CHANNELS.contains(&channel.as_str()) => Some(channel),
            _ => None,
        });
        let unknown = unknown
            .map(|channel| problem("image.flatcar.channel", format!("Flatcar has no channel {channel:?}")));
        Ok(told.into_iter().map(|text| problem("", text)).chain(unknown).collect())
    }

    async fn create_machine(&self, create: CreateMachine) -> Result<Machine, Failure> {
        self.cloud.create(&self.vendor, create)
    }

    async fn get_machine(&self, find: FindMachine) -> Result<Option<Machine>, Failure> {
        Ok(self.cloud.get(&self.vendor, &find))
    }

    async fn list_machines(&self, cluster: ClusterId) -> Result<MachineList, Failure> {
        Ok(self.cloud.list(&self.vendor, &cluster))
    }

    async fn delete_machine(&self, delete: DeleteMachine) -> Result<Deleted, Failure> {
        self.cloud.delete(&self.vendor, &delete)
    }

    async fn list_offerings(&self, regions: Vec<String>) -> Result<LiveOfferings, Failure> {
        if self.cloud.market.tells() {
            Ok(self.cloud.market.of(&self.vendor, &regions))
        } else {
            Err(Failure::new(Cause::Unimplemented, "no file says what is sold now"))
        }
    }

    async fn console_output(&self, find: FindMachine) -> Result<Option<String>, Failure> {
        Ok(self.cloud.console(&self.vendor, &find))
    }
}
