//! Servers as machines: whose they are, what they do, where they can be reached.

use std::net::Ipv6Addr;
use std::time::Duration;

use jiff::Timestamp;
use scarpenter_core::name::{ClaimUid, ClusterId, MachineId, Vendor};
use scarpenter_core::offering::CapacityType;
use scarpenter_provider::{CreateMachine, Machine, MachineState};

use crate::VENDOR;
use crate::wire::{Address, Labels, PublicNet, Server};

/// Our labels begin so.
pub(crate) const TAG_PREFIX: &str = "scarpenter-";
pub(crate) const CLUSTER: &str = "scarpenter-cluster";
pub(crate) const CLAIM: &str = "scarpenter-claim";
const POOL: &str = "scarpenter-pool";
const PARAMS: &str = "scarpenter-params";

/// A server is made switched off and then started: so long after its making, `off` says nothing.
const STARTING: Duration = Duration::from_secs(180);

/// Whether the vendor takes a text as the value of a label, and the selector language reads it back as one word.
pub(crate) fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63 && text.chars().all(inner) && outer(text.chars().next()) && outer(text.chars().last())
}

/// Labels of the machine of a claim; a pool's name that the vendor has no room for is left out.
pub(crate) fn labels(create: &CreateMachine, more: &Labels) -> Labels {
    let mut out = more.clone();
    let mut put = |key: &str, value: &str| out.insert(key.to_owned(), value.to_owned());
    put(CLUSTER, create.cluster.as_str());
    put(CLAIM, create.claim.as_str());
    put(PARAMS, &create.params());
    if is_label_value(&create.pool) {
        put(POOL, &create.pool);
    }
    out
}

/// Selects the machines of a claim; `None` when no machine can carry such labels.
pub(crate) fn selector(cluster: &ClusterId, claim: &ClaimUid) -> Option<String> {
    let usable = |text: &str| !text.is_empty() && is_label_value(text);
    (usable(cluster.as_str()) && usable(claim.as_str()))
        .then(|| format!("{CLUSTER}=={cluster},{CLAIM}=={claim}"))
}

/// Selects all machines of a cluster.
pub(crate) fn cluster_selector(cluster: &ClusterId) -> Option<String> {
    is_label_value(cluster.as_str()).then(|| format!("{CLUSTER}=={cluster},{CLAIM}"))
}

/// Whether labels say that something belongs to this claim of this cluster.
pub(crate) fn belongs(labels: &Labels, cluster: &ClusterId, claim: &ClaimUid) -> bool {
    let says = |key, value| labels.get(key).map(String::as_str) == Some(value);
    says(CLUSTER, cluster.as_str()) && says(CLAIM, claim.as_str())
}

/// A server as the contract sees it at `now`.
pub(crate) fn machine(server: Server, now: Timestamp) -> Machine {
    let tag = |key: &str| server.labels.get(key).cloned().unwrap_or_default();
    let age = now.duration_since(server.created);
    let young = age.is_negative() || age.unsigned_abs() < STARTING;
    Machine {
        id: MachineId::new(server.id.to_string()),
        claim: ClaimUid::new(tag(CLAIM)),
        cluster: ClusterId::new(tag(CLUSTER)),
        pool: tag(POOL),
        params: tag(PARAMS),
        vendor: Vendor::from(VENDOR),
        // A location is its own only zone, as the catalog has it.
        zone: Some(server.location.name.clone()),
        region: server.location.name,
        instance_type: server.server_type.name,
        capacity_type: CapacityType::OnDemand,
        state: state(&server.status, young),
        addresses: addresses(&server.public_net, server.private_net.into_iter().map(|net| net.ip)),
        created: u64::try_from(server.created.as_second()).unwrap_or_default(),
        name: server.name,
    }
}

fn state(status: &str, young: bool) -> MachineState {
    match status {
        "initializing" | "starting" => MachineState::Pending,
        "running" | "migrating" => MachineState::Running,
        "stopping" | "deleting" => MachineState::Stopping,
        "off" if young => MachineState::Pending,
        "off" => MachineState::Stopped,
        "rebuilding" | "unknown" => MachineState::Unknown,
        other => {
            tracing::warn!(status = other, "unmapped status of a server");
            MachineState::Unknown
        }
    }
}

fn addresses(public: &PublicNet, private: impl Iterator<Item = String>) -> Vec<String> {
    let ipv4 = public.ipv4.as_ref().map(|address| address.ip.clone());
    let ipv6 = public.ipv6.as_ref().and_then(first_of);
    ipv4.into_iter().chain(ipv6).chain(private.filter(|ip| !ip.is_empty())).collect()
}

/// A server has a network of IPv6 addresses and uses the first of it.
fn first_of(network: &Address) -> Option<String> {
    let start = network.ip.split('/').next().unwrap_or_default();
    let start: Ipv6Addr = start.parse().ok()?;
    Some(Ipv6Addr::from_bits(start.to_bits() | 1).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_off_is_dead_only_when_it_has_had_time_to_start() {
        assert_eq!(state("off", true), MachineState::Pending);
        assert_eq!(state("off", false), MachineState::Stopped);
        assert_eq!(state("deleting", true), MachineState::Stopping);
        assert_eq!(state("a new word", false), MachineState::Unknown);
    }

    #[test]
    fn a_network_of_ipv6_is_reached_at_its_first_address() {
        let public = PublicNet {
            ipv4: Some(Address { id: Some(1), ip: "192.0.2.1".into() }),
            ipv6: Some(Address { id: Some(2), ip: "2001:db8::/64".into() }),
        };
        let private = ["10.0.0.2".to_owned(), String::new()];
        assert_eq!(addresses(&public, private.into_iter()), ["192.0.2.1", "2001:db8::1", "10.0.0.2"]);
    }

    #[test]
    fn what_would_change_the_meaning_of_a_selector_selects_nothing() {
        let cluster = ClusterId::from("c");
        for bad in ["", "x,scarpenter-cluster", "a b", "x)", "-x"] {
            assert_eq!(selector(&cluster, &ClaimUid::from(bad)), None, "{bad:?}");
        }
        assert_eq!(
            selector(&cluster, &ClaimUid::from("u-1")).as_deref(),
            Some("scarpenter-cluster==c,scarpenter-claim==u-1")
        );
    }
}
