//! The contract, for machines of this host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scarpenter_core::name::{ClusterId, Vendor};
use scarpenter_core::offering::{Arch, CapacityType, Place, Price};
use scarpenter_provider::capabilities::{Encoding, UserDataLimit};
use scarpenter_provider::request::{ClassCheck, LiveOffering, LiveOfferings, Problem, Severity};
use scarpenter_provider::{
    Capabilities, Coverage, CreateMachine, DeleteMachine, Deleted, Failure, FindMachine, Image, Machine,
    MachineList, Provider,
};

use crate::host;
use crate::kinds::{KINDS, Kind, REGION, VENDOR, ZONE};
use crate::rack::{DISK_SPARE_BYTES, Rack};

/// QEMU takes more, and a guest reads it a byte at a time.
const USER_DATA_LIMIT: UserDataLimit = UserDataLimit { bytes: 256 << 10, encoding: Encoding::Raw };

/// The machines of this host as a plugin.
#[derive(Clone, Debug)]
pub struct Local {
    rack: Arc<Rack>,
    settle: Duration,
}

impl Local {
    /// With the settle time that is declared.
    #[must_use]
    pub fn new(rack: Arc<Rack>, settle: Duration) -> Self {
        Self { rack, settle }
    }

    async fn problems(&self) -> Vec<String> {
        let settings = &self.rack.settings;
        let image = crate::image::Image::open(&settings.image).err().map(|error| error.to_string());
        let programs = settings.programs.version().await.err().map(|error| error.to_string());
        let folder = self.rack.folder();
        let disk = match host::free_bytes(folder) {
            Ok(free) if free < DISK_SPARE_BYTES => Some(format!(
                "{} MiB of disk are free where {} is, and a machine needs {}: make room",
                free >> 20,
                folder.display(),
                DISK_SPARE_BYTES >> 20
            )),
            Ok(_) => None,
            Err(error) => {
                Some(format!("the disk where {} is cannot be looked at: {error}", folder.display()))
            }
        };
        image.into_iter().chain(programs).chain(disk).collect()
    }
}

/// Why machines of this host cannot boot what a class names: they boot the plugin's own image.
pub(crate) fn refused_image(own: &Path, image: &Image) -> Option<String> {
    let name = own.file_name().unwrap_or_default().to_string_lossy();
    match image {
        Image::Id(id) if *id != name => Some(format!(
            "image {id:?} is not here: this plugin has {name:?}, which it also boots for every channel"
        )),
        _ => None,
    }
}

impl Provider for Local {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            vendor: Vendor::from(VENDOR),
            user_data_limit: USER_DATA_LIMIT,
            capacity_types: vec![CapacityType::OnDemand],
            archs: vec![Arch::Amd64],
            settle: self.settle,
            rate_budget: None,
            lists_offerings: true,
            has_console: true,
        }
    }

    async fn validate(&self, check: ClassCheck) -> Result<Vec<Problem>, Failure> {
        let problem = |field: &str, severity, message| Problem {
            field: field.to_owned(),
            region: None,
            severity,
            message,
        };
        let mut out: Vec<Problem> =
            self.problems().await.into_iter().map(|words| problem("", Severity::Error, words)).collect();
        let own = &self.rack.settings.image;
        let refused = check.images.iter().filter_map(|placed| refused_image(own, &placed.image));
        out.extend(refused.map(|words| problem("image", Severity::Error, words)));
        if let Some(key) = check.settings.keys().next() {
            let words = format!("setting {key:?} is not known: machines of this host have none");
            out.push(problem("vendors.local.settings", Severity::Warning, words));
        }
        Ok(out)
    }

    async fn create_machine(&self, create: CreateMachine) -> Result<Machine, Failure> {
        self.rack.create(create).await
    }

    async fn get_machine(&self, find: FindMachine) -> Result<Option<Machine>, Failure> {
        Ok(self.rack.get(&find))
    }

    async fn list_machines(&self, cluster: ClusterId) -> Result<MachineList, Failure> {
        Ok(MachineList { machines: self.rack.list(&cluster), covered: Coverage::All })
    }

    async fn delete_machine(&self, delete: DeleteMachine) -> Result<Deleted, Failure> {
        self.rack.delete(&delete).await
    }

    async fn list_offerings(&self, regions: Vec<String>) -> Result<LiveOfferings, Failure> {
        let free = self.rack.free();
        let offering = |kind: &Kind| LiveOffering {
            instance_type: kind.name.to_owned(),
            place: Place { region: REGION.to_owned(), zone: Some(ZONE.to_owned()), zone_id: None },
            capacity_type: CapacityType::OnDemand,
            // What is there anyway costs nothing, so it is taken first.
            price: Some(Price::from_micro_usd(0)),
            available: free.lacks(kind.room()).is_none(),
        };
        let asked = regions.is_empty() || regions.iter().any(|region| region == REGION);
        Ok(LiveOfferings {
            offerings: KINDS.iter().filter(|_| asked).map(offering).collect(),
            instance_types: KINDS.iter().map(Kind::instance_type).collect(),
        })
    }

    async fn console_output(&self, find: FindMachine) -> Result<Option<String>, Failure> {
        self.rack.console(&find)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_may_name_the_image_and_any_channel_and_nothing_else() {
        let own = Path::new("/images/flatcar.qcow2");
        assert_eq!(refused_image(own, &Image::Flatcar("stable".into())), None);
        assert_eq!(refused_image(own, &Image::Id("flatcar.qcow2".into())), None);
        let words = refused_image(own, &Image::Id("/etc/shadow".into())).unwrap_or_default();
        assert!(words.contains("/etc/shadow") && words.contains("flatcar.qcow2"), "{words}");
    }
}
