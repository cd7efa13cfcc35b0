//! What a hollow node is told beside its document.

use std::net::IpAddr;
use std::time::Duration;

use scarpenter_core::resources::Resources;

/// One machine.
#[derive(Clone)]
pub struct Spec {
    /// The document, byte for byte as the vendor was given it.
    pub user_data: Vec<u8>,
    /// What the machine has, before kubelet keeps anything back.
    pub capacity: Resources,
    /// Time from power on until the first unit of the document starts.
    pub boot_delay: Duration,
    /// The machine's address, if it has one to report.
    pub address: Option<IpAddr>,
    /// What goes wrong.
    pub faults: Faults,
}

/// What goes wrong on the machine. The default is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The kubelet never starts.
    pub never_joins: bool,
    /// The kubelet takes another name than the document's.
    pub joins_as: Option<String>,
    /// Memory that the kubelet finds, in percent of what was promised.
    pub memory_percent: u32,
    /// The kubelet registers without the document's labels.
    pub drop_labels: bool,
    /// The kubelet registers without the document's taints.
    pub drop_taints: bool,
    /// The node never becomes Ready.
    pub never_ready: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            never_joins: false,
            joins_as: None,
            memory_percent: 100,
            drop_labels: false,
            drop_taints: false,
            never_ready: false,
        }
    }
}

// The document holds the bootstrap token.
impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spec")
            .field("user_data", &format_args!("{} bytes", self.user_data.len()))
            .field("capacity", &self.capacity)
            .field("boot_delay", &self.boot_delay)
            .field("address", &self.address)
            .field("faults", &self.faults)
            .finish()
    }
}
