//! Lessons as they are written into a ConfigMap: small JSON with a version.

use std::collections::BTreeMap;

use scarpenter_core::name::Vendor;
use scarpenter_core::resources::Resources;
use scarpenter_planner::Kind;
use serde::{Deserialize, Serialize};

use super::memory::{Learned, Memory};

/// What this program writes, and all that it reads.
const VERSION: u32 = 1;

/// Why lessons that were written are not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It is no JSON, or not of this shape.
    #[error("it is not what this program writes: {0}")]
    Shape(#[from] serde_json::Error),
    /// Another version of this program wrote it.
    #[error("it is of version {0}, and this program reads {VERSION}")]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    #[serde(default)]
    machines: Vec<Machine>,
    /// By UID of a pod, what did not take it.
    #[serde(default)]
    unfit: BTreeMap<String, Vec<Unfit>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Machine {
    class: String,
    vendor: Vendor,
    instance_type: String,
    boots: String,
    at: i64,
    allocatable: Resources,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unfit {
    class: String,
    vendor: Vendor,
    instance_type: String,
    why: String,
}

/// Lessons as text.
pub(super) fn write(memory: &Memory) -> String {
    let machines = memory.machines().iter().map(|(kind, own)| Machine {
        class: kind.class.clone(),
        vendor: kind.vendor.clone(),
        instance_type: kind.instance_type.clone(),
        boots: own.boots.clone(),
        at: own.at,
        allocatable: own.allocatable.clone(),
    });
    let unfit = memory.all_unfit().iter().map(|(pod, kinds)| {
        let kinds = kinds.iter().map(|(kind, why)| Unfit {
            class: kind.class.clone(),
            vendor: kind.vendor.clone(),
            instance_type: kind.instance_type.clone(),
            why: why.clone(),
        });
        (pod.clone(), kinds.collect())
    });
    let file = File { version: VERSION, machines: machines.collect(), unfit: unfit.collect() };
    serde_json::to_string(&file).expect("lessons are plain data")
}

/// Reads what [`write`] wrote.
///
/// # Errors
/// [`Unreadable`] when it is anything else.
pub(super) fn read(text: &str) -> Result<Memory, Unreadable> {
    let header: Header = serde_json::from_str(text)?;
    if header.version != VERSION {
        return Err(Unreadable::Version(header.version));
    }
    let file: File = serde_json::from_str(text)?;
    let mut memory = Memory::default();
    for Machine { class, vendor, instance_type, boots, at, allocatable } in file.machines {
        memory.insert(Kind { class, vendor, instance_type }, Learned { boots, allocatable, at });
    }
    for (pod, kinds) in file.unfit {
        for Unfit { class, vendor, instance_type, why } in kinds {
            memory.refuse(&pod, Kind { class, vendor, instance_type }, &why);
        }
    }
    Ok(memory)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use scarpenter_core::resources::{CPU, MEMORY};

    use super::*;

    #[test]
    fn lessons_come_back_as_they_were_written() {
        let kind =
            Kind { class: "c".to_owned(), vendor: "aws".into(), instance_type: "m7i.large".to_owned() };
        let promised = Resources::new().with(CPU, 2000).with(MEMORY, 8 << 30);
        let mut memory = Memory::default();
        memory.learn(kind.clone(), "0f", &promised, &promised, 7);
        memory.refuse("uid", kind, "1Gi short");
        assert_eq!(read(&write(&memory)).unwrap(), memory);
    }

    #[test]
    fn what_somebody_else_wrote_is_not_read() {
        assert!(matches!(read("{"), Err(Unreadable::Shape(_))));
        assert!(matches!(read("{\"version\":1,\"machines\":3}"), Err(Unreadable::Shape(_))));
        assert!(matches!(read("{\"version\":2,\"kinds\":[]}"), Err(Unreadable::Version(2))));
    }
}
